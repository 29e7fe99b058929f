// SPDX-License-Identifier: Apache-2.0
/* dtoa_slow_test.c — the small and slow ways beside the table and libc. */
#include "base/dtoa_slow.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/dtoa.h"
#include "base/rng.h"
#include "test/test.h"

TEST(powers_of_ten_worked_out_are_those_of_the_table)
{
    for (int k = DTOA_POW10_MIN; k <= DTOA_POW10_MAX; k++) {
        uint64_t ours[2], table[2];
        dtoa_slow_power(k, ours);
        dtoa_power(k, table);
        if (ours[0] != table[0] || ours[1] != table[1])
            FAIL("10^%d", k);
    }
}

static void same(const char *text)
{
    char *end, *their_end;
    double ours = dtoa_slow_read(text, &end), theirs = strtod(text, &their_end);

    if (memcmp(&ours, &theirs, sizeof ours) != 0 || end != their_end)
        FAIL("'%s' is %a, not %a", text, theirs, ours);
}

TEST(hard_decimals_are_read_as_libc_does)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "1",
        "-1.5",
        "+2",
        "1e3",
        "1E-3",
        "1.e2",
        ".5",
        "5.",
        "1e",
        "1e+",
        "12x",
        "",
        "-",
        "x",
        ".",
        "1..2",
        "000.000e5",
        "1e400",
        "-1e400",
        "1e-400",
        "123456789012345678901234567890",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "4.9406564584124654e-324",
        "1e999999",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "1e-999999",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "9007199254740993",
        "9007199254740995",
        "9007199254740992.999999999999999999999999999999",
        "0.1",
        "3.14159265358979323846264338327",
        "9007199254740993.00000000000000000000000000000000000000000000000000000000000001"};
    char text[1400];
    struct rng_fixed r;
    struct rng *rng = rng_fixed_init(&r, 3);

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        same(texts[i]);
    for (int i = 0; i < 1500; i++) {
        uint64_t bits;
        double d, next;
        rng->fill(rng, &bits, sizeof bits);
        bits &= INT64_MAX;
        memcpy(&d, &bits, sizeof d);
        bits++;
        memcpy(&next, &bits, sizeof next);
        if (next - next != 0)
            continue;
        snprintf(text, sizeof text, "%.*g", i % 25 + 1, d);
        same(text);
        /* the middle, exactly, and a little beside it */
        snprintf(text, sizeof text, "%.1100Le", ((long double)d + (long double)next) / 2);
        same(text);
        text[1000] = '1';
        same(text);
    }
}
