// SPDX-License-Identifier: Apache-2.0
/* snapshot.c — croft snapshot take, ls and rm: points a sandbox's files can be forked from. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "cli/state.h"
#include "host/kept/kept.h"
#include "host/snaps/snaps.h"

struct snapshot_options {
    bool json;
    struct str name;
};

static const struct cfg_row rows[] = {
    CFG_STR(snapshot_options, name, "name", NULL,
            "What to call it; default: snap- and eight letters."),
    CFG_BOOL(snapshot_options, json, "json", false, "Print JSON."),
};

struct job {
    struct cli *cli;
    struct snapshot_options o;
    struct arena *a;
    int state;
    struct buf out;
};

static void put_snap(struct jw *w, const struct snap *s)
{
    char made[CLOCK_ISO_MAX];
    size_t n = clock_format_iso(s->made_wall_ns, true, made);

    JW_OBJECT(w, NULL) {
        jw_str(w, "name", s->name);
        jw_str(w, "directory", s->source);
        jw_uint(w, "layers", s->layer_count);
        jw_str(w, "made", str_n(made, n));
    }
}

static void put_one(struct job *j, const struct snap *s)
{
    struct jw w;

    jw_init(&w, &j->out, JW_SPACED);
    if (j->o.json)
        put_snap(&w, s);
    else
        buf_addf(&j->out, STR_FMT "\t" STR_FMT, STR_ARG(s->name), STR_ARG(s->source));
    buf_add_char(&j->out, '\n');
}

/* A child of its own, when the stack has grown long: nobody waits for it. */
static void flatten_behind(const struct job *j, const struct kept *k, const struct snap *s)
{
    pid_t pid = s->layer_count > SNAPS_FLATTEN_AT ? fork() : -1;

    if (pid != 0)
        return; /* could not: the next snapshot tries again */
    setsid();
    for (int fd = 0; fd <= 2; fd++)
        close(fd);
    struct err *e = snaps_flatten(j->state, k->dir, k->layers[0].mount, s->name.p);
    _exit(e ? CLI_FAILED : CLI_OK);
}

static fallible take_open(struct job *j, struct kept *k)
{
    char hex[RNG_HEX_LEN + 1];
    struct snap s;

    if (k->running)
        return err_new(ERR_BUSY, "sandbox '%s' still runs; end it first", k->id);
    if (k->count > 1)
        return err_new(ERR_UNSUPPORTED, "sandbox '%s' has copies of %zu directories, wanted one",
                       k->id, k->count);
    rng_hex(rng_system(), hex);
    const char *name = j->o.name.p ? j->o.name.p : arena_printf(j->a, "snap-%.8s", hex).p;
    TRY(arena_check(j->a));
    TRY(snaps_take(j->state, k->dir, k->layers[0].mount, name, false, j->a, &s));
    flatten_behind(j, k, &s);
    put_one(j, &s);
    return NULL;
}

static fallible take_snapshot(struct job *j, const char *id)
{
    char here[PATH_MAX];
    struct kept k;

    TRY(kept_open(j->state, id, getcwd(here, sizeof here), &k));
    struct err *e = take_open(j, &k);
    kept_done(&k);
    return e;
}

static fallible list(struct job *j)
{
    struct snap *all;
    size_t count;
    struct jw w;

    TRY(snaps_list(j->state, j->a, &all, &count));
    jw_init(&w, &j->out, JW_SPACED);
    if (!j->o.json) {
        for (size_t i = 0; i < count; i++)
            put_one(j, &all[i]);
        return NULL;
    }
    JW_ARRAY(&w, NULL) {
        for (size_t i = 0; i < count; i++)
            put_snap(&w, &all[i]);
    }
    buf_add_char(&j->out, '\n');
    return NULL;
}

static fallible remove_one(struct job *j, const char *name)
{
    struct snap s;

    TRY(snaps_find(j->state, name, j->a, &s));
    TRY(snaps_remove(j->state, name));
    put_one(j, &s);
    return NULL;
}

static fallible act(struct job *j, int argc, char **argv)
{
    TRY(cli_open_state(j->cli, &j->state));
    if (strcmp(argv[0], "ls") == 0)
        return list(j);
    if (strcmp(argv[0], "take") == 0)
        return take_snapshot(j, argc > 1 ? argv[1] : NULL);
    for (int i = 1; i < argc; i++)
        TRY(remove_one(j, argv[i]));
    return NULL;
}

static fallible check_usage(int argc, char **argv)
{
    if (argc &&
        ((strcmp(argv[0], "ls") == 0 && argc == 1) || (strcmp(argv[0], "take") == 0 && argc <= 2) ||
         (strcmp(argv[0], "rm") == 0 && argc > 1)))
        return NULL;
    return err_new(ERR_INVALID, "wanted: take [SANDBOX], ls, or rm SNAPSHOT");
}

static int run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a;
    struct job j = {.cli = cli, .a = &a, .state = -1};

    arena_init(&a, 64u << 20);
    struct err *e = cli_flags(cli, &a, &j.o, &argc, argv);
    if (!e)
        e = check_usage(argc, argv);
    if (e)
        return cli_misuse(cli, e);
    buf_init(&j.out, 16u << 20);
    e = act(&j, argc, argv);
    int code = cli_put(cli, &j.out); /* what was done is said, also before a failure */
    buf_done(&j.out);
    own_close(j.state);
    return e ? cli_fail(cli, e) : code;
}

CLI_COMMAND(snapshot) = {
    .name = "snapshot",
    .summary = "keep the state of a sandbox's files, to go on from there",
    .usage = "take [SANDBOX] | ls | rm SNAPSHOT ...",
    .help =
        "Freezes what a sandbox that has ended changed in its copy of a directory. That takes\n"
        "the same time for any size: nothing is copied. Without a name: the sandbox that last\n"
        "worked on this directory. 'croft diff' and 'croft apply' of the sandbox show and apply\n"
        "what is in its snapshots as well.",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = run,
};
