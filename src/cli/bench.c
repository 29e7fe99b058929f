// SPDX-License-Identifier: Apache-2.0
/* bench.c — croft bench [tti|burst|exec|density]: how fast sandboxes are here, and a server. */
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/state.h"
#include "host/bench/bars.h"
#include "host/bench/bench.h"

#define CROWD 200

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

static double bench_success(const struct bench_row *r)
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

static void put_head(struct buf *out, const struct utsname *u, const char *last)
{
    buf_addf(out, "Linux %s, %d processors, %s\n\n", u->release, get_nprocs(),
             geteuid() == 0 ? "root" : "not root");
    buf_addf(out, "%-40s %8s %8s %8s %8s %5s %5s%s\n", "milliseconds", "min", "p50", "p95", "p99",
             "N", "ok", last);
}

static void put_figures(struct buf *out, const struct bench_row *r)
{
    buf_addf(out, "%s%-*s %8.3f %8.3f %8.3f %8.3f %5zu %4.0f%%", r->peer ? "  " : "",
             r->peer ? 38 : 40, r->what, bench_at(r, 0), bench_at(r, .5), bench_at(r, .95),
             bench_at(r, .99), r->count, 100 * bench_success(r));
}

static void put_text(struct buf *out, const struct bench *b, const struct utsname *u)
{
    put_head(out, u, "  croft/peer");
    for (size_t i = 0; i < BENCH_ROWS; i++) {
        const struct bench_row *r = &b->rows[i];
        if (!was_tried(r))
            continue;
        put_figures(out, r);
        put_bars(out, b, r);
        buf_add_char(out, '\n');
    }
    buf_addf(out, "\n%.0f lives a second: started, listening, removed, one after the other\n",
             b->lives_per_s);
    for (size_t i = 0; i < PEERS; i++)
        if (!b->peers[i].there)
            buf_addf(out, "without %s: %s\n", b->peers[i].name, b->peers[i].why);
}

static void put_row_figures(struct jw *w, const struct bench_row *r)
{
    jw_cstr(w, "what", r->what);
    jw_int(w, "n", (int64_t)r->count);
    jw_int(w, "failed", (int64_t)r->failed);
    jw_double(w, "success", bench_success(r));
    jw_double(w, "min_ms", bench_at(r, 0));
    jw_double(w, "p50_ms", bench_at(r, .5));
    jw_double(w, "p95_ms", bench_at(r, .95));
    jw_double(w, "p99_ms", bench_at(r, .99));
}

static void put_machine(struct jw *w, const struct utsname *u)
{
    jw_cstr(w, "kernel", u->release);
    jw_int(w, "processors", get_nprocs());
    jw_bool(w, "root", geteuid() == 0);
}

static void put_row(struct jw *w, const struct bench *b, const struct bench_row *r)
{
    JW_OBJECT(w, NULL) {
        put_row_figures(w, r);
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
        put_machine(&w, u);
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

/* --- the bars of a server --- */

static const char *bench_verdict(const struct bar *b)
{
    return !b->measured ? "not measured" : bar_met(b) ? "met" : "missed";
}

static void put_bars_text(struct buf *out, const struct bars *b, const struct utsname *u)
{
    put_head(out, u, "");
    for (size_t i = 0; i < b->row_count; i++) {
        put_figures(out, &b->rows[i]);
        buf_add_char(out, '\n');
    }
    if (b->has_phases)
        buf_add_cstr(out, "\na median start, ms:");
    for (size_t i = 0; b->has_phases && i < BARS_PHASES; i++)
        buf_addf(out, " %s %.3f", bars_phases[i], b->phase_ms[i]);
    buf_add_cstr(out, b->has_phases ? "\n\n" : "\n");
    for (size_t i = 0; i < b->bar_count; i++) {
        const struct bar *bar = &b->bars[i];
        buf_addf(out, "%-40s %8.3f %s, bar %s %.3f %s: %s\n", bar->what, bar->got, bar->unit,
                 bar->at_least ? ">=" : "<=", bar->bar, bar->unit, bench_verdict(bar));
    }
    if (b->note[0])
        buf_addf(out, "%s\n", b->note);
    if (b->failure[0])
        buf_addf(out, "first failure: %s\n", b->failure);
}

static void put_bars_json(struct buf *out, const struct bars *b, const struct utsname *u)
{
    struct jw w;

    jw_init(&w, out, JW_SPACED);
    JW_OBJECT(&w, NULL) {
        put_machine(&w, u);
        JW_ARRAY(&w, "rows") {
            for (size_t i = 0; i < b->row_count; i++)
                JW_OBJECT(&w, NULL) {
                    put_row_figures(&w, &b->rows[i]);
                }
        }
        JW_ARRAY(&w, "bars") {
            for (size_t i = 0; i < b->bar_count; i++)
                JW_OBJECT(&w, NULL) {
                    jw_cstr(&w, "what", b->bars[i].what);
                    jw_double(&w, "got", b->bars[i].got);
                    jw_cstr(&w, "wanted", b->bars[i].at_least ? "at least" : "at most");
                    jw_double(&w, "bar", b->bars[i].bar);
                    jw_cstr(&w, "unit", b->bars[i].unit);
                    jw_cstr(&w, "verdict", bench_verdict(&b->bars[i]));
                }
        }
        if (b->has_phases)
            JW_OBJECT(&w, "median_start_ms") {
                for (size_t i = 0; i < BARS_PHASES; i++)
                    jw_double(&w, bars_phases[i], b->phase_ms[i]);
            }
        if (b->note[0])
            jw_cstr(&w, "note", b->note);
        if (b->failure[0])
            jw_cstr(&w, "failure", b->failure);
    }
    buf_add_char(out, '\n');
}

/* CROFT_BENCH_CROWD: the sandboxes of density. */
static fallible find_crowd(const struct cli *cli, unsigned *ret_crowd)
{
    const char *text = cfg_env_get(cli->envp, "CROFT_BENCH_CROWD");
    uint64_t n = CROWD;

    if (text && (!str_to_u64(str_of(text), &n) || n == 0 || n > BARS_CROWD))
        return err_new(ERR_INVALID, "CROFT_BENCH_CROWD '%.40s': from 1 to %u", text, BARS_CROWD);
    *ret_crowd = (unsigned)n;
    return NULL;
}

/* A short path: sockets are in it. */
static const char *tmp_dir(const struct cli *cli)
{
    const char *own = cfg_env_get(cli->envp, "TMPDIR");

    return own && own[0] == '/' && strlen(own) <= 40 && !strpbrk(own, ",:") ? own : "/var/tmp";
}

static const char *find_self(char path[4096])
{
    ssize_t n = readlink("/proc/self/exe", path, 4095);

    if (n <= 0)
        return "/proc/self/exe";
    path[n] = '\0';
    return path;
}

static fallible bench_measure(struct cli *cli, const struct bench_options *o, const char *state,
                              struct buf *out)
{
    struct bench b;
    struct utsname u;
    char self[4096];
    struct bench_plan plan = {.state = state,
                              .tmp = tmp_dir(cli),
                              .self = find_self(self),
                              .runs = (unsigned)o->runs,
                              .progress = on_progress,
                              .arg = cli};

    TRY(bench_run(&plan, &b));
    uname(&u);
    if (o->json)
        put_json(out, &b, &u);
    else
        put_text(out, &b, &u);
    bench_done(&b);
    return NULL;
}

static fallible measure_server(struct cli *cli, const struct bench_options *o, const char *name,
                               struct buf *out)
{
    struct bars b;
    struct utsname u;
    char self[4096];
    struct bars_plan plan = {.tmp = tmp_dir(cli),
                             .self = find_self(self),
                             .runs = (unsigned)o->runs,
                             .progress = on_progress,
                             .arg = cli};

    TRY(find_crowd(cli, &plan.crowd));
    TRY(bars_run(name, &plan, &b));
    uname(&u);
    if (o->json)
        put_bars_json(out, &b, &u);
    else
        put_bars_text(out, &b, &u);
    bars_done(&b);
    return NULL;
}

static int bench_run_command(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a;
    own_done(buf) out;
    struct bench_options o;
    struct str state;

    buf_init(&out, 1u << 16);
    arena_init(&a, 1u << 20);
    struct err *e = cli_flags(cli, &a, &o, &argc, argv);
    const char *name = !e && argc ? argv[0] : NULL;
    if (name && !bars_known(name))
        e = err_new(ERR_INVALID, "no measurement '%.40s'; tti, burst, exec or density", name);
    if (!e && argc > 1)
        e = cli_no_more(argc - 1, argv + 1);
    if (!e && (o.runs == 0 || o.runs > BENCH_RUNS_MAX))
        e = err_new(ERR_INVALID, "--runs: from 1 to %u", BENCH_RUNS_MAX);
    if (e)
        return cli_misuse(cli, e);
    if (name)
        e = measure_server(cli, &o, name, &out);
    else if (!(e = cli_state_path(cli, &a, &state)))
        e = bench_measure(cli, &o, state.p, &out);
    return e ? cli_fail(cli, e) : cli_put(cli, &out);
}

CLI_COMMAND(bench) = {
    .name = "bench",
    .group = CLI_HERE,
    .summary = "measure how fast sandboxes are on this machine",
    .usage = "[tti|burst|exec|density] [--runs N] [--json]",
    .help =
        "Starts, pauses, resumes and removes sandboxes, takes snapshots, and runs whole commands\n"
        "in new ones, beside those of bubblewrap, crun, runc and docker that are installed: all\n"
        "start the same static program apart from the rest and give its answer. Their times are\n"
        "from the same run and in turns, so the ratio holds on a busy machine too. What is\n"
        "missing is named, with the package that brings it. For docker a dockerd is started in\n"
        "namespaces of its own; nothing of it stays. 'make bench' in the source tree does more.\n"
        "\n"
        "With a name it measures a 'croft serve' that it starts for this, with the settings "
        "nobody\n"
        "changed, and says which bars are met: tti, from POST /start to the output of the first\n"
        "command, beside a bare bash; burst, 100 starts at once, beside as many bashes; exec,\n"
        "what the proxy adds to a command, and how many bytes it passes, beside a bare relay;\n"
        "density, what requests cost with 10 sandboxes and with as many as\n"
        "CROFT_BENCH_CROWD says (200, up to 5,000).\n",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = bench_run_command,
};
