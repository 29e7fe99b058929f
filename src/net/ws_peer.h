// SPDX-License-Identifier: Apache-2.0
/* ws_peer.h — for tests: an echo server, and a raw peer that can say anything to it or to a client
 * of ours. Everything runs on one loop that the test turns. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "net/router.h"
#include "net/server.h"
#include "net/ws.h"
#include "net/ws_cases.h"

struct ws_rig {
    struct loop *loop;
    struct net *net;
    struct router *router;
    struct http_server *server;
    char url[256];           /* "unix:…sock:/echo"; empty until ws_rig_listen */
    struct ws_config config; /* for the server's side */
    struct ws *ws;           /* the newest on the server's side; NULL once closed */
    struct buf told;         /* by the server's side, in the spelling of ws_cases.h */
    unsigned opened, closed;
    bool quiet;      /* do not note what is told */
    bool silent;     /* do not echo */
    bool pause_each; /* pause at each message */
};

void ws_rig_init(struct ws_rig *r);
void ws_rig_listen(struct ws_rig *r);
void ws_rig_done(struct ws_rig *r);
/* A client of ours, on a connection to a numeric address or a unix socket. */
fallible ws_rig_connect(struct ws_rig *r, struct str url, const struct ws_config *config,
                        const struct ws_events *events, void *owner, struct ws **ret_ws);
/* Turns the loop until done(ctx); fails the test after 30 s. */
void ws_rig_until(struct ws_rig *r, bool (*done)(void *ctx), void *ctx);

struct ws_peer {
    struct ws_rig *rig;
    int fd;
    enum ws_role role; /* the role whose frames it reads: WS_CLIENT when it plays the client */
    struct ws_reader reader;
    struct buf head; /* of the handshake it received */
    struct buf told; /* events, close reasons left out */
    bool have_head, eof;
};

/* A raw client of the rig's server; extra: more header lines, each with CRLF. Does not wait. */
void ws_peer_dial(struct ws_peer *p, struct ws_rig *r, const char *extra, struct str more);
/* A raw server for a client of ours: takes over a connected socket. */
void ws_peer_serve(struct ws_peer *p, struct ws_rig *r, int fd);
/* Sends its 101 (the request has come); extra: more header lines. */
void ws_peer_answer(struct ws_peer *p, const char *extra);
void ws_peer_send(struct ws_peer *p, struct str bytes); /* turning the loop while it does not fit */
void ws_peer_poll(struct ws_peer *p);                   /* reads what is there */
bool ws_peer_has_head(void *peer);
bool ws_peer_at_eof(void *peer);
void ws_peer_done(struct ws_peer *p);
