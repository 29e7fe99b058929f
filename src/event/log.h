// SPDX-License-Identifier: Apache-2.0
/* log.h — the append-only file of one conversation: group commit, pages, live subscribers.
 *
 * Acknowledged means on disk. Every record carries the SHA-256 of the one before it, so damage is
 * always seen. The hashes have no key: rewritten history is seen only with an earlier head.
 *
 * One process has a log open at a time. The index NAME.idx beside it makes opening and the newest
 * page cheap. A wrong index is rebuilt. */
#pragma once

#include "event/event.h"
#include "loop/loop.h"

struct event_live;
struct event_log;
struct rng;

struct event_options {
    uint32_t record_max;    /* 0: EVENT_RECORD_MAX; never above it */
    uint32_t pending_bytes; /* waiting for the disk before ERR_BUSY; 0: EVENT_PENDING_MAX */
    uint32_t delay_ms;      /* gather this long before a commit, less if much comes; 0: this turn */
    bool write_at_once; /* a record outlives this process from its append on, if not yet a crash */
    bool inline_sync;   /* never use a thread, as is done anyway where threads are forbidden */
    bool check_all;     /* walk the whole chain when opening, not only the tail */
    bool must_exist;    /* ERR_NOT_FOUND rather than a new log */
    struct rng *rng;    /* NULL: the system's */
    /* After each commit, on the loop, until the log is freed: how many records, and how long the
     * disk took. May be NULL. */
    void (*on_commit)(void *arg, uint64_t records, uint64_t sync_ns);
    void *arg;
};
#define EVENT_PENDING_MAX (64u << 20)

/* Repairs made by opening; also logged as a warning. */
struct event_repair {
    uint64_t cut_bytes;     /* of a torn tail; 0: nothing was cut */
    uint64_t cut_offset;    /* where it began */
    uint64_t cut_seq;       /* the id its first record would have had */
    uint64_t lost_records;  /* the index remembers as acknowledged, but the log ends before them */
    uint64_t indexed_again; /* entries written to a lost, stale or wrong index */
};

/* Opens or makes NAME and NAME.idx beneath dir. options may be NULL. A torn tail is cut;
 * damage before it is ERR_CORRUPT and names offset and record: here if the tail, a lost index or
 * check_all lead past it, else when it is read. ERR_CONFLICT: open elsewhere. */
fallible event_log_open(struct loop *loop, int dir, struct str name,
                        const struct event_options *options, struct event_log **ret_log);
/* From any callback. Refuses further appends, drops subscribers with ERR_CLOSED; what was appended
 * is still committed and its callbacks run before the memory goes. */
void event_log_free(struct event_log *log);
OWNABLE(event_log)

struct event_sink *event_log_sink(struct event_log *log); /* lives as long as the log */

/* As event_append on its sink; a->seq is the id right away. If a commit fails, everything appended
 * by then fails with it, in order, and ids go on after the last durable one. A failed write (full
 * disk) leaves the log usable; after a failed fdatasync it is unknown what the disk holds, so every
 * append gets ERR_IO until the log is opened again. Reading goes on in both cases. */
fallible event_log_append(struct event_log *log, const struct event_record *r,
                          struct event_append *a);
/* As event_live on its sink. */
fallible event_log_live(struct event_log *log, const struct event_record *r);

struct event_info {
    uint64_t last_seq; /* durable; 0: empty */
    uint64_t next_seq; /* what the next append gets */
    uint64_t bytes;    /* of the durable part, header included */
    uint64_t commits;  /* since it was opened */
    uint8_t head[32];  /* SHA-256 of the last durable record, of the header if there is none */
    bool poisoned;
    struct event_repair repair;
};
void event_log_info(const struct event_log *log, struct event_info *ret_info);

/* --- pages --- */
struct event_query {
    uint64_t after; /* exclusive; 0: from the oldest, or the newest when descending */
    bool descending;
    size_t limit;                      /* records given; 0: all */
    size_t scan_limit;                 /* records looked at before the page ends early; 0: all */
    const struct event_filter *filter; /* may be NULL */
};
struct event_page {
    size_t count;
    uint64_t next; /* `after` of the next page; 0: nothing is left */
};
/* Durable records, each checked against its hash and its neighbour before it is given. The record
 * is valid inside `each`, which returns false to end the page. Memory is constant. Reads the disk:
 * bound it with limit and scan_limit. ret_page may be NULL. */
fallible event_log_read(struct event_log *log, const struct event_query *q,
                        bool (*each)(const struct event_record *r, void *arg), void *arg,
                        struct event_page *ret_page);

/* --- subscribers --- */

/* Embedded in its owner; the first part is filled in before event_sub_start and may hold zeros. */
struct event_sub {
    void (*on_record)(struct event_sub *s, const struct event_record *r);
    /* A live record; missed: how many before it were dropped since the last. NULL: none wanted. */
    void (*on_live)(struct event_sub *s, const struct event_record *r, uint64_t missed);
    void (*on_caught_up)(struct event_sub *s); /* history is through, once; may be NULL */
    /* Dropped: too slow (ERR_LIMIT), log closed (ERR_CLOSED), unreadable. Already stopped; why is
     * borrowed. May be NULL. */
    void (*on_end)(struct event_sub *s, const struct err *why);
    const struct event_filter *filter; /* borrowed; NULL: everything */
    uint64_t after;                    /* exclusive; moves on as records pass */
    uint64_t queue_records;            /* that may wait while paused; 0: EVENT_QUEUE_RECORDS */
    uint64_t queue_bytes;              /* the same in bytes; 0: EVENT_QUEUE_BYTES */

    struct event_log *log; /* NULL: stopped */
    struct list link;
    struct loop_later pump;
    uint64_t at;                /* offset of the record after `after` */
    uint64_t since, since_at;   /* durable end when it subscribed: history before is not queue */
    struct event_live *live_at; /* the next one for it; NULL: none waits */
    uint64_t live_missed;
    bool paused, caught_up;
    bool *gone; /* while pumping: set when stopped from its own callback */
};
#define EVENT_QUEUE_RECORDS 4096
#define EVENT_QUEUE_BYTES   (64u << 20)
/* Live records that may wait in a log, together. One more drops the oldest for all subscribers that
 * have not taken it. They are in memory until all have. */
#define EVENT_LIVE_RECORDS 4096
#define EVENT_LIVE_BYTES   (1u << 20)

/* History after s->after, then every record once it is durable, without gap or repetition, from the
 * end of this turn on. The waiting records are those in the file: a subscriber costs no memory, and
 * one that is paused too long is dropped without the others noticing. */
fallible event_sub_start(struct event_log *log, struct event_sub *s);
void event_sub_pause(struct event_sub *s); /* from on_record too: nothing more until resume */
void event_sub_resume(struct event_sub *s);
void event_sub_stop(struct event_sub *s); /* from any callback; twice is fine */
