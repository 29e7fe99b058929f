// SPDX-License-Identifier: Apache-2.0
/* awake.h — while somebody waits for a start, idle processors wait for work instead of sleeping.
 *
 * A claim is a chain of short waits: for the disk, for a thread, for the launcher. On a machine
 * that was idle each of them ends with a processor that has to wake up, which takes longer than
 * most of what it then does. Linux lets root ask that they stay awake (/dev/cpu_dma_latency); the
 * request ends with its descriptor, so with us, whatever happens. */
#pragma once

#include "loop/loop.h"

struct awake {
    struct loop *loop; /* there before the first start */
    int fd;            /* -1: they sleep when they like */
    bool held;
    struct loop_timer most;
};

/* By root; what cannot be had is not there. Nor is it where there are so many processors that it
 * costs more than it gives: every change reaches all of them. */
void awake_open(struct awake *a);
void awake_close(struct awake *a);
void awake_begin(struct awake *a); /* NULL is fine, here and below */
void awake_end(struct awake *a);   /* at the latest after a few milliseconds it ends by itself */
