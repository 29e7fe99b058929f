// SPDX-License-Identifier: Apache-2.0
/* bench.h — how fast sandboxes are on this machine, beside a peer where one is installed.
 *
 * Everything is measured from outside, as a user of croft would: through the launcher's messages
 * and by whole processes. A life that fails counts as a failure, not as a time. */
#pragma once

#include <stddef.h>

#include "base/err.h"

#define BENCH_RUNS_MAX 10000u

struct bench_row {
    const char *what;
    double *ms;
    size_t count, failed;
    double bar_ms;    /* of the p50; 0: none */
    const char *peer; /* the row it is held against; NULL: none */
    double bar_ratio;
};

enum {
    BENCH_START, /* request to a server that listens inside */
    BENCH_PAUSE, /* idle */
    BENCH_RESUME,
    BENCH_REMOVE,  /* a running one, with all it left */
    BENCH_COMMAND, /* croft run -- true, exec to exit */
    BENCH_PEER,    /* bwrap --unshare-all -- true, the same way */
    BENCH_ROWS
};

struct bench {
    struct bench_row rows[BENCH_ROWS];
    double lives_per_s; /* start, answer, remove, one after the other */
};

struct bench_plan {
    const char *state; /* where sandboxes are kept meanwhile */
    const char *self;  /* path of croft */
    unsigned runs;
    void (*progress)(void *arg, const char *what);
    void *arg;
};

fallible bench_run(const struct bench_plan *plan, struct bench *ret_bench);
void bench_done(struct bench *b);
/* Sorted on first use; part 0 is the least, 1 the most. */
double bench_at(const struct bench_row *r, double part);
