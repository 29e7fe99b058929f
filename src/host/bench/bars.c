// SPDX-License-Identifier: Apache-2.0
/* bars.c — see bars.h. */
#include "host/bench/bars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "host/bench/bars_inner.h"

#define SPAN_MS 4000 /* of one part, on a machine that is busy: then fewer runs are enough */

/* --- rows and bars --- */

void bench_count(struct bench_row *r, double ms, struct err *e)
{
    if (e)
        r->failed++;
    else if (r->count < r->room)
        r->ms[r->count++] = ms;
    err_free(e);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_at(const struct bench_row *r, double part)
{
    return r->count ? r->ms[(size_t)(part * (double)(r->count - 1) + 0.5)] : 0;
}

struct bench_row *bars_add_row(struct bars *b, const char *what, size_t room)
{
    struct bench_row *r = &b->rows[b->row_count++];

    *r = (struct bench_row){.what = what, .room = room, .ms = mem_new(room * sizeof(double))};
    return r;
}

struct bar *bars_add_bar(struct bars *b, const char *what, double bar, const char *unit)
{
    struct bar *new = &b->bars[b->bar_count++];

    *new = (struct bar){.what = what, .unit = unit, .bar = bar};
    return new;
}

void bars_set(struct bar *bar, double got, bool measured)
{
    bar->got = got;
    bar->measured = measured;
}

void bars_count_err(struct bars *b, struct bench_row *r, double ms, struct err *e)
{
    if (e && !b->failure[0])
        snprintf(b->failure, sizeof b->failure, "%s: %s", r->what, err_text(e));
    bench_count(r, ms, e);
}

void bars_count(struct bars *b, struct bench_row *r, double ms, const struct life *l)
{
    bars_count_err(b, r, ms, l->error ? err_new(ERR_INTERNAL, "%s", err_text(l->error)) : NULL);
}

void bars_sort(struct bars *b)
{
    for (size_t i = 0; i < b->row_count; i++)
        qsort(b->rows[i].ms, b->rows[i].count, sizeof *b->rows[i].ms, by_size);
}

double bars_median(const struct bench_row *r)
{
    return bench_at(r, .5);
}

bool bar_met(const struct bar *b)
{
    return b->measured && (b->at_least ? b->got >= b->bar : b->got <= b->bar);
}

void bars_done(struct bars *b)
{
    for (size_t i = 0; i < b->row_count; i++)
        free(b->rows[i].ms);
}

void bars_say(const struct bars_plan *plan, const char *what)
{
    plan->progress(plan->arg, what);
}

bool bars_go_on(double begin_ms, unsigned i, unsigned least, unsigned most)
{
    return i < most && (i < least || lives_now_ms() - begin_ms < SPAN_MS);
}

fallible bars_stop_all(struct served *s, struct life *l, size_t n)
{
    struct lives_plan plan = {s, LIVES_STOP, n, n < BARS_USERS ? n : BARS_USERS, 0};
    double ms;

    return lives_run(&plan, l, &ms);
}

fallible bars_settle(struct served *s)
{
    struct lives_plan one = {s, LIVES_WHOLE, 1, 1, 0};
    struct life l;
    double ms;

    lives_init(&l, 1);
    TRY(lives_run(&one, &l, &ms));
    lives_done(&l, 1);
    return served_wait_full(s);
}

/* --- by name --- */

static const struct {
    const char *name;
    fallible (*run)(struct served *s, const struct bars_plan *plan, struct bars *b);
} kinds[] = {{"plain", bars_plain},
             {"tti", bars_tti},
             {"burst", bars_burst},
             {"exec", bars_exec},
             {"density", bars_density}};

static size_t kind_of(const char *name)
{
    size_t i = 0;

    while (i < ARRAY_LEN(kinds) && strcmp(kinds[i].name, name) != 0)
        i++;
    return i;
}

bool bars_known(const char *name)
{
    return kind_of(name) < ARRAY_LEN(kinds);
}

fallible bars_open(const struct bars_plan *plan, const char *name, struct served *s)
{
    char state[SERVED_STATE];

    if (!plan->state)
        return served_open(s, plan->tmp, plan->self, NULL);
    snprintf(state, sizeof state, "%s/%s", plan->state, name);
    return served_open(s, plan->tmp, plan->self, state);
}

fallible bars_run(const char *name, const struct bars_plan *plan, struct bars *ret_bars)
{
    size_t kind = kind_of(name);
    struct served s;

    if (kind == ARRAY_LEN(kinds))
        return err_new(ERR_NOT_FOUND, "no measurement '%.40s'", name);
    *ret_bars = (struct bars){.row_count = 0};
    bars_say(plan, "starting a server");
    struct err *e = bars_open(plan, "first", &s);
    if (!e)
        e = kinds[kind].run(&s, plan, ret_bars);
    struct err *left = served_close(&s);
    if (!e)
        e = left;
    else
        err_free(left);
    if (e)
        bars_done(ret_bars);
    return e;
}
