// SPDX-License-Identifier: Apache-2.0
/* dtoa_slow.h — powers of ten and hard decimals, worked out exactly in long numbers. It takes
 * microseconds each and two kilobytes; a table and libc's strtod take seventeen. For
 * croft-guest. */
#pragma once

#include <stdint.h>

/* As dtoa_power, for the same exponents. */
void dtoa_slow_power(int exp10, uint64_t ret_high_low[2]);
/* As strtod, of digits with a point and an exponent, and a sign; nothing else is a number. */
double dtoa_slow_read(const char *text, char **ret_end);
