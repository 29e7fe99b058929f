// SPDX-License-Identifier: Apache-2.0
/* ws_deflate.h — permessage-deflate (RFC 7692): the compression and what was agreed about it.
 *
 * We never keep a context between messages when the choice is ours: a connection that says nothing
 * then owns no zlib state, at the price of a few percent on short messages (those below
 * WS_DEFLATE_MIN are not compressed at all). Our own windows are 4 KB, which makes a deflater 38 KB
 * for the time of one ws_send; we ask peers for the same. Only a server that insists on contexts
 * makes its client keep an inflater (up to 40 KB) for the life of the connection. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define WS_DEFLATE_MIN  256
#define WS_DEFLATE_BITS 12

struct ws_deflate_terms {
    bool on;
    uint8_t send_bits;                      /* window we may use, 8 … 15 */
    uint8_t receive_bits;                   /* window the peer may use */
    bool receive_forgets;                   /* the peer starts each message afresh */
    bool name_send_bits, name_receive_bits; /* the server's answer must name them */
};

/* Compresses one message, independent of all others. False when that would not make it shorter, or
 * memory cannot be had: send it as it is. */
bool ws_deflate(struct str data, unsigned bits, struct buf *out);

enum ws_inflated {
    WS_INFLATED,
    WS_INFLATE_FULL, /* more than into's limit */
    WS_INFLATE_CORRUPT,
    WS_INFLATE_NO_MEMORY,
};

struct ws_inflate;
struct ws_inflate *ws_inflate_new(unsigned bits); /* NULL: no memory */
void ws_inflate_free(struct ws_inflate *z);
/* Appends what the piece holds; what was appended before a failure was in the stream before it. */
enum ws_inflated ws_inflate_add(struct ws_inflate *z, struct str piece, struct buf *into);
/* The message is complete; forget: the next one will not refer to it. */
enum ws_inflated ws_inflate_end(struct ws_inflate *z, bool forget, struct buf *into);
