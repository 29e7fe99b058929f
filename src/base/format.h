// SPDX-License-Identifier: Apache-2.0
/* format.h — the part of vsnprintf that we use, in a fifth of its size. croft-guest has no other
 * (src/main/guest_libc.c), and tools/layers refuses conversions that are not here.
 *
 * Conversions d i u o x X c s p f %, flags - and 0, width, precision, both also as *, lengths hh h
 * l ll j z t. f is exact, as libc's is. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* As vsnprintf: terminated if size > 0; gives the length that the whole text has. */
int format_text(char *out, size_t size, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
