// SPDX-License-Identifier: Apache-2.0
/* mcp.c — POST /update_mcp_server, and what became of the servers. An update is answered when each
 * is ready or has failed, or after a while: the client waits for a minute and no longer. */
#include "guest/exec/parts/mcp/part.h"
#include "net/router.h"
#include "net/server.h"
#include "wire/mcp.h"

#define UPDATE_MS (30 * 1000)

struct update {
    struct http_req *req;
    struct mcp_part *part;
    struct list link;
    struct loop_timer deadline;
};

static void answer_update(struct update *u)
{
    struct http_req *req = u->req;
    own_done(buf) log;

    list_del(&u->link);
    loop_timer_stop(&u->deadline);
    req->on_gone = NULL;
    buf_init(&log, 1u << 20);
    mcp_put_errors(u->part->servers, &log);
    wire_put_mcp_updated(http_reply_writer(req), log.len ? buf_str(&log) : STR(""));
    http_reply_written(req, 200);
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
    struct mcp_part *p = req->owner;
    struct update *u = arena_new(&req->arena, struct update);
    struct wire_mcp_servers servers;
    struct json *body;

    TRY(http_req_json(req, &body));
    TRY(arena_check(&req->arena));
    TRY(wire_decode_mcp_servers(&req->arena, body, &servers));
    TRY(mcp_update(p->servers, &servers));
    *u = (struct update){.req = req, .part = p};
    list_add(&p->updates, &u->link);
    req->user = u;
    req->on_gone = on_update_gone;
    loop_timer_start(p->exec->loop, &u->deadline, UPDATE_MS, on_update_deadline);
    return NULL; /* on_change comes after the turn, also when nothing had to be started */
}

static void on_change(void *owner)
{
    struct mcp_part *p = owner;

    if (mcp_is_settled(p->servers))
        while (!list_empty(&p->updates))
            answer_update(container_of(p->updates.next, struct update, link));
    mcp_streams_changed(p);
}

static void on_note(void *owner, const struct rpc *note)
{
    mcp_streams_note(owner, note);
}

static fallible handle_states(struct http_req *req)
{
    const struct mcp_part *p = req->owner;

    mcp_put_states(p->servers, http_reply_writer(req));
    http_reply_written(req, 200);
    return NULL;
}

static fallible mcp_part_start(struct exec *e, void *state)
{
    struct mcp_part *p = state;
    const struct mcp_config config = {
        .net = e->net,
        .env = e->env,
        .cwd = e->working_dir,
        .user = e->run_as,
        .spawner = e->spawner,
        .on_change = on_change,
        .on_note = on_note,
        .owner = p,
    };

    p->exec = e;
    list_init(&p->updates);
    list_init(&p->streams);
    p->servers = mcp_new(&config);
    return NULL;
}

static bool mcp_part_is_busy(const void *state)
{
    const struct mcp_part *p = state;

    return !mcp_is_empty(p->servers) || !list_empty(&p->streams);
}

static void mcp_part_close(struct exec *e, void *state)
{
    struct mcp_part *p = state;

    (void)e;
    if (!p->servers)
        return;
    while (!list_empty(&p->updates))
        answer_update(container_of(p->updates.next, struct update, link));
    mcp_streams_close(p);
    mcp_free(p->servers);
}

static void mcp_part_add_routes(struct exec *e, void *state)
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

    router_add(e->router, routes, ARRAY_LEN(routes), state);
}

EXEC_PART(mcp) = {.state_bytes = sizeof(struct mcp_part),
                  .add_routes = mcp_part_add_routes,
                  .start = mcp_part_start,
                  .close = mcp_part_close,
                  .is_busy = mcp_part_is_busy};

struct mcp *mcp_part_servers(const struct exec *e)
{
    const struct mcp_part *p = exec_part_state(e, &exec_parts_mcp);

    return p->servers;
}
