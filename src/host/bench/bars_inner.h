// SPDX-License-Identifier: Apache-2.0
/* bars_inner.h — what the measurements of bars.h share. */
#pragma once

#include "host/bench/bars.h"
#include "host/bench/lives.h"

#define BARS_LEAST 10 /* runs, on a machine however busy */
#define BARS_USERS 16 /* that start and stop at once */

/* A time, or one failure more; e is taken over. */
void bench_count(struct bench_row *r, double ms, struct err *e);

struct bench_row *bars_add_row(struct bars *b, const char *what, size_t room);
struct bar *bars_add_bar(struct bars *b, const char *what, double bar, const char *unit);
void bars_set(struct bar *bar, double got, bool measured);
/* The same; the first failure is told. */
void bars_count_err(struct bars *b, struct bench_row *r, double ms, struct err *e);
/* The error stays the life's: it is told of a copy. */
void bars_count(struct bars *b, struct bench_row *r, double ms, const struct life *l);
void bars_sort(struct bars *b);
double bars_median(const struct bench_row *r);
void bars_say(const struct bars_plan *plan, const char *what);
/* Whether another run fits in; i have been done since begin. */
bool bars_go_on(double begin_ms, unsigned i, unsigned least, unsigned most);

/* A server; its state has this name below the plan's. */
fallible bars_open(const struct bars_plan *plan, const char *name, struct served *s);
fallible bars_stop_all(struct served *s, struct life *l, size_t n);
/* Until what was stopped is gone and the pool is full. */
fallible bars_settle(struct served *s);

/* Rows of a large file, by the proxy and by a relay to the socket at path, where inside talks. */
fallible bars_bytes(const struct life *l, struct talk *inside, const char *path,
                    const struct bars_plan *plan, struct bars *b, struct bench_row *ret_rows[2]);

fallible bars_plain(struct served *s, const struct bars_plan *plan, struct bars *b);
fallible bars_tti(struct served *s, const struct bars_plan *plan, struct bars *b);
fallible bars_burst(struct served *s, const struct bars_plan *plan, struct bars *b);
fallible bars_exec(struct served *s, const struct bars_plan *plan, struct bars *b);
fallible bars_density(struct served *s, const struct bars_plan *plan, struct bars *b);
