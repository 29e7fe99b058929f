// SPDX-License-Identifier: Apache-2.0
/* literal.c — any bytes as a Python literal, a size and a duration: a value or an error. */
#include <stdlib.h>

#include "base/cfg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct buf out;
    struct json *v;
    uint64_t n;

    arena_init(&a, 64u << 20);
    buf_init(&out, 64u << 20);
    struct err *e = cfg_parse_literal(&a, str_n(data, size), &v);
    if (!e)
        json_write(&out, v, JW_PYTHON);
    err_free(e);
    err_free(cfg_parse_size(str_n(data, size), &n));
    err_free(cfg_parse_ms(str_n(data, size), &n));
    buf_done(&out);
    arena_done(&a);
    return 0;
}
