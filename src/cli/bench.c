// SPDX-License-Identifier: Apache-2.0
/* bench.c — croft bench [--runs N] [--json]: how fast sandboxes are here. */
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/state.h"
#include "host/bench/bench.h"

struct bench_options {
    uint64_t runs;
    bool json;
};

static const struct cfg_row rows[] = {
    CFG_UINT(bench_options, runs, "runs", 100, "Times each thing is done, up to 10,000."),
    CFG_BOOL(bench_options, json, "json", false, "Print a JSON object."),
};

static void on_progress(void *arg, const char *what)
{
    struct cli *cli = arg;
    own_done(buf) line;

    buf_init(&line, 256);
    buf_addf(&line, "croft bench: %s\n", what);
    err_free(fd_write_all(cli->err, buf_str(&line))); /* talk, not data */
}

static const struct bench_row *peer_of(const struct bench *b, const struct bench_row *r)
{
    const struct bench_row *p = &b->rows[BENCH_PEER];

    return r->peer && p->count ? p : NULL;
}

static double ratio(const struct bench *b, const struct bench_row *r)
{
    return bench_at(r, .5) / bench_at(peer_of(b, r), .5);
}

static void put_bars(struct buf *out, const struct bench *b, const struct bench_row *r)
{
    if (r->bar_ms > 0 && r->count)
        buf_addf(out, "   bar %.1f ms: %s", r->bar_ms,
                 bench_at(r, .5) <= r->bar_ms ? "held" : "missed");
    if (peer_of(b, r))
        buf_addf(out, "   %.2fx the peer, bar %.1fx: %s", ratio(b, r), r->bar_ratio,
                 ratio(b, r) <= r->bar_ratio ? "held" : "missed");
}

static void put_text(struct buf *out, const struct bench *b, const struct utsname *u)
{
    buf_addf(out, "Linux %s, %d processors, %s\n\n", u->release, get_nprocs(),
             geteuid() == 0 ? "root" : "not root");
    buf_addf(out, "%-40s %8s %8s %8s %8s %6s %7s\n", "milliseconds", "min", "p50", "p95", "p99",
             "N", "failed");
    for (size_t i = 0; i < BENCH_ROWS; i++) {
        const struct bench_row *r = &b->rows[i];
        if (!r->count && !r->failed)
            continue;
        buf_addf(out, "%-40s %8.3f %8.3f %8.3f %8.3f %6zu %7zu", r->what, bench_at(r, 0),
                 bench_at(r, .5), bench_at(r, .95), bench_at(r, .99), r->count, r->failed);
        put_bars(out, b, r);
        buf_add_char(out, '\n');
    }
    buf_addf(out, "\n%.0f lives a second: started, listening, removed, one after the other\n",
             b->lives_per_s);
    if (!b->rows[BENCH_PEER].count)
        buf_add_cstr(out, "no peer: install bubblewrap to have one\n");
}

static void put_row(struct jw *w, const struct bench *b, const struct bench_row *r)
{
    JW_OBJECT(w, NULL) {
        jw_cstr(w, "what", r->what);
        jw_int(w, "n", (int64_t)r->count);
        jw_int(w, "failed", (int64_t)r->failed);
        jw_double(w, "min_ms", bench_at(r, 0));
        jw_double(w, "p50_ms", bench_at(r, .5));
        jw_double(w, "p95_ms", bench_at(r, .95));
        jw_double(w, "p99_ms", bench_at(r, .99));
        if (r->bar_ms > 0)
            jw_double(w, "bar_ms", r->bar_ms);
        if (peer_of(b, r)) {
            jw_cstr(w, "peer", r->peer);
            jw_double(w, "ratio", ratio(b, r));
            jw_double(w, "bar_ratio", r->bar_ratio);
        }
    }
}

static void put_json(struct buf *out, const struct bench *b, const struct utsname *u)
{
    struct jw w;

    jw_init(&w, out, JW_SPACED);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "kernel", u->release);
        jw_int(&w, "processors", get_nprocs());
        jw_bool(&w, "root", geteuid() == 0);
        jw_double(&w, "lives_per_s", b->lives_per_s);
        JW_ARRAY(&w, "rows") {
            for (size_t i = 0; i < BENCH_ROWS; i++)
                if (b->rows[i].count || b->rows[i].failed)
                    put_row(&w, b, &b->rows[i]);
        }
    }
    buf_add_char(out, '\n');
}

static fallible measure(struct cli *cli, const struct bench_options *o, const char *state,
                        struct buf *out)
{
    struct bench b;
    struct utsname u;
    struct bench_plan plan = {.state = state,
                              .self = "/proc/self/exe",
                              .runs = (unsigned)o->runs,
                              .progress = on_progress,
                              .arg = cli};
    char self[4096];
    ssize_t n = readlink(plan.self, self, sizeof self - 1);

    if (n > 0) {
        self[n] = '\0';
        plan.self = self;
    }
    TRY(bench_run(&plan, &b));
    uname(&u);
    if (o->json)
        put_json(out, &b, &u);
    else
        put_text(out, &b, &u);
    bench_done(&b);
    return NULL;
}

static int run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a;
    own_done(buf) out;
    struct bench_options o;
    struct str state;

    buf_init(&out, 1u << 16);
    arena_init(&a, 1u << 20);
    struct err *e = cli_flags(cli, &a, &o, &argc, argv);
    if (!e)
        e = cli_no_more(argc, argv);
    if (!e && (o.runs == 0 || o.runs > BENCH_RUNS_MAX))
        e = err_new(ERR_INVALID, "--runs: from 1 to %u", BENCH_RUNS_MAX);
    if (e)
        return cli_misuse(cli, e);
    e = cli_state_path(cli, &a, &state);
    if (!e)
        e = measure(cli, &o, state.p, &out);
    return e ? cli_fail(cli, e) : cli_put(cli, &out);
}

CLI_COMMAND(bench) = {
    .name = "bench",
    .summary = "measure how fast sandboxes are on this machine",
    .usage = "[--runs N] [--json]",
    .help = "Starts, pauses, resumes and removes sandboxes, and runs whole commands in new ones,\n"
            "beside bubblewrap where it is installed. The peer's times are from the same run, so\n"
            "the ratio holds on a busy machine too. 'make bench' in the source tree does more.\n",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = run,
};
