// SPDX-License-Identifier: Apache-2.0
/* api.c — see api.h. A runtime of another tenant is answered exactly like one that never was. */
#include "host/runtime/api.h"

#include <stdio.h>

#include "host/runtime/pool.h"
#include "host/runtime/runtime.h"
#include "net/server.h"
#include "sandbox/sandbox.h"

#define BODY_BYTES  (4u << 20)
#define LIST_BYTES  (64u << 20)
#define BATCH_MOST  1000
#define BUSY_WAIT_S 1

static struct runtime_face *face_of(struct http_req *req)
{
    return req->app;
}

static fallible check(struct http_req *req, unsigned scope, const struct key **ret_key)
{
    return keys_check(face_of(req)->face.keys, req, scope, ret_key);
}

/* --- answers --- */

static fallible put(struct http_req *req, struct jw *w, const struct runtime *r)
{
    struct wire_runtime object;

    TRY(runtime_describe(r, &req->arena, &object));
    wire_put_runtime(w, &object);
    return NULL;
}

static fallible reply(struct http_req *req, const struct runtime *r)
{
    own_done(buf) out;
    struct jw w;

    buf_init(&out, BODY_BYTES);
    jw_init(&w, &out, JW_WEB);
    TRY(put(req, &w, r));
    TRY(buf_check(&out));
    http_reply_json(req, 200, buf_str(&out));
    return NULL;
}

void runtime_retry_after(struct http_req *req, const struct runtime_face *f, const struct err *e)
{
    unsigned seconds = err_code(e) == ERR_LIMIT ? keys_retry_s(f->face.keys) : BUSY_WAIT_S;
    int status = err_http_status(err_code(e));
    char text[16];

    if (status != 429 && status != 503)
        return;
    snprintf(text, sizeof text, "%u", seconds ? seconds : BUSY_WAIT_S);
    http_reply_header(req, STR("retry-after"), str_of(text));
}

static fallible not_found(struct str id)
{
    return err_new(ERR_NOT_FOUND, "runtime '" STR_FMT "' not found", STR_ARG(str_first(id, 100)));
}

/* --- what is asked of a runtime --- */

struct asking {
    struct runtime_ask ask;
    struct http_req *req;
    const struct key *key; /* of a start: */
    struct wire_start start;
};

static void on_done(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    struct http_req *req = container_of(ask, struct asking, ask)->req;

    if (!e)
        e = reply(req, r);
    if (!e)
        return;
    runtime_retry_after(req, face_of(req), e);
    http_reply_err(req, e);
}

static fallible new_asking(struct http_req *req, struct asking **ret)
{
    struct asking *a = arena_new(&req->arena, struct asking);

    if (!a)
        return arena_check(&req->arena);
    a->req = req;
    a->ask.done = on_done;
    *ret = a;
    return NULL;
}

static fallible begin(struct asking *a)
{
    struct runtime_face *f = face_of(a->req);
    struct err *e = manager_start(f->manager, a->key, &a->start, &a->ask);

    if (e)
        runtime_retry_after(a->req, f, e);
    return e;
}

static void on_image(void *arg, const char *record, size_t count, const struct err *why)
{
    struct asking *a = arg;
    struct str image = str_first(a->start.image, 200);
    struct err *e = NULL;

    (void)record, (void)count;
    if (why && (err_code(why) == ERR_NOT_FOUND || err_code(why) == ERR_INVALID))
        e = err_new(ERR_UNPROCESSABLE,
                    "image: '" STR_FMT "' is not here; 'host' is this machine's own system, "
                    "'croft image ls' lists the others, 'croft image import' adds one",
                    STR_ARG(image));
    else if (why)
        e = err_wrap(err_copy(why), "image '" STR_FMT "'", STR_ARG(image));
    else
        e = begin(a);
    if (e)
        http_reply_err(a->req, e);
}

/* An image that is not here is refused now, and not found out by a sandbox that does not start. */
static fallible handle_start(struct http_req *req)
{
    struct asking *a = NULL;
    struct json *body;

    TRY(new_asking(req, &a));
    TRY(check(req, KEY_RUNTIME, &a->key));
    TRY(http_req_json(req, &body));
    TRY(wire_decode_start(body, &a->start));
    if (manager_has_image(face_of(req)->manager, a->start.image))
        return begin(a);
    return sbx_image_find(manager_driver(face_of(req)->manager), a->start.image, on_image, a);
}

static fallible ask(struct http_req *req, enum runtime_op op)
{
    const struct key *key;
    struct json *body;
    struct asking *a = NULL;
    struct str id;

    TRY(check(req, KEY_RUNTIME, &key));
    TRY(http_req_json(req, &body));
    TRY(wire_decode_runtime_id(body, &id));
    struct runtime *r = id.p ? manager_find_id(face_of(req)->manager, key, id) : NULL;
    if (!r)
        return id.p ? not_found(id)
                    : err_new(ERR_NOT_FOUND, "runtime_id is null: there is no such runtime");
    TRY(new_asking(req, &a));
    manager_ask(r, op, &a->ask);
    return NULL;
}

static fallible handle_stop(struct http_req *req)
{
    return ask(req, RUNTIME_STOP);
}

static fallible handle_pause(struct http_req *req)
{
    return ask(req, RUNTIME_PAUSE);
}

static fallible handle_resume(struct http_req *req)
{
    return ask(req, RUNTIME_RESUME);
}

/* --- reads --- */

static fallible handle_runtime(struct http_req *req)
{
    struct str id = http_req_param(req, "id");
    const struct key *key;

    TRY(check(req, KEY_RUNTIME | KEY_READ, &key));
    const struct runtime *r = manager_find_id(face_of(req)->manager, key, id);
    return r ? reply(req, r) : not_found(id);
}

static fallible handle_session(struct http_req *req)
{
    struct str id = http_req_param(req, "id");
    const struct key *key;

    TRY(check(req, KEY_RUNTIME | KEY_READ, &key));
    const struct runtime *r = manager_find_session(face_of(req)->manager, key, id);
    if (!r)
        return err_new(ERR_NOT_FOUND, "session '" STR_FMT "' not found",
                       STR_ARG(str_first(id, 100)));
    return reply(req, r);
}

/* ids=a&ids=b and ids=a,b; what is not there is left out. */
static fallible put_batch(struct http_req *req, struct jw *w, const struct key *key)
{
    struct url_param *params;
    size_t count, asked = 0;

    TRY(url_parse_query(&req->arena, req->query, &params, &count));
    for (size_t i = 0; i < count; i++) {
        struct str rest = params[i].value, id;
        if (!str_eq(params[i].name, STR("ids")))
            continue;
        for (bool more = true; more && rest.len;) {
            more = str_cut(&rest, ',', &id);
            if (++asked > BATCH_MOST)
                return err_new(ERR_UNPROCESSABLE, "ids: more than %d", BATCH_MOST);
            const struct runtime *r = manager_find_session(face_of(req)->manager, key, id);
            if (r)
                TRY(put(req, w, r));
        }
    }
    return NULL;
}

static fallible handle_batch(struct http_req *req)
{
    own_done(buf) out;
    const struct key *key;
    struct jw w;

    buf_init(&out, LIST_BYTES);
    TRY(check(req, KEY_RUNTIME | KEY_READ, &key));
    jw_init(&w, &out, JW_WEB);
    jw_begin_array(&w, NULL);
    TRY(put_batch(req, &w, key));
    jw_end_array(&w);
    TRY(buf_check(&out));
    http_reply_json(req, 200, buf_str(&out));
    return NULL;
}

struct listing {
    struct http_req *req;
    struct jw w;
    unsigned total;
    struct err *e;
};

static void list_one(void *arg, struct runtime *r)
{
    struct listing *l = arg;

    l->total++;
    if (!l->e)
        l->e = put(l->req, &l->w, r);
}

static fallible handle_list(struct http_req *req)
{
    own_done(buf) out;
    const struct key *key;
    struct listing l = {.req = req};

    buf_init(&out, LIST_BYTES);
    TRY(check(req, KEY_RUNTIME | KEY_READ, &key));
    jw_init(&l.w, &out, JW_WEB);
    JW_OBJECT(&l.w, NULL) {
        JW_ARRAY(&l.w, "runtimes") {
            manager_each(face_of(req)->manager, key, false, list_one, &l);
        }
        jw_uint(&l.w, "total", l.total);
    }
    TRY(l.e);
    TRY(buf_check(&out));
    http_reply_json(req, 200, buf_str(&out));
    return NULL;
}

/* --- the rest --- */

static fallible handle_health(struct http_req *req)
{
    http_reply_json(req, 200, STR("{\"status\":\"ok\"}"));
    return NULL;
}

static fallible handle_prefix(struct http_req *req)
{
    own_done(buf) out;
    const struct key *key;
    struct jw w;

    buf_init(&out, BODY_BYTES);
    TRY(check(req, KEY_RUNTIME | KEY_READ, &key));
    jw_init(&w, &out, JW_WEB);
    JW_OBJECT(&w, NULL) {
        jw_str(&w, "registry_prefix", manager_registry_prefix(face_of(req)->manager));
    }
    http_reply_json(req, 200, buf_str(&out));
    return NULL;
}

static void put_config(void *arg, const struct pool_info *info)
{
    jw_raw(arg, NULL, info->wire);
}

static fallible handle_warm_configs(struct http_req *req)
{
    own_done(buf) out;
    const struct key *key;
    struct jw w;

    buf_init(&out, BODY_BYTES);
    TRY(check(req, KEY_RUNTIME | KEY_READ, &key));
    jw_init(&w, &out, JW_WEB);
    JW_OBJECT(&w, NULL) {
        JW_ARRAY(&w, "configs") {
            pool_each(face_of(req)->manager, put_config, &w);
        }
    }
    TRY(buf_check(&out));
    http_reply_json(req, 200, buf_str(&out));
    return NULL;
}

const struct route runtime_routes[] = {
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
const size_t runtime_route_count = ARRAY_LEN(runtime_routes);
