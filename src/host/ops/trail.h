// SPDX-License-Identifier: Apache-2.0
/* trail.h — one history in several event logs, so that its oldest part can be removed.
 *
 * Logs are NAME, then NAME.N, where N is the number of the last record before it. Numbers grow and
 * are used once; a failed commit may leave a gap.
 *
 * Whole logs are removed, the oldest first, once more than keep_bytes, less an eighth, came after
 * them. A full log is sealed: the next one has a record (TRAIL_SEAL) with the hash of its last. So
 * the logs together cannot be rewritten unnoticed either.
 *
 * If a kill kept a seal from the disk, opening the history writes it. */
#pragma once

#include "event/log.h"

#define TRAIL_SEAL   "seal" /* a kind of record that subscribers do not see */
#define TRAIL_DIGITS 20     /* of the number in a name: names sort as numbers do */

struct trail;

struct trail_config {
    struct loop *loop;
    int dir; /* borrowed for the call; opened anew */
    const char *name;
    uint64_t keep_bytes; /* 0: everything */
    struct event_options options;
};

fallible trail_open(const struct trail_config *config, struct trail **ret_trail);
void trail_free(struct trail *t); /* as event_log_free */
OWNABLE(trail)

void trail_keep(struct trail *t, uint64_t keep_bytes); /* from now on */
/* As event_log_append, but only options.on_commit is told of the commit. */
fallible trail_append(struct trail *t, const struct event_record *r);
uint64_t trail_last(const struct trail *t);   /* the number of the newest on disk; 0: none */
uint64_t trail_newest(const struct trail *t); /* of the newest that was appended */
uint64_t trail_first(const struct trail *t);  /* the number of the oldest record, if there is one */

/* Embedded in its owner; the first part is filled in before trail_sub_start. */
struct trail_sub {
    void (*on_record)(struct trail_sub *s, uint64_t number, const struct event_record *r);
    /* Dropped, as event_sub; ERR_GONE: what it has not read was removed. Already stopped. */
    void (*on_end)(struct trail_sub *s, const struct err *why);
    const struct event_filter *filter; /* borrowed; NULL: everything */
    uint64_t after;                    /* number; 0: from the oldest that is there */

    struct event_sub sub;
    struct trail_log *log; /* NULL: stopped */
    struct list link;
};

/* ERR_GONE: what comes after `after` is not there any more. ERR_INVALID: there never was such. */
fallible trail_sub_start(struct trail *t, struct trail_sub *s);
void trail_sub_pause(struct trail_sub *s);
void trail_sub_resume(struct trail_sub *s);
void trail_sub_stop(struct trail_sub *s); /* from any callback; twice is fine */
