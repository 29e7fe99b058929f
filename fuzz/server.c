// SPDX-License-Identifier: Apache-2.0
/* server.c — the whole server against arbitrary bytes: it never crashes, leaks or stays busy, and
 * every connection is over once its deadlines have passed. The first byte chooses the split. */
#include "net/server.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "net/router.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
    struct clock clock;
    uint64_t now_ns;
    struct loop *loop;
    struct http_req *held;
};

static uint64_t world_now(const struct clock *c)
{
    return container_of(c, struct world, clock)->now_ns;
}

static fallible echo(struct http_req *req)
{
    http_req_query(req, "q");
    http_reply_header(req, STR("x-target"), req->head.target);
    http_reply(req, 200, STR("text/plain"), req->body);
    return NULL;
}

static fallible json(struct http_req *req)
{
    struct json *body;

    TRY(http_req_json(req, &body));
    http_reply_json(req, 200, STR("{}"));
    return NULL;
}

static void on_gone(struct http_req *req)
{
    struct world *w = req->owner;

    if (w->held == req)
        w->held = NULL;
    http_reply_abort(req);
}

static fallible on_body(struct http_req *req, struct str piece)
{
    if (!piece.len)
        http_reply_end(req);
    else if (piece.p[0] == 'e')
        return err_new(ERR_UNPROCESSABLE, "an e");
    else
        http_reply_write(req, piece);
    return NULL;
}

static fallible up(struct http_req *req)
{
    req->on_body = on_body;
    req->on_gone = on_gone;
    http_reply_begin(req, 200, STR(""), HTTP_LENGTH_UNKNOWN);
    return NULL;
}

static fallible on_slow_body(struct http_req *req, struct str piece)
{
    struct world *w = req->owner;

    w->held = req; /* answered by the driver */
    if (piece.len)
        http_body_pause(req);
    return NULL;
}

static fallible slow(struct http_req *req)
{
    struct world *w = req->owner;

    w->held = req;
    req->on_body = on_slow_body;
    req->on_gone = on_gone;
    return NULL;
}

static const struct route routes[] = {
    {"GET", "/", echo, 0, 0},
    {"POST", "/", echo, 0, 1000},
    {"POST", "/json", json, 0, 0},
    {"POST", "/up", up, ROUTE_STREAM, 0},
    {"POST", "/s", slow, ROUTE_STREAM, 0},
    {"GET", "/s", slow, 0, 0},
    {"GET", "/f/{a}/{rest...}", echo, 0, 0},
};

static void turns(struct world *w, int n)
{
    for (int i = 0; i < n; i++)
        if (loop_turn(w->loop, 0))
            abort();
}

static void answer_held(struct world *w, unsigned how)
{
    struct http_req *req = take(&w->held);

    if (!req)
        return;
    if (how % 3 == 0) {
        w->held = req;
        http_body_resume(req);
    } else if (how % 3 == 1) {
        http_reply(req, 200, STR("text/plain"), STR("held"));
    } else {
        http_reply_err(req, err_new(ERR_BUSY, "held"));
    }
}

static void talk(struct world *w, int fd, struct str text, size_t step)
{
    char sink[4096];
    unsigned how = 0;

    while (text.len) {
        ssize_t n =
            send(fd, text.p, text.len < step ? text.len : step, MSG_DONTWAIT | MSG_NOSIGNAL);
        text = str_from(text, n > 0 ? (size_t)n : text.len);
        turns(w, 2);
        answer_held(w, how++);
        while (recv(fd, sink, sizeof sink, MSG_DONTWAIT) > 0)
            turns(w, 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.clock = {world_now, world_now}, .now_ns = 1000 * NS_PER_S};
    struct router_config rc = {
        .collapse_slashes = size & 1, .redirect_slashes = size & 2, .cors_localhost = true};
    struct http_server_config sc = {.access_log = true};
    struct http_server *server;
    struct net *net;
    int pair[2];

    if (size < 1)
        return 0;
    log_setup(2, LOG_OFF, LOG_TEXT);
    if (loop_new(&w.clock, &w.loop) || net_new(w.loop, &net))
        abort();
    struct router *router = router_new(&rc);
    router_add(router, routes, ARRAY_LEN(routes), &w);
    sc.router = router;
    if (http_server_new(net, &sc, &server) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ||
        http_server_serve(server, pair[0]))
        abort();
    talk(&w, pair[1], str_n(data + 1, size - 1), data[0] % 64 == 63 ? 65536 : data[0] % 64 + 1u);
    if (data[0] & 64)
        shutdown(pair[1], SHUT_WR);
    if (data[0] & 128)
        close(take_fd(&pair[1]));
    turns(&w, 3);
    answer_held(&w, 1);
    for (int i = 0; i < 4; i++) { /* whatever waits has a deadline */
        w.now_ns += 100 * NS_PER_S;
        turns(&w, 4);
        answer_held(&w, 2);
    }
    if (http_server_connections(server) != 0)
        abort();
    http_server_free(server);
    net_free(net);
    loop_free(w.loop);
    router_free(router);
    own_close(pair[1]);
    return 0;
}
