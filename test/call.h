// SPDX-License-Identifier: Apache-2.0
/* call.h — a loop, a client and a raw server, and calls between them that are waited for. */
#pragma once

#include "out/client.h"
#include "out/dial.h"
#include "test/raw.h"

struct call_fix {
    struct loop *loop;
    struct net *net;
    struct dialer dialer;
    struct http_client *client;
    struct raw raw;
    struct http_call_events events; /* a test may put its own in */
};

struct result {
    struct http_call *call;
    bool done;
    int status;
    unsigned pieces;
    struct buf body, x_a; /* x_a: value of the header X-A */
    struct err *error;
    struct stream *taken;
};

void call_fix_init(struct call_fix *f, const struct raw_script *scripts, size_t count);
void call_fix_init_at(struct call_fix *f, const struct raw_script *scripts, size_t count,
                      const char *address);
void call_fix_done(struct call_fix *f);
/* A client on a loop of the caller's. http_client_free ends it. */
void call_fix_client(struct call_fix *f, struct loop *loop, struct net *net);
void raw_close_all(struct call_fix *f); /* the server's connections, and lets the client see it */

/* tail NULL: the spec's own url; otherwise the raw server's with tail behind it. */
void call_begin(struct call_fix *f, const char *tail, const struct http_call_spec *spec,
                struct result *r);
struct err *call_try_begin(struct call_fix *f, const char *tail, const struct http_call_spec *spec,
                           struct result *r);
void call_wait(struct call_fix *f, struct result *r);
struct result call_run(struct call_fix *f, const char *tail, const struct http_call_spec *spec);
struct result call_get(struct call_fix *f, const char *tail);
void call_check(struct call_fix *f, const char *tail, int status, const char *body);
void result_done(struct result *r);
