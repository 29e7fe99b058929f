// SPDX-License-Identifier: Apache-2.0
/* dtoa.h — doubles to their shortest decimal digits and back, both exact.
 *
 * The one surprising fact: both directions need the same powers of ten. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DTOA_POW10_MIN (-292)
#define DTOA_POW10_MAX 324
/* The upper 128 bits of 10^exp10, rounded up. From a table, or in croft-guest from dtoa_slow.h. */
void dtoa_power(int exp10, uint64_t ret_high_low[2]);

struct decimal {
    uint64_t digits; /* up to 17 of them, never ending in 0 */
    int exp10;       /* the value is digits * 10^exp10 */
};

/* The fewest digits that read back as d and, among those, the nearest to it. d is finite and
 * greater than 0. */
struct decimal dtoa_shortest(double d);

/* The double nearest to digits * 10^exp10, ties to even. False, and nothing written, in the rare
 * cases that need more than 128 bits or lie at the ends of the range: ask strtod then. */
bool dtoa_nearest(uint64_t digits, int64_t exp10, double *ret_value);
