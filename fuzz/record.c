// SPDX-License-Identifier: Apache-2.0
/* What was written ahead of a database: any bytes are no record, or give one that lies inside them.
 * The hash, which would keep all of them out, is made right. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "host/store/record.h"

#define HEAD   104 /* of a record: magic, database, place, lengths, hash */
#define HASHED 72  /* where the hash is */
#define LENGTH 56

static void make_right(char *p, size_t size)
{
    struct sha256 h;
    uint32_t bytes;

    memcpy(p, "croftgo1", 8);
    memset(p + 8, 'x', RECORD_ID);
    memcpy(&bytes, p + LENGTH, sizeof bytes);
    if (bytes < HEAD || bytes > size)
        return;
    memset(p + HASHED, 0, SHA256_LEN);
    sha256_init(&h);
    sha256_add(&h, p, bytes);
    sha256_done(&h, (uint8_t *)p + HASHED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char store[RECORD_ID], *copy = malloc(size ? size : 1);
    struct store_record_asked asked;

    memset(store, 'x', sizeof store);
    memcpy(copy, data, size);
    if (size >= HEAD)
        make_right(copy, size);
    if (store_record_read(str_n(copy, size), store, &asked)) {
        const char *at = asked.sql + strlen(asked.sql) + 1, *end = copy + size;
        for (size_t i = 0; i < asked.count; i++) {
            struct str text = asked.values[i].text;
            if (text.p < asked.sql || text.p > end || text.len > (size_t)(end - text.p))
                abort();
        }
        if (at > end)
            abort();
    }
    free(copy);
    return 0;
}
