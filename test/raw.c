// SPDX-License-Identifier: Apache-2.0
/* raw.c — see raw.h. Calls of its own may be made to fail as well: then it closes. */
#include "test/raw.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/listen.h"
#include "test/test.h"

struct raw_conn {
    struct raw *raw;
    const struct raw_script *script;
    struct loop_io io;
    struct list link;
    struct buf in;
    struct str out;
    size_t answered;
    int fd;
};

static void conn_close(struct raw_conn *c, bool reset)
{
    struct linger now = {.l_onoff = 1};

    if (reset)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    loop_io_stop(&c->io);
    close(c->fd);
    list_del(&c->link);
    buf_done(&c->in);
    free(c);
}

/* False when the connection is gone. */
static bool conn_send(struct raw_conn *c)
{
    size_t most = c->script->piece ? c->script->piece : c->out.len;
    ssize_t n = send(c->fd, c->out.p, most < c->out.len ? most : c->out.len, MSG_NOSIGNAL);
    struct err *e = NULL;

    if (n < 0 && errno != EAGAIN) {
        conn_close(c, false);
        return false;
    }
    c->out = str_from(c->out, n < 0 ? 0 : (size_t)n);
    bool last = c->answered == ARRAY_LEN(c->script->answers) || !c->script->answers[c->answered].p;
    if (c->out.len == 0 && last && (c->script->end == RAW_CLOSE || c->script->end == RAW_RESET)) {
        conn_close(c, c->script->end == RAW_RESET);
        return false;
    }
    e = loop_io_want(&c->io, EPOLLIN | (c->out.len ? EPOLLOUT : 0));
    if (e)
        conn_close(c, false);
    err_free(e);
    return !e;
}

static void conn_read(struct raw_conn *c)
{
    const char *until = c->script->until ? c->script->until : "\r\n\r\n";
    char bytes[65536];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_close(c, false);
        return;
    }
    buf_add_mem(&c->in, bytes, (size_t)n);
    buf_add_mem(&c->raw->seen, bytes, (size_t)n);
    if (buf_failed(&c->in)) {
        conn_close(c, false);
        return;
    }
    if (!str_ends(buf_str(&c->in), str_of(until)))
        return;
    buf_reset(&c->in);
    c->raw->requests++;
    if (c->answered < ARRAY_LEN(c->script->answers) && c->script->answers[c->answered].p) {
        c->out = c->script->answers[c->answered++];
        conn_send(c);
    } else if (c->script->end == RAW_HANGUP) {
        conn_close(c, false);
    }
}

static void on_conn(struct loop_io *io)
{
    struct raw_conn *c = container_of(io, struct raw_conn, io);
    uint32_t ready = io->ready;

    if ((ready & EPOLLOUT) && !conn_send(c))
        return;
    if (ready & ~(uint32_t)EPOLLOUT)
        conn_read(c);
}

static void on_accept(struct loop_io *io)
{
    struct raw *r = container_of(io, struct raw, io);
    int fd = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    struct raw_conn *c = calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        return;
    }
    size_t i = r->accepted++;
    c->raw = r;
    c->script = &r->scripts[i < r->script_count ? i : r->script_count - 1];
    c->fd = fd;
    buf_init(&c->in, 64u << 20);
    list_add(&r->conns, &c->link);
    struct err *e = loop_io_start(r->loop, &c->io, fd, EPOLLIN, on_conn);
    if (e)
        conn_close(c, false);
    err_free(e);
}

void raw_start(struct raw *r, struct loop *loop, const char *address,
               const struct raw_script *scripts, size_t count)
{
    *r = (struct raw){.loop = loop, .scripts = scripts, .script_count = count};
    list_init(&r->conns);
    buf_init(&r->seen, 128u << 20);
    CHECK_OK(listen_open(str_of(address), &r->fd));
    CHECK_OK(listen_name(r->fd, false, r->url, sizeof r->url));
    CHECK_OK(loop_io_start(loop, &r->io, r->fd, EPOLLIN, on_accept));
}

void raw_close_conns(struct raw *r)
{
    LIST_EACH(c, &r->conns, struct raw_conn, link)
        conn_close(c, false);
}

void raw_stop(struct raw *r)
{
    raw_close_conns(r);
    loop_io_stop(&r->io);
    listen_close(r->fd);
    buf_done(&r->seen);
}
