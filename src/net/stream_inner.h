// SPDX-License-Identifier: Apache-2.0
/* stream_inner.h — shared by stream.c and stream_out.c, included by no other. */
#pragma once

#include "base/list.h"
#include "net/stream.h"

#define OUT_LIMIT   (16u << 20)
#define SPARE_COUNT 32

struct net {
    struct loop *loop;
    struct list streams; /* all of them: those that still send have no other owner */
    bool freed;          /* by its owner; goes with its last stream */
    char *spare[SPARE_COUNT];
    unsigned spare_count;
    char page[STREAM_READ_SIZE];
};

enum stream_state {
    ST_OPEN,
    ST_SENDING,   /* closed by its owner, output still going out */
    ST_LINGERING, /* all is out; waiting for the peer to close, so that no reset eats it */
    ST_CLOSED,
};

struct stream {
    struct loop_io io;
    struct net *net;
    struct list link;
    const struct stream_events *events;
    void *owner;
    const struct stream_filter *filter;
    void *filter_state;
    struct buf in, out;
    size_t out_at;
    struct loop_timer idle;
    struct loop_later later;
    struct err *failed; /* told at the end of the turn */
    uint32_t idle_ms;
    uint32_t read_want, write_want; /* what a filter waits for instead; 0: the natural one */
    uint32_t lingered_bytes;
    uint8_t state;
    bool paused, eof, hung_up, dispatching, resumed, blocked, high, deliver_due, tell_closed, fin;
    bool maybe_held; /* a filter may hold input that epoll knows nothing of */
};

/* stream.c */
void stream_fail_soon(struct stream *s, struct err *why);
void stream_touch(struct stream *s); /* a byte moved */
void stream_later(struct stream *s); /* asks for a flush after the turn */

/* stream_out.c */
void stream_out_compact(struct stream *s); /* forgets what was sent */
void stream_out_release(struct stream *s); /* empty; the memory is for the next writer */
void stream_net_end(struct net *net);
