// SPDX-License-Identifier: Apache-2.0
/* server_inner.h — shared by server.c (reading) and reply.c (answering), included by no other. */
#pragma once

#include "base/clock.h"
#include "base/list.h"
#include "net/router.h"
#include "net/server.h"

#define SPARE_REQUESTS   64
#define CONN_DISCARD_MAX (256u << 10) /* of an unwanted body; more closes the connection */

struct http_listener {
    struct http_server *server;
    struct loop_io io;
    struct loop_timer retry;
    struct list link; /* among all, or among those that wait for room */
    uint64_t tag;
    int fd;
};

struct http_server {
    struct net *net;
    struct http_server_config config;
    struct list listeners;
    struct list stalled;     /* listeners that have a connection and no room for it */
    struct list conns, idle; /* idle: those that wait for a head, longest first */
    struct list requests;    /* every one that is not answered yet, connected or not */
    unsigned conn_count;
    bool draining, freeing;
    void (*on_drained)(void *ctx);
    void *drained_ctx;
    struct loop_later drained;
    struct request *spare; /* for the next request */
    unsigned spare_count;
    uint64_t date_s; /* of the text in date, on the loop's clock */
    char date[CLOCK_HTTP_LEN + 1];
};

enum conn_state {
    CONN_HEAD,    /* between requests, or inside a head */
    CONN_BODY,    /* the handler waits for the body, or takes it in pieces */
    CONN_BUSY,    /* the handler has all it needs and has not answered */
    CONN_DISCARD, /* answered before its body was read */
    CONN_CLOSING, /* only sends what is queued */
};

struct conn {
    struct http_server *server;
    struct stream *stream; /* NULL: closed or taken away */
    struct list link;
    struct request *req;
    struct http_body body;
    struct loop_timer head_deadline;
    struct loop_later later; /* the end of a body that was paused, or of the connection */
    size_t scanned;          /* of the head so far */
    size_t discarded;        /* of an unwanted body */
    uint64_t tag;
    uint8_t state;
    bool used; /* it is not new */
};

static inline void put_among(struct conn *c, struct list *others)
{
    list_del(&c->link);
    list_add(others, &c->link);
}

enum answer { ANSWER_NONE, ANSWER_BEGUN, ANSWER_DONE };

struct request {
    struct http_req pub;
    struct conn *conn; /* NULL: the peer is gone */
    struct list link;
    struct request *next; /* among the spare ones */
    const struct route *route;
    struct buf body;
    struct buf headers; /* of the answer, as they go out */
    struct buf json;    /* of an answer that is being written */
    struct jw writer;   /* into it */
    struct str reason;  /* of a foreign answer; .p NULL: it is ours */
    uint64_t start_ns;
    uint64_t sent_bytes, promised_bytes, body_bytes, body_limit;
    int status;
    uint8_t answer;
    bool keep_alive, chunked, head_only, hangup_told, body_paused;
    bool slow;   /* the peer takes less than is written: it is on the clock */
    bool handed; /* to its handler, which now owes an answer */
};

static inline struct request *request_of(struct http_req *req)
{
    return container_of(req, struct request, pub);
}

/* reply.c: an answer outside any request, or in place of a handler's. */
void reply_bare(struct conn *c, struct err *e);

/* conn.c */
void request_answered(struct request *r); /* the answer is complete */
void request_destroy(struct request *r);
void conn_close(struct conn *c);
void conn_close_when_sent(struct conn *c);
void conn_set_deadline(struct conn *c); /* of a request: by what the peer owes us now */
void conn_abandon(struct conn *c);      /* the server ends: what is queued still goes out */

fallible conn_new(struct http_server *s, int fd, uint64_t tag);

/* server.c */
void server_lost_conn(struct http_server *s);
void server_wake(struct http_server *s); /* there may be room for a waiting connection */
