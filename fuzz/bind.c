// SPDX-License-Identifier: Apache-2.0
/* What a warm sandbox is bound to: any bytes are refused or give strings that lie inside them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_bind b;
    char *copy = malloc(size ? size : 1); /* exactly as long: a read past the end is seen */

    memcpy(copy, data, size);
    struct err *e = wire_bind_parse(copy, size, &b);
    err_free(e);
    if (e)
        return 0;
    size_t total = sizeof(struct bind_head) + strlen(b.cwd) + strlen(b.user) + 2;
    for (char **p = b.argv; *p; p++)
        total += strlen(*p) + 1;
    for (char **p = b.env; *p; p++)
        total += strlen(*p) + 1;
    if (total != size)
        abort();
    wire_bind_done(&b);
    return 0;
}
