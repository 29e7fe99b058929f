// SPDX-License-Identifier: Apache-2.0
/* bars.h — what `croft serve` promises of its speed, measured at one of the bench's own.
 *
 * Measurements have names: plain, tti, burst, exec, density. The other side of a ratio takes part
 * in the same run, in turns. A bar without a measurement is neither met nor missed. A run that
 * fails counts as a failure, not as a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define BARS_RUNS_MAX 10000u
#define BARS_ROWS     8
#define BARS_MAX      6
#define BARS_CROWD    5000u /* the most */

struct bench_row {
    const char *what;
    double *ms; /* sorted when all is done */
    size_t count, failed, room;
};

struct bar {
    const char *what, *unit;
    double got, bar;
    bool measured, at_least; /* at_least: more is better */
};

struct bars {
    struct bench_row rows[BARS_ROWS];
    size_t row_count;
    struct bar bars[BARS_MAX];
    size_t bar_count;
    char failure[300]; /* the first one; "": none */
    char note[300];    /* "": nothing to say */
};

struct bars_plan {
    const char *tmp;   /* where a directory for everything is made, as scratch.h wants it */
    const char *self;  /* path of croft */
    const char *state; /* servers keep their states below it; NULL: in what is made below tmp */
    unsigned runs, crowd;
    void (*progress)(void *arg, const char *what);
    void *arg;
};

/* ERR_NOT_FOUND: there is none of this name. */
fallible bars_run(const char *name, const struct bars_plan *plan, struct bars *ret_bars);
void bars_done(struct bars *b);
bool bars_known(const char *name);
bool bar_met(const struct bar *b);
/* part 0 is the least, 1 the most; 0 when nothing was measured. */
double bench_at(const struct bench_row *r, double part);
