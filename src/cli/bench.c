// SPDX-License-Identifier: Apache-2.0
/* bench.c — croft bench [--runs N] [--json]: how fast sandboxes are here. */
#include <stdlib.h>
#include <string.h>
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

static double success(const struct bench_row *r)
{
    return (double)r->count / (double)(r->count + r->failed);
}

static bool was_tried(const struct bench_row *r)
{
    return r->count || r->failed;
}

static void put_bars(struct buf *out, const struct bench *b, const struct bench_row *r)
{
    double ratio = bench_ratio(b, r);

    if (ratio > 0)
        buf_addf(out, "  %8.4fx", ratio);
    if (ratio > 0 && r->bar_ratio > 0)
        buf_addf(out, "  bar %.1fx: %s", r->bar_ratio, ratio <= r->bar_ratio ? "held" : "missed");
    if (r->bar_ms > 0 && r->count)
        buf_addf(out, "             bar %.1f ms: %s", r->bar_ms,
                 bench_at(r, .5) <= r->bar_ms ? "held" : "missed");
}

static void put_text(struct buf *out, const struct bench *b, const struct utsname *u)
{
    buf_addf(out, "Linux %s, %d processors, %s\n\n", u->release, get_nprocs(),
             geteuid() == 0 ? "root" : "not root");
    buf_addf(out, "%-40s %8s %8s %8s %8s %5s %5s  %s\n", "milliseconds", "min", "p50", "p95", "p99",
             "N", "ok", "croft/peer");
    for (size_t i = 0; i < BENCH_ROWS; i++) {
        const struct bench_row *r = &b->rows[i];
        if (!was_tried(r))
            continue;
        buf_addf(out, "%s%-*s %8.3f %8.3f %8.3f %8.3f %5zu %4.0f%%", r->peer ? "  " : "",
                 r->peer ? 38 : 40, r->what, bench_at(r, 0), bench_at(r, .5), bench_at(r, .95),
                 bench_at(r, .99), r->count, 100 * success(r));
        put_bars(out, b, r);
        buf_add_char(out, '\n');
    }
    buf_addf(out, "\n%.0f lives a second: started, listening, removed, one after the other\n",
             b->lives_per_s);
    for (size_t i = 0; i < PEERS; i++)
        if (!b->peers[i].there)
            buf_addf(out, "without %s: %s\n", b->peers[i].name, b->peers[i].why);
}

static void put_row(struct jw *w, const struct bench *b, const struct bench_row *r)
{
    JW_OBJECT(w, NULL) {
        jw_cstr(w, "what", r->what);
        jw_int(w, "n", (int64_t)r->count);
        jw_int(w, "failed", (int64_t)r->failed);
        jw_double(w, "success", success(r));
        jw_double(w, "min_ms", bench_at(r, 0));
        jw_double(w, "p50_ms", bench_at(r, .5));
        jw_double(w, "p95_ms", bench_at(r, .95));
        jw_double(w, "p99_ms", bench_at(r, .99));
        if (r->bar_ms > 0)
            jw_double(w, "bar_ms", r->bar_ms);
        if (r->peer) {
            jw_cstr(w, "peer", r->peer);
            jw_cstr(w, "beside", b->rows[r->of].what);
        }
        if (bench_ratio(b, r) > 0)
            jw_double(w, "ratio", bench_ratio(b, r));
        if (r->bar_ratio > 0)
            jw_double(w, "bar_ratio", r->bar_ratio);
    }
}

static void put_peer(struct jw *w, const struct peer *p)
{
    JW_OBJECT(w, NULL) {
        jw_cstr(w, "name", p->name);
        jw_cstr(w, "package", p->package);
        jw_bool(w, "took_part", p->there);
        if (!p->there)
            jw_cstr(w, "why", p->why);
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
                if (was_tried(&b->rows[i]))
                    put_row(&w, b, &b->rows[i]);
        }
        JW_ARRAY(&w, "peers") {
            for (size_t i = 0; i < PEERS; i++)
                put_peer(&w, &b->peers[i]);
        }
    }
    buf_add_char(out, '\n');
}

/* A short path: sockets are in it. */
static const char *tmp_dir(const struct cli *cli)
{
    const char *own = cfg_env_get(cli->envp, "TMPDIR");

    return own && own[0] == '/' && strlen(own) <= 40 && !strpbrk(own, ",:") ? own : "/var/tmp";
}

static fallible measure(struct cli *cli, const struct bench_options *o, const char *state,
                        struct buf *out)
{
    struct bench b;
    struct utsname u;
    struct bench_plan plan = {.state = state,
                              .tmp = tmp_dir(cli),
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
    .help =
        "Starts, pauses, resumes and removes sandboxes, takes snapshots, and runs whole commands\n"
        "in new ones, beside those of bubblewrap, crun, runc and docker that are installed: all\n"
        "start the same static program apart from the rest and give its answer. Their times are\n"
        "from the same run and in turns, so the ratio holds on a busy machine too. What is\n"
        "missing is named, with the package that brings it. For docker a dockerd is started in\n"
        "namespaces of its own; nothing of it stays. 'make bench' in the source tree does more.\n",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = run,
};
