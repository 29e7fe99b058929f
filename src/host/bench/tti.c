// SPDX-License-Identifier: Apache-2.0
/* tti.c — from a request to the output of the first command, beside bashes.
 *
 * A claim is measured twice: after a pause each, when processors and disk have to wake up first,
 * and one after another without a pause. The bar holds for both. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "host/bench/bars_inner.h"

#define POOL       32
#define BATCH      100 /* that run before they are stopped */
#define STAGGER_MS 20
#define ROW_BYTES  4120       /* a row's page and its frame in the log take these */
#define FILE_BYTES (1u << 20) /* laid out before, as the log is */

struct tti_rows {
    struct bench_row *claim, *disk, *next, *after, *first, *bash, *late, *late_bash;
    int file; /* where the state is; as long as it will be */
};

/* --- what the disk alone takes --- */

static fallible open_file(struct served *s, int *ret_fd)
{
    static const char zeros[1u << 16];
    char path[SCRATCH_DIR + 16];

    snprintf(path, sizeof path, "%s/disk", s->scratch.dir);
    own_fd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys("open '%s'", path);
    for (off_t at = 0; at < (off_t)FILE_BYTES; at += (off_t)sizeof zeros)
        if (pwrite(fd, zeros, sizeof zeros, at) != (ssize_t)sizeof zeros)
            return err_sys("write '%s'", path);
    if (fsync(fd) < 0)
        return err_sys("sync '%s'", path);
    *ret_fd = take_fd(&fd);
    return NULL;
}

/* As much as a claim has to have on disk before it is told. */
static fallible write_and_sync(struct tti_rows *r)
{
    static const char row[ROW_BYTES];
    off_t at = (off_t)(r->disk->count * ROW_BYTES % (FILE_BYTES - ROW_BYTES));
    double begin = lives_now_ms();

    if (pwrite(r->file, row, sizeof row, at) != (ssize_t)sizeof row || fdatasync(r->file) < 0)
        return err_sys("write and sync");
    bench_count(r->disk, lives_now_ms() - begin, NULL);
    return NULL;
}

/* --- sandboxes and bashes --- */

static fallible one_of_each(struct served *s, struct bars *b, struct tti_rows *r, struct life *l)
{
    struct lives_plan ours = {s, LIVES_COMMAND_OUT, 1, 1, 0}, peer = {NULL, LIVES_BASH, 1, 1, 0};
    struct life p;
    double ms;

    lives_init(&p, 1);
    TRY(served_wait_full(s));
    TRY(lives_run(&ours, l, &ms));
    bars_count(b, r->claim, l->claim_ms, l);
    bars_count(b, r->first, l->end_ms, l);
    TRY(served_wait_full(s));
    TRY(write_and_sync(r));
    TRY(lives_run(&peer, &p, &ms));
    bars_count(b, r->bash, p.end_ms, &p);
    lives_done(&p, 1);
    return NULL;
}

/* One sandbox, then one bash, in turns. Sandboxes are stopped later, BATCH at a time, so that no
 * removal disturbs the next claim; after_stops() measures that case. */
static fallible tti_in_turns(struct served *s, const struct bars_plan *plan, struct bars *b,
                             struct tti_rows *r)
{
    struct life batch[BATCH];
    double begin = lives_now_ms();
    size_t n = 0;

    for (unsigned i = 0; bars_go_on(begin, i, BARS_LEAST, plan->runs); i++) {
        lives_init(&batch[n], 1);
        TRY(one_of_each(s, b, r, &batch[n++]));
        if (n < BATCH && i + 1 < plan->runs)
            continue;
        TRY(bars_stop_all(s, batch, n));
        lives_done(batch, n);
        n = 0;
        TRY(bars_settle(s));
    }
    struct err *e = n ? bars_stop_all(s, batch, n) : NULL;
    lives_done(batch, n);
    return e;
}

/* One user claims all that are warm, each when the one before is there; the pool fills up behind
 * them, as it always does. */
static fallible one_after_another(struct served *s, const struct bars_plan *plan, struct bars *b,
                                  struct bench_row *r)
{
    double begin = lives_now_ms(), ms;

    for (unsigned i = 0; bars_go_on(begin, i, BARS_LEAST, plan->runs); i += POOL) {
        size_t n = plan->runs - i < POOL ? plan->runs - i : POOL;
        struct lives_plan all = {s, LIVES_START, n, 1, 0};
        struct life l[POOL];
        lives_init(l, n);
        TRY(served_wait_full(s));
        TRY(lives_run(&all, l, &ms));
        for (size_t k = 0; k < n; k++)
            bars_count(b, r, l[k].claim_ms, &l[k]);
        TRY(bars_stop_all(s, l, n));
        lives_done(l, n);
        TRY(bars_settle(s));
    }
    return NULL;
}

/* The next one starts when one was told to stop: as when users come and go. */
static fallible after_stops(struct served *s, const struct bars_plan *plan, struct bars *b,
                            struct bench_row *r)
{
    struct lives_plan one = {s, LIVES_WHOLE, 1, 1, 0};
    double begin = lives_now_ms(), ms;

    for (unsigned i = 0; bars_go_on(begin, i, BARS_LEAST, plan->runs / 2 + 1); i++) {
        struct life l;
        lives_init(&l, 1);
        TRY(served_wait_full(s));
        TRY(lives_run(&one, &l, &ms));
        bars_count(b, r, l.claim_ms, &l);
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
        bars_count(b, first, l[i].end_ms, &l[i]);
    TRY(served_wait_full(s));
    TRY(lives_run(&peer, p, &ms));
    for (size_t i = 0; i < n; i++)
        bars_count(b, bash, p[i].end_ms, &p[i]);
    TRY(bars_stop_all(s, l, n));
    lives_done(l, n);
    lives_done(p, n);
    return NULL;
}

fallible bars_tti(struct served *s, const struct bars_plan *plan, struct bars *b)
{
    struct tti_rows r = {
        .claim = bars_add_row(b, "POST /start to its answer, warm", plan->runs),
        .disk = bars_add_row(b, "  a write and its sync alone", plan->runs),
        .next = bars_add_row(b, "  one after another, no pause", plan->runs),
        .after = bars_add_row(b, "  right after a stop", plan->runs),
        .first = bars_add_row(b, "to the first command's output", plan->runs),
        .bash = bars_add_row(b, "  bash on a pty, the same", plan->runs),
        .late = bars_add_row(b, "one every 20 ms, to the output", plan->runs),
        .late_bash = bars_add_row(b, "  bash on a pty, one every 20 ms", plan->runs),
    };

    TRY(served_set_pool(s, plan->runs < POOL ? plan->runs : POOL));
    bars_say(plan, "starts and bashes in turns");
    own_fd file = -1;
    TRY(open_file(s, &file));
    r.file = file;
    TRY(tti_in_turns(s, plan, b, &r));
    bars_say(plan, "starts one after another");
    TRY(one_after_another(s, plan, b, r.next));
    bars_say(plan, "starts right after a stop");
    TRY(after_stops(s, plan, b, r.after));
    bars_say(plan, "one every 20 ms");
    TRY(bars_settle(s));
    TRY(tti_staggered(s, plan, b, r.late, r.late_bash));
    bars_sort(b);
    bars_set(bars_add_bar(b, "warm claim over the disk's sync, p50", 0.6, "ms"),
             bars_median(r.claim) - bars_median(r.disk), r.claim->count && r.disk->count);
    bars_set(bars_add_bar(b, "one after another, over that sync", 0.6, "ms"),
             bars_median(r.next) - bars_median(r.disk), r.next->count && r.disk->count);
    bars_set(bars_add_bar(b, "warm claim, p99", 10, "ms"), bench_at(r.claim, .99), r.claim->count);
    bars_set(bars_add_bar(b, "first output over a bash's, p50", 1, "ms"),
             bars_median(r.first) - bars_median(r.bash), r.first->count && r.bash->count);
    bars_set(bars_add_bar(b, "one every 20 ms, over a bash's, p50", 1, "ms"),
             bars_median(r.late) - bars_median(r.late_bash), r.late->count && r.late_bash->count);
    return NULL;
}
