// SPDX-License-Identifier: Apache-2.0
/* proxy_kit.h — a proxy, a main server in front of it and sandboxes' servers behind it, all on one
 * loop and a clock that stands still. */
#pragma once

#include "host/proxy/proxy.h"
#include "test/raw.h"
#include "test/web.h"

#define PKIT_ID "abcdefghijklmnop"

struct pkit {
    struct web web; /* the main server, with the proxy's intercept */
    struct proxy *proxy;
    struct proxy_target t;
    struct raw raw;             /* behind t, when scripts were given */
    struct router *router;      /* otherwise a server that tells what it was asked, */
    struct http_server *inside; /* and waits, streams or upgrades where its path says so */
    struct http_req *held[64];  /* GET or POST /hold */
    unsigned held_count, gone, hangups;
    uint64_t taken_bytes; /* of bodies posted to /take */
    bool slow;            /* /take reads nothing */
    struct http_req *slow_req;
    char path[200];
};

/* t is open, with a listener, at raw's socket or the server's. config and scripts may be NULL. */
void pkit_open(struct pkit *k, const struct proxy_config *config, const struct raw_script *scripts,
               size_t count);
void pkit_close(struct pkit *k);
/* A client of a loopback port. */
void pkit_dial(struct pkit *k, uint16_t port, struct web_client *c, size_t cap_bytes);
/* The next answer; a proxy takes more turns than a server. */
struct web_answer pkit_take(struct pkit *k, struct web_client *c);
#define PKIT_TURNS 16 /* from end to end and back */
/* One request to t's own listener, on a connection of its own. */
struct web_answer pkit_ask(struct pkit *k, struct str request);
void pkit_answer_held(struct pkit *k, unsigned i);
