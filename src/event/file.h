// SPDX-License-Identifier: Apache-2.0
/* file.h — a log and its index on disk, without loop or threads. Not for users: see log.h. */
#pragma once

#include "event/format.h"
#include "event/log.h"

/* One commit writes at most this much, so a torn tail is never longer. */
#define EVENT_CUT_MAX (EVENT_PENDING_MAX + EVENT_RECORD_MAX)

struct event_file {
    int fd, index_fd;
    char *name; /* for messages */
    struct event_header header;
    struct event_chain chain; /* the last durable record */
    uint64_t end;             /* after it */
    uint64_t indexed;         /* records the index knows, from 1 without holes */
    uint64_t indexed_end;     /* offset after the last of them */
    struct event_repair repair;
};

fallible event_file_open(struct event_file *f, int dir, struct str name,
                         const struct event_options *o, uint64_t wall_ns);
void event_file_close(struct event_file *f); /* fine after a failed open */

/* An error that names the record: "record 7 at offset 1234 of 'x.log' does not match its hash". */
fallible event_file_fault(const struct event_file *f, uint64_t seq, uint64_t at, const char *why);

/* Offset of record seq, 1 to chain.seq + 1. A wrong index is rebuilt on the way; one that cannot
 * be written is done without. */
fallible event_file_locate(struct event_file *f, uint64_t seq, uint64_t *ret_at);

/* --- index.c, for file.c and locate --- */
#define EVENT_COUNT_UNKNOWN UINT64_MAX
/* Entries of an index that belongs to the log; EVENT_COUNT_UNKNOWN if there is no such index. */
fallible event_index_count(int index_fd, const struct event_header *h, uint64_t *ret_count);
fallible event_index_get(int index_fd, uint64_t seq, struct event_entry *ret_entry);
/* Sets indexed and indexed_end to the newest entry that holds against the log, with its chain. */
fallible event_index_find_last(struct event_file *f, uint64_t count, uint64_t log_size,
                               struct event_chain *ret_chain);
fallible event_index_reset(struct event_file *f);
/* Cuts what is beyond f->indexed, then adds what is missing up to f->end. */
fallible event_index_extend(struct event_file *f);
