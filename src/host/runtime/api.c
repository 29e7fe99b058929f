// SPDX-License-Identifier: Apache-2.0
/* api.c — see api.h. A runtime of another tenant is answered exactly like one that never was. */
#include "host/runtime/api.h"

#include "host/ops/body.h"
#include "host/runtime/asking.h"
#include "host/runtime/pool.h"
#include "sandbox/sandbox.h"

#define BODY_BYTES (4u << 20)
#define BATCH_MOST 1000

static const struct runtime_api *api_of(const struct http_req *req)
{
    return req->owner;
}

static fallible api_check(struct http_req *req, unsigned scope, const struct key **ret_key)
{
    return keys_check(api_of(req)->keys, req, scope, ret_key);
}

/* --- answers --- */

static fallible put_as(struct http_req *req, struct jw *w, const struct runtime *r, bool listed)
{
    struct wire_runtime object;

    TRY(runtime_describe(r, &req->arena, &object));
    if (!keys_may_act(api_of(req)->keys, req))
        object.session_api_key = (struct str){0};
    if (!listed)
        object.pod_logs = runtime_last_words(r, &req->arena);
    wire_put_runtime(w, &object);
    return NULL;
}

static fallible api_put(struct http_req *req, struct jw *w, const struct runtime *r)
{
    return put_as(req, w, r, false);
}

static fallible api_reply(struct http_req *req, const struct runtime *r)
{
    TRY(api_put(req, http_reply_writer(req), r));
    http_reply_written(req, 200);
    return NULL;
}

static fallible not_found(struct str id)
{
    return err_new(ERR_NOT_FOUND, "runtime '" STR_FMT "' not found", STR_ARG(str_first(id, 100)));
}

/* --- what is asked of a runtime --- */

static fallible handle_start(struct http_req *req)
{
    struct asking *a = NULL;
    struct json *body;

    TRY(asking_new(api_of(req), req, api_put, &a));
    TRY(api_check(req, KEY_RUNTIME, &a->key));
    TRY(body_json(req, &body));
    TRY(wire_decode_start(body, &a->start));
    return asking_start(a);
}

static fallible api_ask(struct http_req *req, enum runtime_op op)
{
    const struct key *key;
    struct json *body;
    struct asking *a = NULL;
    struct str id;

    TRY(api_check(req, KEY_RUNTIME, &key));
    TRY(body_json(req, &body));
    TRY(wire_decode_runtime_id(body, &id));
    struct runtime *r = id.p ? manager_find(api_of(req)->manager, key, id) : NULL;
    if (!r)
        return id.p ? not_found(id)
                    : err_new(ERR_NOT_FOUND, "runtime_id is null: there is no such runtime");
    TRY(asking_new(api_of(req), req, api_put, &a));
    manager_ask(r, op, &a->ask);
    return NULL;
}

static fallible handle_stop(struct http_req *req)
{
    return api_ask(req, RUNTIME_REMOVE);
}

static fallible handle_pause(struct http_req *req)
{
    return api_ask(req, RUNTIME_PAUSE);
}

static fallible handle_resume(struct http_req *req)
{
    return api_ask(req, RUNTIME_RESUME);
}

/* --- reads --- */

static fallible handle_runtime(struct http_req *req)
{
    struct str id = http_req_param(req, "id");
    const struct key *key;

    TRY(api_check(req, KEY_RUNTIME | KEY_READ, &key));
    const struct runtime *r = manager_find(api_of(req)->manager, key, id);
    if (!r)
        return not_found(id);
    return api_reply(req, r);
}

static fallible handle_session(struct http_req *req)
{
    struct str id = http_req_param(req, "id");
    const struct key *key;

    TRY(api_check(req, KEY_RUNTIME | KEY_READ, &key));
    const struct runtime *r = manager_find_session(api_of(req)->manager, key, id);
    if (!r)
        return err_new(ERR_NOT_FOUND, "session '" STR_FMT "' not found",
                       STR_ARG(str_first(id, 100)));
    return api_reply(req, r);
}

static fallible put_session(struct http_req *req, struct jw *w, const struct key *key,
                            struct str id, bool *ret_found)
{
    const struct runtime *r = manager_find_session(api_of(req)->manager, key, id);

    *ret_found = r != NULL;
    return r ? put_as(req, w, r, true) : NULL;
}

/* ids=a&ids=b and ids=a,b, unless that is a session itself; what is not there is left out. */
static fallible put_named(struct http_req *req, struct jw *w, const struct key *key)
{
    struct url_param *params;
    size_t count, asked = 0;

    TRY(url_parse_query(&req->arena, req->query, &params, &count));
    for (size_t i = 0; i < count; i++) {
        struct str rest = params[i].value, id;
        bool found = false;
        if (!str_eq(params[i].name, STR("ids")))
            continue;
        if (memchr(rest.p, ',', rest.len))
            TRY(put_session(req, w, key, rest, &found));
        for (bool more = !found; more && rest.len;) {
            more = str_cut(&rest, ',', &id);
            if (++asked > BATCH_MOST)
                return err_new(ERR_UNPROCESSABLE, "ids: more than %d", BATCH_MOST);
            TRY(put_session(req, w, key, id, &found));
        }
    }
    return NULL;
}

static fallible handle_batch(struct http_req *req)
{
    const struct key *key;
    struct err *e = NULL;

    TRY(api_check(req, KEY_RUNTIME | KEY_READ, &key));
    struct jw *w = http_reply_writer(req);
    JW_ARRAY(w, NULL)
        e = put_named(req, w, key);
    if (!e)
        http_reply_written(req, 200);
    return e;
}

struct listing {
    struct http_req *req;
    struct jw *w;
    unsigned total;
    struct err *e;
};

static void list_one(void *arg, struct runtime *r)
{
    struct listing *l = arg;

    l->total++;
    if (!l->e)
        l->e = put_as(l->req, l->w, r, true);
}

static fallible handle_list(struct http_req *req)
{
    struct listing l = {.req = req};
    const struct key *key;

    TRY(api_check(req, KEY_RUNTIME | KEY_READ, &key));
    l.w = http_reply_writer(req);
    JW_OBJECT(l.w, NULL) {
        JW_ARRAY(l.w, "runtimes") {
            manager_each(api_of(req)->manager, key, false, list_one, &l);
        }
        jw_uint(l.w, "total", l.total);
    }
    if (!l.e)
        http_reply_written(req, 200);
    return l.e;
}

/* --- the rest --- */

static fallible handle_health(struct http_req *req)
{
    http_reply_json(req, 200, STR("{\"status\":\"ok\"}"));
    return NULL;
}

static fallible handle_prefix(struct http_req *req)
{
    const struct key *key;

    TRY(api_check(req, KEY_RUNTIME | KEY_READ, &key));
    struct jw *w = http_reply_writer(req);
    JW_OBJECT(w, NULL)
        jw_str(w, "registry_prefix", manager_registry_prefix(api_of(req)->manager));
    http_reply_written(req, 200);
    return NULL;
}

static void put_config(void *arg, const struct pool_info *info)
{
    if (info->wire.p)
        jw_raw(arg, NULL, info->wire);
}

static fallible handle_warm_configs(struct http_req *req)
{
    const struct key *key;

    TRY(api_check(req, KEY_RUNTIME | KEY_READ, &key));
    struct jw *w = http_reply_writer(req);
    JW_OBJECT(w, NULL)
        JW_ARRAY(w, "configs")
            pool_each(api_of(req)->manager, put_config, w);
    http_reply_written(req, 200);
    return NULL;
}

const struct route runtime_routes[RUNTIME_ROUTES] = {
    {"GET", "/health", handle_health, .flags = ROUTE_OPEN},
    {"GET", "/alive", handle_health, .flags = ROUTE_OPEN},
    {"GET", "/liveness", handle_health, .flags = ROUTE_OPEN},
    {"GET", "/readiness", handle_health, .flags = ROUTE_OPEN},
    {"POST", "/start", handle_start, .body_bytes = BODY_BYTES},
    {"POST", "/stop", handle_stop, .body_bytes = BODY_BYTES},
    {"POST", "/pause", handle_pause, .body_bytes = BODY_BYTES},
    {"POST", "/resume", handle_resume, .body_bytes = BODY_BYTES},
    {"GET", "/runtime/{id}", handle_runtime},
    {"GET", "/sessions/batch", handle_batch},
    {"GET", "/sessions/{id}", handle_session},
    {"GET", "/list", handle_list},
    {"GET", "/registry_prefix", handle_prefix},
    {"GET", "/api/warm-runtime-configs", handle_warm_configs},
};
