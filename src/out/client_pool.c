// SPDX-License-Identifier: Apache-2.0
/* client_pool.c — connections that are not in use. A fixed table of lists: putting one away
 * allocates one small block, and if that fails the connection is closed. */
#include "out/client_inner.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/rng.h"

struct pooled {
    struct stream *stream;
    struct list link;
    size_t key_len;
    char key[];
};

void pool_init(struct pool *p, uint32_t idle_ms, unsigned per_host)
{
    p->idle_ms = idle_ms;
    p->per_host = per_host;
    p->seed[0] = rng_u64(rng_system());
    p->seed[1] = rng_u64(rng_system());
    for (size_t i = 0; i < POOL_BUCKETS; i++)
        list_init(&p->buckets[i]);
}

static void pool_drop(struct pooled *c)
{
    stream_close(c->stream);
    list_del(&c->link);
    free(c);
}

void pool_done(struct pool *p)
{
    for (size_t i = 0; i < POOL_BUCKETS; i++)
        LIST_EACH(c, &p->buckets[i], struct pooled, link)
            pool_drop(c);
}

/* An idle server has nothing to say; whatever it sends, the connection is of no more use. */
static size_t on_idle_data(struct stream *s, struct str data)
{
    pool_drop(stream_owner(s));
    return data.len;
}

static void on_idle_eof(struct stream *s)
{
    pool_drop(stream_owner(s));
}

static void on_idle_error(struct stream *s, struct err *why)
{
    err_free(why); /* no call waits for this connection */
    pool_drop(stream_owner(s));
}

static const struct stream_events idle_events = {
    .on_data = on_idle_data,
    .on_eof = on_idle_eof,
    .on_error = on_idle_error,
};

static struct list *bucket_of(struct pool *p, struct str key)
{
    return &p->buckets[map_hash(p->seed, key.p, key.len) % POOL_BUCKETS];
}

/* The server may have closed it in this very turn, before we were told. */
static bool is_quiet(const struct stream *s)
{
    char byte;
    ssize_t n = recv(stream_fd(s), &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

struct stream *pool_take(struct pool *p, struct str key)
{
    LIST_EACH(c, bucket_of(p, key), struct pooled, link) {
        if (!str_eq(str_n(c->key, c->key_len), key))
            continue;
        if (!is_quiet(c->stream)) {
            pool_drop(c);
            continue;
        }
        struct stream *s = take(&c->stream);
        pool_drop(c);
        return s;
    }
    return NULL;
}

void pool_put(struct pool *p, struct str key, struct stream *s)
{
    struct list *bucket = bucket_of(p, key);
    unsigned same = 0;

    LIST_EACH(c, bucket, struct pooled, link)
        same += str_eq(str_n(c->key, c->key_len), key);
    struct pooled *c = same < p->per_host ? mem_try(sizeof *c + key.len) : NULL;
    if (!c) {
        stream_close(s);
        return;
    }
    c->stream = s;
    c->key_len = key.len;
    memcpy(c->key, key.p, key.len);
    list_push(bucket, &c->link);
    stream_set_events(s, &idle_events, c);
    stream_set_idle(s, p->idle_ms);
}
