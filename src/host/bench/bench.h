// SPDX-License-Identifier: Apache-2.0
/* bench.h — how fast sandboxes are on this machine, beside the peers that are installed.
 *
 * Everything is measured from outside, as a user of croft would: through the launcher's messages
 * and by whole processes. What fails counts as a failure, not as a time. Peers take part in the
 * same run and in turns, so that a neighbour's noise falls on all; slow ones less often. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "host/bench/peers.h"

#define BENCH_RUNS_MAX 10000u

enum {
    BENCH_START,  /* request to a server that listens inside */
    BENCH_REMOVE, /* a running one, with all it left */
    BENCH_PAUSE,  /* idle */
    BENCH_PAUSE_DOCKER,
    BENCH_RESUME,
    BENCH_RESUME_DOCKER,
    BENCH_COMMAND, /* croft run -- true, exec to exit */
    BENCH_COMMAND_BWRAP,
    BENCH_ANSWER,      /* croft run, exec to the answer of a static program inside */
    BENCH_ANSWER_PEER, /* one row for each peer */
    BENCH_SNAPSHOT = BENCH_ANSWER_PEER + PEERS,
    BENCH_SNAPSHOT_CP,
    BENCH_ROWS
};

struct bench_row {
    const char *what;
    const char *peer; /* who did it; NULL: croft */
    int of;           /* of a peer: the row of croft's that does the same */
    double *ms;       /* sorted when all is done */
    size_t count, failed, room;
    double bar_ms;    /* of the p50; 0: none */
    double bar_ratio; /* of a peer: croft's p50 over its own at most; 0: none */
};

struct bench {
    struct bench_row rows[BENCH_ROWS];
    double lives_per_s; /* start, answer, remove, one after the other */
    struct peer peers[PEERS];
};

struct bench_plan {
    const char *state; /* where sandboxes are kept meanwhile */
    const char *tmp;   /* where a directory for everything else is made, as scratch.h wants it */
    const char *self;  /* path of croft */
    unsigned runs;
    void (*progress)(void *arg, const char *what);
    void *arg;
};

fallible bench_run(const struct bench_plan *plan, struct bench *ret_bench);
void bench_done(struct bench *b);
/* A time, or one failure more; e is taken over. Then, when all is measured, in order. */
void bench_count(struct bench_row *r, double ms, struct err *e);
void bench_sort(struct bench_row *r);
/* part 0 is the least, 1 the most; 0 when nothing was measured. */
double bench_at(const struct bench_row *r, double part);
/* What a peer's row is held against: croft's p50 over its own; 0 when one of them is missing. */
double bench_ratio(const struct bench *b, const struct bench_row *r);
