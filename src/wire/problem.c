// SPDX-License-Identifier: Apache-2.0
/* problem.c — the body of a 422; see problem.h. */
#include "wire/problem.h"

#include "wire/pyrepr.h"

#define ERRORS_MAX (256u << 20)

/* A tuple: one element keeps its comma. */
static void add_place(struct buf *out, const struct wire_problem *p)
{
    buf_add_char(out, '(');
    for (unsigned i = 0; i < p->depth; i++) {
        if (i)
            buf_add(out, STR(", "));
        if (p->place[i].name)
            pyrepr_add_str(out, str_of(p->place[i].name));
        else
            buf_addf(out, "%lld", (long long)p->place[i].index);
    }
    buf_add_cstr(out, p->depth == 1 ? ",)" : ")");
}

static void add_problem(struct buf *out, const struct wire_problem *p)
{
    buf_add(out, STR("{'type': "));
    pyrepr_add_str(out, str_of(p->type));
    buf_add(out, STR(", 'loc': "));
    add_place(out, p);
    buf_add(out, STR(", 'msg': "));
    pyrepr_add_str(out, str_of(p->message));
    buf_add(out, STR(", 'input': "));
    pyrepr_add(out, p->input);
    if (p->reason) {
        buf_add(out, STR(", 'ctx': {'error': "));
        pyrepr_add_str(out, str_of(p->reason));
        buf_add_char(out, '}');
    }
    buf_add_char(out, '}');
}

void wire_put_problems(struct jw *w, const struct wire_problem *problems, size_t count)
{
    own_done(buf) errors;

    buf_init(&errors, ERRORS_MAX);
    buf_add_char(&errors, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_add(&errors, STR(", "));
        add_problem(&errors, &problems[i]);
    }
    buf_add_char(&errors, ']');
    JW_OBJECT(w, NULL) {
        jw_str(w, "detail", STR("Invalid request parameters"));
        jw_str(w, "errors", buf_str(&errors));
    }
    w->out->no_memory |= errors.no_memory;
    w->out->over_limit |= errors.over_limit;
}

struct wire_problem wire_problem_missing(const char *where, const char *name,
                                         const struct json *input)
{
    return (struct wire_problem){.type = "missing",
                                 .message = "Field required",
                                 .place = {{.name = where}, {.name = name}},
                                 .depth = name ? 2 : 1,
                                 .input = input};
}

struct wire_problem wire_problem_not_object(const char *name, const struct json *input)
{
    return (struct wire_problem){.type = "dict_type",
                                 .message = "Input should be a valid dictionary",
                                 .place = {{.name = "body"}, {.name = name}},
                                 .depth = 2,
                                 .input = input};
}

struct wire_problem wire_problem_not_bool(const char *where, const char *name,
                                          const struct json *input)
{
    return (struct wire_problem){.type = "bool_parsing",
                                 .message =
                                     "Input should be a valid boolean, unable to interpret input",
                                 .place = {{.name = where}, {.name = name}},
                                 .depth = 2,
                                 .input = input};
}

struct wire_problem wire_problem_not_json(int64_t at, const char *reason)
{
    static const struct json empty_object = {.type = JSON_OBJECT};

    return (struct wire_problem){.type = "json_invalid",
                                 .message = "JSON decode error",
                                 .place = {{.name = "body"}, {.index = at}},
                                 .depth = 2,
                                 .input = &empty_object,
                                 .reason = reason};
}

struct wire_problem wire_problem_wrong_body(const struct json *input)
{
    return (struct wire_problem){
        .type = "model_attributes_type",
        .message = "Input should be a valid dictionary or object to extract fields from",
        .place = {{.name = "body"}},
        .depth = 1,
        .input = input};
}
