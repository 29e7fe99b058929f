// SPDX-License-Identifier: Apache-2.0
/* utf8.c — one rule for all: after a lead byte the state holds how many bytes are missing and the
 * range the next one must be in. Only the second byte has a range of its own (E0, ED, F0, F4), and
 * that is where overlong forms, surrogates and what is beyond U+10FFFF are caught. */
#include "base/utf8.h"
#include "base/lower_table.h"

#define REPLACEMENT 0xfffdu
#define ASCII_STEP  8

/* missing in bits 0-7, lowest next byte in 8-15, highest in 16-23; 0 between characters */
static inline uint32_t utf8_expect(uint32_t missing, uint32_t low, uint32_t high)
{
    return missing | low << 8 | high << 16;
}

/* The state after a byte that is not ASCII at the start of a character; 0 if it cannot be. */
static inline uint32_t after_lead(uint8_t c)
{
    if (c < 0xc2 || c > 0xf4)
        return 0;
    if (c < 0xe0)
        return utf8_expect(1, 0x80, 0xbf);
    if (c < 0xf0)
        return utf8_expect(2, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf);
    return utf8_expect(3, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf);
}

static inline bool utf8_fits(uint32_t state, uint8_t c)
{
    return c >= (state >> 8 & 0xff) && c <= state >> 16;
}

static inline uint32_t after_fitting(uint32_t state)
{
    uint32_t missing = (state & 0xff) - 1;

    return missing ? utf8_expect(missing, 0x80, 0xbf) : 0;
}

/* Bytes of ASCII at the front, counted by the word: up to seven more may follow. */
static inline size_t ascii_words(const char *p, size_t n)
{
    size_t i = 0;

    for (; n - i >= 2 * ASCII_STEP; i += 2 * ASCII_STEP) {
        uint64_t w[2];
        memcpy(w, p + i, sizeof w);
        if ((w[0] | w[1]) & 0x8080808080808080u)
            break;
    }
    return i;
}

bool utf8_feed(uint32_t *state, struct str piece)
{
    uint32_t now = *state;

    for (size_t i = 0; i < piece.len;) {
        uint8_t c = (uint8_t)piece.p[i];
        if (now) {
            if (!utf8_fits(now, c))
                return false;
            now = after_fitting(now);
            i++;
        } else if (c < 0x80) {
            size_t skip = ascii_words(piece.p + i, piece.len - i);
            i += skip ? skip : 1;
        } else {
            now = after_lead(c);
            if (!now)
                return false;
            i++;
        }
    }
    *state = now;
    return true;
}

bool utf8_valid(struct str s)
{
    uint32_t state = 0;

    return utf8_feed(&state, s) && state == 0;
}

/* Length of the longest start of s that a character could start with, whole or not; at least 1.
 * *ret_state is 0 only for a whole character. */
static size_t first_part(struct str s, uint32_t *ret_state)
{
    uint32_t state = after_lead((uint8_t)s.p[0]);
    size_t n = 1;

    if (!state) {
        *ret_state = (uint8_t)s.p[0] < 0x80 ? 0 : UINT32_MAX;
        return 1;
    }
    for (; state && n < s.len && utf8_fits(state, (uint8_t)s.p[n]); n++)
        state = after_fitting(state);
    *ret_state = state;
    return n;
}

size_t utf8_decode(struct str s, uint32_t *ret_cp)
{
    static const uint8_t lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t state;
    size_t n = first_part(s, &state);

    if (state) {
        *ret_cp = REPLACEMENT;
        return 1;
    }
    uint32_t cp = (uint8_t)s.p[0] & lead_bits[n];
    for (size_t i = 1; i < n; i++)
        cp = cp << 6 | ((uint8_t)s.p[i] & 0x3f);
    *ret_cp = cp;
    return n;
}

size_t utf8_count(struct str s)
{
    size_t count = 0;
    uint32_t cp;

    for (size_t i = 0; i < s.len; count++) {
        size_t skip = ascii_words(s.p + i, s.len - i);
        i += skip;
        count += skip;
        if (i == s.len)
            break;
        i += utf8_decode(str_from(s, i), &cp);
    }
    return count;
}

size_t utf8_offset(struct str s, size_t n)
{
    size_t i = 0;
    uint32_t cp;

    while (n && i < s.len) {
        size_t left = s.len - i, skip = ascii_words(s.p + i, left < n ? left : n);
        i += skip;
        n -= skip;
        if (!n || i == s.len)
            break;
        i += utf8_decode(str_from(s, i), &cp);
        n--;
    }
    return i;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        cp = REPLACEMENT;
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i; i--, cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xff) | cp);
    return n;
}

void utf8_add_replaced(struct buf *b, struct str s)
{
    size_t good = 0; /* start of what is to be copied as it is */

    for (size_t i = 0; i < s.len;) {
        size_t skip = ascii_words(s.p + i, s.len - i);
        i += skip;
        if (i == s.len)
            break;
        uint32_t state;
        size_t n = first_part(str_from(s, i), &state);
        if (state) {
            buf_add_mem(b, s.p + good, i - good);
            buf_add(b, STR("\xef\xbf\xbd"));
            if (buf_failed(b))
                return; /* no hole in the middle: what is there is a prefix */
            good = i + n;
        }
        i += n;
    }
    if (s.len > good)
        buf_add_mem(b, s.p + good, s.len - good);
}

uint32_t utf8_lower(uint32_t cp)
{
    if (cp < 0x80)
        return cp - 'A' < 26 ? cp | 0x20 : cp;
    for (size_t i = 0; i < ARRAY_LEN(lower_rows); i++) {
        uint32_t first = lower_rows[i].run >> 8, count = lower_rows[i].run & 255;
        uint32_t step = (uint32_t)lower_rows[i].step;
        if (cp < first)
            break;
        if ((cp - first) % step == 0 && (cp - first) / step < count)
            return cp + (uint32_t)lower_rows[i].by;
    }
    return cp;
}

bool utf8_is_trap(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xad || cp == 0x61c || cp == 0x180e ||
           (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
           (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff;
}

void utf8_add_shown(struct buf *b, struct str s)
{
    while (s.len) {
        uint32_t cp;
        size_t n = utf8_decode(s, &cp);
        bool broken = n == 1 && (unsigned char)s.p[0] >= 0x80;
        if (!broken && !utf8_is_trap(cp))
            buf_add(b, str_n(s.p, n));
        else
            for (size_t i = 0; i < n; i++)
                buf_addf(b, "\\x%02x", (unsigned char)s.p[i]);
        s = str_from(s, n);
    }
}
