// SPDX-License-Identifier: Apache-2.0
/* bench/rate.c — starts and stops of a `croft serve` by 16 users, where the processor time of one
 * goes, and where the time of the median start goes.
 *
 * CROFT_BENCH_CROWD says how many idle sandboxes the server has meanwhile (0). Needs root. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "bench/kit/kit.h"
#include "bench/kit/spent.h"
#include "host/bench/lives.h"

#define USERS  16
#define POOL   64
#define STARTS 30
#define LIVES  400
#define ROUNDS 5

static const char *const phases[] = {"queue", "claim", "namespaces", "mounts",
                                     "exec",  "ready", "row",        "first_command"};

struct timeline {
    double end_ms, phase_ms[ARRAY_LEN(phases)];
};

static void find_croft(char path[512])
{
    ssize_t n = readlink("/proc/self/exe", path, 400);

    kit_check(n > 0, "find croft");
    path[n] = '\0';
    for (unsigned up = 0; up < 2; up++) /* build/bench/rate */
        *strrchr(path, '/') = '\0';
    strncat(path, "/croft", 7);
}

static void lives_must(const struct lives_plan *plan, struct life *l, double *ret_ms)
{
    kit_must(lives_run(plan, l, ret_ms));
    for (size_t i = 0; i < plan->count; i++)
        if (l[i].error)
            kit_must(l[i].error);
}

static void start_crowd(struct served *s, size_t n)
{
    struct lives_plan plan = {s, LIVES_START, n, n < USERS ? n : USERS, 0};
    own_free struct life *l = mem_new((n + 1) * sizeof *l);
    double ms;

    lives_init(l, n);
    if (n)
        lives_must(&plan, l, &ms);
}

static void read_timeline(struct served *s, const struct life *l, struct timeline *t)
{
    char text[80];
    struct json *o;

    snprintf(text, sizeof text, "/croft/v1/sandboxes/%s", l->id);
    kit_must(served_ask(s, "GET", text, NULL, &o));
    const struct json *line = json_get(o, STR("timeline"));
    t->end_ms = l->end_ms;
    for (size_t i = 0; line && i < ARRAY_LEN(phases); i++) {
        snprintf(text, sizeof text, "%s_ns", phases[i]);
        t->phase_ms[i] = (double)json_get_int(line, text, 0) / 1e6;
    }
}

static int by_end(const void *a, const void *b)
{
    double x = ((const struct timeline *)a)->end_ms, y = ((const struct timeline *)b)->end_ms;

    return (x > y) - (x < y);
}

static void print_median_start(struct served *s)
{
    struct lives_plan one = {s, LIVES_COMMAND_OUT, 1, 1, 0}, stop = {s, LIVES_STOP, 1, 1, 0};
    struct timeline lines[STARTS];
    double ms;

    for (size_t i = 0; i < STARTS; i++) {
        struct life l;
        lives_init(&l, 1);
        kit_must(served_wait_full(s));
        lives_must(&one, &l, &ms);
        read_timeline(s, &l, &lines[i]);
        lives_must(&stop, &l, &ms);
    }
    qsort(lines, STARTS, sizeof *lines, by_end);
    printf("  a median start, ms:");
    for (size_t i = 0; i < ARRAY_LEN(phases); i++)
        printf(" %s %.3f", phases[i], lines[STARTS / 2].phase_ms[i]);
    putchar('\n');
}

static double round_of_lives(struct served *s)
{
    struct lives_plan plan = {s, LIVES_WHOLE, LIVES, USERS, 0};
    own_free struct life *l = mem_new(LIVES * sizeof *l);
    struct spent before;
    char text[300];
    double ms;

    lives_init(l, LIVES);
    kit_must(served_wait_full(s));
    spent_look(s->pid, &before);
    lives_must(&plan, l, &ms);
    struct spent each = spent_since(s->pid, &before, LIVES);
    spent_say(&each, text, sizeof text);
    printf("  %.0f /s: %s\n", LIVES * 1e3 / ms, text);
    return LIVES * 1e3 / ms;
}

int main(void)
{
    const char *crowd = getenv("CROFT_BENCH_CROWD");
    struct served s;
    char croft[512];
    double best = 0;

    find_croft(croft);
    kit_must(served_open(&s, "/var/tmp", croft, NULL));
    kit_must(served_set_pool(&s, POOL));
    start_crowd(&s, crowd ? (size_t)atoi(crowd) : 0);
    print_median_start(&s);
    for (unsigned i = 0; i < ROUNDS; i++) {
        double rate = round_of_lives(&s);
        best = rate > best ? rate : best;
    }
    kit_must(served_close(&s));
    printf("bench/rate: %.0f starts and stops a second\n", best);
    return 0;
}
