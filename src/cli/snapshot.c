// SPDX-License-Identifier: Apache-2.0
/* snapshot.c — croft snapshot take, ls and rm: points a sandbox's files can be forked from. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "cli/far.h"
#include "cli/state.h"
#include "host/overlay/overlay.h"
#include "host/record/record.h"
#include "host/snaps/fence.h"
#include "host/snaps/snaps.h"
#include "host/snaps/whole.h"

struct snapshot_options {
    bool json;
    struct str name;
};

static const struct cfg_row rows[] = {
    CFG_STR(snapshot_options, name, "name", NULL,
            "What to call it; default: snap- and eight letters.", .letter = 'n'),
    CFG_BOOL(snapshot_options, json, "json", false, "Print JSON."),
};

struct job {
    struct cli *cli;
    struct snapshot_options o;
    struct arena *a;
    int state;
    struct buf out;
};

struct shown { /* a snapshot of either kind */
    struct str name;
    struct str of; /* the directory; of a whole sandbox, which */
    bool whole;
    size_t layers;
    uint64_t made_wall_ns;
};

static struct shown shown_of(const struct snap *s)
{
    return (struct shown){.name = s->name,
                          .of = s->source,
                          .layers = s->layer_count,
                          .made_wall_ns = s->made_wall_ns};
}

static fallible find_whole(struct job *j, const char *name, struct shown *ret)
{
    struct record r;
    struct stat st;
    own_fd dir = -1;

    TRY(whole_open(j->state, name, &dir));
    TRY(record_read(dir, &r));
    if (fstat(dir, &st) < 0)
        return err_sys("look at snapshot '%s'", name);
    *ret = (struct shown){.name = arena_copy(j->a, str_of(name)),
                          .of = arena_copy(j->a, str_of(r.id)),
                          .whole = true,
                          .made_wall_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u +
                                          (uint64_t)st.st_mtim.tv_nsec};
    return arena_check(j->a);
}

static void put_json(struct jw *w, const struct shown *s)
{
    char made[CLOCK_ISO_MAX];
    size_t n = clock_format_iso(s->made_wall_ns, true, made);

    JW_OBJECT(w, NULL) {
        jw_str(w, "name", s->name);
        jw_str(w, s->whole ? "sandbox" : "directory", s->of);
        if (!s->whole)
            jw_uint(w, "layers", s->layers);
        jw_str(w, "made", str_n(made, n));
    }
}

static void put_one(struct job *j, const struct shown *s)
{
    struct jw w;

    jw_init(&w, &j->out, JW_SPACED);
    if (j->o.json)
        put_json(&w, s);
    else {
        plain_put_name(&j->out, s->name);
        buf_add_cstr(&j->out, s->whole ? "\tsandbox " : "\t");
        plain_put_cell(&j->out, s->of, 0);
    }
    buf_add_char(&j->out, '\n');
}

/* Flattens a long stack in a child that goes on alone. */
static void flatten_behind(const struct job *j, const struct overlays *k, const struct snap *s)
{
    pid_t pid = s->layer_count > SNAPS_FLATTEN_AT ? fork() : -1;

    if (pid != 0)
        return; /* could not: the next snapshot tries again */
    setsid();
    for (int fd = 0; fd <= 2; fd++)
        close(fd);
    struct err *e = snaps_fence(j->state, k->dir, -1, -1);
    if (!e)
        e = snaps_flatten(j->state, k->dir, k->layers[0].mount, s->name.p);
    _exit(e ? CLI_FAILED : CLI_OK);
}

static fallible take_open(struct job *j, struct overlays *k)
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
    struct shown shown = shown_of(&s);
    put_one(j, &shown);
    return NULL;
}

static fallible take_snapshot(struct job *j, const char *id)
{
    char here[PATH_MAX];
    struct overlays k;

    struct err *e = overlay_open(j->state, id, getcwd(here, sizeof here), &k);
    if (e && id) /* it may be a server's */
        return far_try(j->cli, &(struct far_ask){.json = j->o.json, .name = j->o.name}, id,
                       far_take, &j->out, e);
    TRY(e);
    e = take_open(j, &k);
    overlays_done(&k);
    return e;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct shown *)a)->name, ((const struct shown *)b)->name);
}

/* Both kinds, in the order of their names. */
static fallible snapshot_collect(struct job *j, struct shown **ret_all, size_t *ret_count)
{
    own_done(buf) names;
    struct snap *snaps;
    size_t n, wholes = 0;

    buf_init(&names, 16u << 20);
    TRY(snaps_list(j->state, j->a, &snaps, &n));
    TRY(whole_list(j->state, &names, &wholes));
    struct shown *all = arena_alloc(j->a, (n + wholes + 1) * sizeof *all);
    if (!all)
        return arena_check(j->a);
    for (size_t i = 0; i < n; i++)
        all[i] = shown_of(&snaps[i]);
    for (const char *name = names.p; wholes--; name += strlen(name) + 1) {
        struct err *e = find_whole(j, name, &all[n]);
        if (e && err_code(e) != ERR_NOT_FOUND) /* removed meanwhile */
            return err_wrap(e, "snapshot '%s'", name);
        n += !e;
        err_free(e);
    }
    qsort(all, n, sizeof *all, by_name);
    *ret_all = all;
    *ret_count = n;
    return NULL;
}

/* Those of a server, if one answers: its whole sandboxes have names there, and here only ids. */
static fallible list_far(struct job *j, struct buf *far, bool *ret_there)
{
    struct err *nobody = err_new(ERR_CLOSED, "no server");
    struct err *e =
        far_try(j->cli, &(struct far_ask){.json = j->o.json}, "", far_list_snapshots, far, nobody);

    *ret_there = !e;
    if (e && err_code(e) == ERR_CLOSED) {
        err_free(e); /* then what is here is all there is */
        return NULL;
    }
    return e;
}

static fallible snapshot_list_all(struct job *j)
{
    struct shown *all = NULL;
    size_t count = 0;
    own_done(buf) far;
    bool there, any = false;

    buf_init(&far, 16u << 20);
    TRY(snapshot_collect(j, &all, &count));
    TRY(list_far(j, &far, &there));
    buf_add_cstr(&j->out, j->o.json ? "[" : "");
    for (size_t i = 0; i < count; i++) {
        struct jw w;
        if (all[i].whole && there)
            continue;
        if (!j->o.json) {
            put_one(j, &all[i]);
            continue;
        }
        buf_add_cstr(&j->out, any ? ", " : "");
        any = true;
        jw_init(&w, &j->out, JW_SPACED);
        put_json(&w, &all[i]);
    }
    buf_add_cstr(&j->out, j->o.json && any && far.len ? ", " : "");
    buf_add(&j->out, buf_str(&far));
    buf_add_cstr(&j->out, j->o.json ? "]\n" : "");
    return NULL;
}

static fallible remove_one(struct job *j, const char *name)
{
    struct far_ask ask = {.json = j->o.json};
    struct snap s;
    struct shown shown;

    if (strchr(name, '/')) /* KEY/NAME, of a server's */
        return far_try(j->cli, &ask, name, far_remove_snapshot, &j->out,
                       err_new(ERR_NOT_FOUND, "no snapshot '%.80s'", name));
    struct err *e = snaps_find(j->state, name, j->a, &s);
    if (e && err_code(e) == ERR_NOT_FOUND) {
        struct err *neither = find_whole(j, name, &shown);
        if (neither && err_code(neither) == ERR_NOT_FOUND) {
            err_free(neither);
            return far_try(j->cli, &ask, name, far_remove_snapshot, &j->out, e);
        }
        err_free(e);
        TRY(neither);
        TRY(whole_remove(j->state, name));
    } else {
        TRY(e);
        shown = shown_of(&s);
        TRY(snaps_remove(j->state, name));
    }
    put_one(j, &shown);
    return NULL;
}

static fallible snapshot_act(struct job *j, int argc, char **argv)
{
    TRY(cli_open_state(j->cli, &j->state));
    if (strcmp(argv[0], "ls") == 0)
        return snapshot_list_all(j);
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

static int snapshot_run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a = {0};
    struct job j = {.cli = cli, .a = &a, .state = -1};

    arena_init(&a, 64u << 20);
    struct err *e = cli_flags(cli, &a, &j.o, &argc, argv);
    if (!e)
        e = check_usage(argc, argv);
    if (e)
        return cli_misuse(cli, e);
    buf_init(&j.out, 16u << 20);
    e = snapshot_act(&j, argc, argv);
    int code = cli_put(cli, &j.out); /* what was done is said, also before a failure */
    buf_done(&j.out);
    own_close(j.state);
    return e ? cli_fail(cli, e) : code;
}

CLI_COMMAND(snapshot) = {
    .name = "snapshot",
    .group = CLI_HERE,
    .summary = "keep the state of a sandbox's files, to go on from there",
    .usage = "take [SANDBOX] | ls | rm SNAPSHOT ...",
    .help =
        "Freezes what a sandbox that has ended changed in its copy of a directory. That takes\n"
        "the same time for any size: nothing is copied. Without a name: the sandbox that last\n"
        "worked on this directory. 'croft diff' and 'croft apply' of the sandbox show and apply\n"
        "what is in its snapshots as well. A name that no sandbox here has is one of the\n"
        "server's (CROFT_HOST, or the socket of the state directory): its snapshots hold the\n"
        "whole sandbox, which may run, and are listed and removed in the same way; 'from' of\n"
        "POST /croft/v1/sandboxes goes on from one, as does 'croft rollback --to'. Where no\n"
        "server answers, those of this state directory are listed by id, for 'croft run --from'.",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = snapshot_run,
};
