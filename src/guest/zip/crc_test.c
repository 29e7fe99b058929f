// SPDX-License-Identifier: Apache-2.0
/* crc_test.c — the checksum beside zlib's, for every length and alignment that matters. */
#include "guest/zip/crc.h"

#include <zlib.h>

#include "base/rng.h"
#include "test/test.h"

TEST(the_checksum_is_that_of_zlib)
{
    static unsigned char noise[70000];
    struct rng_fixed r;
    struct rng *rng = rng_fixed_init(&r, 7);

    rng->fill(rng, noise, sizeof noise);
    for (int fold = 0; fold <= zip_crc_can_fold(); fold++) {
        for (size_t n = 0; n < 2200; n += n < 200 || n > 2000 ? 1 : 13)
            for (size_t at = 0; at < 17; at += 4) {
                uint32_t start = (uint32_t)(n * 77777u);
                CHECK_INT(zip_crc(start, noise + at, n, fold), crc32(start, noise + at, (uInt)n));
            }
        CHECK_INT(zip_crc(0, noise, sizeof noise, fold), crc32(0, noise, sizeof noise));
        uint32_t crc = 0;
        for (size_t at = 0; at < sizeof noise; at += 1000)
            crc = zip_crc(crc, noise + at, 1000, fold);
        CHECK_INT(crc, crc32(0, noise, sizeof noise));
    }
}
