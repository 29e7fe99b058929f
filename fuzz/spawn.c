// SPDX-License-Identifier: Apache-2.0
/* The plan a new process reads: any bytes are refused or give strings that lie inside them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/spawn/inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spawn_job job;
    char *copy = malloc(size ? size : 1); /* exactly as long: a read past the end is seen */
    size_t total = 0;

    memcpy(copy, data, size);
    if (spawn_parse(str_n(copy, size), &job)) {
        for (char **p = job.argv; *p; p++)
            total += strlen(*p) + 1;
        for (char **p = job.env; *p; p++)
            total += strlen(*p) + 1;
        if (total > size || job.head.groups > PASSWD_GROUPS_MAX)
            abort();
        free(job.argv);
    }
    free(copy);
    return 0;
}
