// SPDX-License-Identifier: Apache-2.0
/* inner.h — what log.c, live.c, read.c and sub.c share. Not for users. */
#pragma once

#include "event/file.h"

struct event_batch {
    struct buf bytes;    /* records as they will lie in the file */
    struct buf entries;  /* struct event_entry each */
    struct list waiting; /* struct event_append in order */
    uint64_t count;
    size_t written;           /* of bytes, ahead of the commit */
    struct event_chain chain; /* after the last of them */
};

struct event_log {
    struct event_sink sink; /* first: the sink is the log */
    struct loop *loop;
    struct event_options options;
    struct event_file file;
    struct list subs;
    struct list lives; /* struct event_live that a subscriber has not taken, the oldest first */
    uint64_t live_count, live_bytes;

    struct event_batch batches[2];
    struct event_batch *gather; /* being filled */
    struct event_batch *flight; /* being written, or NULL */
    struct loop_work work;
    struct loop_later start, gone;
    struct loop_timer delay;
    struct err *poison; /* why nothing is appended any more */
    uint64_t commits;
    bool closing;
    bool delivering; /* callbacks of appends run: the memory must stay */

    /* the flight's, filled in before and read after the thread has it */
    uint64_t flight_at;
    bool flight_indexes; /* the index has no gap before the flight */
    bool flight_indexed, flight_poisons;
    uint64_t flight_sync_ns;
    struct err *flight_err;
};

void event_subs_notice(struct event_log *log); /* something new is to be had */
void event_sub_pump(struct event_sub *s);      /* soon */
void event_subs_end(struct event_log *log, const struct err *why);

/* live.c: gives s what is due before its next record, until it pauses or *gone. */
void event_lives_give(struct event_sub *s, const bool *gone);
void event_lives_leave(struct event_sub *s); /* it takes no more */
/* A commit failed: what waits for its records waits for the last durable one. */
void event_lives_fall_back(struct event_log *log);
