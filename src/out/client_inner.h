// SPDX-License-Identifier: Apache-2.0
/* client_inner.h — shared by the files of the client, included by no other. */
#pragma once

#include "base/list.h"
#include "loop/loop.h"
#include "out/client.h"

#define POOL_BUCKETS 64

struct pool {
    struct list buckets[POOL_BUCKETS]; /* by the hash of the key */
    uint64_t seed[2];
    uint32_t idle_ms;
    unsigned per_host;
};

void pool_init(struct pool *p, uint32_t idle_ms, unsigned per_host);
void pool_done(struct pool *p);
/* The connection to key that was used last and is still good, or NULL. */
struct stream *pool_take(struct pool *p, struct str key);
/* Takes s over; closes it when there are enough. Its input must be empty. */
void pool_put(struct pool *p, struct str key, struct stream *s);

struct http_client {
    struct dialer *dialer;
    struct loop *loop;
    struct pool pool;
    struct list calls;
};

enum call_state {
    CALL_CONNECT,
    CALL_HEAD, /* the request is on its way, the answer has not begun */
    CALL_BODY,
    CALL_OVER, /* told, cancelled or taken; freed after the turn */
};

struct http_call {
    struct http_client *client;
    struct list link;
    const struct http_call_events *events;
    void *owner;
    enum call_state state;

    /* the request; strings are in the arena */
    struct arena arena;
    struct str method, host, unix_path;
    struct str what; /* "GET http://host/path", for errors */
    struct str key;  /* of the connection, among the idle ones */
    uint16_t port;
    bool tls;
    struct str head;  /* as it goes out */
    struct buf body;  /* kept whole, for a retry */
    size_t body_sent; /* of body */
    struct buf early; /* what was written before there was a connection */
    uint64_t length_left;
    bool stream_body, chunked, ended;

    /* the connection */
    struct dial *dial;
    struct stream *stream;
    bool reused, retried, answered; /* answered: a byte of the answer came */
    uint32_t connect_ms, idle_ms;
    struct loop_timer total;
    uint32_t total_ms;
    struct loop_later soon, reap;
    struct err *failing; /* told after the turn */

    /* the answer */
    size_t scanned;
    unsigned interim; /* 1xx seen */
    struct http_body in;
    uint64_t max_body_bytes, got_bytes;
    bool keep_alive, paused;
};

/* Fills in all that the spec says, request head included; refuses what would not be HTTP. */
fallible call_prepare(struct http_call *c, const struct http_call_spec *spec);
