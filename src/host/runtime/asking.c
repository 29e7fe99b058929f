// SPDX-License-Identifier: Apache-2.0
/* asking.c — see asking.h. */
#include "host/runtime/asking.h"

#include <stdio.h>

#include "host/build/build.h"

#define BODY_BYTES  (4u << 20)
#define BODY_USUAL  1000
#define BUSY_WAIT_S 1

fallible asking_reply(struct http_req *req, asking_put *put, const struct runtime *r)
{
    own_done(buf) out;
    struct jw w;

    buf_init(&out, BODY_BYTES);
    buf_reserve(&out, BODY_USUAL);
    jw_init(&w, &out, JW_WEB);
    TRY(put(req, &w, r));
    TRY(buf_check(&out));
    http_reply_json(req, 200, buf_str(&out));
    return NULL;
}

static void say_when_again(struct http_req *req, const struct err *e)
{
    unsigned seconds =
        err_code(e) == ERR_LIMIT ? keys_retry_s(face_of(req)->face.keys) : BUSY_WAIT_S;
    int status = err_http_status(err_code(e));
    char text[16];

    if (status != 429 && status != 503)
        return;
    snprintf(text, sizeof text, "%u", seconds ? seconds : BUSY_WAIT_S);
    http_reply_header(req, STR("retry-after"), str_of(text));
}

void asking_refuse(struct http_req *req, struct err *e)
{
    say_when_again(req, e);
    http_reply_err(req, e);
}

static void on_done(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    struct asking *a = container_of(ask, struct asking, ask);

    if (!e && !a->put)
        http_reply(a->req, 204, STR(""), STR(""));
    else if (!e)
        e = asking_reply(a->req, a->put, r);
    if (e)
        asking_refuse(a->req, e);
}

fallible asking_new(struct http_req *req, asking_put *put, struct asking **ret_asking)
{
    struct asking *a = arena_new(&req->arena, struct asking);

    if (!a)
        return arena_check(&req->arena);
    a->req = req;
    a->put = put;
    a->ask.done = on_done;
    a->ask.request = http_req_id(req);
    *ret_asking = a;
    return NULL;
}

static fallible begin(struct asking *a)
{
    struct err *e = manager_start(face_of(a->req)->manager, a->key, &a->start, &a->ask);

    if (e)
        say_when_again(a->req, e);
    return e;
}

/* What it says of itself; of the text of a record. */
static fallible take_config(struct asking *a, struct str record)
{
    struct json *tree;

    TRY(json_parse(&a->req->arena, arena_copy(&a->req->arena, record), NULL, &tree));
    a->start.image_config = json_get(tree, STR("config"));
    return NULL;
}

/* --- an image that is being built --- */

static void end_wait(struct asking *a)
{
    loop_timer_stop(&a->bound);
    builds_wait_drop(&a->waiter);
    a->req->on_gone = a->req->on_hangup = NULL;
    face_of(a->req)->build_waits--;
}

static void refuse_building(struct asking *a)
{
    asking_refuse(a->req, err_new(ERR_BUSY,
                                  "image: '" STR_FMT "' is being built: start it when "
                                  "/build_status says SUCCESS",
                                  STR_ARG(str_first(a->start.image, 200))));
}

static void on_bound(struct loop_timer *t)
{
    struct asking *a = container_of(t, struct asking, bound);

    end_wait(a);
    refuse_building(a);
}

static void on_wait_gone(struct http_req *req)
{
    end_wait(req->user);
    http_reply_abort(req);
}

static void on_image(void *arg, const char *record, size_t count, const struct err *why);

static void on_build_ended(struct builds_waiter *w)
{
    struct asking *a = container_of(w, struct asking, waiter);
    struct manager *m = face_of(a->req)->manager;

    end_wait(a);
    struct err *e = a->key && a->key->revoked_ms
                        ? err_new(ERR_UNAUTHORIZED, "this key was revoked")
                        : sbx_image_find(manager_driver(m), a->start.image, on_image, a);
    if (e)
        asking_refuse(a->req, e);
}

/* Whose build it is sees it in the events; who starts it is answered as soon as it is there. */
static void wait_for_build(struct asking *a)
{
    struct runtime_face *f = face_of(a->req);
    unsigned most = manager_most_starts(f->manager);
    struct loop *loop = net_loop(http_server_net(a->req->server));
    uint64_t now = loop_now_ns(loop);

    if (!a->until_ns)
        a->until_ns = now + manager_build_wait_ms(f->manager) * NS_PER_MS;
    if (now >= a->until_ns) {
        refuse_building(a);
        return;
    }
    if (f->build_waits >= most) {
        asking_refuse(a->req, err_new(ERR_BUSY,
                                      "%u starts wait for images that are being built, which is "
                                      "the most (server.most_starts)",
                                      most));
        return;
    }
    if (http_req_is_cut(a->req)) { /* while its image was looked for: nobody would tell us */
        http_reply_abort(a->req);
        return;
    }
    f->build_waits++;
    a->waiter.done = on_build_ended;
    a->req->user = a;
    a->req->on_gone = a->req->on_hangup = on_wait_gone;
    loop_timer_start(loop, &a->bound, (a->until_ns - now) / NS_PER_MS + 1, on_bound);
    builds_wait(f->face.builds, &a->waiter);
}

static void on_image(void *arg, const char *record, size_t count, const struct err *why)
{
    struct asking *a = arg;
    struct str image = str_first(a->start.image, 200);
    struct err *e = NULL;
    bool missing = why && (err_code(why) == ERR_NOT_FOUND || err_code(why) == ERR_INVALID);

    if (missing && builds_under_way(face_of(a->req)->face.builds, a->start.image)) {
        wait_for_build(a);
        return;
    }
    if (missing)
        e = err_new(ERR_UNPROCESSABLE,
                    "image: '" STR_FMT "' is not here; 'host' is this machine's own system, "
                    "'croft image ls' lists the others, 'croft image import' adds one",
                    STR_ARG(image));
    else if (why)
        e = err_wrap(err_copy(why), "image '" STR_FMT "'", STR_ARG(image));
    else if (count)
        e = take_config(a, str_of(record));
    if (!e)
        e = begin(a);
    if (e)
        http_reply_err(a->req, e);
}

/* The session's own, whatever it is made of. */
static bool is_there(const struct asking *a)
{
    const struct runtime *r =
        manager_find_session(face_of(a->req)->manager, a->key, a->start.session_id);

    return r && r->status.now != RUNTIME_STOPPED && r->status.now != RUNTIME_ERROR;
}

/* An image that is not here is refused now, and not found out by a sandbox that does not start. */
fallible asking_start(struct asking *a)
{
    struct manager *m = face_of(a->req)->manager;

    if (is_there(a) || manager_has_image(m, a->start.image) ||
        !(manager_driver(m)->caps & SBX_IS_HERE))
        return begin(a); /* what another machine has, it knows */
    return sbx_image_find(manager_driver(m), a->start.image, on_image, a);
}
