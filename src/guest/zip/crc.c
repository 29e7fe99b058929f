// SPDX-License-Identifier: Apache-2.0
/* crc.c — four lanes of 16 bytes are folded over the data, then into one, then into 32 bits (Gopal
 * et al., "Fast CRC Computation Using PCLMULQDQ"). Constants are powers of x modulo the polynomial
 * of zlib, bits reflected. */
#include "guest/zip/crc.h"

#define FOLD_MIN 64u

/* Four bits at a time: for the few bytes at an end, and for old processors. */
static uint32_t crc_slow(uint32_t crc, const unsigned char *p, size_t n)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };

    crc = ~crc;
    for (; n; n--) {
        crc ^= *p++;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

#ifdef __x86_64__
#include <cpuid.h>
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

/* n is a multiple of 16, at least 64. */
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

bool zip_crc_can_fold(void)
{
    unsigned a, b, c = 0, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_PCLMUL) && (c & bit_SSE4_1);
}
#else
static uint32_t crc_folded(uint32_t crc, const unsigned char *p, size_t n)
{
    return crc_slow(crc, p, n);
}

bool zip_crc_can_fold(void)
{
    return false;
}
#endif

uint32_t zip_crc(uint32_t crc, const void *p, size_t n, bool fold)
{
    const unsigned char *bytes = p;
    size_t whole = n & ~(size_t)15;

    if (n < FOLD_MIN || !fold)
        return crc_slow(crc, bytes, n);
    return crc_slow(crc_folded(crc, bytes, whole), bytes + whole, n - whole);
}
