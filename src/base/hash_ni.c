// SPDX-License-Identifier: Apache-2.0
/* hash_ni.c — SHA-256 with the x86 SHA instructions.
 *
 * The processor is asked for them once per process: in a virtual machine cpuid traps to the
 * hypervisor and takes 7.5 µs, as long as hashing 10 KB.
 *
 * The answer is the one mutable static outside the log. Every thread finds the same, and it never
 * changes. An ifunc would need no variable, but musl has none. */
#include "base/hash_impl.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>

static bool ask_cpu(void)
{
    unsigned a, b, c, d, features_1c;

    if (!__get_cpuid(1, &a, &b, &features_1c, &d) || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return false;
    return (features_1c & bit_SSE4_1) && (features_1c & bit_SSSE3) && (b & (1u << 29));
}

bool sha256_ni_usable(void)
{
    static atomic_int known; /* 0: not asked, 1: no, 2: yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);

    if (!answer) {
        answer = ask_cpu() ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

/* The instructions want the state as ABEF and CDGH, high word first. */
__attribute__((target("sha,sse4.1,ssse3"))) void sha256_blocks_ni(uint32_t state[8],
                                                                  const uint8_t *p, size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);

    for (; blocks; blocks--, p += 64) {
        __m128i abef_before = abef, cdgh_before = cdgh, w[4];
        for (int i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i wk = _mm_add_epi32(w[i & 3], _mm_loadu_si128((const __m128i *)sha256_k + i));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
            if (i >= 12)
                continue;
            __m128i mixed = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]),
                                          _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
            w[i & 3] = _mm_sha256msg2_epu32(mixed, w[(i + 3) & 3]);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool sha256_ni_usable(void)
{
    return false;
}

void sha256_blocks_ni(uint32_t state[8], const uint8_t *p, size_t blocks)
{
    sha256_blocks_scalar(state, p, blocks);
}

#endif
