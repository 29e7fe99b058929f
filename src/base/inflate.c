// SPDX-License-Identifier: Apache-2.0
/* inflate.c — every step takes at most STEP_BITS bits, and begins only when they are there. So a
 * stream can be cut anywhere, and no step has to be undone. */
#include "base/inflate.h"

#include <endian.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/own.h"

#define STEP_BITS  48 /* the longest: a length, a distance, and the extra bits of both */
#define FAST_BITS  9u
#define LENGTH_MAX 258u
#define END_CODE   256
#define FULL       (2 * INFLATE_WINDOW - LENGTH_MAX)

enum { BLOCK, STORED, CODES, LENGTHS, DATA, DONE, BROKEN };

void inflate_init(struct inflate *z)
{
    z->bits = 0;
    z->bit_count = 0;
    z->state = BLOCK;
    z->final = false;
    z->len = 0;
}

static unsigned take_bits(struct inflate *z, unsigned n)
{
    unsigned v = (unsigned)(z->bits & ((1ull << n) - 1));

    z->bits >>= n;
    z->bit_count -= (int)n;
    return v;
}

static void fill_bits(struct inflate *z, struct str *in)
{
    if (in->len >= 8 && z->bit_count < 56) {
        uint64_t next;
        memcpy(&next, in->p, sizeof next);
        z->bits |= le64toh(next) << z->bit_count;
        int n = (63 - z->bit_count) / 8;
        z->bit_count += 8 * n;
        z->bits &= ~0ull >> (64 - z->bit_count); /* only whole bytes were taken */
        *in = str_from(*in, (size_t)n);
        return;
    }
    while (z->bit_count <= 56 && in->len) {
        z->bits |= (uint64_t)(uint8_t)*in->p << z->bit_count;
        z->bit_count += 8;
        *in = str_from(*in, 1);
    }
}

/* --- codes --- */

/* Canonical codes from their lengths. A set with gaps is good only if it is a single code of one
 * bit, or empty, which some packers write for distances. */
static bool make_code(struct inflate_code *c, const uint8_t *length, unsigned n)
{
    uint16_t start[16], code = 0;
    int left = 1;

    memset(c->count, 0, sizeof c->count);
    memset(c->fast, 0, sizeof c->fast);
    for (unsigned i = 0; i < n; i++)
        c->count[length[i]]++;
    unsigned used = n - c->count[0];
    c->count[0] = 0;
    start[0] = 0;
    for (unsigned i = 1; i < 16; i++) {
        left = 2 * left - c->count[i];
        if (left < 0)
            return false;
        start[i] = (uint16_t)(start[i - 1] + c->count[i - 1]);
    }
    if (left > 0 && !(used == 0 || (used == 1 && c->count[1] == 1)))
        return false;
    for (unsigned i = 0; i < n; i++)
        if (length[i])
            c->symbol[start[length[i]]++] = (uint16_t)i;
    for (unsigned len = 1, i = 0; len <= FAST_BITS; len++, code = (uint16_t)(code << 1))
        for (unsigned k = 0; k < c->count[len]; k++, code++) {
            unsigned mirrored = 0;
            for (unsigned b = 0; b < len; b++)
                mirrored |= (code >> b & 1u) << (len - 1 - b);
            for (; mirrored < 1u << FAST_BITS; mirrored += 1u << len)
                c->fast[mirrored] = (uint16_t)(c->symbol[i] << 4 | len);
            i++;
        }
    return true;
}

/* -1: no code begins so. */
static int take_symbol(struct inflate *z, const struct inflate_code *c)
{
    unsigned hit = c->fast[z->bits & ((1u << FAST_BITS) - 1)];

    if (hit) {
        take_bits(z, hit & 15);
        return (int)(hit >> 4);
    }
    int code = 0, first = 0, at = 0;
    for (unsigned len = 1; len < 16; len++) {
        code |= (int)take_bits(z, 1);
        int count = c->count[len];
        if (code - first < count)
            return c->symbol[at + code - first];
        at += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    return -1;
}

/* --- steps; false: the data is no good --- */

static bool fixed_codes(struct inflate *z)
{
    for (unsigned i = 0; i < INFLATE_SYMBOLS; i++)
        z->length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make_code(&z->literal, z->length, INFLATE_SYMBOLS);
    memset(z->length, 5, 32);
    make_code(&z->distance, z->length, 32);
    z->state = DATA;
    return true;
}

static bool begin_block(struct inflate *z)
{
    if (z->final) {
        z->state = DONE;
        return true;
    }
    z->final = take_bits(z, 1);
    switch (take_bits(z, 2)) {
    case 0:
        take_bits(z, (unsigned)z->bit_count & 7);
        z->copy = take_bits(z, 16);
        z->state = STORED;
        return (z->copy ^ take_bits(z, 16)) == 0xffff;
    case 1:
        return fixed_codes(z);
    case 2:
        z->lengths = take_bits(z, 5) + 257;
        z->distances = take_bits(z, 5) + 1;
        z->codes = take_bits(z, 4) + 4;
        z->at = 0;
        memset(z->length, 0, sizeof z->length);
        z->state = CODES;
        return z->lengths <= 286 && z->distances <= 30;
    }
    return false;
}

static bool read_codes(struct inflate *z)
{
    static const char order[] = "\x10\x11\x12\0\x08\7\x09\6\x0a\5\x0b\4\x0c\3\x0d\2\x0e\1\x0f";

    z->length[(int)order[z->at++]] = (uint8_t)take_bits(z, 3);
    if (z->at < z->codes)
        return true;
    bool good = make_code(&z->literal, z->length, 19);
    z->at = 0;
    z->state = LENGTHS;
    return good;
}

static bool read_lengths(struct inflate *z)
{
    int symbol = take_symbol(z, &z->literal);
    unsigned times = 1, all = z->lengths + z->distances;

    if (symbol < 0 || (symbol == 16 && z->at == 0))
        return false;
    if (symbol == 16)
        symbol = z->length[z->at - 1], times = 3 + take_bits(z, 2);
    else if (symbol > 16)
        times = symbol == 17 ? 3 + take_bits(z, 3) : 11 + take_bits(z, 7), symbol = 0;
    if (times > all - z->at)
        return false;
    memset(z->length + z->at, symbol, times);
    z->at += times;
    if (z->at < all)
        return true;
    z->state = DATA;
    return z->length[END_CODE] && make_code(&z->literal, z->length, z->lengths) &&
           make_code(&z->distance, z->length + z->lengths, z->distances);
}

static bool copy_back(struct inflate *z, unsigned symbol)
{
    unsigned length = symbol - 254, extra = 0;

    if (symbol > 285)
        return false;
    if (symbol == 285) {
        length = LENGTH_MAX;
    } else if (symbol > 264) {
        extra = (symbol - 261) / 4;
        length = ((4 + (symbol - 265) % 4) << extra) + 3 + take_bits(z, extra);
    }
    int code = take_symbol(z, &z->distance);
    if (code < 0 || code > 29)
        return false;
    unsigned distance = (unsigned)code + 1;
    if (code > 3) {
        extra = (unsigned)code / 2 - 1;
        distance = ((2 + ((unsigned)code & 1)) << extra) + 1 + take_bits(z, extra);
    }
    if (distance > z->len)
        return false;
    char *to = z->window + z->len;
    for (unsigned i = 0; i < length; i++)
        to[i] = to[(ptrdiff_t)i - (ptrdiff_t)distance];
    z->len += length;
    return true;
}

static bool read_data(struct inflate *z)
{
    int symbol = take_symbol(z, &z->literal);

    if (symbol < 0)
        return false;
    if (symbol < END_CODE) {
        z->window[z->len++] = (char)symbol;
        return true;
    }
    if (symbol == END_CODE) {
        z->state = BLOCK;
        return true;
    }
    return copy_back(z, (unsigned)symbol);
}

/* Bits were read in whole bytes: those come first. */
static void copy_stored(struct inflate *z, struct str *in)
{
    size_t room = sizeof z->window - z->len;

    for (; z->copy && z->bit_count >= 8 && room; z->copy--, room--)
        z->window[z->len++] = (char)take_bits(z, 8);
    size_t n = z->copy < room ? z->copy : room;
    if (n > in->len)
        n = in->len;
    if (n) {
        memcpy(z->window + z->len, in->p, n);
        z->len += n;
        z->copy -= n;
        *in = str_from(*in, n);
    }
    if (!z->copy)
        z->state = BLOCK;
}

static bool one_step(struct inflate *z, struct str *in)
{
    switch (z->state) {
    case BLOCK:
        return begin_block(z);
    case STORED:
        copy_stored(z, in);
        return true;
    case CODES:
        return read_codes(z);
    case LENGTHS:
        return read_lengths(z);
    default:
        return read_data(z);
    }
}

/* Makes room for one step, and keeps before it the bytes that may be referred to. */
static void make_room(struct inflate *z)
{
    if (z->len < FULL)
        return;
    memmove(z->window, z->window + z->len - INFLATE_WINDOW, INFLATE_WINDOW);
    z->len = INFLATE_WINDOW;
}

/* At the end of the input zeros follow; a step that used some of them leaves a negative count. */
static bool can_step(struct inflate *z, struct str *in, bool last)
{
    fill_bits(z, in);
    if (z->state == STORED)
        return in->len || z->bit_count >= 8 || !z->copy;
    return z->bit_count >= STEP_BITS || last || (z->state == BLOCK && z->final);
}

enum inflated inflate_next(struct inflate *z, struct str *in, bool last, struct str *ret_out)
{
    make_room(z);
    size_t given = z->len;
    while (z->state < DONE && z->len < FULL) {
        bool can = can_step(z, in, last);
        if (!can && !last)
            break;
        if (!can || !one_step(z, in) || z->bit_count < 0)
            z->state = BROKEN;
    }
    *ret_out = str_n(z->window + given, z->len - given);
    if (z->state == BROKEN)
        return INFLATE_CORRUPT;
    if (z->state == DONE)
        return INFLATE_END;
    return z->len < FULL ? INFLATE_MORE : INFLATE_SOME;
}

fallible inflate_all(struct str packed, struct buf *into)
{
    own_free struct inflate *z = mem_try(sizeof *z);
    enum inflated how = INFLATE_SOME;
    struct str out;

    if (!z)
        return err_no_memory();
    inflate_init(z);
    while (how == INFLATE_SOME) {
        how = inflate_next(z, &packed, true, &out);
        buf_add(into, out);
    }
    return how == INFLATE_END ? buf_check(into) : err_new(ERR_CORRUPT, "packed data is damaged");
}
