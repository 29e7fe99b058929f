// SPDX-License-Identifier: Apache-2.0
/* call.c — requests to the launcher and their answers; each answer finds its request by tag.
 *
 * Its socket holds two dozen requests, and it stands still while we do not read its answers: a
 * request that finds the socket full waits here, or both would wait for each other. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/rng.h"
#include "sandbox/native/inner.h"

struct late { /* a request that is not sent yet */
    struct list link;
    struct native_request req;
    int fds[FD_PASS_MAX]; /* ours */
    size_t count;
};

static fallible call_gone(void)
{
    return err_new(ERR_CLOSED, "the launcher is gone");
}

static void late_free(struct late *l)
{
    list_del(&l->link);
    while (l->count)
        own_close(l->fds[--l->count]);
    free(l);
}

static fallible send_later(struct native_driver *d, const struct native_request *req,
                           const int *fds, size_t count)
{
    struct late *l = mem_new(sizeof *l);

    l->req = *req;
    list_init(&l->link);
    for (; l->count < count; l->count++) {
        l->fds[l->count] = fcntl(fds[l->count], F_DUPFD_CLOEXEC, 3);
        if (l->fds[l->count] < 0) {
            struct err *e = err_sys("keep a descriptor");
            late_free(l);
            return e;
        }
    }
    struct err *e = loop_io_want(&d->io, EPOLLIN | EPOLLOUT);
    if (e)
        late_free(l);
    else
        list_add(&d->late, &l->link);
    return e;
}

static bool is_full(const struct err *e)
{
    return e && (err_errno(e) == EAGAIN || err_errno(e) == EWOULDBLOCK);
}

static bool is_end(const struct err *e)
{
    return e && (err_errno(e) == EPIPE || err_errno(e) == ECONNRESET);
}

/* It will have no answer: tells the caller that waits for one. */
static void fail_call(struct native_driver *d, uint64_t tag, struct err *e)
{
    int none[2] = {-1, -1};

    LIST_EACH(c, &d->asked, struct native_call, link) {
        if (c->tag != tag)
            continue;
        list_del(&c->link);
        c->fn(c, NULL, none, e);
        return;
    }
    err_free(e);
}

/* In the order they were made. The end of the launcher is read, and told to all, next. */
static void send_late(struct native_driver *d)
{
    for (struct late *l; (l = LIST_FIRST(&d->late, struct late, link));) {
        own(err) e = fd_send(d->io.fd, str_n(&l->req, sizeof l->req), l->fds, l->count);
        if (is_full(e))
            return;
        uint64_t tag = l->req.tag;
        late_free(l);
        if (e && !is_end(e))
            fail_call(d, tag, err_wrap(take(&e), "ask the launcher"));
    }
    err_free(loop_io_want(&d->io, EPOLLIN)); /* of one that is watched: it cannot fail for good */
}

/* --- does it answer? --- */

/* Looks at it, not time: while we stand still ourselves it is not the one that is silent. */
#define LOOKS 8

static void on_watch(struct loop_timer *t);

static void call_watch(struct native_driver *d)
{
    uint32_t ms = d->base.host->silence_ms;

    if (list_empty(&d->asked))
        d->quiet = 0;
    if (ms && !d->watch.loop)
        loop_timer_start(d->base.host->loop, &d->watch, ms / LOOKS + 1, on_watch);
}

static void on_pong(struct native_call *c, const struct native_reply *r, int *fds, struct err *e)
{
    (void)c, (void)r, (void)fds;
    err_free(e); /* any answer is one */
}

/* It may work on what takes long, in a child: then it answers this. */
static void call_ping(struct native_driver *d)
{
    struct native_request req = {.op = NATIVE_ROOT};

    if (list_empty(&d->ping.link)) /* if it cannot be asked, its end is about to be read */
        err_free(native_call(d, &d->ping, &req, NULL, 0, on_pong));
}

static void on_watch(struct loop_timer *t)
{
    struct native_driver *d = container_of(t, struct native_driver, watch);

    if (list_empty(&d->asked))
        return; /* the next request starts it */
    if (++d->quiet == LOOKS / 2)
        call_ping(d);
    if (d->quiet >= LOOKS)
        sbx_set_silent(&d->base, true);
    call_watch(d);
}

static void call_heard(struct native_driver *d)
{
    d->quiet = 0;
    sbx_set_silent(&d->base, false);
}

/* --- */

fallible native_call(struct native_driver *d, struct native_call *c, struct native_request *req,
                     const int *fds, size_t count,
                     void (*fn)(struct native_call *c, const struct native_reply *r, int *fds,
                                struct err *e))
{
    req->magic = NATIVE_MAGIC;
    req->version = NATIVE_VERSION;
    req->tag = ++d->last_tag;
    if (d->base.lost)
        return call_gone();
    struct err *e = list_empty(&d->late)
                        ? fd_send(d->base.host->launcher->sock, str_n(req, sizeof *req), fds, count)
                        : send_later(d, req, fds, count);
    if (is_full(e)) {
        err_free(e);
        e = send_later(d, req, fds, count);
    }
    if (is_end(e)) {
        err_free(e);
        d->base.lost = true; /* its end is about to be read, and told, too */
        return call_gone();
    }
    TRY_WRAP(e, "ask the launcher");
    call_watch(d);
    c->tag = req->tag;
    c->fn = fn;
    list_add(&d->asked, &c->link);
    return NULL;
}

static fallible error_of(const struct native_reply *r)
{
    if (!r->code)
        return NULL;
    return err_recode(err_new(ERR_INTERNAL, "%.*s", NATIVE_TEXT_MAX, r->text),
                      (enum err_code)(r->code - 1));
}

static void close_both(int fds[2])
{
    own_close_p(&fds[0]);
    own_close_p(&fds[1]);
}

void native_calls_drop(struct native_driver *d)
{
    for (struct late *l; (l = LIST_FIRST(&d->late, struct late, link));)
        late_free(l);
}

static void on_launcher_gone(struct native_driver *d)
{
    loop_io_stop(&d->io);
    loop_timer_stop(&d->watch);
    log_error("the launcher is gone");
    d->base.lost = true;
    d->base.silent = false; /* its end is the story now */
    native_calls_drop(d);
    /* A callback may take others off the list. */
    for (struct native_call *c; (c = LIST_FIRST(&d->asked, struct native_call, link));) {
        int none[2] = {-1, -1};
        list_del(&c->link);
        c->fn(c, NULL, none, call_gone());
    }
    if (d->base.host->on_lost)
        d->base.host->on_lost(d->base.host->lost_arg);
}

static void read_reply(struct native_driver *d)
{
    struct native_reply r;
    int fds[2] = {-1, -1};
    size_t n = 0, count = 0;
    struct err *e = fd_recv(d->io.fd, &r, sizeof r, &n, fds, 2, &count);

    if (is_full(e)) {
        err_free(e);
        return;
    }
    if (e || n != sizeof r || r.magic != NATIVE_MAGIC) {
        err_free(e);
        close_both(fds);
        on_launcher_gone(d);
        return;
    }
    r.text[sizeof r.text - 1] = '\0';
    call_heard(d);
    if (r.op == NATIVE_DIED && !r.tag) {
        native_died(d, &r);
        close_both(fds);
        return;
    }
    LIST_EACH(c, &d->asked, struct native_call, link) {
        if (c->tag != r.tag)
            continue;
        list_del(&c->link);
        c->fn(c, &r, fds, error_of(&r));
        break;
    }
    close_both(fds);
}

static void on_launcher(struct loop_io *io)
{
    struct native_driver *d = container_of(io, struct native_driver, io);

    if (io->ready & EPOLLOUT)
        send_late(d);
    if (io->ready & ~(uint32_t)EPOLLOUT)
        read_reply(d);
}

fallible native_calls_start(struct native_driver *d, struct loop *loop, int launcher)
{
    list_init(&d->asked);
    list_init(&d->late);
    list_init(&d->ping.link);
    TRY(fd_set_nonblocking(launcher));
    d->last_tag = rng_u64(rng_system()) >> 1; /* answers to a server before us match no request */
    return loop_io_start(loop, &d->io, launcher, EPOLLIN, on_launcher);
}
