// SPDX-License-Identifier: Apache-2.0
/* shells.c — see shells.h. */
#include "wire/shells.h"

#include <ctype.h>

#include "base/b64.h"

#define INPUT_MAX (16u << 20)
#define KEYS_MAX  256u

void wire_put_shell(struct jw *w, const char *key, const struct wire_shell *s)
{
    JW_OBJECT(w, key) {
        jw_str(w, "name", s->name);
        jw_int(w, "pid", s->pid);
        jw_str(w, "cwd", s->cwd);
        jw_bool(w, "running", s->running);
        jw_str(w, "command", s->command);
        jw_int(w, "columns", s->columns);
        jw_int(w, "rows", s->rows);
        jw_uint(w, "output_bytes", s->output_bytes);
    }
}

void wire_begin_shells(struct jw *w)
{
    jw_begin_object(w, NULL);
    jw_begin_array(w, "shells");
}

void wire_end_shells(struct jw *w, unsigned processes)
{
    jw_end_array(w);
    jw_uint(w, "processes", processes);
    jw_end_object(w);
}

bool wire_anything_runs(const struct json *body)
{
    const struct json *list = body ? json_get(body, STR("shells")) : NULL;

    if (body && json_get_int(body, "processes", 0) > 0)
        return true;
    for (const struct json *s = list && list->type == JSON_ARRAY ? list->first : NULL; s;
         s = s->next)
        if (json_get_bool(s, "running", false))
            return true;
    return false;
}

static bool is_variable(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.p[i] != '_' && !isalnum((unsigned char)name.p[i]))
            return false;
    return name.len && !str_is_digit(name.p[0]);
}

static fallible check_env(const struct json *env)
{
    if (env->type != JSON_OBJECT || env->count > WIRE_ENV_MAX)
        return err_new(ERR_UNPROCESSABLE, "'env' must be an object of at most %d strings",
                       WIRE_ENV_MAX);
    for (const struct json *v = env->first; v; v = v->next)
        if (v->type != JSON_STR || !is_variable(v->key) || str_find_char(v->s, '\0') >= 0)
            return err_new(ERR_UNPROCESSABLE,
                           "'env': '" STR_FMT "' must be a variable's name with a string",
                           STR_ARG(str_first(v->key, 80)));
    return NULL;
}

fallible wire_decode_new_shell(const struct json *body, struct wire_new_shell *ret_new)
{
    struct wire_new_shell n = {0};

    if (body->type != JSON_OBJECT)
        return err_new(ERR_UNPROCESSABLE, "the body must be an object");
    TRY(json_take_str(body, "name", &n.name));
    TRY(json_take_str(body, "cwd", &n.cwd));
    TRY(json_take_str(body, "pipe", &n.pipe));
    TRY(json_take_bool(body, "watched", &n.watched));
    TRY(json_take_int(body, "columns", 1, WIRE_SIDE_MAX, &n.columns));
    TRY(json_take_int(body, "rows", 1, WIRE_SIDE_MAX, &n.rows));
    n.env = json_get(body, STR("env"));
    if (n.env && n.env->type == JSON_NULL)
        n.env = NULL;
    if (n.env)
        TRY(check_env(n.env));
    *ret_new = n;
    return NULL;
}

void wire_put_new_shell(struct jw *w, const struct wire_new_shell *n)
{
    JW_OBJECT(w, NULL) {
        if (n->name.len)
            jw_str(w, "name", n->name);
        if (n->columns)
            jw_int(w, "columns", n->columns);
        if (n->rows)
            jw_int(w, "rows", n->rows);
        if (n->watched)
            jw_bool(w, "watched", true);
        if (n->pipe.len)
            jw_str(w, "pipe", n->pipe);
        if (n->cwd.len)
            jw_str(w, "cwd", n->cwd);
        if (n->env)
            jw_value(w, "env", n->env);
    }
}

fallible wire_decode_input(struct arena *a, const struct json *body, struct str *ret_bytes,
                           bool *ret_end)
{
    struct str text = {0}, coded = {0};
    own_done(buf) bytes;

    buf_init(&bytes, INPUT_MAX);
    TRY(json_take_str(body, "text", &text));
    TRY(json_take_str(body, "base64", &coded));
    TRY(json_take_bool(body, "end", ret_end));
    if (!text.p == !coded.p)
        return err_new(ERR_UNPROCESSABLE, "give 'text' or 'base64'");
    if (coded.p) {
        struct err *e = b64_decode(coded, &bytes);
        if (e)
            return err_recode(err_wrap(e, "'base64'"), ERR_UNPROCESSABLE);
        text = arena_copy(a, buf_str(&bytes));
    }
    *ret_bytes = text;
    return arena_check(a);
}

fallible wire_decode_keys(const struct json *body, const struct json **ret_keys)
{
    const struct json *keys = json_get(body, STR("keys"));
    bool good = keys && keys->type == JSON_ARRAY && keys->count <= KEYS_MAX;

    for (const struct json *k = good ? keys->first : NULL; k; k = k->next)
        good = good && k->type == JSON_STR;
    if (!good)
        return err_new(ERR_UNPROCESSABLE, "'keys' must be a list of at most %u strings", KEYS_MAX);
    *ret_keys = keys;
    return NULL;
}

fallible wire_decode_size(const struct json *body, int64_t *ret_columns, int64_t *ret_rows)
{
    TRY(json_want_int(body, "columns", 1, WIRE_SIDE_MAX, ret_columns));
    return json_want_int(body, "rows", 1, WIRE_SIDE_MAX, ret_rows);
}

fallible wire_run_of(struct arena *a, const struct json *body, const struct json **ret_event)
{
    struct json *event = json_new(a, JSON_OBJECT), *args = json_new(a, JSON_OBJECT);
    const struct json *timeout = json_get(body, STR("timeout"));

    if (body->type != JSON_OBJECT)
        return err_new(ERR_UNPROCESSABLE, "the body must be an object");
    TRY(arena_check(a));
    json_set(event, STR("action"), json_new_str(a, STR("run")));
    *args = *body; /* its members, under another name */
    args->next = NULL;
    json_set(event, STR("args"), args);
    if (timeout) {
        struct json *copy = json_new(a, JSON_NULL);
        if (copy) {
            *copy = *timeout;
            copy->next = NULL;
        }
        json_set(event, STR("timeout"), copy);
    }
    *ret_event = event;
    return arena_check(a);
}

void wire_put_input(struct jw *w, struct str base64, bool end)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "base64", base64);
        jw_bool(w, "end", end);
    }
}

void wire_put_size(struct jw *w, int64_t columns, int64_t rows)
{
    JW_OBJECT(w, NULL) {
        jw_int(w, "columns", columns);
        jw_int(w, "rows", rows);
    }
}

void wire_put_shell_run(struct jw *w, struct str command, int64_t timeout_s)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "command", command);
        jw_bool(w, "blocking", true);
        jw_int(w, "timeout", timeout_s);
    }
}
