// SPDX-License-Identifier: Apache-2.0
/* mcp.c — POST /update_mcp_server, and what became of the servers. An update is answered when each
 * is ready or has failed, or after a while: the client waits for a minute and no longer. */
#include <stdlib.h>

#include "base/mem.h"
#include "guest/exec/parts/mcp/face.h"
#include "net/router.h"
#include "net/server.h"
#include "wire/mcp.h"

#define UPDATE_MS (30 * 1000)

struct update {
    struct http_req *req;
    struct mcp_face *face;
    struct list link;
    struct loop_timer deadline;
};

static fallible put_updated(struct http_req *req, struct jw *w, const void *servers)
{
    own_done(buf) log;

    (void)req;
    buf_init(&log, 1u << 20);
    mcp_put_errors(servers, &log);
    wire_put_mcp_updated(w, log.len ? buf_str(&log) : STR(""));
    return NULL;
}

static void answer_update(struct update *u)
{
    struct http_req *req = u->req;

    list_del(&u->link);
    loop_timer_stop(&u->deadline);
    req->on_gone = NULL;
    http_reply_with(req, 200, put_updated, u->face->servers);
}

static void on_update_deadline(struct loop_timer *t)
{
    answer_update(container_of(t, struct update, deadline));
}

static void on_update_gone(struct http_req *req)
{
    struct update *u = req->user;

    list_del(&u->link);
    loop_timer_stop(&u->deadline);
    http_reply_abort(req);
}

static fallible handle_update(struct http_req *req)
{
    struct mcp_face *f = exec_of(req)->mcp;
    struct update *u = arena_new(&req->arena, struct update);
    struct wire_mcp_servers servers;
    struct json *body;

    TRY(http_req_json(req, &body));
    TRY(arena_check(&req->arena));
    TRY(wire_decode_mcp_servers(&req->arena, body, &servers));
    TRY(mcp_update(f->servers, &servers));
    *u = (struct update){.req = req, .face = f};
    list_add(&f->updates, &u->link);
    req->user = u;
    req->on_gone = on_update_gone;
    loop_timer_start(f->exec->loop, &u->deadline, UPDATE_MS, on_update_deadline);
    return NULL; /* on_change comes after the turn, also when nothing had to be started */
}

static void on_change(void *owner)
{
    struct mcp_face *f = owner;

    if (mcp_is_settled(f->servers))
        while (!list_empty(&f->updates))
            answer_update(container_of(f->updates.next, struct update, link));
    mcp_sessions_changed(f);
}

static void on_note(void *owner, const struct rpc *note)
{
    mcp_sessions_note(owner, note);
}

static fallible put_states(struct http_req *req, struct jw *w, const void *servers)
{
    (void)req;
    mcp_put_states(servers, w);
    return NULL;
}

static fallible handle_states(struct http_req *req)
{
    http_reply_with(req, 200, put_states, exec_of(req)->mcp->servers);
    return NULL;
}

static fallible face_start(struct exec *e)
{
    struct mcp_face *f = mem_new(sizeof *f);
    const struct mcp_config config = {
        .net = e->net,
        .env = e->env,
        .cwd = e->working_dir,
        .user = e->run_as,
        .spawner = e->spawner,
        .on_change = on_change,
        .on_note = on_note,
        .owner = f,
    };

    f->exec = e;
    list_init(&f->updates);
    list_init(&f->sessions);
    f->servers = mcp_new(&config);
    e->mcp = f;
    return NULL;
}

static bool face_is_busy(const struct exec *e)
{
    return !mcp_is_empty(e->mcp->servers) || !list_empty(&e->mcp->sessions);
}

static void face_close(struct exec *e)
{
    struct mcp_face *f = take(&e->mcp);

    if (!f)
        return;
    while (!list_empty(&f->updates))
        answer_update(container_of(f->updates.next, struct update, link));
    mcp_sessions_close(f);
    mcp_free(f->servers);
    free(f);
}

static void mcp_add_routes(struct exec *e)
{
    static const struct route routes[] = {
        {"POST", "/update_mcp_server", handle_update},
        {"GET", "/croft/v1/mcp", handle_states},
        {"GET", "/mcp/sse", mcp_handle_sse},
        {"GET", "/sse", mcp_handle_sse},
        {"POST", "/mcp/messages/", mcp_handle_message},
        {"POST", "/mcp/messages", mcp_handle_message},
        {"POST", "/messages/", mcp_handle_message},
    };

    router_add(e->router, routes, ARRAY_LEN(routes), e);
}

EXEC_PART(mcp) = {.add_routes = mcp_add_routes,
                  .start = face_start,
                  .close = face_close,
                  .is_busy = face_is_busy};
