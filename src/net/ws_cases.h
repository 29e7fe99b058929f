// SPDX-License-Identifier: Apache-2.0
/* ws_cases.h — a conformance table in the spirit of the Autobahn suite, for codec and endpoint.
 *
 * Input is a list of frames separated by '|': two hex digits (first byte), flags, payload.
 *   flags    m  mask bit the wrong way round     w, W  length in two or eight bytes
 *            z  payload compressed first         L<n>; the head claims n bytes
 *   payload  :text   =hex   *<n> (n stars)   #<code>[:reason]      ~hex instead of a frame: raw
 * Expected are the events, in the same spelling: T text, B binary, P ping, O pong, C<code> close,
 * X<code> what the peer must be refused with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "net/ws_frame.h"

enum {
    CASE_SMALL = 1,   /* messages up to CASE_SMALL_BYTES only */
    CASE_DEFLATE = 2, /* compression agreed, without context between messages */
    CASE_CONTEXT = 4, /* and with it */
    CASE_CODEC = 8,   /* too long for the endpoint's byte by byte runs */
};
#define CASE_SMALL_BYTES 1000
#define CASE_BYTES       (1u << 20)

struct ws_case {
    const char *name, *in, *out;
    unsigned flags;
};

extern const struct ws_case ws_cases[];
extern const size_t ws_case_count;

/* The bytes a peer of `role` receives; masked with a key made from each frame's place. */
void ws_case_bytes(const struct ws_case *c, enum ws_role role, struct buf *out);
/* Appends one event in the spelling above. */
void ws_case_print(struct buf *out, const struct ws_event *ev);
struct ws_deflate_terms ws_case_terms(const struct ws_case *c);
size_t ws_case_limit(const struct ws_case *c);
