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
#include "host/bench/lives.h"
#include "host/bench/spent.h"

#define POOL       32
#define SPAN_MS    4000 /* of one part, on a machine that is busy: then fewer runs are enough */
#define LEAST      10   /* runs, even so */
#define BATCH      100  /* that run before they are stopped */
#define STAGGER_MS 20
#define BURST      100
#define ROUNDS     5
#define AT_ONCE    16           /* users who start and stop */
#define FEW        10           /* sandboxes of a server that has hardly any */
#define RSS_BASE   20.0         /* MB */
#define RSS_EACH   (4.0 / 1024) /* MB */

extern char **environ;

const char *const bars_phases[BARS_PHASES] = {"queue", "claim", "namespaces", "mounts",
                                              "exec",  "ready", "row",        "first_command"};

/* --- rows and bars --- */

static struct bench_row *add_row(struct bars *b, const char *what, size_t room)
{
    struct bench_row *r = &b->rows[b->row_count++];

    *r = (struct bench_row){.what = what, .room = room, .ms = mem_new(room * sizeof(double))};
    return r;
}

static struct bar *add_bar(struct bars *b, const char *what, double bar, const char *unit)
{
    struct bar *new = &b->bars[b->bar_count++];

    *new = (struct bar){.what = what, .unit = unit, .bar = bar};
    return new;
}

static void set_bar(struct bar *bar, double got, bool measured)
{
    bar->got = got;
    bar->measured = measured;
}

static void count(struct bars *b, struct bench_row *r, double ms, struct err *e)
{
    if (e && !b->failure[0])
        snprintf(b->failure, sizeof b->failure, "%s: %s", r->what, err_text(e));
    bench_count(r, ms, e);
}

/* The error stays the life's: it is told of a copy. */
static void count_life(struct bars *b, struct bench_row *r, double ms, const struct life *l)
{
    count(b, r, ms, l->error ? err_new(ERR_INTERNAL, "%s", err_text(l->error)) : NULL);
}

static void sort_all(struct bars *b)
{
    for (size_t i = 0; i < b->row_count; i++)
        bench_sort(&b->rows[i]);
}

static double median(const struct bench_row *r)
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

static void say(const struct bars_plan *plan, const char *what)
{
    plan->progress(plan->arg, what);
}

/* Whether another run fits in; i have been done since begin. */
static bool goes_on(double begin_ms, unsigned i, unsigned least, unsigned most)
{
    return i < most && (i < least || lives_now_ms() - begin_ms < SPAN_MS);
}

/* --- tti: from a request to the output of the first command --- */

struct timeline {
    double end_ms, phase_ms[BARS_PHASES];
};

struct tti_rows {
    struct bench_row *claim, *after, *first, *bash, *late, *late_bash;
    struct timeline *lines;
    size_t line_count;
};

static fallible read_timeline(struct served *s, const struct life *l, struct timeline *t)
{
    char text[80];
    struct json *o;

    snprintf(text, sizeof text, "/croft/v1/sandboxes/%s", l->id);
    TRY(served_ask(s, "GET", text, NULL, &o));
    const struct json *line = json_get(o, STR("timeline"));
    t->end_ms = l->end_ms;
    for (size_t i = 0; line && i < BARS_PHASES; i++) {
        snprintf(text, sizeof text, "%s_ns", bars_phases[i]);
        t->phase_ms[i] = (double)json_get_int(line, text, 0) / 1e6;
    }
    if (t->phase_ms[BARS_PHASES - 1] <= 0) /* the server did not see it: as we did */
        t->phase_ms[BARS_PHASES - 1] = l->end_ms - l->claim_ms;
    return NULL;
}

static int by_end(const void *a, const void *b)
{
    double x = ((const struct timeline *)a)->end_ms, y = ((const struct timeline *)b)->end_ms;

    return (x > y) - (x < y);
}

static fallible stop_all(struct served *s, struct life *l, size_t n)
{
    struct lives_plan plan = {s, LIVES_STOP, n, n < AT_ONCE ? n : AT_ONCE, 0};
    double ms;

    return lives_run(&plan, l, &ms);
}

/* What goes on in the machine while a stopped one is removed is not to fall on the next claim:
 * those that ran are stopped later, BATCH at a time; after_stops() has the other case. */
static fallible settle(struct served *s)
{
    struct lives_plan one = {s, LIVES_WHOLE, 1, 1, 0};
    struct life l;
    double ms;

    lives_init(&l, 1);
    TRY(lives_run(&one, &l, &ms));
    lives_done(&l, 1);
    return served_wait_full(s);
}

static fallible one_of_each(struct served *s, struct bars *b, struct tti_rows *r, struct life *l)
{
    struct lives_plan ours = {s, LIVES_COMMAND_OUT, 1, 1, 0}, peer = {NULL, LIVES_BASH, 1, 1, 0};
    struct life p;
    double ms;

    lives_init(&p, 1);
    TRY(served_wait_full(s));
    TRY(lives_run(&ours, l, &ms));
    count_life(b, r->claim, l->claim_ms, l);
    count_life(b, r->first, l->end_ms, l);
    if (!l->error)
        TRY(read_timeline(s, l, &r->lines[r->line_count++]));
    TRY(served_wait_full(s));
    TRY(lives_run(&peer, &p, &ms));
    count_life(b, r->bash, p.end_ms, &p);
    lives_done(&p, 1);
    return NULL;
}

/* One sandbox, then one bash, and again. */
static fallible tti_in_turns(struct served *s, const struct bars_plan *plan, struct bars *b,
                             struct tti_rows *r)
{
    struct life batch[BATCH];
    double begin = lives_now_ms();
    size_t n = 0;

    for (unsigned i = 0; goes_on(begin, i, LEAST, plan->runs); i++) {
        lives_init(&batch[n], 1);
        TRY(one_of_each(s, b, r, &batch[n++]));
        if (n < BATCH && i + 1 < plan->runs)
            continue;
        TRY(stop_all(s, batch, n));
        lives_done(batch, n);
        n = 0;
        TRY(settle(s));
    }
    struct err *e = n ? stop_all(s, batch, n) : NULL;
    lives_done(batch, n);
    return e;
}

/* The next one starts when one was told to stop: as when users come and go. */
static fallible after_stops(struct served *s, const struct bars_plan *plan, struct bars *b,
                            struct bench_row *r)
{
    struct lives_plan one = {s, LIVES_WHOLE, 1, 1, 0};
    double begin = lives_now_ms(), ms;

    for (unsigned i = 0; goes_on(begin, i, LEAST, plan->runs / 2 + 1); i++) {
        struct life l;
        lives_init(&l, 1);
        TRY(served_wait_full(s));
        TRY(lives_run(&one, &l, &ms));
        count_life(b, r, l.claim_ms, &l);
        lives_done(&l, 1);
    }
    return NULL;
}

/* One every 20 ms, whatever the others do; and as many bashes likewise. */
static fallible tti_staggered(struct served *s, const struct bars_plan *plan, struct bars *b,
                              struct bench_row *first, struct bench_row *bash)
{
    size_t n = plan->runs;
    struct lives_plan ours = {s, LIVES_COMMAND_OUT, n, n < 64 ? n : 64, STAGGER_MS};
    struct lives_plan peer = {NULL, LIVES_BASH, n, n, STAGGER_MS};
    own_free struct life *l = mem_new(n * sizeof *l), *p = mem_new(n * sizeof *p);
    double ms;

    lives_init(l, n);
    lives_init(p, n);
    TRY(served_wait_full(s));
    TRY(lives_run(&ours, l, &ms));
    for (size_t i = 0; i < n; i++)
        count_life(b, first, l[i].end_ms, &l[i]);
    TRY(served_wait_full(s));
    TRY(lives_run(&peer, p, &ms));
    for (size_t i = 0; i < n; i++)
        count_life(b, bash, p[i].end_ms, &p[i]);
    TRY(stop_all(s, l, n));
    lives_done(l, n);
    lives_done(p, n);
    return NULL;
}

static fallible run_tti(struct served *s, const struct bars_plan *plan, struct bars *b)
{
    own_free struct timeline *lines = mem_new(plan->runs * sizeof *lines);
    struct tti_rows r = {
        .claim = add_row(b, "POST /start to its answer, warm", plan->runs),
        .after = add_row(b, "the same, right after a stop", plan->runs),
        .first = add_row(b, "to the first command's output", plan->runs),
        .bash = add_row(b, "  bash on a pty, the same", plan->runs),
        .late = add_row(b, "one every 20 ms, to the output", plan->runs),
        .late_bash = add_row(b, "  bash on a pty, one every 20 ms", plan->runs),
        .lines = lines,
    };

    TRY(served_set_pool(s, POOL));
    say(plan, "starts and bashes in turns");
    TRY(tti_in_turns(s, plan, b, &r));
    say(plan, "starts right after a stop");
    TRY(after_stops(s, plan, b, r.after));
    say(plan, "one every 20 ms");
    TRY(settle(s));
    TRY(tti_staggered(s, plan, b, r.late, r.late_bash));
    sort_all(b);
    set_bar(add_bar(b, "warm claim, p50", 0.5, "ms"), median(r.claim), r.claim->count);
    set_bar(add_bar(b, "warm claim, p99", 10, "ms"), bench_at(r.claim, .99), r.claim->count);
    set_bar(add_bar(b, "first output over a bash's, p50", 1, "ms"),
            median(r.first) - median(r.bash), r.first->count && r.bash->count);
    set_bar(add_bar(b, "one every 20 ms, over a bash's, p50", 1, "ms"),
            median(r.late) - median(r.late_bash), r.late->count && r.late_bash->count);
    b->has_phases = r.line_count > 0;
    if (r.line_count) {
        qsort(lines, r.line_count, sizeof *lines, by_end);
        memcpy(b->phase_ms, lines[r.line_count / 2].phase_ms, sizeof b->phase_ms);
    }
    return NULL;
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

enum { WALL, BASH, FIRST, EACH, WHOLE }; /* rows of a burst */

static void count_all(struct bars *b, int row, double ms, const struct life *l, size_t n)
{
    size_t i = 0;

    while (i + 1 < n && !l[i].error)
        i++;
    count_life(b, &b->rows[row], ms, &l[i]);
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
        count_life(b, &b->rows[EACH], l[i].end_ms, &l[i]);
    count_all(b, WALL, ms, l, n);
    TRY(lives_run(&first, l, &ms));
    count_all(b, FIRST, ms, l, n);
    TRY(served_wait_full(s));
    struct err *e = burst_of_bashes(n, &ms);
    count(b, &b->rows[BASH], ms, e);
    TRY(stop_all(s, l, n));
    lives_done(l, n);
    return settle(s);
}

/* Started and stopped again by a few users, as fast as it goes: the pool fills meanwhile. */
static fallible burst_lives(struct served *s, struct bars *b, struct bench_row *r, size_t n,
                            double *ret_per_s)
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
        count_life(b, r, l[i].end_ms, &l[i]);
    *ret_per_s = (double)r->count * 1e3 / ms;
    lives_done(l, n);
    return NULL;
}

static fallible run_burst(struct served *s, const struct bars_plan *plan, struct bars *b)
{
    size_t n = plan->runs < BURST ? plan->runs : BURST, lives = 4 * n;
    struct bench_row *r = b->rows;
    double per_s = 0;

    add_row(b, "all at once, until the last runs", ROUNDS);
    add_row(b, "  as many 'bash -c :' at once", ROUNDS);
    add_row(b, "then a first command in each, all", ROUNDS);
    add_row(b, "one of those starts", ROUNDS * n);
    add_row(b, "start and stop, 16 at once", lives);
    TRY(served_set_pool(s, (unsigned)n));
    say(plan, "all at once, and as many bashes");
    double begin = lives_now_ms();
    for (unsigned i = 0; goes_on(begin, i, 1, ROUNDS); i++)
        TRY(burst_once(s, n, b));
    say(plan, "start and stop");
    TRY(burst_lives(s, b, &r[WHOLE], lives, &per_s));
    sort_all(b);
    struct bar *good = add_bar(b, "starts at once that succeed", 100, "%");
    good->at_least = true;
    set_bar(good, 100.0 * (double)r[EACH].count / (double)(r[EACH].count + r[EACH].failed), true);
    set_bar(add_bar(b, "all at once over as many bashes", 1.5, "x"),
            median(&r[WALL]) / median(&r[BASH]), r[WALL].count && r[BASH].count);
    struct bar *rate = add_bar(b, "start and stop", 500, "/s");
    rate->at_least = true;
    set_bar(rate, per_s, r[WHOLE].count);
    return NULL;
}

/* --- exec: a command in one that runs --- */

static fallible run_exec(struct served *s, const struct bars_plan *plan, struct bars *b)
{
    static const char command[] = LIVES_ACTION("true");
    struct lives_plan one = {s, LIVES_COMMAND_OUT, 1, 1, 0};
    unsigned n = plan->runs * 5;
    struct bench_row *by[4] = {
        add_row(b, "a command through the proxy", n), add_row(b, "  straight to its socket", n),
        add_row(b, "GET /alive through the proxy", n), add_row(b, "  straight to its socket", n)};
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
    say(plan, "commands, through the proxy and straight, in turns");
    double first = lives_now_ms();
    for (unsigned i = 0; !e && (i % 4 || goes_on(first, i, 4 * LEAST, 4 * n)); i++) {
        begin = lives_now_ms();
        struct err *wrong = i % 4 < 2
                                ? talk_ask(&talks[i % 2], "POST", "/execute_action", l.key, command)
                                : talk_ask(&talks[i % 2], "GET", "/alive", l.key, NULL);
        count(b, by[i % 4], lives_now_ms() - begin, wrong);
    }
    for (size_t i = 0; i < 2; i++)
        if (talks[i].fd >= 0)
            talk_close(&talks[i]);
    if (e)
        return e;
    sort_all(b);
    set_bar(add_bar(b, "the proxy adds to a command, p50", 0.1, "ms"),
            median(by[0]) - median(by[1]), by[0]->count && by[1]->count);
    set_bar(add_bar(b, "the proxy adds to GET /alive, p50", 0.1, "ms"),
            median(by[2]) - median(by[3]), by[2]->count && by[3]->count);
    return stop_all(s, &l, 1);
}

/* --- density: a few sandboxes, and a crowd --- */

/* Gives the id of one that stays. */
static fallible fill(struct served *s, unsigned n, char id[40])
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
    count_life(b, row, l.end_ms, &l);
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
        count(b, rows[which], lives_now_ms() - begin, e);
    }
    double first = lives_now_ms();
    for (unsigned i = 0; i % 4 || goes_on(first, i, 2 * LEAST, 2 * runs); i++) {
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
    struct bench_row *rows[4] = {add_row(b, "GET /runtime, 10 sandboxes", 10 * plan->runs + 2),
                                 add_row(b, "GET /runtime, all sandboxes", 10 * plan->runs + 2),
                                 add_row(b, "start and stop, 10 sandboxes", plan->runs + 2),
                                 add_row(b, "start and stop, all sandboxes", plan->runs + 2)};

    TRY(fill(few, small, id[0]));
    TRY(fill(crowd, plan->crowd, id[1]));
    say(plan, "requests to both, in turns");
    TRY(density_in_turns(two, id, plan->runs, b, rows));
    TRY(served_rss_kb(crowd, &kb));
    sort_all(b);
    set_bar(add_bar(b, "GET /runtime, all over 10", 1.2, "x"), median(rows[1]) / median(rows[0]),
            rows[0]->count && rows[1]->count);
    set_bar(add_bar(b, "start and stop, all over 10", 1.2, "x"), median(rows[3]) / median(rows[2]),
            rows[2]->count && rows[3]->count);
    set_bar(add_bar(b, "resident memory of the server", RSS_BASE + RSS_EACH * plan->crowd, "MB"),
            (double)kb / 1024, true);
    return NULL;
}

/* A second server has the few, so that both are asked in turns and not one after the other. */
static fallible run_density(struct served *crowd, const struct bars_plan *plan, struct bars *b)
{
    struct served few;
    struct err *e = served_open(&few, plan->tmp, plan->self);

    if (!e) {
        say(plan, "a server with few sandboxes, and one with all");
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
} kinds[] = {{"tti", run_tti}, {"burst", run_burst}, {"exec", run_exec}, {"density", run_density}};

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
    say(plan, "starting a server");
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
