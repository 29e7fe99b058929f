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

/* How much was read: of what pid 1 and our server wrote, and of what a command did. */
struct sbx_place {
    uint64_t file, said;
};
#define SBX_PLACE_MAX 44 /* "1200.331" and its NUL */
size_t sbx_place_format(const struct sbx_place *at, char out[SBX_PLACE_MAX]);
bool sbx_place_parse(struct str text, struct sbx_place *ret_at); /* "1200" too */

struct sbx_follower { /* the caller's */
    void (*on_more)(struct sbx_follower *f);
    /* It ended, or goes away: what it said can still be read, in here. f is not touched after. */
    void (*on_end)(struct sbx_follower *f, struct sbx *s);
    struct sbx *sbx; /* NULL: nobody is followed */
    struct list link;
};

/* ERR_CONFLICT: it has ended. */
fallible sbx_follow(struct sbx *s, struct sbx_follower *f);
void sbx_unfollow(struct sbx_follower *f); /* twice is fine */
/* What comes next, as much as out still takes; nothing added: that is all so far. */
fallible sbx_log_read(struct sbx *s, struct sbx_place *at, struct buf *out);
/* Where its last lines begin, of the newest window bytes. */
fallible sbx_log_tail(struct sbx *s, uint64_t lines, size_t window, struct sbx_place *ret_at);

/* --- for drivers, and sandbox.c --- */
void sbx_said(struct sbx *s);
void sbx_followers_moved(struct sbx *s); /* its state is another */
void sbx_followers_end(struct sbx *s);
