// SPDX-License-Identifier: Apache-2.0
/* verify.h — walks a log that need not be ours or whole: lengths, ids, chain, index. Reads only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum event_state {
    EVENT_OK,
    EVENT_TORN,     /* ends in one unfinished commit: opening the log cuts it */
    EVENT_CORRUPT,  /* damaged before the tail */
    EVENT_BAD_INDEX /* the log is whole, entries of its index are wrong: opening rebuilds it */
};

enum event_index_state {
    EVENT_INDEX_OK,
    EVENT_INDEX_MISSING,
    EVENT_INDEX_SHORT, /* right as far as it goes */
    EVENT_INDEX_WRONG
};

struct event_verdict {
    enum event_state state;
    enum event_index_state index;
    uint64_t records, bytes; /* good ones, from the start; bytes with the header */
    uint64_t first_seq, last_seq;
    uint64_t created_ns;  /* wall time in the header */
    uint8_t head[32];     /* SHA-256 of the last good record */
    uint64_t bad_offset;  /* of the first bad record or index entry; 0 when EVENT_OK */
    uint64_t bad_seq;     /* the id it should have had */
    uint64_t after_bytes; /* from bad_offset to the end of the file */
    char why[96];         /* what is wrong there, without offset and id */
};

/* index may be -1 (none). An error means that the file could not be read at all; what is wrong
 * inside it is in the verdict. */
fallible event_verify(int log, int index, struct event_verdict *ret_verdict);
/* The same, and every good record is told; what it points to is valid inside the call only. */
struct event_record;
fallible event_verify_each(int log, int index, void (*fn)(void *arg, const struct event_record *r),
                           void *arg, struct event_verdict *ret_verdict);
const char *event_state_word(enum event_state s); /* "ok", "torn", … */
const char *event_index_word(enum event_index_state s);
