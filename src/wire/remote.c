// SPDX-License-Identifier: Apache-2.0
/* remote.c — see remote.h. */
#include "wire/remote.h"

#include <string.h>

#include "wire/wants.h"

static void put_environment(struct jw *w, const char *const *env)
{
    JW_OBJECT(w, "environment")
        for (; env && *env; env++) {
            const char *is = strchr(*env, '=');
            jw_key(w, str_n(*env, is ? (size_t)(is - *env) : strlen(*env)));
            jw_str(w, NULL, str_of(is ? is + 1 : ""));
        }
}

void wire_put_remote_start(struct jw *w, const struct wire_remote_start *s)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "image", s->image);
        if (s->command)
            JW_ARRAY(w, "command")
                for (const char *const *arg = s->command; *arg; arg++)
                    jw_cstr(w, NULL, *arg);
        else
            jw_null(w, "command");
        if (s->working_dir.p)
            jw_str(w, "working_dir", s->working_dir);
        put_environment(w, s->env);
        jw_str(w, "session_id", s->session_id);
        jw_int(w, "resource_factor", s->factor ? s->factor : 1);
        if (s->has_user)
            jw_int(w, "run_as_user", s->uid);
        if (s->has_group)
            jw_int(w, "run_as_group", s->gid);
        if (s->has_fs_group)
            jw_int(w, "fs_group", s->fs_group);
        if (s->wants)
            wire_put_wants(w, s->wants);
        if (s->from.p)
            jw_str(w, "from", s->from);
    }
}

void wire_put_remote_id(struct jw *w, struct str runtime_id)
{
    JW_OBJECT(w, NULL)
        jw_str(w, "runtime_id", runtime_id);
}

void wire_put_remote_name(struct jw *w, struct str name)
{
    JW_OBJECT(w, NULL)
        jw_str(w, "name", name);
}

void wire_put_remote_to(struct jw *w, struct str to)
{
    JW_OBJECT(w, NULL)
        if (to.len)
            jw_str(w, "to", to);
}

static enum wire_remote_state state_of(struct str status, struct str pod)
{
    static const char *const failed[] = {"failed", "unknown", "crashloopbackoff"};

    if (str_eq(status, STR("paused")))
        return WIRE_REMOTE_PAUSED;
    if (str_eq(status, STR("stopped")))
        return WIRE_REMOTE_STOPPED;
    if (str_eq(status, STR("error")))
        return WIRE_REMOTE_FAILED;
    for (size_t i = 0; i < ARRAY_LEN(failed); i++)
        if (str_eq_nocase(pod, str_of(failed[i])))
            return WIRE_REMOTE_FAILED;
    if (pod.len)
        return str_eq_nocase(pod, STR("ready")) ? WIRE_REMOTE_READY : WIRE_REMOTE_WAIT;
    return str_eq(status, STR("running")) ? WIRE_REMOTE_READY : WIRE_REMOTE_WAIT;
}

static void add_port(struct wire_remote *r, struct str url, int64_t port)
{
    if (r->port_count == ARRAY_LEN(r->ports) || !url.len || port < 1 || port > UINT16_MAX)
        return;
    r->ports[r->port_count].url = url;
    r->ports[r->port_count++].port = (uint16_t)port;
}

/* Ports are optional: malformed ones are left out. */
static void take_ports(const struct json *body, struct wire_remote *r)
{
    const struct json *hosts = json_get(body, STR("work_hosts"));

    add_port(r, json_get_str(body, "vscode_url", STR("")), WIRE_REMOTE_VSCODE);
    if (hosts && hosts->type == JSON_OBJECT)
        for (const struct json *one = hosts->first; one; one = one->next)
            if (one->type == JSON_INT)
                add_port(r, one->key, one->i);
}

fallible wire_decode_remote(const struct json *body, struct wire_remote *ret)
{
    struct wire_remote r = {0};

    if (!body || body->type != JSON_OBJECT)
        return err_new(ERR_UPSTREAM, "the server's answer is no runtime object");
    r.runtime_id = json_get_str(body, "runtime_id", json_get_str(body, "id", STR("")));
    r.url = json_get_str(body, "url", STR(""));
    r.session_api_key = json_get_str(body, "session_api_key", STR(""));
    r.detail = json_get_str(body, "status_detail", STR(""));
    if (!r.runtime_id.len || !r.url.len)
        return err_new(ERR_UPSTREAM, "the server's runtime object has no runtime_id or no url");
    r.status = json_get_str(body, "status", STR(""));
    r.pod = json_get_str(body, "pod_status", STR(""));
    r.pod_logs = json_get_str(body, "pod_logs", STR(""));
    r.state = state_of(r.status, r.pod);
    take_ports(body, &r);
    *ret = r;
    return NULL;
}

const struct json *wire_remote_snapshots(const struct json *body)
{
    const struct json *all = json_get(body, STR("snapshots"));

    return all && all->type == JSON_ARRAY ? all->first : NULL;
}

void wire_decode_remote_snapshot(const struct json *one, struct str *ret_name,
                                 struct str *ret_sandbox)
{
    *ret_name = json_get_str(one, "name", STR(""));
    *ret_sandbox = json_get_str(one, "sandbox", STR(""));
}

fallible wire_decode_remote_said(const struct json *one, struct str *ret_place,
                                 struct str *ret_text)
{
    TRY(json_want_str(one, "place", ret_place));
    return json_want_str(one, "text", ret_text);
}

static fallible take_count(const struct json *body, const char *key, uint64_t *ret)
{
    const struct json *n = json_get(body, str_of(key));

    if (n && n->type == JSON_INT && n->i >= 0)
        *ret = (uint64_t)n->i;
    else if (n && n->type != JSON_NULL)
        return err_new(ERR_UPSTREAM, "%s: wanted a number or null", key);
    return NULL;
}

fallible wire_decode_remote_usage(const struct json *body, struct wire_remote_usage *ret)
{
    struct wire_remote_usage u = {0};

    if (!body || body->type != JSON_OBJECT)
        return err_new(ERR_UPSTREAM, "the server's answer is no object");
    TRY(take_count(body, "memory_bytes", &u.memory_bytes));
    TRY(take_count(body, "cpu_ns", &u.cpu_ns));
    TRY(take_count(body, "pids", &u.pids));
    TRY(take_count(body, "oom_kills", &u.oom_kills));
    *ret = u;
    return NULL;
}

struct str wire_remote_after_sandbox(struct str text, struct str id)
{
    static const struct str begins = STR_INIT("{\"sandbox\":\"");

    if (!str_starts(text, begins))
        return (struct str){0};
    text = str_from(text, begins.len);
    if (!str_starts(text, id) || !str_starts(str_from(text, id.len), STR("\"")))
        return (struct str){0};
    return str_from(text, id.len + 1);
}

struct str wire_remote_detail(const struct json *body)
{
    return json_get_str(body, "detail", STR(""));
}
