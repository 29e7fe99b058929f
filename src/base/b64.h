// SPDX-License-Identifier: Apache-2.0
/* b64.h — RFC 4648 base64, standard and URL-safe alphabets. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

static inline size_t b64_len(size_t n)
{
    return (n + 2) / 3 * 4;
}

/* Writes b64_len(n) characters (fewer without padding) and gives the count; no NUL. */
size_t b64_encode(const void *p, size_t n, char *out, bool url_safe, bool padding);
void b64_add(struct buf *b, struct str data);
/* Strict: standard alphabet, padding required where due, no white space, unused bits zero.
 * Nothing is added when it refuses. */
fallible b64_decode(struct str text, struct buf *into);
