// SPDX-License-Identifier: Apache-2.0
/* utf8 — pieces equal the whole; what was replaced is valid; valid text is left as it is. */
#include <stdlib.h>

#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool cond)
{
    if (!cond)
        abort();
}

/* The first byte seeds the lengths of the pieces. */
static bool valid_in_pieces(struct str s, uint32_t seed)
{
    uint32_t state = 0;

    while (s.len) {
        seed = seed * 1103515245u + 12345u;
        struct str piece = str_first(s, seed >> 16 & 31);
        if (!utf8_feed(&state, piece))
            return false;
        s = str_from(s, piece.len);
    }
    return state == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str s = str_n(data + 1, size - 1);
    bool valid = utf8_valid(s);
    must(valid_in_pieces(s, data[0]) == valid);

    struct buf b;
    buf_init(&b, SIZE_MAX / 2);
    utf8_add_replaced(&b, s);
    must(utf8_valid(buf_str(&b)));
    must(str_eq(buf_str(&b), s) == valid);
    buf_done(&b);

    size_t count = 0, at = 0;
    bool broken = false;
    for (uint32_t cp; at < s.len; count++) {
        char again[4];
        size_t n = utf8_decode(str_from(s, at), &cp);
        must(n >= 1 && n <= 4 && n <= s.len - at);
        if (count % 32 == 31) /* each costs the way from the start */
            must(utf8_offset(s, count) == at);
        if (utf8_encode(cp, again) != n || memcmp(again, s.p + at, n) != 0)
            broken = true;
        at += n;
    }
    must(broken == !valid && utf8_count(s) == count);
    return 0;
}
