// SPDX-License-Identifier: Apache-2.0
/* The request pid 1 answers for ports inside: refused, or a port of loopback and nothing else. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/init/tunnel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    uint16_t port = 0;
    bool any;

    memcpy(copy, data, size);
    struct err *e = tunnel_parse(str_n(copy, size), &port, &any);
    struct str head = str_n(copy, size);
    if (!e && (port == 0 || (str_find(head, STR("CONNECT 127.0.0.1:")) < 0 &&
                             str_find(head, STR("CONNECT localhost:")) < 0)))
        abort();
    err_free(e);
    free(copy);
    return 0;
}
