// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

void hash_hex(const void *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *at = p;

    for (size_t i = 0; i < n; i++) {
        *out++ = digits[at[i] >> 4];
        *out++ = digits[at[i] & 15];
    }
    *out = '\0';
}
