// SPDX-License-Identifier: Apache-2.0
/* b64 — whatever is taken is written back as the same text; any bytes survive the round trip. */
#include <stdlib.h>

#include "base/b64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool cond)
{
    if (!cond)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str s = str_n(data, size);
    struct buf plain, text;
    buf_init(&plain, SIZE_MAX / 2);
    buf_init(&text, SIZE_MAX / 2);

    struct err *e = b64_decode(s, &plain);
    if (!e) {
        b64_add(&text, buf_str(&plain));
        must(str_eq(buf_str(&text), s));
    }
    must(!e || plain.len == 0);
    err_free(e);

    buf_reset(&plain);
    buf_reset(&text);
    b64_add(&text, s);
    must(text.len == b64_len(size));
    e = b64_decode(buf_str(&text), &plain);
    must(!e && str_eq(buf_str(&plain), s));
    buf_done(&plain);
    buf_done(&text);
    return 0;
}
