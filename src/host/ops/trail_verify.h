// SPDX-License-Identifier: Apache-2.0
/* trail_verify.h — all logs of a history (trail.h) against themselves and against the seals that
 * later ones hold. Reads only. */
#pragma once

#include "base/arena.h"
#include "event/verify.h"

enum trail_seal_state {
    TRAIL_OPEN,     /* the newest: it is written to, and sealed when it is full */
    TRAIL_SEALED,   /* a later log has its last record and that record's hash */
    TRAIL_UNSEALED, /* none does: the server was killed; it seals it when it starts again */
    TRAIL_REWRITTEN /* a later log has another hash, or another last record */
};

struct trail_part { /* one log */
    char name[256];
    uint64_t base; /* number of the record before its first */
    struct event_verdict verdict;
    enum trail_seal_state seal;
    char sealed_in[256]; /* the log that says so; empty: none */
    struct trail_part *next;
};

struct trail_verdict {
    struct trail_part *parts; /* oldest first */
    size_t count;
    const struct trail_part *bad; /* the first that is not as it should be; NULL: none */
    char why[200];                /* what is wrong with it */
};

/* Checks name in dir, and name.N. Faults inside are in the verdict. ERR_NOT_FOUND: there is
 * none. */
fallible trail_verify(int dir, const char *name, struct arena *a, struct trail_verdict *ret);
const char *trail_seal_word(enum trail_seal_state s); /* "open", "sealed", … */

/* --- for trail.c --- */
/* The number of a log's name; false: it is none of this history's. */
bool trail_base_of(const char *name, const char *file, uint64_t *ret_base);
/* Whether a log has a record that seals the one of this name. Hashes are not looked at. */
bool trail_has_seal(int log, const char *name);
