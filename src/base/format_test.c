// SPDX-License-Identifier: Apache-2.0
/* format_test.c — our formatter beside libc's. */
#include "base/format.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "test/test.h"

__attribute__((format(printf, 1, 2))) static void same(const char *fmt, ...)
{
    char ours[700], theirs[700];

    for (size_t size = sizeof ours; size; size = size > 9 ? 9 : size - 1) {
        va_list ap;
        memset(ours, '#', sizeof ours);
        memset(theirs, '#', sizeof theirs);
        va_start(ap, fmt);
        int n = format_text(ours, size, fmt, ap);
        va_end(ap);
        va_start(ap, fmt);
        int m = vsnprintf(theirs, size, fmt, ap);
        va_end(ap);
        CHECK_INT(n, m);
        CHECK_STR(str_n(ours, sizeof ours), str_n(theirs, sizeof theirs));
    }
}

TEST(numbers_are_formatted_as_libc_does)
{
    static const int64_t numbers[] = {0,    1,     -1,        7,         42,
                                      -300, 65535, INT32_MIN, INT64_MIN, INT64_MAX};

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        long long n = numbers[i];
        int d = (int)n;
        same("%d|%i|%u|%x|%X|%o", d, d, (unsigned)d, (unsigned)d, (unsigned)d, (unsigned)d);
        same("%lld %llu %llx %ld %zu %jd %td", n, (unsigned long long)n, (unsigned long long)n,
             (long)n, (size_t)n, (intmax_t)n, (ptrdiff_t)n);
        same("%hhd %hd %hhu %hu %02hhx", (signed char)d, (short)d, (unsigned char)d,
             (unsigned short)d, (unsigned char)d);
        same("[%5d][%-5d][%05d][%.3d][%8.3d][%-8.3d]", d, d, d, d, d, d);
        same("%*d|%-*d|%.*d|%*d", 7, d, 7, d, 4, d, -7, d);
        same("%020" PRIu64 " %016llx", (uint64_t)n, (unsigned long long)n);
    }
    same("%.0d|%p|%p", 0, (void *)same, (void *)&numbers);
}

TEST(text_is_formatted_as_libc_does)
{
    same("%%");
    same("plain");
    same("%s|%10s|%-10s|%.2s|%.*s|%10.2s|%c|%3c|%-3c|", "text", "text", "text", "text", 3, "text",
         "text", 'x', 'y', 'z');
    same("%.3s", (char[]){'a', 'b', 'c'}); /* not terminated */
    same("%s%s%d%%", "", "a", 3);
    same("%.*s|", -1, "whole");
}

TEST(doubles_are_formatted_as_libc_does)
{
    static const double numbers[] = {0,       -0.0,   1,       0.5,      1.5,      2.5,   0.05,
                                     0.15,    0.25,   9.995,   99.95,    0.999,    1e15,  1e22,
                                     DBL_MAX, 5e-324, DBL_MIN, 123456.7, -1.0 / 3, 1e300, 0.125};
    struct rng_fixed r;
    struct rng *rng = rng_fixed_init(&r, 11);

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        same("%f|%.0f|%.1f|%.2f|%.3f|%.20f", numbers[i], numbers[i], numbers[i], numbers[i],
             numbers[i], numbers[i]);
        same("[%10.1f][%-10.1f][%010.1f]", numbers[i], numbers[i], numbers[i]);
    }
    same("%f %f %f %8f", (double)INFINITY, -(double)INFINITY, (double)NAN, (double)INFINITY);
    for (int i = 0; i < 2000; i++) {
        double d;
        uint64_t bits;
        rng->fill(rng, &bits, sizeof bits);
        memcpy(&d, &bits, sizeof d);
        if (isnan(d))
            continue; /* libc prints a sign that means nothing */
        same("%.3f %.17f %.40f", d, d, d);
    }
}
