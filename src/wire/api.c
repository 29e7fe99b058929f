// SPDX-License-Identifier: Apache-2.0
/* api.c — bodies of the Action Execution Server; see api.h. */
#include "wire/api.h"

#include "wire/action.h"
#include "wire/row.h"

#define OF wire_memory
static const struct wire_field memory_rows[] = {INT(rss, 0), INT(vms, 0), DOUBLE(percent)};
static const struct wire_fields memory_fields = WIRE_FIELDS(memory_rows);
#undef OF
#define OF wire_disk
static const struct wire_field disk_rows[] = {
    INT(total, 0),
    INT(used, 0),
    INT(free, 0),
    DOUBLE(percent),
};
static const struct wire_fields disk_fields = WIRE_FIELDS(disk_rows);
#undef OF
#define OF wire_io
static const struct wire_field io_rows[] = {INT(read_bytes, 0), INT(write_bytes, 0)};
static const struct wire_fields io_fields = WIRE_FIELDS(io_rows);
#undef OF
#define OF wire_resources
static const struct wire_field resources_rows[] = {
    DOUBLE(cpu_percent),
    GROUP(memory),
    GROUP(disk),
    GROUP(io),
};
static const struct wire_fields resources_fields = WIRE_FIELDS(resources_rows);
#undef OF
#define OF wire_server_info
static const struct wire_field info_rows[] = {
    DOUBLE(uptime),
    DOUBLE(idle_time),
    GROUP(resources),
};
static const struct wire_fields info_fields = WIRE_FIELDS(info_rows);
#undef OF
#define OF wire_upload
static const struct wire_field upload_rows[] = {
    NEED_STR(filename),
    NEED_STR(destination),
    FLAG(recursive, false),
};
static const struct wire_fields upload_fields = WIRE_FIELDS(upload_rows);
#undef OF

static void api_put(struct jw *w, const struct wire_fields *fields, const void *from)
{
    wire_put_fields(w, NULL, &(struct wire_values){.fields = fields, .base = (void *)from});
}

static fallible check_object(const struct json *body)
{
    if (body && body->type == JSON_OBJECT)
        return NULL;
    return err_new(ERR_INVALID, "the body must be an object, not %s",
                   body ? json_type_word(body) : "nothing");
}

static fallible api_decode(struct arena *a, const struct json *body,
                           const struct wire_fields *fields, void *to)
{
    struct wire_values values = {.fields = fields, .base = to};

    TRY(check_object(body));
    return wire_decode_fields(a, "", &(struct wire_members){.object = body}, &values);
}

void wire_put_detail(struct jw *w, struct str detail)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "detail", detail);
    }
}

struct str wire_find_detail(const struct json *body)
{
    return json_get_str(body, "detail", STR(""));
}

bool wire_find_action(const struct json *body, const struct json **ret_event,
                      struct wire_problem *ret_problem)
{
    const struct json *event = json_get(body, STR("action"));

    if (!body || body->type == JSON_NULL)
        *ret_problem = wire_problem_missing("body", NULL, NULL);
    else if (body->type != JSON_OBJECT)
        *ret_problem = wire_problem_wrong_body(body);
    else if (!event)
        *ret_problem = wire_problem_missing("body", "action", body);
    else if (event->type != JSON_OBJECT)
        *ret_problem = wire_problem_not_object("action", event);
    else
        *ret_event = event;
    return event && event->type == JSON_OBJECT;
}

void wire_put_execute_action(struct jw *w, const struct wire_action *action)
{
    JW_OBJECT(w, NULL) {
        wire_put_action(w, "action", action);
    }
}

void wire_put_server_info(struct jw *w, const struct wire_server_info *info)
{
    api_put(w, &info_fields, info);
}

fallible wire_decode_server_info(struct arena *a, const struct json *body,
                                 struct wire_server_info *ret_info)
{
    struct wire_server_info info;

    TRY(api_decode(a, body, &info_fields, &info));
    *ret_info = info;
    return NULL;
}

void wire_put_upload(struct jw *w, const struct wire_upload *upload)
{
    api_put(w, &upload_fields, upload);
}

bool wire_parse_bool(struct str text, bool *ret_value)
{
    static const char *const words[][2] = {{"false", "true"}, {"0", "1"}, {"off", "on"},
                                           {"no", "yes"},     {"f", "t"}, {"n", "y"}};

    for (size_t i = 0; i < ARRAY_LEN(words) * 2; i++) {
        if (!str_eq_nocase(text, str_of(words[i / 2][i % 2])))
            continue;
        *ret_value = i % 2;
        return true;
    }
    return false;
}

void wire_put_state(struct jw *w, struct str name, const char *status, const char *error)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "name", name);
        jw_cstr(w, "status", status);
        jw_cstr(w, "error", error);
    }
}

void wire_put_token(struct jw *w, struct str token)
{
    JW_OBJECT(w, NULL) {
        if (token.p)
            jw_str(w, "token", token);
        else
            jw_null(w, "token");
    }
}

void wire_put_git_change(struct jw *w, struct str status, struct str path)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "status", status);
        jw_str(w, "path", path);
    }
}

void wire_put_git_diff(struct jw *w, struct str modified, struct str original)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "modified", modified);
        jw_str(w, "original", original);
    }
}
