// SPDX-License-Identifier: Apache-2.0
/* server.h — HTTP/1.1 server: connections, requests, answers.
 *
 * A request belongs to its connection and lives until it is answered; its arena holds whatever
 * lives as long. A handler answers at once or later, exactly once. When the peer is gone before
 * that, on_gone is called and the answer, still required, goes nowhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "net/http.h"
#include "net/listen.h"
#include "net/stream.h"
#include "net/url.h"

struct http_server;
struct http_listener;
struct http_req;
struct route;
struct router;

struct http_limits {       /* zero: the default */
    uint32_t head_ms;      /* 10 s: from the first byte to the end of the head (slow-loris) */
    uint32_t idle_ms;      /* 75 s: between requests */
    uint32_t body_idle_ms; /* 30 s: between two pieces of a body, or two writes of an answer */
    uint32_t connections;  /* 16384 */
    size_t body_bytes;     /* 16 MB: buffered bodies; routes may set their own */
    size_t arena_bytes;    /* 64 MB: all that one request may hold */
};

struct http_server_config {
    const struct router *router;
    struct http_limits limits;
    void *ctx; /* of the two hooks below */
    /* Called before any other check, Host included. It may give the request's route, with the
     * route's owner in req->owner; auth is then skipped. NULL, or no route given: the router
     * decides. */
    fallible (*intercept)(void *ctx, struct http_req *req, const struct route **ret_route);
    bool access_log;
    /* Every answer of a handler, when it is complete: for counting. May be NULL. */
    void (*on_answer)(void *ctx, const struct http_req *req, int status, uint64_t ns);
    bool local_names;        /* Host and Origin must be names of this machine, see local.h */
    const char *server_name; /* Server: header; NULL: none */
    /* TLS or another filter for accepted connections; NULL: plain */
    fallible (*filter)(void *ctx, struct stream *s);
    void *filter_ctx;
};

fallible http_server_new(struct net *net, const struct http_server_config *config,
                         struct http_server **ret_server);
void http_server_free(struct http_server *server); /* closes listeners and connections */
OWNABLE(http_server)
/* Takes the listening descriptor over; several may be given. */
fallible http_server_listen(struct http_server *server, int listen_fd);
/* The same; requests carry the tag, and the listener can be closed alone. Its connections stay. */
fallible http_server_listen_as(struct http_server *server, int listen_fd, uint64_t tag,
                               struct http_listener **ret_listener);
void http_server_unlisten(struct http_listener *l); /* NULL is fine */
/* A connected socket, from socketpair or received; taken over, also on failure. */
fallible http_server_serve(struct http_server *server, int fd);
/* Stops accepting, lets answers in progress finish; on_done when the last connection is gone. */
void http_server_drain(struct http_server *server, void (*on_done)(void *ctx), void *ctx);
unsigned http_server_connections(const struct http_server *server);

struct http_param {
    struct str name, value; /* decoded */
};

struct http_req {
    struct http_head head;     /* in the arena */
    struct str path;           /* raw, without query */
    struct str query;          /* raw */
    struct http_param *params; /* of the route's pattern */
    size_t param_count;
    struct str body; /* whole, for routes that do not stream it */
    struct arena arena;
    struct http_server *server;
    void *owner;    /* of the route, see router_add() */
    void *user;     /* the handler's own */
    struct str id;  /* the request's id, set by a handler; .p NULL: see http_req_id */
    uint64_t tag;   /* of the listener; 0: none was given */
    bool passed_on; /* set by an intercept: another program answers, with keys of its own */

    /* The connection is lost: called at most once, before or while the answer is due. The answer is
     * still required and goes nowhere. */
    void (*on_gone)(struct http_req *req);
    /* The peer closed its half: it may have given up, or wait for the answer all the same. */
    void (*on_hangup)(struct http_req *req);
    /* Set by a handler of a streaming answer: the peer took it, more may be written. */
    void (*on_drain)(struct http_req *req);
    /* For ROUTE_STREAM handlers: pieces of the body, then an empty piece at its end. An error
     * returned is answered. http_body_pause/resume hold the peer back. A body that breaks off ends
     * in on_gone: a handler that waits for the rest must set that too. */
    fallible (*on_body)(struct http_req *req, struct str piece);
};

struct str http_req_header(const struct http_req *req, struct str name); /* .p NULL: absent */
/* Its id, or what the peer calls it; may be empty. For the log. */
struct str http_req_id(const struct http_req *req);
struct str http_req_param(const struct http_req *req, const char *name); /* of the path */
/* First value of a query parameter, decoded; .p NULL when absent. */
struct str http_req_query(struct http_req *req, const char *name);
fallible http_req_json(struct http_req *req, struct json **ret_body); /* 422 when it is not JSON */
/* "127.0.0.1:51234", or "unix". */
struct str http_req_peer(struct http_req *req);
struct net *http_server_net(const struct http_server *server);

void http_body_pause(struct http_req *req);
void http_body_resume(struct http_req *req);

/* --- answering --- */
/* The peer has closed its half or gone, whether on_hangup has come or is still to come. */
bool http_req_is_cut(struct http_req *req);
/* Before the answer begins; copied into the arena. */
void http_reply_header(struct http_req *req, struct str name, struct str value);
void http_reply(struct http_req *req, int status, struct str content_type, struct str body);
void http_reply_json(struct http_req *req, int status, struct str json);
/* Answers with the JSON that is written between the two. An error may be answered instead of the
 * second; what was written is dropped then. */
struct jw *http_reply_writer(struct http_req *req);
void http_reply_written(struct http_req *req, int status);
/* {"detail": text} with the code's status; takes e over. 429 and 503 have a retry-after: what
 * err_again() said, or 1 s. */
void http_reply_err(struct http_req *req, struct err *e);

/* A whole 1xx head, sent as it is; dropped once the answer has begun. */
void http_reply_interim(struct http_req *req, struct str head);
/* The answer of another program: this reason, and no Date or Server of ours. Copied. */
void http_reply_foreign(struct http_req *req, struct str reason);

#define HTTP_LENGTH_UNKNOWN UINT64_MAX
/* A streaming answer: chunked when the length is unknown (or until close, for HTTP/1.0). */
void http_reply_begin(struct http_req *req, int status, struct str content_type, uint64_t length);
void http_reply_write(struct http_req *req, struct str piece);
void http_reply_pass(struct http_req *req, struct str piece); /* see stream_pass */
/* Room for a piece of up to n bytes where it is sent from, then how much of it there is. NULL:
 * nothing goes out, because the peer is gone (on_gone has come or is coming) or wants no body. */
char *http_reply_reserve(struct http_req *req, size_t n);
void http_reply_commit(struct http_req *req, size_t n);
/* Compare with STREAM_HIGH; more than that when the connection has failed and on_gone is coming. */
size_t http_reply_pending(const struct http_req *req);
void http_reply_end(struct http_req *req); /* req is gone after this */
/* The answer cannot be finished: cuts the connection so that the peer notices. */
void http_reply_abort(struct http_req *req);

/* Takes the connection out of HTTP, for WebSocket and CONNECT. The caller owns the stream: it sets
 * the stream's events at once and writes the answer's head itself.
 *
 * req is gone after this: copy before. NULL: the peer has gone. */
struct stream *http_take_stream(struct http_req *req);
