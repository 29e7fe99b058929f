// SPDX-License-Identifier: Apache-2.0
/* pool.h — sandboxes started ahead of demand, per image.
 *
 * A pool owns its idle sandboxes; pool_give() gives the oldest away for good, and it never returns
 * to a pool. It is replaced at once, after the starts that wait. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/list.h"
#include "loop/loop.h"
#include "wire/runtime.h"

struct manager;
struct pool;
struct sbx;

#define POOL_NAME_MAX 63
#define POOL_MOST     5000 /* sandboxes a pool may be told to keep */

/* Why a start was not warm. */
enum pool_miss {
    POOL_HIT,
    POOL_NO_POOL, /* none has this image */
    POOL_EMPTY,   /* all are taken, new ones are being made */
    POOL_COLD,    /* nothing here can be warm */
    POOL_FORK,    /* it goes on from a snapshot */
    POOL_DISK,    /* where its files lie would have to be decided before its claim */
    POOL_UNWELL,  /* one was taken, and could not be bound */
    POOL_STALE,   /* the same: its image has not this name any more */
    POOL_MISSES
};
extern const char *const pool_miss_words[POOL_MISSES];
extern const char *const pool_miss_names[POOL_MISSES]; /* the same as one word each */
/* Starts of images that have no pool. */
const uint64_t *pool_misses_of_none(const struct manager *m);

struct pool_config {
    struct wire_warm_config wire; /* name, image; the rest is for clients that ask */
    unsigned target, ceiling;     /* kept ready; never more at once, those in the making too */
};

struct pool_info {
    struct str name, image;
    struct str wire; /* the config as a JSON object; .p NULL: see pool_sum_recent */
    unsigned target, ceiling, ready, making;
    uint64_t hits, misses[POOL_MISSES], made, failed;
};

/* {"target": N, "ceiling": N}, both or one of them, for a pool that is there. */
fallible pool_change(struct manager *m, struct str name, const struct json *change);
/* Makes one, or changes the one of this name: what is too much is ended, what is missing made. */
fallible pool_set(struct manager *m, const struct pool_config *config);
fallible pool_may(struct manager *m, const struct pool_config *config); /* could it be set? */
/* False: there is none of this name. Its sandboxes are ended. */
bool pool_remove(struct manager *m, struct str name);
void pool_each(struct manager *m, void (*fn)(void *arg, const struct pool_info *info), void *arg);
/* The sum of the pools made for images started again and again. Which images those are is no
 * tenant's business. Pools that are gone count too. */
void pool_sum_recent(struct manager *m, struct pool_info *ret);
