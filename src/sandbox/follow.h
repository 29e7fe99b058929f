// SPDX-License-Identifier: Apache-2.0
/* follow.h — what a sandbox says, from a place on, at the reader's own pace.
 *
 * Nothing is queued for a reader: it is told that there may be more and reads when it likes, so a
 * slow one costs nothing and misses at most what the sandbox's log does not keep. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"

struct sbx;
struct sbx_log_calls;

/* How much was read: of what pid 1 and our server wrote, and of what a command did. */
struct sbx_place {
    uint64_t file, output;
};
#define SBX_PLACE_MAX 44 /* "1200.331" and its NUL */
size_t sbx_place_format(const struct sbx_place *at, char out[SBX_PLACE_MAX]);
bool sbx_place_parse(struct str text, struct sbx_place *ret_at); /* "1200" too */

struct sbx_log_from {
    bool has_place; /* begin there */
    struct sbx_place place;
    uint64_t lines; /* else with so many last lines, of the newest MB; UINT64_MAX: with all of it */
    bool follow;    /* until it ends; else what there is */
};

struct sbx_follower { /* the caller's: zero, but for the callbacks */
    /* First, once: at is where it begins. It may come from inside sbx_follow(), which then needs f
     * still: it is not let go of in there. */
    void (*on_begin)(struct sbx_follower *f);
    void (*on_more)(struct sbx_follower *f); /* there may be more; not for what is there at first */
    /* The last callback, called once. e NULL: the log ended, or its sandbox goes away; else it
     * cannot be followed further. The log can still be read in here. f is not touched after. e
     * borrowed. */
    void (*on_end)(struct sbx_follower *f, const struct err *e);
    struct sbx_place at; /* what was read so far */

    struct list link;
    struct sbx *sbx;
    const struct sbx_log_calls *calls;
    void *mine; /* the driver's */
    bool open;
};

/* ERR_CONFLICT: it is to be followed and has ended. An error: no callback came or comes. */
fallible sbx_follow(struct sbx *s, const struct sbx_log_from *from, struct sbx_follower *f);
void sbx_unfollow(struct sbx_follower *f); /* twice is fine */
/* Appends the next bytes, as many as out takes; none added: that is all so far. */
void sbx_log_next(struct sbx_follower *f, struct buf *out);

/* --- for drivers, and sandbox.c --- */
/* The last callback; e borrowed. */
void sbx_follower_end(struct sbx_follower *f, const struct err *e);
void sbx_log_grew(struct sbx *s);
void sbx_followers_moved(struct sbx *s); /* its state is another */
void sbx_followers_end(struct sbx *s);
