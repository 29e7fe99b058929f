// SPDX-License-Identifier: Apache-2.0
/* sse.h — server-sent events, out and in, as the HTML standard defines them. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Appends one event; event and id may be empty, line ends in them are dropped. data may hold any
 * line ends; the receiver sees "\n" for each. */
void sse_put(struct buf *out, struct str id, struct str event, struct str data);
void sse_put_comment(struct buf *out, struct str text); /* keep-alive */

struct sse_event {
    struct str id;    /* last id seen */
    struct str event; /* "message" when not given */
    struct str data;
    int64_t retry_ms; /* -1 when not given since the last event */
};

struct sse_parser {
    struct buf line, data, event, id;
    int64_t retry_ms;
    bool skip_lf, started;
    /* Slices are valid inside only; the parser may not be freed or fed there. */
    void (*on_event)(void *ctx, const struct sse_event *e);
    void *ctx;
};
void sse_parser_init(struct sse_parser *p, size_t limit_bytes,
                     void (*on_event)(void *ctx, const struct sse_event *e), void *ctx);
void sse_parser_done(struct sse_parser *p);
/* Any split of the input gives the same events. ERR_TOO_LARGE when one event passes the limit; the
 * parser is then of no more use. An event not ended by an empty line is never given. */
fallible sse_parser_feed(struct sse_parser *p, struct str data);
