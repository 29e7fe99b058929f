// SPDX-License-Identifier: Apache-2.0
/* crc.c — four lanes of 16 bytes are folded over the data, then into one, then into 32 bits (Gopal
 * et al., "Fast CRC Computation Using PCLMULQDQ"). Constants are powers of x modulo the polynomial
 * of zlib, bits reflected. */
#include "guest/zip/crc.h"

#include <zlib.h>

#define FOLD_MIN 64u
#define ZLIB_MAX (1u << 30)

static uint32_t crc_zlib(uint32_t crc, const unsigned char *p, size_t n)
{
    for (; n > ZLIB_MAX; p += ZLIB_MAX, n -= ZLIB_MAX)
        crc = (uint32_t)crc32(crc, p, ZLIB_MAX);
    return n ? (uint32_t)crc32(crc, p, (uInt)n) : crc;
}

#ifdef __x86_64__
#include <immintrin.h>

#define CLMUL __attribute__((target("pclmul,sse4.1")))

CLMUL static inline __m128i load(const unsigned char *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

/* x moved on by the distance that k stands for, and what is there added. */
CLMUL static inline __m128i fold(__m128i x, __m128i k, __m128i there)
{
    __m128i low = _mm_clmulepi64_si128(x, k, 0x00), high = _mm_clmulepi64_si128(x, k, 0x11);

    return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

CLMUL static uint32_t reduce(__m128i x, __m128i k16)
{
    const __m128i k8 = _mm_set_epi64x(0, 0x163cd6124), mask = _mm_set_epi32(0, -1, 0, -1);
    const __m128i poly = _mm_set_epi64x(0x1f7011641, 0x1db710641);

    x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, k16, 0x10));
    x = _mm_xor_si128(_mm_srli_si128(x, 4), _mm_clmulepi64_si128(_mm_and_si128(x, mask), k8, 0x00));
    __m128i t = _mm_clmulepi64_si128(_mm_and_si128(x, mask), poly, 0x10);
    t = _mm_clmulepi64_si128(_mm_and_si128(t, mask), poly, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, t), 1);
}

/* n is a multiple of 16, at least FOLD_MIN. */
CLMUL static uint32_t crc_folded(uint32_t crc, const unsigned char *p, size_t n)
{
    const __m128i k64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i k16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i a = _mm_xor_si128(load(p), _mm_cvtsi32_si128((int)~crc)), b = load(p + 16);
    __m128i c = load(p + 32), d = load(p + 48);

    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
        a = fold(a, k64, load(p));
        b = fold(b, k64, load(p + 16));
        c = fold(c, k64, load(p + 32));
        d = fold(d, k64, load(p + 48));
    }
    a = fold(fold(fold(a, k16, b), k16, c), k16, d);
    for (; n >= 16; p += 16, n -= 16)
        a = fold(a, k16, load(p));
    return ~reduce(a, k16);
}

static int has_clmul(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}
#else
static uint32_t crc_folded(uint32_t crc, const unsigned char *p, size_t n)
{
    return crc_zlib(crc, p, n);
}

static int has_clmul(void)
{
    return 0;
}
#endif

uint32_t zip_crc(uint32_t crc, const void *p, size_t n)
{
    const unsigned char *bytes = p;
    size_t whole = n & ~(size_t)15;

    if (n < FOLD_MIN || !has_clmul())
        return crc_zlib(crc, bytes, n);
    return crc_zlib(crc_folded(crc, bytes, whole), bytes + whole, n - whole);
}
