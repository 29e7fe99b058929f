// SPDX-License-Identifier: Apache-2.0
/* said.h — the newest of what a sandbox's server said, read from a pipe as it comes. */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"

#define SAID_BYTES (64u << 10)

struct said { /* zero it first */
    struct loop_io io;
    struct buf text;
    uint64_t total;                  /* bytes, with those that are not kept any more */
    void (*on_more)(struct said *o); /* may be NULL */
    void *owner;                     /* for on_more */
    int file;                        /* 0: none; see said_keep_in */
};

void said_init(struct said *o);
void said_done(struct said *o);
/* What is said is kept in that file too, as a ring: what it holds already comes first. Takes fd
 * over. */
void said_keep_in(struct said *o, int fd);
/* Takes the read end over, also on failure. What an earlier life said is kept. */
fallible said_start(struct said *o, struct loop *loop, int fd);
void said_stop(struct said *o); /* after its last words */
/* As much of the end as out still takes. */
void said_copy(const struct said *o, struct buf *out);
/* What follows the first *at bytes of all, as much as out still takes; *at moves on, also past what
 * is not kept any more. */
void said_read(const struct said *o, uint64_t *at, struct buf *out);
