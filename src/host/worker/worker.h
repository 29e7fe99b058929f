// SPDX-License-Identifier: Apache-2.0
/* worker.h — a short-lived process that reads what strangers wrote, so that the caller does not.
 *
 * It has a user namespace and a network of its own, one directory as its root, and the descriptors
 * it was given. It keeps the capabilities to own files there and some fifty system calls. It
 * answers through a pipe; what it says is input too. Blocks until it ends: not for a loop's thread.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct worker_job {
    /* In the worker. What it writes to out is the answer; an error arrives as the caller's. */
    fallible (*run)(void *arg, int out);
    void *arg;
    int root;        /* becomes its "/"; keeps its number */
    const int *fds;  /* others it needs; -1 is passed over */
    size_t fd_count; /* at most WORKER_FDS */
};
#define WORKER_FDS 16

/* Appends the answer, up to the buffer's limit. */
fallible worker_run(const struct worker_job *job, struct buf *answer);

/* The same walls around this very process, for good, without the user namespace: overlay's own
 * attributes can be seen in none but the host's. Landlock takes its place, where there is one. Of
 * the files below root, which becomes its "/", it may change those below work and read those below
 * look. Nothing but fds, these and standard error stays open. */
struct worker_fence {
    int root, work[3], look; /* -1 is passed over */
    const int *fds;
    size_t fd_count; /* at most WORKER_FDS */
    /* More of both kinds, which stay open too. */
    const int *works, *looks;
    size_t work_count, look_count;
};
fallible worker_fence(const struct worker_fence *f);
