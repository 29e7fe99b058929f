// SPDX-License-Identifier: Apache-2.0
/* split.c — parts lie in order inside the text, and each is complete and alone when split again. */
#include "guest/shell/split.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_n(data, size);
    struct arena a;
    struct split whole, one;
    const char *at = text.p;

    arena_init(&a, 64u << 20);
    struct err *e = split_commands(&a, text, &whole);
    if (e)
        abort();
    if ((whole.verdict == SPLIT_SEVERAL) != (whole.count > 1))
        abort();
    for (size_t i = 0; i < whole.count && i < 64; i++) {
        struct str part = whole.parts[i];
        if (part.len == 0 || part.p < at || part.p + part.len > text.p + text.len)
            abort();
        at = part.p + part.len;
        err_free(split_commands(&a, part, &one));
        if (one.verdict == SPLIT_SEVERAL)
            abort();
    }
    arena_done(&a);
    return 0;
}
