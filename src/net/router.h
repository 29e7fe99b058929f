// SPDX-License-Identifier: Apache-2.0
/* router.h — paths to handlers: a tree of segments, so the cost does not grow with the routes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct http_req;
struct router;

enum {
    ROUTE_STREAM = 1, /* the handler runs at the head and takes the body in pieces (on_body) */
    ROUTE_OPEN = 2,   /* the auth hook is not asked */
    ROUTE_EXPECT = 4, /* the handler sends "100 Continue" itself (http_reply_interim) */
};

struct route {
    const char *method;  /* "GET" answers HEAD too */
    const char *pattern; /* "/api/events/{id}", "/files/{path...}": the last takes the rest */
    /* An error returned is answered; otherwise the handler answers, now or later. */
    fallible (*handle)(struct http_req *req);
    unsigned flags;
    size_t body_bytes; /* limit for this route; 0: the server's */
};

struct router_config {
    /* Also asked before 404 and 405; NULL: all is open. */
    fallible (*auth)(void *ctx, struct http_req *req);
    void *ctx;
    const char *const *cors_origins; /* NULL-terminated; "*" allows all; NULL: no CORS */
    bool cors_localhost;             /* http(s)://localhost:* and 127.0.0.1:* too */
    bool cors_credentials;
    bool collapse_slashes; /* "//a///b" is "/a/b" */
    bool redirect_slashes; /* 307 to the form with or without the last slash, if that exists */
};

struct router *router_new(const struct router_config *config);
void router_free(struct router *r);
OWNABLE(router)
/* Their handlers find the owner as req->owner. Asserts on clashes. */
void router_add(struct router *r, const struct route *routes, size_t count, void *owner);

/* Used by the server: finds the route, fills params and owner, or answers 404, 405, CORS preflight
 * itself (then *ret_route is NULL). */
fallible router_find(const struct router *r, struct http_req *req, const struct route **ret_route);
fallible router_check_auth(const struct router *r, struct http_req *req, const struct route *route);
/* Headers that every answer to this request carries (CORS). */
void router_put_headers(const struct router *r, struct http_req *req);
