// SPDX-License-Identifier: Apache-2.0
/* tunnel.c — see tunnel.h. */
#include "guest/init/tunnel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/http.h"
#include "net/listen.h"

#define CHUNK        16384
#define READS_IN_ROW 4 /* so that one tunnel starves no other */
#define AGAIN_MS     200

struct side {
    struct tunnel *tunnel;
    struct loop_io io;
    int fd;
    struct buf out;   /* for fd, not taken yet */
    bool ended, shut; /* nothing more comes from it; nothing more goes to it */
};

struct tunnel {
    struct list link;
    struct tunnels *all;
    struct side outer, inner;
    struct buf head;
    size_t scanned;
    uint16_t port;
    bool any, open;
    struct loop_timer deadline;
    struct loop_later gone;
};

static void on_side(struct loop_io *io);
static void listen_again(struct tunnels *all);

/* --- the request --- */

fallible tunnel_parse(struct str head, uint16_t *ret_port, bool *ret_any)
{
    own_done(arena) a;
    struct http_head h;
    uint64_t port;

    arena_init(&a, 4 * TUNNEL_HEAD_MAX);
    TRY(http_parse_request(&a, head, &h));
    if (!str_eq(h.method, STR("CONNECT")))
        return err_new(ERR_METHOD, "only CONNECT 127.0.0.1:PORT is answered here");
    if (h.framing != HTTP_NO_BODY)
        return err_new(ERR_INVALID, "a CONNECT has no body");
    *ret_any = str_starts(h.target, STR("localhost:"));
    if (!*ret_any && !str_starts(h.target, STR("127.0.0.1:")))
        return err_new(ERR_FORBIDDEN,
                       "only ports of 127.0.0.1 and localhost are reached from here");
    if (!str_to_u64(str_from(h.target, 10), &port) || port == 0 || port > 65535)
        return err_new(ERR_INVALID, "a port is a number from 1 to 65535");
    *ret_port = (uint16_t)port;
    return NULL;
}

/* --- ends --- */

static void on_gone(struct loop_later *l)
{
    free(container_of(l, struct tunnel, gone));
}

static void side_done(struct side *s)
{
    loop_io_stop(&s->io);
    own_close(take_fd(&s->fd));
    buf_done(&s->out);
}

static void tunnel_close(struct tunnel *t)
{
    if (t->gone.waiting)
        return;
    side_done(&t->outer);
    side_done(&t->inner);
    buf_done(&t->head);
    loop_timer_stop(&t->deadline);
    list_del(&t->link);
    t->all->count--;
    listen_again(t->all);
    loop_later(t->all->loop, &t->gone, on_gone);
}

/* One answer and the end; takes e over. */
static void tunnel_refuse(struct tunnel *t, struct err *e)
{
    int status = err_http_status(err_code(e));
    char text[512];
    own_done(buf) b;

    buf_init(&b, sizeof text);
    buf_addf(&b, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n%.300s\n",
             status, http_reason(status), err_text(e));
    err_free(e);
    send(t->outer.fd, b.p, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    tunnel_close(t);
}

static void on_deadline(struct loop_timer *timer)
{
    struct tunnel *t = container_of(timer, struct tunnel, deadline);

    tunnel_refuse(t, t->port ? err_new(ERR_TIMEOUT, "the port does not answer")
                             : err_new(ERR_REQUEST_TIMEOUT, "the request is not complete"));
}

/* --- bytes --- */

static bool tunnel_flush(struct side *to)
{
    while (to->out.len) {
        ssize_t n = send(to->fd, to->out.p, to->out.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        buf_consume(&to->out, (size_t)n);
    }
    buf_done(&to->out);
    return true;
}

/* Reads while the other side takes it. False: the tunnel is broken. */
static bool tunnel_move(struct side *from, struct side *to)
{
    char bytes[CHUNK];

    if (!tunnel_flush(to))
        return false;
    for (int i = 0; i < READS_IN_ROW && !to->out.len && !from->ended; i++) {
        ssize_t n = read(from->fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return false;
        from->ended = n == 0;
        buf_add_mem(&to->out, bytes, (size_t)n);
        if (buf_failed(&to->out) || !tunnel_flush(to))
            return false;
    }
    if (from->ended && !to->out.len && !to->shut) {
        to->shut = true;
        shutdown(to->fd, SHUT_WR); /* a peer that is gone already is fine */
    }
    return true;
}

/* A side that is not wanted is not watched: its hang-up would be told again and again. */
static bool tunnel_watch(struct side *s, const struct side *other)
{
    uint32_t want =
        (!s->ended && !other->out.len ? (uint32_t)EPOLLIN : 0) | (s->out.len ? EPOLLOUT : 0u);
    struct err *e = NULL;

    if (!want)
        loop_io_stop(&s->io);
    else if (s->io.loop)
        e = loop_io_want(&s->io, want);
    else
        e = loop_io_start(s->tunnel->all->loop, &s->io, s->fd, want, on_side);
    err_free(e);
    return !e;
}

static void tunnel_step(struct tunnel *t)
{
    struct side *a = &t->outer, *b = &t->inner;

    if (!tunnel_move(a, b) || !tunnel_move(b, a) || (a->shut && b->shut) || !tunnel_watch(a, b) ||
        !tunnel_watch(b, a))
        tunnel_close(t);
}

/* --- dialling --- */

static fallible tunnel_dial(struct tunnel *t, bool v6)
{
    struct sockaddr_storage addr;
    socklen_t len;

    addr_numeric(v6 ? STR("::1") : STR("127.0.0.1"), t->port, &addr, &len);
    TRY(connect_start(&addr, len, &t->inner.fd));
    return loop_io_start(t->all->loop, &t->inner.io, t->inner.fd, EPOLLOUT, on_side);
}

static void on_dialled(struct tunnel *t)
{
    int errnum = 0, one = 1;
    socklen_t len = sizeof errnum;
    struct err *e;

    getsockopt(t->inner.fd, SOL_SOCKET, SO_ERROR, &errnum, &len);
    if (errnum && t->any) { /* some programs listen on the newer loopback only */
        t->any = false;
        loop_io_stop(&t->inner.io);
        own_close(take_fd(&t->inner.fd));
        e = tunnel_dial(t, true);
        if (e)
            tunnel_refuse(t, e);
        return;
    }
    if (errnum) {
        tunnel_refuse(t, err_recode(err_sysno(errnum, "port %u", t->port), ERR_UPSTREAM));
        return;
    }
    setsockopt(t->inner.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    loop_timer_stop(&t->deadline);
    t->open = true;
    buf_add(&t->outer.out, STR("HTTP/1.1 200 Connection established\r\n\r\n"));
    tunnel_step(t);
}

/* --- the head of the request --- */

/* Bytes behind the head are the first of the stream. */
static fallible take_head(struct tunnel *t, size_t end)
{
    TRY(tunnel_parse(str_first(buf_str(&t->head), end), &t->port, &t->any));
    buf_add(&t->inner.out, str_from(buf_str(&t->head), end));
    buf_done(&t->head);
    loop_io_stop(&t->outer.io); /* until the port answers */
    loop_timer_start(t->all->loop, &t->deadline, TUNNEL_HEAD_MS, on_deadline);
    return tunnel_dial(t, false);
}

static void on_head(struct tunnel *t)
{
    char *room = buf_reserve(&t->head, TUNNEL_HEAD_MAX - t->head.len);
    ssize_t n = room ? read(t->outer.fd, room, TUNNEL_HEAD_MAX - t->head.len) : -1;
    size_t end = 0;

    if (n < 0 && room && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        tunnel_close(t);
        return;
    }
    buf_commit(&t->head, (size_t)n);
    struct err *e = http_head_end(buf_str(&t->head), &t->scanned, &end);
    if (!e && !end && t->head.len == TUNNEL_HEAD_MAX)
        e = err_new(ERR_HEADERS_TOO_LARGE, "the request is over %d bytes", TUNNEL_HEAD_MAX);
    if (!e && end)
        e = take_head(t, end);
    if (e)
        tunnel_refuse(t, e);
}

static void on_side(struct loop_io *io)
{
    struct side *s = container_of(io, struct side, io);
    struct tunnel *t = s->tunnel;

    if (t->open)
        tunnel_step(t);
    else if (s == &t->inner)
        on_dialled(t);
    else
        on_head(t);
}

/* --- accepting --- */

static fallible tunnel_new(struct tunnels *all, int taken)
{
    own_fd fd = taken;
    struct tunnel *t = mem_try(sizeof *t);

    if (!t)
        return err_no_memory();
    *t = (struct tunnel){.all = all, .outer = {.tunnel = t, .fd = fd}, .inner = {t, .fd = -1}};
    struct err *e = loop_io_start(all->loop, &t->outer.io, fd, EPOLLIN, on_side);
    if (e) {
        free(t);
        return e;
    }
    take_fd(&fd);
    buf_init(&t->head, TUNNEL_HEAD_MAX);
    buf_init(&t->outer.out, 2 * CHUNK);
    buf_init(&t->inner.out, 2 * CHUNK);
    loop_timer_start(all->loop, &t->deadline, TUNNEL_HEAD_MS, on_deadline);
    list_add(&all->open, &t->link);
    all->count++;
    return NULL;
}

static void on_again(struct loop_timer *timer)
{
    listen_again(container_of(timer, struct tunnels, again));
}

/* Those that find no room wait in the backlog. */
static void on_accept(struct loop_io *io)
{
    struct tunnels *all = container_of(io, struct tunnels, accept);
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    bool short_of =
        fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS);

    if (fd >= 0)
        err_free(tunnel_new(all, fd)); /* that one is cut, the others are not */
    if (short_of)
        loop_timer_start(all->loop, &all->again, AGAIN_MS, on_again);
    if (short_of || all->count == TUNNELS_MAX)
        err_free(loop_io_want(io, 0));
}

static void listen_again(struct tunnels *all)
{
    if (all->accept.loop && all->count < TUNNELS_MAX)
        err_free(loop_io_want(&all->accept, EPOLLIN)); /* modifying takes no memory */
}

void tunnels_init(struct tunnels *all)
{
    *all = (struct tunnels){0};
    list_init(&all->open);
}

fallible tunnels_start(struct tunnels *all, struct loop *loop, int listen_fd)
{
    all->loop = loop;
    TRY(fd_set_nonblocking(listen_fd));
    return loop_io_start(loop, &all->accept, listen_fd, EPOLLIN, on_accept);
}

void tunnels_stop(struct tunnels *all)
{
    loop_io_stop(&all->accept);
    loop_timer_stop(&all->again);
    LIST_EACH(t, &all->open, struct tunnel, link)
        tunnel_close(t);
}
