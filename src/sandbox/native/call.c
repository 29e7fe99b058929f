// SPDX-License-Identifier: Apache-2.0
/* call.c — requests to the launcher and their answers; each answer finds its request by tag. */
#include <errno.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"
#include "base/rng.h"
#include "sandbox/native/inner.h"

static fallible gone(void)
{
    return err_new(ERR_CLOSED, "the launcher is gone");
}

fallible native_call(struct native_driver *d, struct native_call *c, struct native_request *req,
                     const int *fds, size_t count,
                     void (*fn)(struct native_call *c, const struct native_reply *r, int *fds,
                                struct err *e))
{
    req->magic = NATIVE_MAGIC;
    req->version = NATIVE_VERSION;
    req->tag = ++d->last_tag;
    if (d->base.lost)
        return gone();
    struct err *e = fd_send(d->base.host->launcher, str_n(req, sizeof *req), fds, count);
    if (e && (err_errno(e) == EPIPE || err_errno(e) == ECONNRESET)) {
        err_free(e);
        d->base.lost = true; /* its end is about to be read, and told, too */
        return gone();
    }
    TRY_WRAP(e, "ask the launcher");
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

static void on_launcher_gone(struct native_driver *d)
{
    loop_io_stop(&d->io);
    log_error("the launcher is gone");
    d->base.lost = true;
    /* What one is told may take others off the list. */
    for (struct native_call *c; (c = LIST_FIRST(&d->asked, struct native_call, link));) {
        int none[2] = {-1, -1};
        list_del(&c->link);
        c->fn(c, NULL, none, gone());
    }
    if (d->base.host->on_lost)
        d->base.host->on_lost(d->base.host->lost_arg);
}

static void on_reply(struct loop_io *io)
{
    struct native_driver *d = container_of(io, struct native_driver, io);
    struct native_reply r;
    int fds[2] = {-1, -1};
    size_t n = 0, count = 0;
    struct err *e = fd_recv(io->fd, &r, sizeof r, &n, fds, 2, &count);

    if (e || n != sizeof r || r.magic != NATIVE_MAGIC) {
        err_free(e);
        close_both(fds);
        on_launcher_gone(d);
        return;
    }
    r.text[sizeof r.text - 1] = '\0';
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

fallible native_calls_start(struct native_driver *d, struct loop *loop, int launcher)
{
    list_init(&d->asked);
    d->last_tag = rng_u64(rng_system()) >> 1; /* answers to a server before us are nobody's */
    return loop_io_start(loop, &d->io, launcher, EPOLLIN, on_reply);
}
