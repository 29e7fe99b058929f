// SPDX-License-Identifier: Apache-2.0
/* record.h — a write that was asked for, as bytes on a disk: whole, or not there. */
#pragma once

#include "host/store/store.h"

#define RECORD_BLOCK  4096
#define RECORD_BYTES  STORE_QUICK_BYTES
#define RECORD_VALUES 32
#define RECORD_ID     40 /* a database's name, and NULs behind it */

struct store_record_asked { /* borrows from the bytes it was read from */
    uint64_t seq;
    const char *sql;
    size_t count;
    struct store_value values[RECORD_VALUES];
};

/* Of so many values, and bytes of SQL and of what they hold? */
bool store_record_fits(size_t count, size_t bytes);
/* block is RECORD_BYTES; gives how much of it is used, in whole RECORD_BLOCKs. */
size_t store_record_put(char *block, const char store[RECORD_ID], uint64_t seq, const char *sql,
                        const struct store_value *values, size_t count);
/* At the beginning of from; false: none of this database's is there, or not all of it. */
bool store_record_read(struct str from, const char store[RECORD_ID],
                       struct store_record_asked *ret);
