// SPDX-License-Identifier: Apache-2.0
/* ws.h — WebSocket (RFC 6455, permessage-deflate of RFC 7692), server and client, on a stream.
 *
 * Messages come whole, text checked as UTF-8 while it arrives. Each peer's unsent messages are
 * bounded: one that does not read is dropped with a reason and never slows the others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "net/stream.h"

struct http_req;
struct rng;
struct ws;

enum ws_kind { WS_TEXT = 1, WS_BINARY = 2 };

enum {
    WS_NORMAL = 1000,
    WS_GOING_AWAY = 1001,
    WS_PROTOCOL = 1002,
    WS_UNSUPPORTED = 1003,
    WS_NO_STATUS = 1005, /* never sent */
    WS_ABNORMAL = 1006,  /* never sent: the connection broke */
    WS_BAD_DATA = 1007,
    WS_POLICY = 1008,
    WS_TOO_BIG = 1009,
    WS_INTERNAL = 1011,
    WS_TRY_LATER = 1013,
};

struct ws_events {
    void (*on_open)(struct ws *ws); /* client only; may be NULL */
    void (*on_message)(struct ws *ws, enum ws_kind kind, struct str data);
    void (*on_drain)(struct ws *ws); /* may be NULL */
    /* The last callback, called once for an end from either side; ws is freed after it. For 1006
     * reason says why. */
    void (*on_close)(struct ws *ws, int code, struct str reason);
};

struct ws_config {        /* zero: the default */
    size_t message_bytes; /* 16 MB: largest message accepted, after inflating */
    size_t queue_bytes;   /* 4 MB: unsent output; beyond it the peer is dropped with 1008 */
    uint32_t ping_ms; /* 20 s: after so long without a byte we ask; no answer as long again: 1006 */
    uint32_t close_ms; /* 5 s: wait for the peer's half of a close */
    bool no_deflate;
    const char *protocol; /* sub-protocol to choose or ask for; NULL: none */
    struct rng *rng;      /* for keys and masks; NULL: the system's */
};

/* Answers the upgrade request in req with 101; req is gone then. On error (400, or 426 with its
 * headers set) req is untouched: the handler passes the error on. */
fallible ws_accept(struct http_req *req, const struct ws_config *config,
                   const struct ws_events *events, void *owner, struct ws **ret_ws);
/* The client's side, on a connection that was dialled for the url: ws://host:port/path, wss://… or
 * unix:/path.sock:/target. Takes s over, also on failure. headers: "Name: value\\r\\n"…, may be
 * empty. Never calls back before it returns; on_open or on_close follows within 10 s. */
fallible ws_connect(struct stream *s, struct str url, struct str headers,
                    const struct ws_config *config, const struct ws_events *events, void *owner,
                    struct ws **ret_ws);

void *ws_owner(const struct ws *ws);
/* Text must be UTF-8. Never calls back before it returns, also when it drops a peer that takes too
 * little. A queue that is empty takes any message. */
void ws_send(struct ws *ws, enum ws_kind kind, struct str data);
size_t ws_pending(const struct ws *ws); /* unsent bytes */
void ws_pause(struct ws *ws);           /* no on_message until resumed */
void ws_resume(struct ws *ws);
/* Starts the closing handshake; on_close follows, on_message does not. Reason is cut to 123 bytes
 * at a character. A code that may not be sent (1005, 1006) closes without one. */
void ws_close(struct ws *ws, int code, struct str reason);
/* Cuts the connection at once, for an owner that goes away: no callback comes any more. NULL is
 * fine. */
void ws_abort(struct ws *ws);
