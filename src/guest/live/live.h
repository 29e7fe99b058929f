// SPDX-License-Identifier: Apache-2.0
/* live.h — output as it is written: the last of it is kept, and readers take it at their own pace.
 *
 * Bytes are counted from the first ever written. A reader has no queue of its own. One that wants
 * bytes that are no longer kept is told so and dropped; the writer never waits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"

#define LIVE_KEEP_BYTES  (128u << 10) /* at least; twice that at most */
#define LIVE_READERS_MAX 32

struct live {
    struct buf kept;
    uint64_t start; /* number of the first byte kept */
    struct list readers;
    unsigned readers_count;
};

struct live_reader {   /* embedded in its owner */
    struct live *live; /* NULL: not attached */
    struct list link;
    uint64_t at; /* the next byte it wants */
    /* Gives how much was taken; less than all means that live_read asks again. */
    size_t (*on_bytes)(struct live_reader *r, struct str bytes);
    /* It was detached: the writer has gone (lost is 0), or what it wanted next is no longer kept.
     */
    void (*on_end)(struct live_reader *r, uint64_t lost_bytes);
};

void live_init(struct live *l);
void live_done(struct live *l); /* ends every reader */
void live_add(struct live *l, struct str bytes);
static inline uint64_t live_end(const struct live *l)
{
    return l->start + l->kept.len;
}

/* From r->at on, or from what is kept if that lies behind it; ERR_LIMIT for one reader too many. */
fallible live_attach(struct live *l, struct live_reader *r);
void live_detach(struct live_reader *r); /* twice is fine */
void live_read(struct live_reader *r);   /* it can take more */
