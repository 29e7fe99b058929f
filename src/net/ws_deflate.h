// SPDX-License-Identifier: Apache-2.0
/* ws_deflate.h — permessage-deflate (RFC 7692): the compression and the terms agreed.
 *
 * When the choice is ours, no context is kept between messages: an idle connection owns no zlib
 * state. Short messages grow by a few percent; those below WS_DEFLATE_MIN are not compressed.
 *
 * Our windows are 4 KB, which makes a deflater 38 KB for the time of one ws_send. We ask peers for
 * the same. A server that insists on contexts costs its client an inflater of up to 40 KB. */
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
