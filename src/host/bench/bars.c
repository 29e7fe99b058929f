// SPDX-License-Identifier: Apache-2.0
/* bars.c — see bars.h. */
#include "host/bench/bars.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "host/bench/bars_inner.h"
#include "host/bench/spent.h"

#define SPAN_MS  4000 /* of one part, on a machine that is busy: then fewer runs are enough */
#define BURST    100
#define ROUNDS   5
#define AT_ONCE  16           /* users who start and stop */
#define FEW      10           /* sandboxes of a server that has hardly any */
#define RSS_BASE 20.0         /* MB */
#define RSS_EACH (4.0 / 1024) /* MB */

extern char **environ;

const char *const bars_phases[BARS_PHASES] = {"queue", "claim", "namespaces", "mounts",
                                              "exec",  "ready", "row",        "first_command"};

/* --- rows and bars --- */

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

static void bars_count_met(struct bars *b, struct bench_row *r, double ms, struct err *e)
{
    if (e && !b->failure[0])
        snprintf(b->failure, sizeof b->failure, "%s: %s", r->what, err_text(e));
    bench_count(r, ms, e);
}

void bars_count(struct bars *b, struct bench_row *r, double ms, const struct life *l)
{
    bars_count_met(b, r, ms, l->error ? err_new(ERR_INTERNAL, "%s", err_text(l->error)) : NULL);
}

void bars_sort(struct bars *b)
{
    for (size_t i = 0; i < b->row_count; i++)
        bench_sort(&b->rows[i]);
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
    struct lives_plan plan = {s, LIVES_STOP, n, n < AT_ONCE ? n : AT_ONCE, 0};
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

/* --- burst: many at once --- */

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

enum { WALL, BASH, FIRST, EACH, WHOLE, LIVES }; /* rows of a burst */

static void count_all(struct bars *b, int row, double ms, const struct life *l, size_t n)
{
    size_t i = 0;

    while (i + 1 < n && !l[i].error)
        i++;
    bars_count(b, &b->rows[row], ms, &l[i]);
}

/* The bashes come before the stops, and behind a command in each, for which shells that waited have
 * started: nothing but what we measure is under way beside either. */
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
    bars_count_met(b, &b->rows[BASH], ms, e);
    TRY(bars_stop_all(s, l, n));
    lives_done(l, n);
    return bars_settle(s);
}

/* Started and stopped again by a few users, as fast as it goes: the pool fills meanwhile. What a
 * life took of the processors is told of the last time. */
static fallible burst_lives(struct served *s, struct bars *b, size_t n)
{
    struct lives_plan plan = {s, LIVES_WHOLE, n, n < AT_ONCE ? n : AT_ONCE, 0};
    own_free struct life *l = mem_new(n * sizeof *l);
    struct spent before;
    double ms;

    lives_init(l, n);
    TRY(served_wait_full(s));
    spent_look(s->pid, &before);
    TRY(lives_run(&plan, l, &ms));
    struct spent each = spent_since(s->pid, &before, (double)n);
    spent_say(&each, b->note, sizeof b->note);
    for (size_t i = 0; i < n; i++)
        bars_count(b, &b->rows[WHOLE], l[i].end_ms, &l[i]);
    count_all(b, LIVES, ms, l, n);
    lives_done(l, n);
    return NULL;
}

/* The bar is a number, and the machine is faster at times: the price of a bash tells how fast. */
static void note_bashes(struct bars *b, size_t n, size_t lives)
{
    const struct bench_row *bash = &b->rows[BASH], *whole = &b->rows[LIVES];
    size_t used = strlen(b->note);

    if (!bash->count || !whole->count)
        return;
    double bashes = (double)n * 1e3 / bars_median(bash);
    snprintf(b->note + used, sizeof b->note - used,
             "; %.0f bashes at once a second, %.2f lives for each", bashes,
             (double)lives * 1e3 / bars_median(whole) / bashes);
}

static fallible run_burst(struct served *s, const struct bars_plan *plan, struct bars *b)
{
    size_t n = plan->runs < BURST ? plan->runs : BURST, lives = 4 * n;
    struct bench_row *r = b->rows;

    bars_add_row(b, "all at once, until the last runs", ROUNDS);
    bars_add_row(b, "  as many 'bash -c :' at once", ROUNDS);
    bars_add_row(b, "then a first command in each, all", ROUNDS);
    bars_add_row(b, "one of those starts", ROUNDS * n);
    bars_add_row(b, "start and stop, 16 at once", ROUNDS * lives);
    bars_add_row(b, "four times as many of those, all", ROUNDS);
    TRY(served_set_pool(s, (unsigned)n));
    bars_say(plan, "all at once, and as many bashes");
    double begin = lives_now_ms();
    for (unsigned i = 0; bars_go_on(begin, i, 1, ROUNDS); i++)
        TRY(burst_once(s, n, b));
    bars_say(plan, "start and stop");
    begin = lives_now_ms();
    for (unsigned i = 0; bars_go_on(begin, i, 1, ROUNDS); i++)
        TRY(burst_lives(s, b, lives));
    bars_sort(b);
    struct bar *good = bars_add_bar(b, "starts at once that succeed", 100, "%");
    good->at_least = true;
    bars_set(good, 100.0 * (double)r[EACH].count / (double)(r[EACH].count + r[EACH].failed), true);
    bars_set(bars_add_bar(b, "all at once over as many bashes", 1.5, "x"),
             bars_median(&r[WALL]) / bars_median(&r[BASH]), r[WALL].count && r[BASH].count);
    struct bar *rate = bars_add_bar(b, "start and stop", 500, "/s");
    rate->at_least = true;
    bars_set(rate, (double)lives * 1e3 / bars_median(&r[LIVES]), r[LIVES].count);
    note_bashes(b, n, lives);
    return NULL;
}

/* --- exec: a command in one that runs --- */

static fallible run_exec(struct served *s, const struct bars_plan *plan, struct bars *b)
{
    static const char command[] = LIVES_ACTION("true");
    struct lives_plan one = {s, LIVES_COMMAND_OUT, 1, 1, 0};
    unsigned n = plan->runs * 5;
    struct bench_row *by[4] = {bars_add_row(b, "a command through the proxy", n),
                               bars_add_row(b, "  straight to its socket", n),
                               bars_add_row(b, "GET /alive through the proxy", n),
                               bars_add_row(b, "  straight to its socket", n)};
    struct bench_row *bytes[2];
    struct talk talks[2] = {{.fd = -1}, {.fd = -1}};
    char path[sizeof s->state + 64];
    struct life l;
    double begin;

    lives_init(&l, 1);
    TRY(served_set_pool(s, 1));
    TRY(lives_run(&one, &l, &begin));
    if (l.error)
        return l.error;
    snprintf(path, sizeof path, "%s/sock/%s.s", s->state, l.id);
    struct err *e = talk_tcp(&talks[0], l.port);
    if (!e)
        e = talk_unix(&talks[1], path);
    bars_say(plan, "commands, through the proxy and straight, in turns");
    double first = lives_now_ms();
    for (unsigned i = 0; !e && (i % 4 || bars_go_on(first, i, 4 * BARS_LEAST, 4 * n)); i++) {
        begin = lives_now_ms();
        struct err *wrong = i % 4 < 2
                                ? talk_ask(&talks[i % 2], "POST", "/execute_action", l.key, command)
                                : talk_ask(&talks[i % 2], "GET", "/alive", l.key, NULL);
        bars_count_met(b, by[i % 4], lives_now_ms() - begin, wrong);
    }
    if (!e)
        e = bars_bytes(&l, &talks[1], path, plan, b, bytes);
    for (size_t i = 0; i < 2; i++)
        if (talks[i].fd >= 0)
            talk_close(&talks[i]);
    if (e)
        return e;
    bars_sort(b);
    bars_set(bars_add_bar(b, "the proxy adds to a command, p50", 0.1, "ms"),
             bars_median(by[0]) - bars_median(by[1]), by[0]->count && by[1]->count);
    bars_set(bars_add_bar(b, "the proxy adds to GET /alive, p50", 0.1, "ms"),
             bars_median(by[2]) - bars_median(by[3]), by[2]->count && by[3]->count);
    struct bar *passed = bars_add_bar(b, "bytes by the proxy over a bare relay's", 0.8, "x");
    passed->at_least = true;
    bars_set(passed, bars_median(bytes[1]) / bars_median(bytes[0]),
             bytes[0]->count && bytes[1]->count);
    return bars_stop_all(s, &l, 1);
}

/* --- density: a few sandboxes, and a crowd --- */

/* Gives the id of one that stays. */
static fallible bars_fill(struct served *s, unsigned n, char id[40])
{
    struct lives_plan plan = {s, LIVES_START, n, n < AT_ONCE ? n : AT_ONCE, 0};
    own_free struct life *l = mem_new(n * sizeof *l);
    struct err *e = NULL;
    double ms;

    lives_init(l, n);
    TRY(served_set_pool(s, AT_ONCE));
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

/* Few, all, all, few: each is as often behind the other, whose removal goes on meanwhile. */
static unsigned whose_turn(unsigned i)
{
    return i % 4 == 1 || i % 4 == 2;
}

static fallible one_life(struct served *two[2], unsigned which, struct bars *b,
                         struct bench_row *row, double *server_ms)
{
    struct lives_plan plan = {two[which], LIVES_WHOLE, 1, 1, 0};
    struct spent before;
    struct life l;
    double ms;

    lives_init(&l, 1);
    TRY(served_wait_full(two[0]));
    TRY(served_wait_full(two[1]));
    spent_look(two[which]->pid, &before);
    TRY(lives_run(&plan, &l, &ms));
    *server_ms += spent_since(two[which]->pid, &before, 1).server;
    bars_count(b, row, l.end_ms, &l);
    lives_done(&l, 1);
    return NULL;
}

/* One request or one life at each of the two, in turns. */
static fallible density_in_turns(struct served *two[2], char id[2][40], unsigned runs,
                                 struct bars *b, struct bench_row *rows[4])
{
    double server_ms[2] = {0, 0};

    for (unsigned i = 0; i < 20 * runs; i++) {
        unsigned which = whose_turn(i);
        char target[60];
        snprintf(target, sizeof target, "/runtime/%s", id[which]);
        double begin = lives_now_ms();
        struct err *e = talk_ask(&two[which]->api, "GET", target, NULL, NULL);
        bars_count_met(b, rows[which], lives_now_ms() - begin, e);
    }
    double first = lives_now_ms();
    for (unsigned i = 0; i % 4 || bars_go_on(first, i, 2 * BARS_LEAST, 2 * runs); i++) {
        unsigned which = whose_turn(i);
        TRY(one_life(two, which, b, rows[2 + which], &server_ms[which]));
    }
    snprintf(b->note, sizeof b->note,
             "the server's own processor time of a start and stop, ms: %.3f of 10, %.3f of all",
             server_ms[0] / (double)rows[2]->count, server_ms[1] / (double)rows[3]->count);
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
    TRY(served_rss_kb(crowd, &kb));
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
static fallible run_density(struct served *crowd, const struct bars_plan *plan, struct bars *b)
{
    struct served few;
    struct err *e = served_open(&few, plan->tmp, plan->self);

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

/* --- by name --- */

static const struct {
    const char *name;
    fallible (*run)(struct served *s, const struct bars_plan *plan, struct bars *b);
} kinds[] = {{"tti", bars_tti}, {"burst", run_burst}, {"exec", run_exec}, {"density", run_density}};

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

fallible bars_run(const char *name, const struct bars_plan *plan, struct bars *ret_bars)
{
    size_t kind = kind_of(name);
    struct served s;

    if (kind == ARRAY_LEN(kinds))
        return err_new(ERR_NOT_FOUND, "no measurement '%.40s'", name);
    *ret_bars = (struct bars){.row_count = 0};
    bars_say(plan, "starting a server");
    struct err *e = served_open(&s, plan->tmp, plan->self);
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
