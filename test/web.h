// SPDX-License-Identifier: Apache-2.0
/* web.h — a server and its clients on one loop and a clock that stands still, for tests.
 *
 * Clients use bare system calls and memory taken beforehand, so that an armed fault strikes the
 * server alone. Nothing here waits: turns are made until nothing moves any more. */
#pragma once

#include "net/router.h"
#include "net/server.h"
#include "out/dial.h"

struct web {
    struct clock clock;
    uint64_t now_ns;
    struct loop *loop;
    struct net *net;
    struct dialer dialer;
    struct router *router;
    struct http_server *server;
};

struct web_client {
    int fd;
    char *p; /* what came and was not looked at yet */
    size_t len, cap;
    bool eof;
    int errnum;
};

struct web_answer {
    int status;
    struct str head, body; /* body decoded; both live until the next answer is read */
    bool keep_alive;
};

#define WEB_ROUTES(routes) routes, ARRAY_LEN(routes)
/* rc and sc may be NULL; router and clock of sc are filled in. Its ctx owns the routes. */
void web_open(struct web *w, const struct route *routes, size_t count,
              const struct router_config *rc, const struct http_server_config *sc);
void web_close(struct web *w);
void web_turns(struct web *w, int turns);
void web_pass(struct web *w, uint64_t ms); /* time goes by, then what is due runs */

/* Over a socketpair; cap_bytes is all it can hold unread. */
void web_connect(struct web *w, struct web_client *c, size_t cap_bytes);
void web_client_init(struct web_client *c, int fd, size_t cap_bytes);
void web_close_client(struct web_client *c);
/* Sends all, turning the loop while the socket is full; false when the server does not want it. */
bool web_send(struct web *w, struct web_client *c, struct str data);
/* Turns and reads until nothing comes any more; gives how much came. */
size_t web_read(struct web *w, struct web_client *c);
/* Reads once, at most n bytes. */
size_t web_read_some(struct web_client *c, size_t n);
/* The next answer, which must be there or come; takes it off what was read. */
struct web_answer web_take(struct web *w, struct web_client *c);
/* One request on a connection of its own; c holds the rest and is closed. */
struct web_answer web_ask(struct web *w, struct str request);

/* A listener at a path in the test's directory, and a client that connects to it. */
const char *web_serve_unix(struct web *w);
void web_dial(struct web *w, struct web_client *c, const char *path);
