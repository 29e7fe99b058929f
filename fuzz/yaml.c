// SPDX-License-Identifier: Apache-2.0
/* yaml.c — any bytes: a tree that can be written, or an error that names the place. */
#include <stdlib.h>

#include "host/config/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct buf out;
    struct json *v;

    arena_init(&a, 64u << 20);
    buf_init(&out, 64u << 20);
    struct err *e = yaml_parse(&a, str_n(data, size), &v);
    if (!e)
        json_write(&out, v, JW_PYTHON);
    else if (err_code(e) == ERR_INVALID && !str_starts(str_of(err_text(e)), STR("line ")) &&
             !str_starts(str_of(err_text(e)), STR("byte ")))
        abort();
    err_free(e);
    buf_done(&out);
    arena_done(&a);
    return 0;
}
