// SPDX-License-Identifier: Apache-2.0
/* density.c — what requests cost a server with a few sandboxes, and one with a crowd. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/own.h"
#include "host/bench/bars_inner.h"

#define FEW      10           /* sandboxes of a server that has hardly any */
#define RSS_BASE 20.0         /* MB */
#define RSS_EACH (4.0 / 1024) /* MB */

/* Gives the id of one that stays. */
static fallible bars_fill(struct served *s, unsigned n, char id[40])
{
    struct lives_plan plan = {s, LIVES_START, n, n < BARS_USERS ? n : BARS_USERS, 0};
    own_free struct life *l = mem_new(n * sizeof *l);
    struct err *e = NULL;
    double ms;

    lives_init(l, n);
    TRY(served_set_pool(s, n < BARS_USERS ? n : BARS_USERS));
    TRY(lives_run(&plan, l, &ms));
    snprintf(id, 40, "%s", l[n / 2].id);
    for (unsigned i = 0; i < n && !e; i++)
        if (l[i].error)
            e = err_new(ERR_INTERNAL, "sandbox %u of %u: %s", i + 1, n, err_text(l[i].error));
    lives_done(l, n);
    if (!e)
        e = served_wait_full(s);
    return e;
}

/* Few, all, all, few: a removal still runs beside the next request, equally often on each side. */
static unsigned whose_turn(unsigned i)
{
    return i % 4 == 1 || i % 4 == 2;
}

static fallible one_life(struct served *two[2], unsigned which, struct bars *b,
                         struct bench_row *row)
{
    struct lives_plan plan = {two[which], LIVES_WHOLE, 1, 1, 0};
    struct life l;
    double ms;

    lives_init(&l, 1);
    TRY(served_wait_full(two[0]));
    TRY(served_wait_full(two[1]));
    TRY(lives_run(&plan, &l, &ms));
    bars_count(b, row, l.end_ms, &l);
    lives_done(&l, 1);
    return NULL;
}

/* One request or one life at each of the two, in turns. */
static fallible density_in_turns(struct served *two[2], char id[2][40], unsigned runs,
                                 struct bars *b, struct bench_row *rows[4])
{
    for (unsigned i = 0; i < 20 * runs; i++) {
        unsigned which = whose_turn(i);
        char target[60];
        snprintf(target, sizeof target, "/runtime/%s", id[which]);
        double begin = lives_now_ms();
        struct err *e = talk_ask(&two[which]->api, "GET", target, NULL, NULL);
        bars_count_err(b, rows[which], lives_now_ms() - begin, e);
    }
    double first = lives_now_ms();
    for (unsigned i = 0; i % 4 || bars_go_on(first, i, 2 * BARS_LEAST, 2 * runs); i++) {
        unsigned which = whose_turn(i);
        TRY(one_life(two, which, b, rows[2 + which]));
    }
    return NULL;
}

static fallible measure_density(struct served *crowd, struct served *few,
                                const struct bars_plan *plan, struct bars *b)
{
    struct served *two[2] = {few, crowd};
    unsigned small = plan->crowd < FEW ? plan->crowd : FEW;
    char id[2][40];
    uint64_t kb;
    struct bench_row *rows[4] = {
        bars_add_row(b, "GET /runtime, 10 sandboxes", 10 * plan->runs + 2),
        bars_add_row(b, "GET /runtime, all sandboxes", 10 * plan->runs + 2),
        bars_add_row(b, "start and stop, 10 sandboxes", plan->runs + 2),
        bars_add_row(b, "start and stop, all sandboxes", plan->runs + 2)};

    TRY(bars_fill(few, small, id[0]));
    TRY(bars_fill(crowd, plan->crowd, id[1]));
    bars_say(plan, "requests to both, in turns");
    TRY(density_in_turns(two, id, plan->runs, b, rows));
    TRY(served_kb(crowd->pid, "status", "VmRSS", &kb));
    bars_sort(b);
    bars_set(bars_add_bar(b, "GET /runtime, all over 10", 1.2, "x"),
             bars_median(rows[1]) / bars_median(rows[0]), rows[0]->count && rows[1]->count);
    bars_set(bars_add_bar(b, "start and stop, all over 10", 1.2, "x"),
             bars_median(rows[3]) / bars_median(rows[2]), rows[2]->count && rows[3]->count);
    bars_set(
        bars_add_bar(b, "resident memory of the server", RSS_BASE + RSS_EACH * plan->crowd, "MB"),
        (double)kb / 1024, true);
    return NULL;
}

/* A second server has the few, so that both are asked in turns and not one after the other. */
fallible bars_density(struct served *crowd, const struct bars_plan *plan, struct bars *b)
{
    struct served few;
    struct err *e = bars_open(plan, "second", &few);

    if (!e) {
        bars_say(plan, "a server with few sandboxes, and one with all");
        e = measure_density(crowd, &few, plan, b);
    }
    struct err *left = served_close(&few);
    if (!e)
        return left;
    err_free(left); /* what went wrong first is told */
    return e;
}
