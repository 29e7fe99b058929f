// SPDX-License-Identifier: Apache-2.0
/* awake.h — when a start is asked for, idle processors wait for work a moment instead of sleeping.
 *
 * A claim and its first command are a chain of short waits: for the disk, for a thread, for the
 * launcher, for a shell. On a machine that was idle each of them ends with a processor that has to
 * wake up, which takes longer than most of what it then does. Linux lets root ask that they stay
 * awake (/dev/cpu_dma_latency); the request ends with its descriptor, so with us, whatever
 * happens. */
#pragma once

#include "loop/loop.h"

struct awake {
    struct loop *loop; /* there before the first start */
    int fd;            /* -1: they sleep when they like */
    uint64_t ms;       /* so long, from the last start that was asked for; 0: not at all */
    bool held;
    struct loop_timer over;
};

/* By root; what cannot be had is not there. Nor is it where there are so many processors that it
 * costs more than it gives: every change reaches all of them, and all that are idle wait. */
void awake_open(struct awake *a, uint64_t ms);
void awake_close(struct awake *a);
void awake_hold(struct awake *a); /* NULL is fine */
