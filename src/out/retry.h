// SPDX-License-Identifier: Apache-2.0
/* retry.h — repeats of failed calls: how often and when is a value, carried out by one helper.
 *
 * Each wait is twice the last. With jitter, up to half of a wait is left out at random, so that the
 * clients of a server that comes back do not come all at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"

struct http_head;

struct retry {              /* 0: no bound */
    unsigned attempts;      /* in all, the first included */
    uint32_t within_ms;     /* of the beginning: no attempt begins later */
    uint32_t first_ms;      /* the wait before the second attempt */
    uint32_t least_ms;      /* of each wait, without jitter */
    uint32_t most_ms;       /* of each wait */
    uint32_t after_most_ms; /* a longer wait that is asked for ends the tries */
    bool jitter;
};

struct attempts { /* at one thing; zero it first */
    struct loop_timer timer;
    void (*again)(struct attempts *a);
    uint64_t begun_ns; /* 0: not yet */
    uint64_t wait_ms;  /* the last */
    unsigned count;    /* so far, with the one under way */
};

/* Before the first attempt; also of one that had others before. */
void attempts_begin(struct attempts *a, const struct loop *loop);
/* One has failed: again() comes after a wait, of at least after_ms, which a server may have asked
 * for. False: that was the last. */
bool attempts_again(struct attempts *a, struct loop *loop, const struct retry *policy,
                    uint64_t after_ms, void (*again)(struct attempts *a));
void attempts_stop(struct attempts *a); /* again() does not come any more; twice is fine */

/* The Retry-After of an answer; 0: none, or a date. */
uint64_t retry_after_ms(const struct http_head *head);
