// SPDX-License-Identifier: Apache-2.0
/* subids.c — any bytes as /etc/subuid: a range that holds neither root nor us, or none. */
#include <stdint.h>
#include <stdlib.h>

#include "host/subids/subids.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint32_t id = 1000;
    struct str text = str_n(data, size);
    uint32_t first = 0, count = 0;

    if (subids_parse(text, STR("me"), id, &first, &count) &&
        (!count || !first || first + count < first || (id >= first && id - first < count)))
        abort();
    if (subids_has(text, 1000, 10) && !subids_has(text, 1001, 9))
        abort();
    return 0;
}
