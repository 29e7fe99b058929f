// SPDX-License-Identifier: Apache-2.0
/* burst.c — many starts at once beside as many bashes, and the rate of starts and stops. */
#include <spawn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/own.h"
#include "host/bench/bars_inner.h"

#define BURST  100
#define ROUNDS 5
#define USERS  32

extern char **environ;

/* As many bare bashes as we start sandboxes, all at once, until the last has ended. */
static fallible burst_of_bashes(size_t n, double *ret_ms)
{
    static const char *const argv[] = {"bash", "-c", ":", NULL};
    own_free pid_t *pids = mem_new(n * sizeof *pids);
    double begin = lives_now_ms();
    bool good = true;
    size_t began = 0;

    for (; good && began < n; began += good)
        good = posix_spawnp(&pids[began], argv[0], NULL, NULL, (char *const *)argv, environ) == 0;
    for (size_t i = 0; i < began; i++) {
        int status = -1;
        waitpid(pids[i], &status, 0);
        good &= status == 0;
    }
    *ret_ms = lives_now_ms() - begin;
    return good ? NULL : err_new(ERR_INTERNAL, "a 'bash -c :' did not end well");
}

enum { WALL, BASH, FIRST, EACH, WHOLE, LIVES, CROWD, LOOP }; /* rows */

static void count_all(struct bars *b, int row, double ms, const struct life *l, size_t n)
{
    size_t i = 0;

    while (i + 1 < n && !l[i].error)
        i++;
    bars_count(b, &b->rows[row], ms, &l[i]);
}

/* In this order: starts, a first command in each, bashes, stops. So neither the starts nor the
 * bashes run beside shells that still start, or beside removals. */
static fallible burst_once(struct served *s, size_t n, struct bars *b)
{
    struct lives_plan ours = {s, LIVES_START, n, n, 0}, first = {s, LIVES_FIRST, n, n, 0};
    own_free struct life *l = mem_new(n * sizeof *l);
    double ms;

    lives_init(l, n);
    TRY(served_wait_full(s));
    TRY(lives_run(&ours, l, &ms));
    for (size_t i = 0; i < n; i++)
        bars_count(b, &b->rows[EACH], l[i].end_ms, &l[i]);
    count_all(b, WALL, ms, l, n);
    TRY(lives_run(&first, l, &ms));
    count_all(b, FIRST, ms, l, n);
    TRY(served_wait_full(s));
    struct err *e = burst_of_bashes(n, &ms);
    bars_count_err(b, &b->rows[BASH], ms, e);
    TRY(bars_stop_all(s, l, n));
    lives_done(l, n);
    return bars_settle(s);
}

/* A few users start and stop as fast as they can, while the pool fills. */
static fallible burst_lives(struct served *s, struct bars *b, size_t n)
{
    struct lives_plan plan = {s, LIVES_WHOLE, n, n < BARS_USERS ? n : BARS_USERS, 0};
    own_free struct life *l = mem_new(n * sizeof *l);
    double ms;

    lives_init(l, n);
    TRY(served_wait_full(s));
    TRY(lives_run(&plan, l, &ms));
    for (size_t i = 0; i < n; i++)
        bars_count(b, &b->rows[WHOLE], l[i].end_ms, &l[i]);
    count_all(b, LIVES, ms, l, n);
    lives_done(l, n);
    return NULL;
}

/* Each of so many users starts a sandbox when it has the one before. The pool is full to begin
 * with. */
static fallible burst_crowd(struct served *s, struct bars *b, int row, size_t count, size_t users)
{
    struct lives_plan plan = {s, LIVES_START, count, users, 0};
    own_free struct life *l = mem_new(count * sizeof *l);
    size_t good = 0;
    double ms;

    lives_init(l, count);
    TRY(served_wait_full(s));
    TRY(lives_run(&plan, l, &ms));
    count_all(b, row, ms, l, count);
    for (size_t i = 0; i < count; i++)
        good += !l[i].error;
    struct bar *bar = bars_add_bar(
        b, row == CROWD ? "1,000 at once that succeed" : "2,000 by 32 that succeed", 100, "%");
    bar->at_least = true;
    bars_set(bar, 100.0 * (double)good / (double)count, true);
    TRY(bars_stop_all(s, l, count));
    lives_done(l, count);
    return NULL;
}

/* A connection each. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

fallible bars_burst(struct served *s, const struct bars_plan *plan, struct bars *b)
{
    size_t n = plan->runs < BURST ? plan->runs : BURST, lives = 4 * n;
    struct bench_row *r = b->rows;
    double begin;

    bars_add_row(b, "all at once, until the last runs", ROUNDS);
    bars_add_row(b, "  as many 'bash -c :' at once", ROUNDS);
    bars_add_row(b, "then a first command in each, all", ROUNDS);
    bars_add_row(b, "one of those starts", ROUNDS * n);
    bars_add_row(b, "start and stop, 16 at once", ROUNDS * lives);
    bars_add_row(b, "four times as many of those, all", ROUNDS);
    bars_add_row(b, "1,000 at once, until the last runs", 1);
    bars_add_row(b, "2,000 by 32 users, one after another", 1);
    raise_descriptor_limit();
    TRY(served_set_pool(s, (unsigned)n));
    bars_say(plan, "all at once, and as many bashes");
    begin = lives_now_ms();
    for (unsigned i = 0; bars_go_on(begin, i, 1, ROUNDS); i++)
        TRY(burst_once(s, n, b));
    bars_say(plan, "start and stop");
    begin = lives_now_ms();
    for (unsigned i = 0; bars_go_on(begin, i, 1, ROUNDS); i++)
        TRY(burst_lives(s, b, lives));
    bars_say(plan, "1,000 at once, then 2,000 by 32 users");
    TRY(served_set_pool(s, 10 * (unsigned)n));
    TRY(burst_crowd(s, b, CROWD, 10 * n, 10 * n));
    TRY(burst_crowd(s, b, LOOP, 20 * n, USERS));
    bars_sort(b);
    bars_set(bars_add_bar(b, "1,000 at once", 800, "ms"), bars_median(&r[CROWD]), r[CROWD].count);
    struct bar *good = bars_add_bar(b, "starts at once that succeed", 100, "%");
    good->at_least = true;
    bars_set(good, 100.0 * (double)r[EACH].count / (double)(r[EACH].count + r[EACH].failed), true);
    bars_set(bars_add_bar(b, "all at once over as many bashes", 1.5, "x"),
             bars_median(&r[WALL]) / bars_median(&r[BASH]), r[WALL].count && r[BASH].count);
    struct bar *rate = bars_add_bar(b, "start and stop", 500, "/s");
    rate->at_least = true;
    bars_set(rate, (double)lives * 1e3 / bars_median(&r[LIVES]), r[LIVES].count);
    return NULL;
}
