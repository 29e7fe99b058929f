// SPDX-License-Identifier: Apache-2.0
/* zmtp_peer.c — see zmtp_peer.h. */
#include "guest/jupyter/zmtp_peer.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/listen.h"
#include "net/stream.h"

#define RETRY_MS        5 /* between the bind of a socket and our finding it */
#define SEND_SIZE_BYTES (64u << 20)

struct zmtp_peer {
    struct net *net;
    const struct zmtp_peer_events *events;
    void *owner;
    char *path;
    enum zmtp_role role;
    struct stream *stream;
    struct zmtp zmtp;
    struct loop_timer retry, deadline;
    struct loop_later freeing;
    uint32_t start_ms;
    bool freed;
};

void *zmtp_peer_owner(const struct zmtp_peer *p)
{
    return p->owner;
}

bool zmtp_peer_ready(const struct zmtp_peer *p)
{
    return p->stream && p->zmtp.ready && !p->freed;
}

static void peer_stop(struct zmtp_peer *p)
{
    stream_close(take(&p->stream));
    loop_timer_stop(&p->retry);
    loop_timer_stop(&p->deadline);
}

static void on_freeing(struct loop_later *l)
{
    struct zmtp_peer *p = container_of(l, struct zmtp_peer, freeing);

    zmtp_done(&p->zmtp);
    free(p->path);
    free(p);
}

void zmtp_peer_free(struct zmtp_peer *p)
{
    if (!p || p->freed)
        return;
    p->freed = true; /* a callback of ours may be up the stack */
    peer_stop(p);
    loop_later(net_loop(p->net), &p->freeing, on_freeing);
}

static void peer_fail(struct zmtp_peer *p, struct err *why)
{
    peer_stop(p);
    p->events->on_error(p, err_wrap(why, "kernel socket '%s'", p->path));
}

/* One step of the handshake. */
static void peer_say(struct zmtp_peer *p, enum zmtp_event after)
{
    own_done(buf) out;

    buf_init(&out, 256);
    if (after == ZMTP_GREETED)
        zmtp_put_ready(&out, p->role);
    else if (after == ZMTP_NONE)
        zmtp_put_greeting(&out);
    else if (p->role == ZMTP_SUB)
        zmtp_put_subscription(&out);
    if (buf_failed(&out))
        peer_fail(p, buf_check(&out));
    else
        stream_write(p->stream, buf_str(&out));
}

static void on_event(struct zmtp_peer *p, enum zmtp_event ev)
{
    if (ev == ZMTP_GREETED) {
        peer_say(p, ev);
    } else if (ev == ZMTP_READY) {
        loop_timer_stop(&p->deadline);
        peer_say(p, ev);
        if (p->stream)
            p->events->on_ready(p);
    } else if (ev == ZMTP_MESSAGE) {
        p->events->on_message(p, &p->zmtp.message);
    } else if (ev == ZMTP_FAIL) {
        peer_fail(p, take(&p->zmtp.why));
    }
}

static size_t on_data(struct stream *s, struct str data)
{
    struct zmtp_peer *p = stream_owner(s);
    struct str rest = data;
    enum zmtp_event ev;

    do {
        ev = zmtp_next(&p->zmtp, &rest);
        on_event(p, ev);
    } while (ev != ZMTP_NONE && p->stream == s);
    return data.len;
}

static void on_stream_error(struct stream *s, struct err *why)
{
    peer_fail(stream_owner(s), why);
}

static const struct stream_events stream_events = {.on_data = on_data, .on_error = on_stream_error};

static void connect_now(struct zmtp_peer *p);

static void on_retry(struct loop_timer *t)
{
    connect_now(container_of(t, struct zmtp_peer, retry));
}

static void peer_greet(struct zmtp_peer *p, int fd)
{
    struct err *e = stream_new(p->net, fd, &stream_events, p, &p->stream);

    if (e) {
        peer_fail(p, e);
        return;
    }
    stream_set_out_limit(p->stream, SEND_SIZE_BYTES + 4096);
    peer_say(p, ZMTP_NONE);
}

static void connect_now(struct zmtp_peer *p)
{
    struct sockaddr_storage addr;
    socklen_t len;
    int fd;
    struct err *e = addr_unix(str_of(p->path), &addr, &len);

    if (!e)
        e = connect_start(&addr, len, &fd);
    int errnum = e ? err_errno(e) : 0;

    if (!e) {
        peer_greet(p, fd);
    } else if (errnum == ENOENT || errnum == ECONNREFUSED || errnum == EAGAIN) {
        err_free(e); /* not bound, or not listening, yet */
        loop_timer_start(net_loop(p->net), &p->retry, RETRY_MS, on_retry);
    } else {
        peer_fail(p, e);
    }
}

static void on_deadline(struct loop_timer *t)
{
    struct zmtp_peer *p = container_of(t, struct zmtp_peer, deadline);

    peer_fail(p, err_new(ERR_TIMEOUT, "not ready after %u ms", p->start_ms));
}

fallible zmtp_peer_new(struct net *net, const char *path, enum zmtp_role role, uint32_t start_ms,
                       const struct zmtp_peer_events *events, void *owner,
                       struct zmtp_peer **ret_peer)
{
    struct sockaddr_storage addr;
    socklen_t len;

    TRY(addr_unix(str_of(path), &addr, &len));
    struct zmtp_peer *p = mem_new(sizeof *p);
    *p = (struct zmtp_peer){.net = net, .events = events, .owner = owner, .start_ms = start_ms};
    p->path = mem_dup_cstr(path);
    p->role = role;
    zmtp_init(&p->zmtp, role, 0);
    loop_timer_start(net_loop(net), &p->retry, 0, on_retry);
    loop_timer_start(net_loop(net), &p->deadline, start_ms, on_deadline);
    *ret_peer = p;
    return NULL;
}

fallible zmtp_peer_send(struct zmtp_peer *p, const struct str *parts, unsigned count)
{
    own_done(buf) out;

    buf_init(&out, SEND_SIZE_BYTES);
    if (!zmtp_peer_ready(p))
        return err_new(ERR_CLOSED, "kernel socket '%s' is not connected", p->path);
    for (unsigned i = 0; i < count; i++)
        zmtp_put_part(&out, parts[i], i + 1 < count);
    TRY(buf_check(&out));
    stream_write(p->stream, buf_str(&out));
    return NULL;
}
