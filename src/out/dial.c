// SPDX-License-Identifier: Apache-2.0
/* dial.c — see dial.h. */
#include "out/dial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "loop/loop.h"
#include "net/listen.h"
#include "net/stream.h"
#include "out/resolve.h"
#include "out/tls.h"

struct dial {
    struct dialer *dialer;
    struct loop *loop;
    void (*done)(void *owner, struct err *e, struct stream *s);
    void *owner;
    char *tls_host; /* NULL: without TLS */
    struct resolve *resolve;
    struct resolve_addrs addrs;
    size_t at; /* the next to try */
    int fd;
    struct loop_io io;
    struct loop_timer timer; /* of the resolver, or of one attempt */
    uint32_t timeout_ms;
    uint64_t deadline_ns;
    struct err *last; /* why the address before failed */
};

fallible dialer_load_tls(struct dialer *dialer)
{
    return dialer->tls ? NULL : tls_client_new(dialer->ca_file, &dialer->tls);
}

void dialer_done(struct dialer *dialer)
{
    tls_client_free(take(&dialer->tls));
}

static void stop_attempt(struct dial *d)
{
    loop_io_stop(&d->io);
    own_close(take_fd(&d->fd));
    loop_timer_stop(&d->timer);
}

void dial_cancel(struct dial *d)
{
    if (!d)
        return;
    stop_attempt(d);
    resolve_cancel(d->resolve);
    err_free(d->last);
    free(d->tls_host);
    free(d);
}

/* Tells the owner; the dial is gone. */
static void dial_finish(struct dial *d, struct err *e, struct stream *s)
{
    void (*done)(void *owner, struct err *e, struct stream *s) = d->done;
    void *owner = d->owner;

    dial_cancel(d);
    done(owner, e, s);
}

static fallible make_stream(struct dial *d, struct stream **ret_stream)
{
    static const struct stream_events none = {0}; /* until its owner sets others, in done */
    struct stream *s;

    TRY(stream_new(d->dialer->net, take_fd(&d->fd), &none, NULL, &s));
    struct err *e = d->tls_host ? tls_client_filter(d->dialer->tls, s, str_of(d->tls_host)) : NULL;
    if (e)
        stream_close(s);
    else
        *ret_stream = s;
    return e;
}

static void go_on(struct dial *d);

static void attempt_failed(struct dial *d, struct err *why)
{
    stop_attempt(d);
    err_free(d->last);
    d->last = why;
}

static void on_attempt_deadline(struct loop_timer *t)
{
    struct dial *d = container_of(t, struct dial, timer);

    attempt_failed(d, err_new(ERR_TIMEOUT, "no answer for %u ms", d->timeout_ms));
    go_on(d);
}

static void on_connected(struct loop_io *io)
{
    struct dial *d = container_of(io, struct dial, io);
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error) {
        attempt_failed(d, err_sysno(error, "connect"));
        go_on(d);
        return;
    }
    loop_io_stop(&d->io);
    struct stream *s = NULL;
    struct err *e = make_stream(d, &s);
    dial_finish(d, e, s);
}

/* Every address this program dials passes here, as a number, before a byte goes there. */
static fallible dial_attempt(struct dial *d, size_t i)
{
    uint64_t now_ns = loop_now_ns(d->loop);

    if (now_ns >= d->deadline_ns)
        return err_new(ERR_TIMEOUT, "no answer for %u ms", d->timeout_ms);
    TRY(connect_start(&d->addrs.at[i].addr, d->addrs.at[i].len, &d->fd));
    TRY(loop_io_start(d->loop, &d->io, d->fd, EPOLLOUT, on_connected));
    uint64_t left_ms = (d->deadline_ns - now_ns) / NS_PER_MS + 1;
    loop_timer_start(d->loop, &d->timer, left_ms / (d->addrs.count - i), on_attempt_deadline);
    return NULL;
}

/* Goes through the addresses that are left until one is under way. */
static fallible try_next(struct dial *d)
{
    while (d->at < d->addrs.count) {
        struct err *e = dial_attempt(d, d->at++);
        if (!e)
            return NULL;
        attempt_failed(d, e);
    }
    struct err *e = take(&d->last);
    return e ? e : err_new(ERR_INVALID, "no address");
}

static void go_on(struct dial *d)
{
    struct err *e = try_next(d);

    if (e)
        dial_finish(d, e, NULL);
}

static void on_resolved(void *owner, struct err *e, const struct resolve_addrs *addrs)
{
    struct dial *d = owner;

    d->resolve = NULL;
    loop_timer_stop(&d->timer);
    if (e) {
        dial_finish(d, e, NULL);
        return;
    }
    d->addrs = *addrs;
    go_on(d);
}

static void on_resolve_deadline(struct loop_timer *t)
{
    struct dial *d = container_of(t, struct dial, timer);

    dial_finish(d, err_new(ERR_TIMEOUT, "the resolver gave no answer for %u ms", d->timeout_ms),
                NULL);
}

static fallible set_tls(struct dial *d, struct str host)
{
    TRY(dialer_load_tls(d->dialer));
    d->tls_host = mem_try(host.len + 1);
    if (!d->tls_host)
        return err_no_memory();
    memcpy(d->tls_host, host.p, host.len);
    return NULL;
}

static fallible dial_begin(struct dial *d, const struct dial_target *t)
{
    struct sockaddr_storage *addr = &d->addrs.at[0].addr;
    socklen_t *len = &d->addrs.at[0].len;

    if (t->tls)
        TRY(set_tls(d, t->host));
    if (!t->addrs && !t->unix_path.len && !addr_numeric(t->host, t->port, addr, len)) {
        TRY(resolve_start(d->loop, t->host, t->port, on_resolved, d, &d->resolve));
        loop_timer_start(d->loop, &d->timer, t->timeout_ms, on_resolve_deadline);
        return NULL;
    }
    d->addrs.count = 1;
    if (t->unix_path.len)
        TRY(addr_unix(t->unix_path, addr, len));
    if (t->addrs)
        d->addrs = *t->addrs;
    return try_next(d);
}

fallible dial_start(struct dialer *dialer, const struct dial_target *target,
                    void (*done)(void *owner, struct err *e, struct stream *s), void *owner,
                    struct dial **ret_dial)
{
    struct dial *d = mem_try(sizeof *d);

    if (!d)
        return err_no_memory();
    d->dialer = dialer;
    d->loop = net_loop(dialer->net);
    d->done = done;
    d->owner = owner;
    d->fd = -1;
    d->timeout_ms = target->timeout_ms;
    d->deadline_ns = loop_now_ns(d->loop) + target->timeout_ms * NS_PER_MS;
    struct err *e = dial_begin(d, target);
    if (e) {
        dial_cancel(d);
        return e;
    }
    *ret_dial = d;
    return NULL;
}
