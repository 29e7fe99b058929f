// SPDX-License-Identifier: Apache-2.0
/* output.h — the newest bytes that a sandbox's server or command wrote, read from a pipe. */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"

#define OUTPUT_BYTES (64u << 10)

struct sbx_output { /* zero it first */
    struct loop_io io;
    struct buf text;
    uint64_t total;                        /* bytes, with those that are not kept any more */
    void (*on_more)(struct sbx_output *o); /* may be NULL */
    void *owner;                           /* for on_more */
    int file;                              /* 0: none; see sbx_output_keep_in */
};

void sbx_output_init(struct sbx_output *o);
void sbx_output_done(struct sbx_output *o);
/* The bytes are kept in that file too, as a ring: those it holds already come first. Takes fd
 * over. */
void sbx_output_keep_in(struct sbx_output *o, int fd);
/* Takes the read end over, also on failure. The bytes of an earlier life are kept. */
fallible sbx_output_start(struct sbx_output *o, struct loop *loop, int fd);
void sbx_output_stop(struct sbx_output *o); /* after its last words */
/* As much of the end as out still takes. */
void sbx_output_copy(const struct sbx_output *o, struct buf *out);
/* Appends the bytes behind the first *at, as many as out takes. *at moves on, also past bytes that
 * are gone. */
void sbx_output_read(const struct sbx_output *o, uint64_t *at, struct buf *out);
