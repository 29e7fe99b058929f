// SPDX-License-Identifier: Apache-2.0
/* stream.c — see stream.h. Closing is immediate, freeing waits for the end of the turn, so a
 * callback up the stack may still hold the stream and the bytes it was given. */
#include "net/stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "net/stream_inner.h"

#define IN_LIMIT     STREAM_READ_SIZE /* unconsumed input; more stays in the socket */
#define READS_IN_ROW 2                /* then others have their turn */
#define FILTER_READS 16               /* the same, of filters that give 16 KB at a time */
#define LINGER_MS    2000             /* for the peer to take our last bytes */
#define LINGER_BYTES (64u << 20)      /* of a refused body: its sender still gets the answer */

bool stream_failed(const struct stream *s)
{
    return s->failed || s->state == ST_CLOSED;
}

/* A filter may have to write before it can read, and the other way round. */
static uint32_t read_needs(const struct stream *s)
{
    return s->read_want ? s->read_want : EPOLLIN;
}

static uint32_t write_needs(const struct stream *s)
{
    return s->write_want ? s->write_want : EPOLLOUT;
}

static uint32_t stream_wanted(const struct stream *s)
{
    uint32_t want = 0;

    if (s->state == ST_LINGERING)
        return EPOLLIN;
    if (!s->paused && !s->eof && s->in.len < IN_LIMIT)
        want |= read_needs(s);
    if (!s->hung_up && !s->eof)
        want |= EPOLLRDHUP;
    if (s->blocked)
        want |= write_needs(s);
    return want;
}

static void on_later(struct loop_later *l);

void stream_later(struct stream *s)
{
    loop_later(s->net->loop, &s->later, on_later);
}

static void close_now(struct stream *s)
{
    if (s->state == ST_CLOSED)
        return;
    s->state = ST_CLOSED;
    loop_timer_stop(&s->idle);
    loop_io_stop(&s->io);
    own_close(s->io.fd);
    stream_later(s);
}

void stream_fail_soon(struct stream *s, struct err *why)
{
    if (s->state != ST_OPEN)
        close_now(s); /* no owner is left to be told */
    if (s->failed || s->state != ST_OPEN) {
        err_free(why);
        return;
    }
    s->failed = why;
    stream_later(s);
}

/* Tells epoll what we wait for now. Reading is taken out only when unwanted input comes, so a
 * handler that pauses for a moment costs no system call. */
static void update_want(struct stream *s)
{
    if (s->state == ST_CLOSED || !s->io.loop)
        return;
    struct err *e = loop_io_want(&s->io, stream_wanted(s));
    if (e)
        stream_fail_soon(s, e);
}

static void on_idle(struct loop_timer *t)
{
    struct stream *s = container_of(t, struct stream, idle);

    if (s->state == ST_OPEN)
        stream_fail_soon(s, err_new(ERR_TIMEOUT, "nothing moved for %u ms", s->idle_ms));
    else
        close_now(s);
}

void stream_touch(struct stream *s)
{
    if (s->idle_ms)
        loop_timer_start(s->net->loop, &s->idle, s->idle_ms, on_idle);
}

void stream_set_idle(struct stream *s, uint32_t idle_ms)
{
    if (s->state != ST_OPEN)
        return;
    s->idle_ms = idle_ms;
    if (idle_ms)
        stream_touch(s);
    else
        loop_timer_stop(&s->idle);
}

static ssize_t raw_read(struct stream *s, void *p, size_t n)
{
    if (!s->filter)
        return recv(s->io.fd, p, n, MSG_DONTWAIT);
    s->read_want = 0;
    ssize_t got = s->filter->read(s->filter_state, s->io.fd, p, n, &s->read_want);
    s->maybe_held = got > 0;
    return got;
}

static ssize_t raw_write(struct stream *s, const void *p, size_t n)
{
    if (!s->filter)
        return send(s->io.fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    s->write_want = 0;
    return s->filter->write(s->filter_state, s->io.fd, p, n, &s->write_want);
}

/* Why a read or write failed; errno is set. */
static struct err *io_error(struct stream *s, const char *what)
{
    if (s->filter && s->filter->why && errno == EPROTO)
        return s->filter->why(s->filter_state);
    return err_sys("%s", what);
}

static void finish_output(struct stream *s)
{
    uint32_t want;

    s->fin = false;
    if (s->filter) /* what it cannot say at once stays unsaid: the end is seen all the same */
        s->filter->shutdown(s->filter_state, s->io.fd, &want);
    shutdown(s->io.fd, SHUT_WR);
}

/* All is out: says so to the peer, then waits for it to close. */
static void stream_linger(struct stream *s)
{
    s->write_want = 0;
    s->blocked = s->filter && s->filter->shutdown(s->filter_state, s->io.fd, &s->write_want) < 0 &&
                 errno == EAGAIN;
    if (s->blocked)
        return; /* flush comes again */
    s->state = ST_LINGERING;
    shutdown(s->io.fd, SHUT_WR);
    if (s->eof || !s->io.loop) {
        close_now(s);
        return;
    }
    s->paused = false;
    s->in.len = 0;
    s->idle_ms = LINGER_MS;
    stream_touch(s);
}

/* Sends what the socket takes. False when it fails. */
static bool send_out(struct stream *s)
{
    while (stream_pending(s)) {
        ssize_t n = raw_write(s, s->out.p + s->out_at, stream_pending(s));
        if (n < 0 && errno == EINTR)
            continue;
        s->blocked = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (s->blocked)
            break;
        if (n < 0) {
            stream_fail_soon(s, io_error(s, "write"));
            return false;
        }
        s->out_at += (size_t)n;
        stream_touch(s);
    }
    if (!stream_pending(s) && s->high)
        s->out.len = s->out_at = 0; /* for an owner that waits for on_drain */
    else if (!stream_pending(s))
        stream_out_release(s);
    else if (s->out_at >= STREAM_READ_SIZE && s->out_at >= s->out.len / 2)
        stream_out_compact(s);
    return true;
}

static void stream_flush(struct stream *s)
{
    if (s->failed || !send_out(s)) /* a write that failed left a hole in what follows */
        return;
    if (s->state == ST_SENDING && !stream_pending(s))
        stream_linger(s);
    if (s->fin && s->state == ST_OPEN && !stream_pending(s))
        finish_output(s);
    update_want(s);
    if (s->high && s->state == ST_OPEN && stream_pending(s) < STREAM_LOW) {
        s->high = false;
        if (s->events->on_drain)
            s->events->on_drain(s);
        if (!stream_pending(s))
            stream_out_release(s);
    }
}

void stream_push(struct stream *s)
{
    if (s->state == ST_OPEN && !s->failed && !s->blocked && !s->dispatching)
        send_out(s); /* the rest, and a failure, after the turn */
}

/* Gives data to the owner and keeps what it leaves. */
static void stream_dispatch(struct stream *s, struct str data)
{
    bool kept = data.p == s->in.p;

    s->dispatching = true;
    s->resumed = false;
    size_t used = s->events->on_data(s, data);
    s->dispatching = false;
    if (s->state == ST_CLOSED)
        return;
    if (s->resumed && used < data.len) { /* for a new owner, or one that changed its mind */
        s->deliver_due = true;
        stream_later(s);
    }
    if (kept) {
        buf_consume(&s->in, used);
        if (s->in.len == 0)
            buf_shrink(&s->in);
    } else if (used < data.len) {
        buf_add(&s->in, str_from(data, used));
        if (buf_failed(&s->in))
            stream_fail_soon(s, buf_check(&s->in));
    }
}

static void tell_eof(struct stream *s)
{
    if (s->events->on_eof)
        s->events->on_eof(s);
    else
        stream_fail_soon(s, err_new(ERR_CLOSED, "the peer closed the connection"));
}

static void got_eof(struct stream *s)
{
    s->eof = true;
    update_want(s);
    tell_eof(s);
}

/* One read(2) and its delivery. False when there is no more for now. */
static bool read_once(struct stream *s)
{
    char *page = s->net->page;
    size_t room = IN_LIMIT - s->in.len;

    if (!room)
        return false;
    ssize_t n = raw_read(s, page, room);
    if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            stream_fail_soon(s, io_error(s, "read"));
        return false;
    }
    if (n == 0) {
        got_eof(s);
        return false;
    }
    stream_touch(s);
    if (!s->in.len) {
        stream_dispatch(s, str_n(page, (size_t)n));
        return s->filter || (size_t)n == room;
    }
    buf_add(&s->in, str_n(page, (size_t)n)); /* grows with what came, not with the limit */
    if (buf_failed(&s->in))
        stream_fail_soon(s, buf_check(&s->in));
    else
        stream_dispatch(s, buf_str(&s->in));
    return s->filter || (size_t)n == room;
}

static bool may_read(const struct stream *s)
{
    return s->state == ST_OPEN && !s->paused && !s->eof && !s->failed;
}

static void read_some(struct stream *s)
{
    int left = s->filter ? FILTER_READS : READS_IN_ROW;

    while (left && may_read(s) && read_once(s))
        left--;
    if (!left && s->filter && s->state == ST_OPEN) { /* epoll would not tell of what it holds */
        s->deliver_due = true;
        stream_later(s);
    }
    if (s->state != ST_CLOSED) {
        if (stream_pending(s))
            stream_flush(s);
        else
            update_want(s);
    }
}

/* Reads past any filter: the bytes are dropped. */
static void stream_discard(struct stream *s)
{
    ssize_t n = recv(s->io.fd, s->net->page, STREAM_READ_SIZE, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    s->lingered_bytes += n > 0 ? (uint32_t)n : 0;
    if (n <= 0 || s->lingered_bytes > LINGER_BYTES)
        close_now(s);
}

static void on_unwanted(struct stream *s)
{
    if (!s->hung_up && (s->io.ready & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))) {
        s->hung_up = true;
        if (s->events->on_hangup)
            s->events->on_hangup(s);
        if (s->state != ST_OPEN)
            return;
    }
    if (s->io.ready & (EPOLLHUP | EPOLLERR))
        loop_io_stop(&s->io); /* these cannot be masked; stream_resume starts it again */
    else
        update_want(s);
}

static void on_io(struct loop_io *io)
{
    struct stream *s = container_of(io, struct stream, io);
    uint32_t ready = io->ready;

    if (s->state == ST_LINGERING) {
        stream_discard(s);
        return;
    }
    if (s->blocked && (ready & write_needs(s)))
        stream_flush(s);
    if (s->state == ST_SENDING && (ready & (EPOLLHUP | EPOLLERR))) {
        close_now(s); /* the peer takes no more */
    } else if (s->state == ST_SENDING && (ready & EPOLLRDHUP)) {
        s->hung_up = true; /* a half-closed peer still reads */
        update_want(s);
    }
    if (s->state != ST_OPEN || s->failed)
        return;
    if (s->paused || s->eof || s->in.len >= IN_LIMIT) {
        if (ready & ~(uint32_t)EPOLLOUT)
            on_unwanted(s);
        return;
    }
    if (!s->deliver_due && (ready & (read_needs(s) | ~(uint32_t)EPOLLOUT)))
        read_some(s); /* otherwise what is here already comes first, before an end above all */
}

static void stream_deliver(struct stream *s)
{
    s->deliver_due = false;
    if (s->paused)
        return;
    if (s->in.len)
        stream_dispatch(s, buf_str(&s->in));
    if (may_read(s) && (s->maybe_held || s->hung_up))
        read_some(s);
    else if (s->eof && s->state == ST_OPEN && !s->paused && !s->failed)
        tell_eof(s); /* once more, to an owner that was busy with what came before */
}

static void stream_free(struct stream *s)
{
    if (s->filter)
        s->filter->free(s->filter_state);
    err_free(s->failed);
    buf_done(&s->in);
    stream_out_release(s);
    list_del(&s->link);
    if (s->net->freed && list_empty(&s->net->streams))
        stream_net_end(s->net);
    free(s);
}

static void on_later(struct loop_later *l)
{
    struct stream *s = container_of(l, struct stream, later);

    if (s->state == ST_CLOSED) {
        if (s->tell_closed && s->events->on_closed)
            s->events->on_closed(s);
        stream_free(s);
        return;
    }
    if (s->failed) {
        s->events->on_error(s, take(&s->failed));
        if (s->state == ST_OPEN)
            stream_close(s); /* a failed stream cannot be used */
        return;
    }
    if (s->deliver_due && s->state == ST_OPEN)
        stream_deliver(s);
    if (s->state == ST_OPEN || s->state == ST_SENDING)
        stream_flush(s);
}

fallible stream_new(struct net *net, int fd, const struct stream_events *events, void *owner,
                    struct stream **ret_stream)
{
    own_fd sock = fd;
    own_free struct stream *s = mem_try(sizeof *s);

    if (!s)
        return err_no_memory();
    TRY(fd_set_nonblocking(sock));
    s->net = net;
    s->events = events;
    s->owner = owner;
    buf_init(&s->in, IN_LIMIT);
    buf_init(&s->out, OUT_LIMIT);
    TRY(loop_io_start(net->loop, &s->io, sock, EPOLLIN | EPOLLRDHUP, on_io));
    take_fd(&sock);
    list_add(&net->streams, &s->link);
    *ret_stream = take(&s);
    return NULL;
}

void stream_close(struct stream *s)
{
    if (!s)
        return;
    s->tell_closed = false;
    close_now(s);
}

void stream_close_when_sent(struct stream *s)
{
    if (!s || s->state != ST_OPEN)
        return;
    s->tell_closed = true;
    if (s->failed) {
        close_now(s);
        return;
    }
    s->state = ST_SENDING;
    s->paused = true; /* input is of no interest until all is out */
    if (!s->idle_ms)
        s->idle_ms = LINGER_MS * 5;
    stream_touch(s); /* also when it was the deadline that brought us here */
    stream_later(s);
}

void stream_shutdown(struct stream *s)
{
    if (s->state != ST_OPEN)
        return;
    s->fin = true;
    stream_later(s);
}

void *stream_owner(const struct stream *s)
{
    return s->owner;
}

struct net *stream_net(const struct stream *s)
{
    return s->net;
}

int stream_fd(const struct stream *s)
{
    return s->io.fd;
}

void stream_set_events(struct stream *s, const struct stream_events *events, void *owner)
{
    s->events = events;
    s->owner = owner;
    stream_resume(s);
}

void stream_set_filter(struct stream *s, const struct stream_filter *filter, void *state)
{
    s->filter = filter;
    s->filter_state = state;
}

void stream_pause(struct stream *s)
{
    s->paused = true;
}

void stream_resume(struct stream *s)
{
    if (s->state != ST_OPEN)
        return;
    s->paused = false;
    s->resumed = true;
    if (s->in.len || s->maybe_held || s->hung_up || s->eof) {
        s->deliver_due = true;
        stream_later(s);
    }
    if (!s->io.loop) {
        struct err *e = loop_io_start(s->net->loop, &s->io, s->io.fd, stream_wanted(s), on_io);
        if (e)
            stream_fail_soon(s, e);
    } else {
        update_want(s);
    }
}
