// SPDX-License-Identifier: Apache-2.0
/* runtime.c — see runtime.h. */
#include "wire/runtime.h"

#include <limits.h>

#include "base/utf8.h"
#include "wire/wants.h"

static fallible check_text(const char *field, struct str s, size_t max)
{
    if (!s.len)
        return err_new(ERR_UNPROCESSABLE, "%s: must not be empty", field);
    if (s.len > max)
        return err_new(ERR_UNPROCESSABLE, "%s: %zu bytes, at most %zu", field, s.len, max);
    if (memchr(s.p, '\0', s.len))
        return err_new(ERR_UNPROCESSABLE, "%s: must not hold a NUL", field);
    return NULL;
}

/* The kernel takes no longer text, be it an argument or a variable with its name. */
#define TEXT_MAX  ((128u << 10) - 1)
#define ALL_MAX   (1u << 20) /* of an environment; so much goes into a sandbox */
#define ALL_OURS  4096u      /* of that for what every sandbox is given */
#define COUNT_MAX 4000u

static fallible decode_command(const struct json *body, const struct json **ret)
{
    const struct json *v = json_get(body, STR("command"));

    *ret = NULL;
    if (!v || v->type == JSON_NULL)
        return NULL;
    if (v->type != JSON_STR && v->type != JSON_ARRAY)
        return err_new(ERR_UNPROCESSABLE, "command: wanted a list of strings, a string or null");
    if (v->type == JSON_ARRAY && !v->count) /* as our own warm configs have it */
        return NULL;
    size_t at = 0, sum = 0;
    for (const struct json *c = v->type == JSON_ARRAY ? v->first : NULL; c; c = c->next, at++) {
        if (c->type != JSON_STR || memchr(c->s.p, '\0', c->s.len))
            return err_new(ERR_UNPROCESSABLE, "command[%zu]: wanted a string without NUL", at);
        if (c->s.len > TEXT_MAX)
            return err_new(ERR_UNPROCESSABLE, "command[%zu]: %zu bytes, at most %u", at, c->s.len,
                           TEXT_MAX);
        sum += c->s.len + 1;
    }
    if (v->type == JSON_ARRAY && !v->first->s.len)
        return err_new(ERR_UNPROCESSABLE, "command[0]: is no program: it must not be empty");
    if (at > COUNT_MAX || sum > ALL_MAX / 2)
        return err_new(ERR_UNPROCESSABLE,
                       "command: %zu words of %zu bytes in all, at most %u and %u", at, sum,
                       COUNT_MAX, ALL_MAX / 2);
    if (v->type == JSON_STR && memchr(v->s.p, '\0', v->s.len))
        return err_new(ERR_UNPROCESSABLE, "command: must not hold a NUL");
    *ret = v;
    return NULL;
}

static fallible decode_environment(const struct json *body, const struct json **ret)
{
    const struct json *v = json_get(body, STR("environment"));

    *ret = NULL;
    if (!v || v->type == JSON_NULL)
        return NULL;
    if (v->type != JSON_OBJECT)
        return err_new(ERR_UNPROCESSABLE, "environment: wanted an object of strings");
    size_t all = 0;
    for (const struct json *c = v->first; c; c = c->next) {
        if (!c->key.len || memchr(c->key.p, '=', c->key.len) || memchr(c->key.p, '\0', c->key.len))
            return err_new(ERR_UNPROCESSABLE, "environment: '" STR_FMT "' is no name of a variable",
                           STR_ARG(str_first(c->key, 80)));
        if (c->type != JSON_STR || memchr(c->s.p, '\0', c->s.len))
            return err_new(ERR_UNPROCESSABLE,
                           "environment." STR_FMT ": wanted a string without NUL",
                           STR_ARG(str_first(c->key, 80)));
        size_t len = c->key.len + 1 + c->s.len;
        if (len > TEXT_MAX)
            return err_new(ERR_UNPROCESSABLE,
                           "environment." STR_FMT ": %zu bytes with its name, at most %u",
                           STR_ARG(str_first(c->key, 80)), len, TEXT_MAX);
        all += len + 1;
    }
    if (all > ALL_MAX - ALL_OURS)
        return err_new(ERR_UNPROCESSABLE, "environment: %zu bytes in all, at most %u", all,
                       ALL_MAX - ALL_OURS);
    if (v->count > COUNT_MAX)
        return err_new(ERR_UNPROCESSABLE, "environment: %u variables, at most %u", v->count,
                       COUNT_MAX);
    *ret = v;
    return NULL;
}

/* Refuses places that no image can have. What this image lacks or closes is known when it is
 * entered. */
static fallible check_place(struct str path)
{
    static const struct str kernels[] = {STR_INIT("/proc/"), STR_INIT("/sys/")};
    struct str rest = path, part;

    if (path.p[0] != '/')
        return err_new(ERR_UNPROCESSABLE, "working_dir: wanted an absolute path");
    for (bool more = true; more;) {
        more = str_cut(&rest, '/', &part);
        if (part.len > NAME_MAX)
            return err_new(ERR_UNPROCESSABLE,
                           "working_dir: a name in it has %zu bytes, and %d is the most", part.len,
                           NAME_MAX);
    }
    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        if (str_starts(path, kernels[i]))
            return err_new(ERR_UNPROCESSABLE,
                           "working_dir: '" STR_FMT
                           "' is the kernel's: no directory can be made or "
                           "used there",
                           STR_ARG(str_first(path, 200)));
    return NULL;
}

fallible wire_decode_start(const struct json *body, struct wire_start *ret_start)
{
    struct wire_start s = {
        .resource_factor = 1, .run_as_user = -1, .run_as_group = -1, .fs_group = -1};
    struct str ignored = {0};

    if (body->type != JSON_OBJECT)
        return err_new(ERR_UNPROCESSABLE, "the body: wanted an object");
    TRY(json_want_str(body, "image", &s.image));
    TRY(check_text("image", s.image, WIRE_IMAGE_MAX));
    TRY(json_want_str(body, "session_id", &s.session_id));
    TRY(check_text("session_id", s.session_id, WIRE_SESSION_MAX));
    if (!utf8_valid(s.session_id)) /* it would be in every list, and not all parsers take that */
        return err_new(ERR_UNPROCESSABLE, "session_id: half of a surrogate pair is in it");
    TRY(decode_command(body, &s.command));
    TRY(decode_environment(body, &s.environment));
    TRY(json_take_str(body, "working_dir", &s.working_dir));
    if (s.working_dir.p) {
        TRY(check_text("working_dir", s.working_dir, 4095));
        TRY(check_place(s.working_dir));
    }
    TRY(json_take_int(body, "resource_factor", 1, WIRE_FACTOR_MAX, &s.resource_factor));
    TRY(json_take_int(body, "run_as_user", 0, 65535, &s.run_as_user));
    TRY(json_take_int(body, "run_as_group", 0, 65535, &s.run_as_group));
    TRY(json_take_int(body, "fs_group", 0, 65535, &s.fs_group));
    TRY(json_take_str(body, "runtime_class", &ignored)); /* there is one class here */
    TRY(json_take_str(body, "image_pull_policy", &ignored));
    *ret_start = s;
    return NULL;
}

fallible wire_decode_runtime_id(const struct json *body, struct str *ret_id)
{
    const struct json *v = json_get(body, STR("runtime_id"));

    if (body->type != JSON_OBJECT)
        return err_new(ERR_UNPROCESSABLE, "the body: wanted an object");
    if (!v || (v->type != JSON_STR && v->type != JSON_NULL))
        return err_new(ERR_UNPROCESSABLE, "runtime_id: wanted a string");
    *ret_id = v->type == JSON_STR ? v->s : (struct str){0};
    return NULL;
}

static void put_or_null(struct jw *w, const char *key, struct str s)
{
    if (s.p)
        jw_str(w, key, s);
    else
        jw_null(w, key);
}

/* Clients print these while they wait, and when it failed. */
static void put_state(struct jw *w, const struct wire_runtime *r)
{
    bool ready = str_eq(r->pod_status, STR("ready")), failed = str_eq(r->pod_status, STR("failed"));

    JW_ARRAY(w, "container_statuses")
        JW_OBJECT(w, NULL) {
            jw_cstr(w, "name", "sandbox");
            jw_bool(w, "ready", ready);
            jw_int(w, "restart_count", r->restart_count);
            jw_str(w, "state", r->status);
            put_or_null(w, "reason", r->status_detail);
        }
    JW_ARRAY(w, "events")
        JW_OBJECT(w, NULL) {
            jw_cstr(w, "type", failed ? "Warning" : "Normal");
            jw_str(w, "reason", r->status);
            jw_str(w, "message", r->status_detail.p ? r->status_detail : STR(""));
            put_or_null(w, "last_timestamp", r->changed_at);
        }
}

void wire_put_runtime_members(struct jw *w, const struct wire_runtime *r)
{
    jw_str(w, "runtime_id", r->runtime_id);
    jw_str(w, "session_id", r->session_id);
    jw_str(w, "url", r->url);
    put_or_null(w, "session_api_key", r->session_api_key);
    jw_str(w, "status", r->status);
    put_or_null(w, "status_detail", r->status_detail);
    jw_str(w, "pod_status", r->pod_status);
    JW_OBJECT(w, "work_hosts") {
        for (size_t i = 0; i < WIRE_WORKERS; i++)
            if (r->work_hosts[i].url.p) {
                jw_key(w, r->work_hosts[i].url);
                jw_int(w, NULL, r->work_hosts[i].port);
            }
    }
    put_or_null(w, "vscode_url", r->vscode_url);
    jw_int(w, "restart_count", r->restart_count);
    JW_ARRAY(w, "restart_reasons") {
        if (r->restart_reason.p)
            jw_str(w, NULL, r->restart_reason);
    }
    put_state(w, r);
    jw_str(w, "pod_logs", r->pod_logs.p ? r->pod_logs : STR(""));
}

void wire_put_runtime(struct jw *w, const struct wire_runtime *r)
{
    JW_OBJECT(w, NULL)
        wire_put_runtime_members(w, r);
}

static void put_id(struct jw *w, const char *key, int64_t id)
{
    if (id >= 0)
        jw_int(w, key, id);
}

void wire_put_warm_config(struct jw *w, const struct wire_warm_config *c)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "name", c->name);
        jw_str(w, "image", c->image);
        JW_ARRAY(w, "command") {
            for (const struct json *v = c->command ? c->command->first : NULL; v; v = v->next)
                jw_value(w, NULL, v);
        }
        JW_OBJECT(w, "environment") {
            for (const struct json *v = c->environment ? c->environment->first : NULL; v;
                 v = v->next) {
                jw_key(w, v->key);
                jw_value(w, NULL, v);
            }
        }
        jw_str(w, "working_dir", c->working_dir.p ? c->working_dir : STR("/workspace"));
        put_id(w, "run_as_user", c->run_as_user);
        put_id(w, "run_as_group", c->run_as_group);
        put_id(w, "fs_group", c->fs_group);
    }
}

static void put_caps(struct jw *w, const struct wire_sandbox *s)
{
    JW_ARRAY(w, "capabilities")
        for (size_t i = 0; i < s->cap_count; i++)
            jw_str(w, NULL, s->caps[i]);
    JW_ARRAY(w, "lacks")
        for (size_t i = 0; i < s->lack_count; i++)
            JW_OBJECT(w, NULL) {
                jw_str(w, "name", s->lacks[i].name);
                jw_str(w, "why", s->lacks[i].why);
                put_or_null(w, "remedy", s->lacks[i].remedy);
            }
}

void wire_put_sandbox(struct jw *w, const struct wire_sandbox *s)
{
    JW_OBJECT(w, NULL) {
        wire_put_runtime_members(w, &s->runtime);
        jw_str(w, "image", s->image);
        jw_str(w, "backend", s->backend);
        put_or_null(w, "warning", s->warning);
        jw_str(w, "face", s->face);
        put_or_null(w, "pool", s->pool);
        jw_str(w, "launch_type", s->launch);
        jw_str(w, "key", s->key);
        jw_str(w, "created_at", s->created_at);
        jw_str(w, "changed_at", s->changed_at);
        jw_bool(w, "keep", s->keep);
        jw_bool(w, "halted", s->halted);
        jw_int(w, "resource_factor", s->resource_factor);
        wire_put_wants(w, s->has);
        if (s->with_caps)
            put_caps(w, s);
        JW_OBJECT(w, "timeline") {
            jw_str(w, "launch_type", s->launch);
            put_or_null(w, "pool_miss", s->miss);
            for (size_t i = 0; i < s->phase_count; i++) {
                jw_key(w, s->phases[i].name);
                jw_uint(w, NULL, s->phases[i].ns);
            }
        }
    }
}

void wire_put_pool(struct jw *w, const struct wire_pool *p)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "name", p->name);
        jw_str(w, "image", p->image);
        jw_uint(w, "target", p->target);
        jw_uint(w, "ceiling", p->ceiling);
        jw_uint(w, "ready", p->ready);
        jw_uint(w, "starting", p->starting);
        jw_uint(w, "hits", p->hits);
        JW_OBJECT(w, "misses")
            for (size_t i = 0; i < p->miss_count; i++) {
                jw_key(w, p->misses[i].reason);
                jw_uint(w, NULL, p->misses[i].count);
            }
    }
}
