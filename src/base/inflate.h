// SPDX-License-Identifier: Apache-2.0
/* inflate.h — raw deflate data (RFC 1951) unpacked, in pieces of any size.
 *
 * Output lies in the reader's own window of 64 KB: nothing is copied twice. The code is a tenth of
 * zlib's size, which is why it is here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define INFLATE_WINDOW  32768u
#define INFLATE_SYMBOLS 288u

struct inflate_code {
    uint16_t count[16];               /* of codes, by length */
    uint16_t symbol[INFLATE_SYMBOLS]; /* in the order of their codes */
    uint16_t fast[512];               /* symbol << 4 | length, by the next nine bits; 0: longer */
};

struct inflate {
    uint64_t bits; /* read and not used, the next one lowest */
    int bit_count;
    int state;
    bool final;  /* the block under way is the last one */
    unsigned at; /* code lengths read so far */
    unsigned lengths, distances, codes;
    size_t copy; /* bytes of a stored block still to come */
    size_t len;  /* of what is in the window */
    uint8_t length[320];
    struct inflate_code literal, distance;
    char window[2 * INFLATE_WINDOW];
};

enum inflated {
    INFLATE_MORE, /* all input is taken; give more */
    INFLATE_SOME, /* *ret_out is full: take it and call again */
    INFLATE_END,
    INFLATE_CORRUPT,
};

void inflate_init(struct inflate *z);
/* Takes from *in what it can. *ret_out is what came out, valid until the next call, and may hold
 * something with every answer but INFLATE_CORRUPT. last: nothing follows *in. */
enum inflated inflate_next(struct inflate *z, struct str *in, bool last, struct str *ret_out);
/* A whole stream; more than into's limit is ERR_TOO_LARGE. */
fallible inflate_all(struct str packed, struct buf *into);
