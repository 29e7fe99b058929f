// SPDX-License-Identifier: Apache-2.0
/* bars.h — what `croft serve` promises of its speed, measured at one of the bench's own.
 *
 * Four measurements by name: tti, burst, exec, density. Peers and the other side of a ratio take
 * part in the same run and in turns. A bar that nothing was measured for is neither met nor missed.
 */
#pragma once

#include "host/bench/bench.h"

#define BARS_ROWS   8
#define BARS_MAX    5
#define BARS_PHASES 8
#define BARS_CROWD  5000u /* the most */

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
    double phase_ms[BARS_PHASES]; /* of the start that is the median */
    bool has_phases;
    char failure[300]; /* the first one; "": none */
    char note[300];    /* what a figure comes from; "": nothing to say */
};

extern const char *const bars_phases[BARS_PHASES];

struct bars_plan {
    const char *tmp, *self; /* as in struct bench_plan */
    unsigned runs, crowd;
    void (*progress)(void *arg, const char *what);
    void *arg;
};

/* ERR_NOT_FOUND: there is none of this name. */
fallible bars_run(const char *name, const struct bars_plan *plan, struct bars *ret_bars);
void bars_done(struct bars *b);
bool bars_known(const char *name);
bool bar_met(const struct bar *b);
