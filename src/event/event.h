// SPDX-License-Identifier: Apache-2.0
/* event.h — one record of a conversation's history, and where producers send it.
 *
 * A producer appends to a sink and is told later, in order, when its record is safe. A record that
 * need not be stored, such as a token of an answer, is sent live, to the subscribers of the moment.
 *
 * A producer does not know the sink: a file beside it (event/log.h), or a host behind a control
 * channel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"

#define EVENT_RECORD_MAX (16u << 20) /* bytes of one record on disk, 104 of overhead included */
#define EVENT_KIND_MAX   64
#define EVENT_ID_MAX     128

struct event_record {
    uint64_t seq;     /* 1, 2, 3 … without holes; given by the sink, ignored when appending; 0 of
                       * a live one */
    uint64_t wall_ns; /* since 1970; 0 when appending: stamped by the sink */
    struct str kind;  /* a short word, 1 to EVENT_KIND_MAX bytes */
    struct str id;    /* the producer's own name for it, such as a UUID; may be empty */
    struct str payload; /* opaque, usually JSON */
};

/* --- appending --- */

/* Embedded in its owner, which lives until done is called or calls event_append_cancel. */
struct event_append {
    /* Once: why is NULL when the record is on disk, otherwise borrowed. May append, or free
     * whatever it likes. */
    void (*done)(struct event_append *a, const struct err *why);
    uint64_t seq; /* valid in done; 0 before that if the sink cannot know it yet */
    struct list link;
};

struct event_sink;

struct event_sink_ops {
    fallible (*append)(struct event_sink *sink, const struct event_record *r,
                       struct event_append *a);
    fallible (*live)(struct event_sink *sink, const struct event_record *r);
};

/* The first member of what implements it; calls done of each append in the order they were made,
 * never from inside append. */
struct event_sink {
    const struct event_sink_ops *ops;
};

/* Copies the record. a->done must be set; without a (NULL) there is no callback. An error means
 * that nothing was appended, and done will not be called.
 *
 * ERR_INVALID, ERR_TOO_LARGE; ERR_BUSY: too much waits for the disk, try again after the next done;
 * ERR_IO: the sink failed for good; ERR_CLOSED. */
static inline fallible event_append(struct event_sink *sink, const struct event_record *r,
                                    struct event_append *a)
{
    return sink->ops->append(sink, r, a);
}

/* Delivers the record to the subscribers of this moment and never stores it: after what was
 * appended before it, before what is appended after it. Copied. Losing one is no error: a
 * subscriber that is slow gets a count. ERR_INVALID, ERR_TOO_LARGE, ERR_CLOSED. */
static inline fallible event_live(struct event_sink *sink, const struct event_record *r)
{
    return sink->ops->live(sink, r);
}

/* Forgets the callback; the record itself may still be written. Before append or twice is fine if
 * the structure was zeroed. */
static inline void event_append_cancel(struct event_append *a)
{
    if (a->link.next)
        list_del(&a->link);
}

/* Sizes and kind; every sink checks them first. */
fallible event_record_check(const struct event_record *r, size_t limit_bytes);

/* --- choosing --- */

/* All conditions must hold; a zeroed filter lets everything through. All members are borrowed. */
struct event_filter {
    const struct str *kinds;                                /* any of these */
    size_t kind_count;                                      /* 0: every kind */
    struct str id;                                          /* .len 0: any */
    uint64_t from_ns;                                       /* wall_ns >= from_ns */
    uint64_t until_ns;                                      /* wall_ns < until_ns; 0: no end */
    bool (*match)(const struct event_record *r, void *arg); /* may be NULL */
    void *arg;
};
bool event_filter_match(const struct event_filter *f, const struct event_record *r); /* NULL: yes */
