// SPDX-License-Identifier: Apache-2.0
/* bench.c — croft bench [tti|burst|exec|density]: how fast sandboxes are here, and a server. */
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "host/bench/bars.h"

#define CROWD 200

struct bench_options {
    uint64_t runs;
    struct str state;
    bool json;
};

static const struct cfg_row rows[] = {
    CFG_UINT(bench_options, runs, "runs", 100, "Times each thing is done, up to 10,000."),
    CFG_STR(
        bench_options, state, "state", NULL,
        "Directory for the states of the servers, which is kept: a later run then starts sooner. "
        "Default: a temporary one."),
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

static void put_head(struct buf *out, const struct utsname *u)
{
    buf_addf(out, "Linux %s, %d processors, %s\n\n", u->release, get_nprocs(),
             geteuid() == 0 ? "root" : "not root");
    buf_addf(out, "%-40s %8s %8s %8s %8s %5s %5s\n", "milliseconds", "min", "p50", "p95", "p99",
             "N", "ok");
}

static void put_figures(struct buf *out, const struct bench_row *r)
{
    buf_addf(out, "%-40s %8.3f %8.3f %8.3f %8.3f %5zu %4.0f%%\n", r->what, bench_at(r, 0),
             bench_at(r, .5), bench_at(r, .95), bench_at(r, .99), r->count, 100 * bench_success(r));
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

static const char *bench_verdict(const struct bar *b)
{
    return !b->measured ? "not measured" : bar_met(b) ? "met" : "missed";
}

static void put_bars_text(struct buf *out, const struct bars *b, const struct utsname *u)
{
    put_head(out, u);
    for (size_t i = 0; i < b->row_count; i++)
        if (b->rows[i].count + b->rows[i].failed)
            put_figures(out, &b->rows[i]);
    buf_add_char(out, '\n');
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

static fallible bench_measure(struct cli *cli, const struct bench_options *o, const char *name,
                              const char *state, struct buf *out)
{
    struct bars b;
    struct utsname u;
    char self[4096];
    struct bars_plan plan = {.tmp = tmp_dir(cli),
                             .self = find_self(self),
                             .state = state,
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

    buf_init(&out, 1u << 16);
    arena_init(&a, 1u << 20);
    struct err *e = cli_flags(cli, &a, &o, &argc, argv);
    const char *name = !e && argc ? argv[0] : "plain";
    if (!bars_known(name))
        e = err_new(ERR_INVALID, "no measurement '%.40s'; tti, burst, exec or density", name);
    if (!e && argc > 1)
        e = cli_no_more(argc - 1, argv + 1);
    if (!e && (o.runs == 0 || o.runs > BARS_RUNS_MAX))
        e = err_new(ERR_INVALID, "--runs: from 1 to %u", BARS_RUNS_MAX);
    if (e)
        return cli_misuse(cli, e);
    e = bench_measure(cli, &o, name, o.state.p ? arena_cstr(&a, o.state) : NULL, &out);
    return e ? cli_fail(cli, e) : cli_put(cli, &out);
}

CLI_COMMAND(bench) = {
    .name = "bench",
    .group = CLI_HERE,
    .summary = "measure how fast sandboxes are on this machine",
    .usage = "[tti|burst|exec|density] [--runs N] [--state DIR] [--json]",
    .help =
        "Starts a 'croft serve' of its own, with default settings, measures, and removes all it\n"
        "made. The other side of a ratio is measured in the same run and in turns, so that the\n"
        "ratio holds on a busy machine too. Without a name: a start, a whole 'croft run' beside\n"
        "one of bubblewrap, and the memory of an idle sandbox. By name, with the bars that are\n"
        "met or missed:\n"
        "\n"
        "  tti      from POST /start to a first command's output, beside a bare bash\n"
        "  burst    many starts at once beside as many bashes, starts and stops a second\n"
        "  exec     what the proxy adds to a command, its bytes beside a bare relay's\n"
        "  density  what requests cost with 10 sandboxes, and with as many as\n"
        "           CROFT_BENCH_CROWD says (200, up to 5,000)\n"
        "\n"
        "'make bench' in the source tree measures more, beside more peers.\n",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = bench_run_command,
};
