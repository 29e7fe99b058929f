// SPDX-License-Identifier: Apache-2.0
/* changes.c — croft diff, apply and rollback: what a sandbox did to its copy of a directory. */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "cli/changes_list.h"
#include "cli/cli.h"
#include "cli/far.h"
#include "cli/patch.h"
#include "cli/state.h"
#include "host/changes/changes.h"
#include "host/overlay/overlay.h"

#define PRINT_AT (1u << 20)

struct changes_options {
    bool json, force, list, patch;
    struct str to;
};

static const struct cfg_row rows[] = {
    CFG_BOOL(changes_options, list, "list", false,
             "Every sandbox here that has left changes, the last one first: name, age, directory, "
             "how much changed."),
    CFG_BOOL(
        changes_options, patch, "patch", false,
        "Also the lines that changed, as patch(1) takes them. A file that is binary or over 1 MiB "
        "is only named.",
        .letter = 'p'),
    CFG_BOOL(changes_options, json, "json", false, "Print a JSON object; with --list an array."),
};
static const struct cfg_row apply_rows[] = {
    CFG_BOOL(changes_options, force, "force", false,
             "Apply conflicts too, and apply when another directory has the name now: the "
             "sandbox's version wins."),
    CFG_BOOL(changes_options, json, "json", false, "Print a JSON object."),
};

static const struct cfg_row rollback_rows[] = {
    CFG_STR(changes_options, to, "to", NULL,
            "For a server's sandbox: go back to this snapshot, not to the beginning."),
    CFG_BOOL(changes_options, json, "json", false, "Print a JSON object."),
};

struct job {
    struct cli *cli;
    struct changes_options o;
    const char *id;
    const char *const *paths; /* NULL: all */
    const char *const *words; /* id and paths, as they were given */
    int state;
    struct overlays kept;
    bool done;        /* something was applied, whatever failed then */
    struct err *deep; /* not all could be looked at */
    int code;         /* of what was printed before the end */
    struct buf out;
    struct jw w;
};

/* --- what to do with one directory --- */

/* The rest is done all the same. */
static void note_deep(struct job *j, const struct overlay_layer *l, const struct changes *c)
{
    struct err *e = err_wrap(changes_refuse_deep(c), "'%s'", l->path);

    if (j->deep)
        err_free(e);
    else
        j->deep = e;
}

/* Printed as it goes: it may be more than there is memory for. */
static fallible patch_layer(struct job *j, const struct overlay_layer *l, const struct changes *c)
{
    struct changes_source src = overlay_source(l);

    for (size_t i = 0; i < c->count && !j->code; i++) {
        changes_put_line(&j->out, &c->list[i]);
        TRY(patch_put(&j->out, &src, &c->list[i]));
        if (j->out.len < PRINT_AT)
            continue;
        j->code = cli_put(j->cli, &j->out);
        buf_reset(&j->out);
    }
    return NULL;
}

static fallible check_paths(const struct job *j, const struct changes *c, const char *so)
{
    /* of several directories none need have them all */
    for (size_t i = 0; j->paths && j->kept.count == 1 && j->paths[i]; i++)
        if (!changes_have(c, str_of(j->paths[i])))
            return err_new(ERR_NOT_FOUND,
                           "'%.200s' is not among the changes%s; 'croft diff %s' lists them",
                           j->paths[i], so, j->kept.id);
    return NULL;
}

static fallible diff_layer(struct job *j, const struct overlay_layer *l, struct changes *c)
{
    note_deep(j, l, c);
    if (j->o.patch)
        return patch_layer(j, l, c);
    if (!j->o.json)
        changes_put_text(&j->out, c);
    return NULL;
}

static fallible apply_layer(struct job *j, const struct overlay_layer *l, struct changes *c)
{
    struct changes_source src = overlay_source(l);
    struct changes_apply how = {.force = j->o.force, .paths = j->paths};

    TRY(check_paths(j, c, ", so none were applied"));
    struct err *e = err_wrap(changes_apply(&src, c, &how), "'%s'", l->path);
    if (how.deep && !e)
        note_deep(j, l, c);
    j->done |= how.applied > 0;
    if (j->o.json) {
        jw_uint(&j->w, "applied", how.applied);
        jw_uint(&j->w, "skipped", how.skipped);
        if (how.mounted)
            jw_uint(&j->w, "mounted", how.mounted);
        if (how.deep)
            jw_uint(&j->w, "deep", how.deep);
    }
    if (j->o.json || e)
        return e;
    buf_addf(&j->out, "applied %zu to '%s'%s", how.applied, l->path,
             l->other ? ", another directory than the sandbox worked on" : "");
    buf_add_cstr(&j->out, " from ");
    overlay_put_run(&j->out, &j->kept.run);
    changes_put_skipped(&j->out, how.skipped - how.deep, how.mounted);
    buf_add_char(&j->out, '\n');
    return NULL;
}

typedef struct err *(*layer_fn)(struct job *j, const struct overlay_layer *l, struct changes *c);

static fallible one_layer(struct job *j, const struct overlay_layer *l, layer_fn act)
{
    struct changes_source src = overlay_source(l);
    struct changes c;

    TRY_WRAP(changes_scan(&src, &c), "'%s'", l->path);
    struct err *none = act == diff_layer ? check_paths(j, &c, "") : NULL;
    if (none) {
        changes_done(&c);
        return none;
    }
    if (act == diff_layer)
        changes_keep(&c, j->paths);
    if (j->o.json) {
        jw_begin_object(&j->w, NULL);
        jw_cstr(&j->w, "directory", l->path);
        if (l->other)
            jw_bool(&j->w, "other_directory", true);
        changes_put_json(&j->w, &c);
    } else if (j->kept.count > 1)
        buf_addf(&j->out, "%s:\n", l->path);
    struct err *e = act(j, l, &c);
    if (j->o.json)
        jw_end_object(&j->w);
    changes_done(&c);
    return e;
}

/* On the side: a list may be read by a program. */
static void warn_of_others(const struct job *j)
{
    for (size_t i = 0; i < j->kept.count; i++)
        if (j->kept.layers[i].other)
            fd_print(j->cli->err,
                     "croft diff: '%s': " OVERLAY_OTHER ": this is what would change there\n",
                     j->kept.layers[i].path);
}

static fallible refuse_others(const struct job *j)
{
    for (size_t i = 0; i < j->kept.count; i++)
        if (j->kept.layers[i].other && !j->o.force)
            return err_wrap(overlay_refuse_other(), "'%s'", j->kept.layers[i].path);
    return NULL;
}

static fallible all_layers(struct job *j, layer_fn act)
{
    struct err *e = NULL;

    jw_init(&j->w, &j->out, JW_SPACED);
    if (j->o.json) {
        jw_begin_object(&j->w, NULL);
        changes_put_run(&j->w, &j->kept.run);
        jw_begin_array(&j->w, "directories");
    }
    for (size_t i = 0; !e && i < j->kept.count; i++)
        e = one_layer(j, &j->kept.layers[i], act);
    if (!j->o.json)
        return e;
    jw_end_array(&j->w);
    jw_end_object(&j->w);
    buf_add_char(&j->out, '\n');
    return e;
}

/* --- the three commands --- */

/* On the side, as above. A user that named it knows. */
static void say_which(const struct job *j)
{
    own_done(buf) said;

    buf_init(&said, 1u << 16);
    buf_add_cstr(&said, "croft diff: ");
    overlay_put_run(&said, &j->kept.run);
    buf_add_char(&said, '\n');
    err_free(fd_write_all(j->cli->err, buf_str(&said)));
}

static fallible changes_diff(struct job *j)
{
    if (!j->o.json) {
        warn_of_others(j);
        if (!j->id)
            say_which(j);
    }
    return all_layers(j, diff_layer);
}

static fallible changes_apply_run(struct job *j)
{
    TRY(refuse_others(j));
    overlay_begin_notes(&j->kept);
    return all_layers(j, apply_layer);
}

static fallible changes_rollback(struct job *j)
{
    if (j->o.to.p)
        return err_new(ERR_UNSUPPORTED,
                       "--to is for sandboxes of a server; 'croft run --from' goes on from a "
                       "snapshot here");
    TRY(overlay_drop(j->state, &j->kept, OVERLAY_DROPPED));
    if (!j->o.json) {
        buf_add_cstr(&j->out, "dropped the changes of ");
        overlay_put_run(&j->out, &j->kept.run);
        buf_add_char(&j->out, '\n');
        return NULL;
    }
    jw_init(&j->w, &j->out, JW_SPACED);
    JW_OBJECT(&j->w, NULL) {
        changes_put_run(&j->w, &j->kept.run);
        jw_bool(&j->w, "dropped", true);
    }
    buf_add_char(&j->out, '\n');
    return NULL;
}

/* The last run left nothing to show, apply or drop; an older one is not meant. */
static fallible say_nothing_left(struct job *j, const struct overlay_run *run)
{
    if (j->o.json) {
        jw_init(&j->w, &j->out, JW_SPACED);
        JW_OBJECT(&j->w, NULL) {
            changes_put_run(&j->w, run);
            JW_ARRAY(&j->w, "directories") {
            }
        }
        buf_add_char(&j->out, '\n');
        return NULL;
    }
    buf_add_cstr(&j->out, "the last run here, ");
    overlay_put_run(&j->out, run);
    buf_add_cstr(&j->out, run->end == OVERLAY_NOTHING ? ", changed nothing\n"
                                                      : ", threw its changes away\n");
    return NULL;
}

static fallible do_last(struct job *j, struct err *(*act)(struct job *))
{
    char here[PATH_MAX];
    struct overlay_run run;

    TRY(overlay_last(j->state, getcwd(here, sizeof here), &run));
    if (run.end != OVERLAY_KEPT)
        return say_nothing_left(j, &run);
    TRY((act == changes_rollback ? overlay_open_box : overlay_open)(j->state, run.id, NULL,
                                                                    &j->kept));
    return act(j);
}

static bool last_run_has(struct job *j, const char *path)
{
    own_done(overlays) k = {.dir = -1};
    char here[PATH_MAX];
    bool has = false;
    struct err *e = overlay_open(j->state, NULL, getcwd(here, sizeof here), &k);

    for (size_t i = 0; !e && !has && i < k.count; i++) {
        struct changes_source src = overlay_source(&k.layers[i]);
        struct changes c;
        e = changes_scan(&src, &c);
        has = !e && changes_have(&c, str_of(path));
        if (!e)
            changes_done(&c);
    }
    err_free(e); /* the name's own error is told */
    return has;
}

/* One that is not here may be a path that the last run changed, or a server's. */
static fallible do_named(struct job *j, struct err *(*act)(struct job *), far_fn *far)
{
    struct far_ask there = {.json = j->o.json,
                            .force = j->o.force,
                            .patch = j->o.patch,
                            .paths = j->paths,
                            .to = j->o.to,
                            .rest = &j->deep};
    struct err *e = (act == changes_rollback ? overlay_open_box : overlay_open)(j->state, j->id,
                                                                                NULL, &j->kept);

    if (e && act == changes_diff && last_run_has(j, j->id)) {
        err_free(e);
        j->id = NULL;
        j->paths = j->words;
        return do_last(j, act);
    }
    return e ? far_try(j->cli, &there, j->id, far, &j->out, e) : act(j);
}

static fallible do_here_or_there(struct job *j, struct err *(*act)(struct job *), far_fn *far)
{
    TRY(cli_open_state(j->cli, &j->state));
    if (j->o.list)
        return changes_list(j->cli, j->state, j->o.json, &j->out);
    return j->id ? do_named(j, act, far) : do_last(j, act);
}

static int do_job(struct job *j, struct err *(*act)(struct job *), far_fn *far)
{
    buf_init(&j->out, 1u << 30);
    struct err *e = do_here_or_there(j, act, far);
    int code = e && !(j->o.json && j->done) ? CLI_OK : cli_put(j->cli, &j->out);
    if (e)
        err_free(take(&j->deep));
    else
        e = take(&j->deep);
    code = code ? code : j->code;
    if (e)
        code = cli_fail(j->cli, e);
    overlays_done(&j->kept);
    own_close(j->state);
    buf_done(&j->out);
    return code;
}

static int changes_run(struct cli *cli, int argc, char **argv, struct err *(*act)(struct job *),
                       far_fn *far)
{
    bool takes_paths = act != changes_rollback;
    own_done(arena) a;
    struct job j = {.cli = cli, .state = -1, .kept.dir = -1};

    arena_init(&a, 1u << 20);
    struct err *e = cli_flags(cli, &a, &j.o, &argc, argv);
    if (!e && argc && j.o.list)
        e = err_new(ERR_INVALID, "--list is of all sandboxes: name none");
    if (!e && j.o.patch && (j.o.json || j.o.list))
        e = err_new(ERR_INVALID, "--patch prints lines of one run: not with --json or --list");
    if (!e && argc > 1 && !takes_paths)
        e = cli_no_more(argc - 1, argv + 1);
    if (e)
        return cli_misuse(cli, e);
    j.id = argc ? argv[0] : NULL;
    argv[argc] = NULL;
    j.words = (const char *const *)argv;
    if (argc > 1) {
        j.paths = (const char *const *)argv + 1;
    }
    return do_job(&j, act, far);
}

static int run_diff(struct cli *cli, int argc, char **argv)
{
    return changes_run(cli, argc, argv, changes_diff, far_diff);
}

static int run_apply(struct cli *cli, int argc, char **argv)
{
    return changes_run(cli, argc, argv, changes_apply_run, far_apply);
}

static int run_rollback(struct cli *cli, int argc, char **argv)
{
    return changes_run(cli, argc, argv, changes_rollback, far_rollback);
}

CLI_COMMAND(changes_diff) = {
    .name = "diff",
    .group = CLI_HERE,
    .summary = "list what a sandbox changed in its copy of a directory",
    .usage = "[SANDBOX | --list] [PATH ...] [--patch] [--json]",
    .help =
        "Without a name: the last run over this directory, whatever it changed. --list shows\n"
        "all sandboxes whose changes are kept, those of a 'croft run' that was killed too, and\n"
        "when they go ('run.keep' in the settings). Each change is one line that begins with a\n"
        "letter. PATHs show those and what is below them; --patch shows lines:\n"
        "\n"
        "  A added          M modified     P permissions changed\n"
        "  T of another type               R renamed      D deleted\n"
        "  ! not applied: a device, socket or fifo, not readable, or too deep\n"
        "\n"
        "A '!' after the letter is a conflict: the directory's own file changed too since the\n"
        "sandbox began, is gone or was moved, or a file system is mounted there. Sandboxes do\n"
        "not see such a file system, and apply does not touch it. A server's sandbox is named by\n"
        "its id or session: all its changes are listed, also those outside mounted directories.\n"
        "It is paused while they are read.",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = run_diff,
};

CLI_COMMAND(changes_apply_run) = {
    .name = "apply",
    .group = CLI_HERE,
    .summary = "put a sandbox's changes into the directory itself",
    .usage = "[SANDBOX [PATH ...]] [--force] [--json]",
    .help =
        "Applies all changes, or those of the paths named, as 'croft diff' shows them. A file\n"
        "is old or new, never half. Owners, set-id bits and attributes from the sandbox are\n"
        "not applied; nothing outside the directory is touched. When the directory's own files\n"
        "changed as well, or another directory has its name now, nothing is done without\n"
        "--force. The changes stay in the sandbox until 'croft rollback' drops it.\n"
        "\n"
        "The changes in a server's sandbox are those of its copy-on-write mounts. They go into\n"
        "the server's directories where [mount.NAME] of its settings grants 'apply'. Paths\n"
        "are those in the sandbox.",
    .options = {apply_rows, ARRAY_LEN(apply_rows), NULL},
    .run = run_apply,
};

CLI_COMMAND(changes_rollback) = {
    .name = "rollback",
    .group = CLI_HERE,
    .summary = "drop a sandbox's changes",
    .usage = "[SANDBOX] [--to SNAPSHOT] [--json]",
    .help =
        "The directory is as it was all along: only the sandbox's copy goes. A server's sandbox,\n"
        "which must be stopped ('croft stop' keeps its files), stays: its files are again as\n"
        "when it began, or as in a snapshot, and 'croft resume' goes on from there.",
    .options = {rollback_rows, ARRAY_LEN(rollback_rows), NULL},
    .run = run_rollback,
};
