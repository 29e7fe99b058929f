// SPDX-License-Identifier: Apache-2.0
/* stream_out.c — what streams of a net share, and their output. A queue exists only while it holds
 * bytes, in a buffer that goes from one writer to the next. */
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/stream_inner.h"

#define SPARE_SIZE (16u << 10) /* output buffers kept for the next writer */
#define AT_ONCE    (32u << 10) /* so much is not worth a copy */

fallible net_new(struct loop *loop, struct net **ret_net)
{
    struct net *net = malloc(sizeof *net); /* the page need not be cleared */

    if (!net)
        return err_no_memory();
    net->loop = loop;
    net->spare_count = 0;
    net->freed = false;
    list_init(&net->streams);
    *ret_net = net;
    return NULL;
}

void stream_net_end(struct net *net)
{
    while (net->spare_count)
        free(net->spare[--net->spare_count]);
    free(net);
}

void net_free(struct net *net)
{
    if (!net)
        return;
    LIST_EACH(s, &net->streams, struct stream, link)
        stream_close(s); /* freed after the turn, or with the loop */
    net->freed = true;
    if (list_empty(&net->streams))
        stream_net_end(net);
}

struct loop *net_loop(const struct net *net)
{
    return net->loop;
}

static void out_adopt_spare(struct stream *s)
{
    if (s->out.p)
        return;
    s->out.p = s->net->spare_count ? s->net->spare[--s->net->spare_count] : malloc(SPARE_SIZE);
    s->out.cap = s->out.p ? SPARE_SIZE : 0;
}

void stream_out_compact(struct stream *s)
{
    buf_consume(&s->out, s->out_at);
    s->out_at = 0;
}

void stream_out_release(struct stream *s)
{
    struct net *net = s->net;

    s->out.len = s->out_at = 0;
    if (s->out.cap == SPARE_SIZE && net->spare_count < SPARE_COUNT)
        net->spare[net->spare_count++] = take(&s->out.p);
    else
        free(s->out.p);
    s->out.p = NULL;
    s->out.cap = 0;
}

size_t stream_pending(const struct stream *s)
{
    return s->out.len - s->out_at;
}

char *stream_reserve(struct stream *s, size_t n)
{
    if (s->state != ST_OPEN || s->failed)
        return NULL;
    out_adopt_spare(s);
    if (s->out_at && n > s->out.limit_bytes - s->out.len)
        stream_out_compact(s); /* what is sent already counts no more */
    char *to = buf_reserve(&s->out, n);
    if (!to)
        stream_fail_soon(s, s->out.no_memory
                                ? err_no_memory()
                                : err_new(ERR_LIMIT, "the peer takes too little: %zu bytes wait",
                                          stream_pending(s)));
    return to;
}

void stream_commit(struct stream *s, size_t n)
{
    if (s->state != ST_OPEN)
        return;
    buf_commit(&s->out, n);
    if (stream_pending(s) >= STREAM_HIGH)
        s->high = true;
    if (!s->dispatching)
        stream_later(s);
}

/* Large data goes out from where it is, what is queued before it first; gives how much of it went.
 * A write that fails fails again when the rest is flushed. */
static size_t send_at_once(struct stream *s, struct str data)
{
    size_t queued = stream_pending(s);
    struct iovec parts[2] = {{s->out.p + s->out_at, queued}, {(char *)data.p, data.len}};
    struct msghdr m = {.msg_iov = parts + !queued, .msg_iovlen = queued ? 2 : 1};

    if (s->filter || s->blocked || s->high || s->failed || s->state != ST_OPEN)
        return 0; /* on_drain is called by the flush alone */
    ssize_t n = sendmsg(s->io.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0)
        return 0;
    stream_touch(s);
    if ((size_t)n < queued) {
        s->out_at += (size_t)n;
        return 0;
    }
    if (queued)
        stream_out_release(s);
    return (size_t)n - queued;
}

void stream_write(struct stream *s, struct str data)
{
    char *to = data.len ? stream_reserve(s, data.len) : NULL;

    if (!to)
        return;
    memcpy(to, data.p, data.len);
    stream_commit(s, data.len);
}

void stream_pass(struct stream *s, struct str data)
{
    stream_write(s, data.len < AT_ONCE ? data : str_from(data, send_at_once(s, data)));
}

void stream_set_out_limit(struct stream *s, size_t limit_bytes)
{
    s->out.limit_bytes = limit_bytes > s->out.len ? limit_bytes : s->out.len;
}
