// SPDX-License-Identifier: Apache-2.0
/* server.c — the server and its listeners; conn.c reads, reply.c answers. See server.h. */
#include "net/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/server_inner.h"

#define ACCEPTS_IN_ROW  64
#define LOOK_AT         16
#define ACCEPT_RETRY_MS 100 /* after the descriptors ran out */
#define KEEPALIVE_S     60  /* of silence, before a peer that vanished is looked for */

static const struct http_limits default_limits = {
    .head_ms = 10000,
    .idle_ms = 75000,
    .body_idle_ms = 30000,
    .connections = 16384,
    .body_bytes = 16u << 20,
    .arena_bytes = 64u << 20,
};

static void fill_limits(struct http_limits *l)
{
    const struct http_limits *d = &default_limits;

    l->head_ms = l->head_ms ? l->head_ms : d->head_ms;
    l->idle_ms = l->idle_ms ? l->idle_ms : d->idle_ms;
    l->body_idle_ms = l->body_idle_ms ? l->body_idle_ms : d->body_idle_ms;
    l->connections = l->connections ? l->connections : d->connections;
    l->body_bytes = l->body_bytes ? l->body_bytes : d->body_bytes;
    l->arena_bytes = l->arena_bytes ? l->arena_bytes : d->arena_bytes;
}

fallible http_server_new(struct net *net, const struct http_server_config *config,
                         struct http_server **ret_server)
{
    struct http_server *s = mem_try(sizeof *s);

    if (!s)
        return err_no_memory();
    s->net = net;
    s->config = *config;
    fill_limits(&s->config.limits);
    list_init(&s->listeners);
    list_init(&s->stalled);
    list_init(&s->conns);
    list_init(&s->idle);
    list_init(&s->requests);
    *ret_server = s;
    return NULL;
}

struct net *http_server_net(const struct http_server *server)
{
    return server->net;
}

unsigned http_server_connections(const struct http_server *server)
{
    return server->conn_count;
}

/* --- accepting --- */

static void on_accept_retry(struct loop_timer *t);

static void listener_want(struct http_listener *l, bool accepting)
{
    struct err *e = loop_io_want(&l->io, accepting ? EPOLLIN : 0);

    if (e && accepting) /* or it would be deaf for ever */
        loop_timer_start(net_loop(l->server->net), &l->retry, ACCEPT_RETRY_MS, on_accept_retry);
    err_free(e);
}

static void on_drained(struct loop_later *l)
{
    struct http_server *s = container_of(l, struct http_server, drained);

    if (s->on_drained)
        s->on_drained(s->drained_ctx);
}

/* The one that waits longest takes what became free. */
void server_wake(struct http_server *s)
{
    struct http_listener *l = LIST_FIRST(&s->stalled, struct http_listener, link);

    if (!l)
        return;
    list_del(&l->link);
    list_add(&s->listeners, &l->link);
    listener_want(l, true);
}

void server_lost_conn(struct http_server *s)
{
    s->conn_count--;
    server_wake(s);
    if (s->draining && s->conn_count == 0 && !s->freeing)
        loop_later(net_loop(s->net), &s->drained, on_drained);
}

static void on_accept_retry(struct loop_timer *t)
{
    struct http_listener *l = container_of(t, struct http_listener, retry);

    list_del(&l->link);
    list_add(&l->server->listeners, &l->link);
    listener_want(l, true);
}

static void accept_later(struct http_listener *l)
{
    listener_want(l, false);
    loop_timer_start(net_loop(l->server->net), &l->retry, ACCEPT_RETRY_MS, on_accept_retry);
}

static bool is_quiet(const struct conn *c)
{
    int unread;

    return !stream_pending(c->stream) && ioctl(stream_fd(c->stream), FIONREAD, &unread) == 0 &&
           unread == 0;
}

/* When there is no room left, closes the connection that has asked nothing for the longest time. */
static bool make_room(struct http_server *s)
{
    for (unsigned i = 0; i < LOOK_AT && !list_empty(&s->idle); i++) {
        struct conn *c = container_of(s->idle.next, struct conn, link);
        put_among(c, &s->idle);
        if (!is_quiet(c))
            continue;
        conn_close(c);
        return true;
    }
    return false;
}

/* Until one goes or has nothing to do; where some have but are not quiet yet, a little at most. */
static void server_stall(struct http_listener *l)
{
    struct http_server *s = l->server;

    if (!list_empty(&s->idle))
        accept_later(l);
    list_del(&l->link);
    list_add(&s->stalled, &l->link);
    listener_want(l, false);
}

static void on_acceptable(struct loop_io *io)
{
    struct http_listener *l = container_of(io, struct http_listener, io);
    struct http_server *s = l->server;
    int one = 1;

    for (int i = 0; i < ACCEPTS_IN_ROW; i++) {
        bool full = s->conn_count >= s->config.limits.connections;
        if (full && i > 0)
            return; /* should there be more, we hear of it */
        if (full && !make_room(s)) {
            server_stall(l);
            return;
        }
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            int why = errno;
            if ((why == EMFILE || why == ENFILE) && i == 0 && make_room(s))
                continue;
            if (why == EAGAIN || why == EINTR || why == ECONNABORTED)
                return;
            log_warn("cannot accept", KV("errno", strerror(why)));
            accept_later(l); /* out of descriptors or worse: do not spin on it */
            return;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
                   sizeof one); /* fails on unix sockets: fine */
        struct err *e = conn_new(s, fd, l->tag);
        if (e) {
            log_warn("connection refused", KV_ERR(e));
            err_free(e);
        }
    }
}

/* Connections inherit it. An answer may take hours or be a silent stream, and nothing else would
 * notice a dead peer. Unix sockets need none. */
static void set_keepalive(int listen_fd)
{
    int one = 1, idle_s = KEEPALIVE_S;

    setsockopt(listen_fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(listen_fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
}

fallible http_server_listen_as(struct http_server *s, int listen_fd, uint64_t tag,
                               struct http_listener **ret_listener)
{
    struct http_listener *l = mem_try(sizeof *l);

    if (!l) {
        listen_close(listen_fd);
        return err_no_memory();
    }
    l->server = s;
    l->fd = listen_fd;
    l->tag = tag;
    set_keepalive(listen_fd);
    struct err *e = loop_io_start(net_loop(s->net), &l->io, listen_fd, EPOLLIN, on_acceptable);
    if (e) {
        listen_close(listen_fd);
        free(l);
        return e;
    }
    list_add(&s->listeners, &l->link);
    *ret_listener = l;
    return NULL;
}

fallible http_server_listen(struct http_server *s, int listen_fd)
{
    struct http_listener *l;

    return http_server_listen_as(s, listen_fd, 0, &l);
}

void http_server_unlisten(struct http_listener *l)
{
    if (!l)
        return;
    list_del(&l->link);
    loop_timer_stop(&l->retry);
    loop_io_stop(&l->io);
    listen_close(l->fd);
    free(l);
}

static void close_listeners(struct http_server *s)
{
    LIST_EACH(l, &s->listeners, struct http_listener, link)
        http_server_unlisten(l);
    LIST_EACH(l, &s->stalled, struct http_listener, link)
        http_server_unlisten(l);
}

void http_server_drain(struct http_server *s, void (*on_done)(void *ctx), void *ctx)
{
    s->draining = true;
    s->on_drained = on_done;
    s->drained_ctx = ctx;
    close_listeners(s);
    LIST_EACH(c, &s->idle, struct conn, link)
        conn_close_when_sent(c);
    LIST_EACH(c, &s->conns, struct conn, link)
        if (!c->req)
            conn_close_when_sent(c);
    if (s->conn_count == 0)
        loop_later(net_loop(s->net), &s->drained, on_drained);
}

void http_server_free(struct http_server *s)
{
    if (!s)
        return;
    s->freeing = true;
    close_listeners(s);
    loop_later_cancel(&s->drained);
    while (!list_empty(&s->conns)) /* on_gone may close others */
        conn_abandon(container_of(s->conns.next, struct conn, link));
    while (!list_empty(&s->idle))
        conn_abandon(container_of(s->idle.next, struct conn, link));
    LIST_EACH(r, &s->requests, struct request, link) { /* their handlers still hold them */
        list_del(&r->link);
        r->pub.server = NULL;
    }
    while (s->spare) {
        struct request *r = s->spare;
        s->spare = r->next;
        request_destroy(r);
    }
    free(s);
}
