// SPDX-License-Identifier: Apache-2.0
/* part.c — the rows of a server. */
#include "host/part/part.h"
#include "host/server/layout.h"
#include "host/store/store.h"

struct store *store_of(const struct host *h)
{
    return host_part(h, "store");
}

static fallible store_part_open(struct host *h, void **ret_state)
{
    struct store *s;

    TRY_WRAP(store_open(h->loop, h->layout->rows, &s), "rows");
    *ret_state = s;
    return NULL;
}

/* Tells all callers that wait: runtimes, keys, and through them clients. */
static void store_settle(void *store)
{
    store_close(store);
}

/* The rows are of one backend, which claims them first; and it may still say what is to be written
 * when all settles. */
HOST_PART(store) = {.name = "store",
                    .needs = PART_NEEDS("backend"),
                    .open = store_part_open,
                    .settle = store_settle};
