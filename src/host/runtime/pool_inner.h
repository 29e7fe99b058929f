// SPDX-License-Identifier: Apache-2.0
/* pool_inner.h — pools, as the files of runtime/ see them. */
#pragma once

#include "host/runtime/pool.h"

struct pool {
    struct manager *manager;
    struct list link;
    char name[POOL_NAME_MAX + 1];
    char *image, *wire; /* wire NULL: no setting names it */
    unsigned target, ceiling, ready, making;
    bool closed;           /* goes when its last sandbox is gone */
    struct list sandboxes; /* ready ones, oldest first */
    uint64_t used_ns;      /* when one of its image was started last */
    uint64_t hits, misses[POOL_MISSES], made, failed;
};

#define RECENT_SEEN 16

/* Pools that come and go by themselves, and images that may get one. */
struct recent {
    struct {
        char *image;
        uint64_t seen_ns; /* started without a pool */
    } seen[RECENT_SEEN];
    struct loop_timer timer;            /* one was not used for too long */
    uint64_t hits, misses[POOL_MISSES]; /* of all of them, those that are gone too */
};

struct pools {
    struct list all;
    struct list ends;  /* sandboxes that wait for the launcher to end them */
    struct list asked; /* that the launcher makes or ends now */
    struct loop_later refill;
    struct loop_timer refill_again, calm;
    unsigned claiming;                /* starts that have one, and do not listen yet */
    uint64_t busy_ns;                 /* since when claims come without a pause; 0: none does */
    unsigned refill_fails, refilling; /* refilling: that are being started */
    uint64_t misses[POOL_MISSES];     /* of no pool */
    struct recent recent;
};

/* --- pool.c --- */
/* The oldest warm one of this image, NULL and why; pool_give() when it is to be had for good. */
struct sbx *pool_look(struct manager *m, const char *image, const char **ret_pool,
                      enum pool_miss *ret_miss);
void pool_give(struct manager *m, struct sbx *warm);
void pool_count_hit(struct manager *m, const char *name); /* one that was given away is bound */
void pool_missed(struct manager *m, const char *image, enum pool_miss miss);
void pool_end_stale(struct manager *m, const char *name); /* what it has ready is of an old image */
void pool_refill(struct manager *m);                      /* soon, behind what is under way */
void pool_trim(struct manager *m); /* ends what is too many, as far as the launcher may be asked */
/* How many may be being made now for a pool that has so many ready. */
unsigned pool_pace(const struct manager *m, unsigned ready, unsigned want, uint64_t now_ns);
void pool_claims_over(struct manager *m); /* no claim waits: they are filled up again */
void pool_end_next(struct manager *m);    /* of those that are to end, what may be asked for now */
void pool_drain(struct manager *m);
void pool_free_all(struct manager *m);
unsigned pool_count(const struct manager *m); /* sandboxes in all pools, in the making too */

bool pool_can_be(const struct manager *m); /* this backend has warm sandboxes */
struct pool *pool_new(struct manager *m, struct str name, const char *image);
void pool_close(struct pool *p); /* frees it now or when its last sandbox is gone */
void pool_set_size(struct pool *p, unsigned target, unsigned ceiling);

/* --- pool_recent.c --- */
static inline bool pool_is_recent(const struct pool *p)
{
    return !p->wire;
}
/* An image that no pool has is started: the second time soon behind the first makes one. */
void recent_saw(struct manager *m, const char *image);
void recent_close(struct manager *m, const char *image); /* of this image, if any; NULL: all */
void recent_reconfigure(struct manager *m);
void recent_stop(struct manager *m);
