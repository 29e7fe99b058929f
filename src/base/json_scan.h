// SPDX-License-Identifier: Apache-2.0
/* json_scan.h — what the JSON reader and writer both ask of a string's bytes; private to them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Plain bytes stand for themselves inside quotes: not controls, '"', '\\', or non-ASCII. DEL is
 * plain unless the caller says otherwise: ensure_ascii escapes it. */
static inline bool json_is_plain(char c, bool del)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\' && (del || c != 0x7f);
}

#ifdef __SSE2__
/* One bit for each of 16 bytes that is not plain. */
static inline unsigned json_stops(__m128i v, bool del)
{
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    __m128i odd = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20)); /* signed: bytes from 0x80 on as well */
    __m128i all = _mm_or_si128(_mm_or_si128(quote, slash), odd);

    if (!del)
        all = _mm_or_si128(all, _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f)));
    return (unsigned)_mm_movemask_epi8(all);
}
#endif

/* The first byte that is not plain, or end. */
static inline const char *json_skip_plain(const char *p, const char *end)
{
#ifdef __SSE2__
    while (end - p >= 16) {
        unsigned stops = json_stops(_mm_loadu_si128((const __m128i *)p), true);
        if (stops)
            return p + __builtin_ctz(stops);
        p += 16;
    }
#endif
    while (p < end && json_is_plain(*p, true))
        p++;
    return p;
}

/* The same, copying on the way; room for end - p bytes at *to. */
static inline const char *json_copy_plain(const char *p, const char *end, char **to, bool del)
{
    char *out = *to;
#ifdef __SSE2__
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)p);
        unsigned stops = json_stops(v, del);
        _mm_storeu_si128((__m128i *)out, v);
        if (stops) {
            unsigned n = (unsigned)__builtin_ctz(stops);
            *to = out + n;
            return p + n;
        }
        p += 16;
        out += 16;
    }
#endif
    while (p < end && json_is_plain(*p, del))
        *out++ = *p++;
    *to = out;
    return p;
}

/* The length of the UTF-8 sequence at p, which begins with a byte that is not ASCII; 0 if it is
 * ill-formed. With surrogates, the three bytes of a lone surrogate pass too (WTF-8). */
static inline unsigned json_utf8_len(const char *p, const char *end, bool surrogates)
{
    const unsigned char *u = (const unsigned char *)p;
    size_t left = (size_t)(end - p);

    if (u[0] < 0xc2 || u[0] > 0xf4 || left < 2 || (u[1] & 0xc0) != 0x80)
        return 0;
    if (u[0] < 0xe0)
        return 2;
    if (left < 3 || (u[2] & 0xc0) != 0x80)
        return 0;
    if (u[0] < 0xf0) {
        if (u[0] == 0xe0 && u[1] < 0xa0)
            return 0;
        return u[0] == 0xed && u[1] >= 0xa0 && !surrogates ? 0 : 3;
    }
    if (left < 4 || (u[3] & 0xc0) != 0x80 || (u[0] == 0xf0 && u[1] < 0x90) ||
        (u[0] == 0xf4 && u[1] >= 0x90))
        return 0;
    return 4;
}
