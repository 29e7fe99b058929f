// SPDX-License-Identifier: Apache-2.0
/* ws_inner.h — shared by ws.c and ws_connect.c, included by no other. */
#pragma once

#include "loop/loop.h"
#include "net/ws.h"
#include "net/ws_frame.h"

enum ws_state {
    WS_CONNECTING, /* client only */
    WS_OPEN,
    WS_CLOSING, /* our Close is sent, the peer's is awaited */
    WS_ENDED,   /* on_close is due */
};

struct ws {
    struct loop *loop;
    struct stream *stream;      /* NULL before and after */
    struct ws_opening *opening; /* while connecting */
    const struct ws_events *events;
    void *owner;
    struct ws_config config; /* defaults filled in; the protocol is not kept */
    struct ws_reader reader;
    struct loop_timer timer; /* keepalive, then the closing deadline */
    struct loop_later end;
    uint64_t heard_ns;     /* when the last byte came */
    uint64_t queued_bytes; /* ever */
    uint64_t sent_mark;    /* of them sent, at the last tick */
    struct err *why;       /* of a 1006 */
    struct str reason;     /* a constant, or in reader.control, or of why */
    int code;
    uint8_t state;
    bool paused, asked, overdue, silent;
};

struct ws *ws_new(struct net *net, enum ws_role role, const struct ws_config *config,
                  const struct ws_events *events, void *owner); /* NULL: no memory */
void ws_free(struct ws *ws);
OWNABLE(ws)
/* The handshake is done; takes the stream over. */
void ws_open(struct ws *ws, struct stream *stream, const struct ws_deflate_terms *terms);
/* Ends with 1006; takes why over. */
void ws_lose(struct ws *ws, struct err *why);

/* ws_connect.c: forgets it, in whatever state it is; its stream too. */
void ws_opening_free(struct ws_opening *d);
OWNABLE(ws_opening)
