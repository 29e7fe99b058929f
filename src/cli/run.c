// SPDX-License-Identifier: Apache-2.0
/* run.c — croft run: a command in a sandbox, here and now. */
#include "host/run/below.h"
#include "host/run/left.h"
#include "host/run/run.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/own.h"
#include "base/passwd.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "cli/keep.h"
#include "cli/run_limits.h"
#include "cli/run_say.h"
#include "cli/state.h"
#include "host/changes/changes.h"
#include "host/images/config.h"
#include "host/images/images.h"
#include "host/overlay/overlay.h"
#include "host/launcher/box.h"
#include "host/snaps/snaps.h"
#include "host/snaps/whole.h"

/* As docker has them: ours failed, cannot be run, not found, 128+n. */
enum { RUN_OURS = 125 };

#define MORE_MAX  64
#define UNLIMITED "no limits\n" /* as it is noted that this was said */
#define PIDS      4096

struct run_options {
    bool json, no_workspace, no_new_privs, tty, discard;
    struct str name, root, image, from, workdir, user, workspace, require,
        more; /* more: repeatable, taken out first */
    uint64_t memory, disk, pids, nofile;
    double cpus;
};

static const struct cfg_row rows[] = {
    CFG_STR(run_options, workspace, "workspace", NULL,
            "Directory to work on, as a copy; default: the current one."),
    CFG_BOOL(run_options, no_workspace, "bare", false, "No workspace at all."),
    CFG_STR(run_options, more, "rw", NULL,
            "HOST[:INSIDE]: a directory or file to change for real. Without INSIDE: below "
            "/workspace if it lies in the workspace and HOST is relative, else at the path it has "
            "here. Repeatable; 8 with those of --ro and the workspace."),
    CFG_STR(run_options, more, "ro", NULL, "HOST[:INSIDE]: the same, to read only. Repeatable."),
    CFG_STR(run_options, more, "env", NULL,
            "NAME=VALUE, or NAME to pass it on. Nothing else of yours goes in. Repeatable.",
            .letter = 'e'),
    CFG_SIZE(run_options, memory, "memory", "0",
             "Most memory, such as 512M; 0: half of the machine's.", .letter = 'm'),
    CFG_SIZE(run_options, disk, "disk", "0",
             "Most disk space for what it writes to its copies, such as 2G; 0: all there is."),
    CFG_UINT(run_options, pids, "pids", 0, "Most processes and threads; 0: 4096."),
    CFG_DOUBLE(run_options, cpus, "cpus", 0, "Most processor time, such as 1.5; 0: all there is.",
               .letter = 'c'),
    CFG_UINT(run_options, nofile, "nofile", 0, "Most open files per process; 0: as here."),
    CFG_STR(run_options, workdir, "workdir", NULL,
            "Where the command starts; default /workspace, with --bare the image's, or /.",
            .letter = 'w'),
    CFG_STR(run_options, user, "user", NULL,
            "USER[:GROUP] it runs as, names or numbers inside; default: the image's, or root."),
    CFG_STR(run_options, root, "root", NULL,
            "A directory to be the root file system; default: this machine's system, as a copy."),
    CFG_STR(run_options, image, "image", NULL,
            "An image as the root file system, by name or id; 'croft image ls' lists them."),
    CFG_STR(run_options, from, "from", NULL,
            "A snapshot to go on from; its files are the workspace."),
    CFG_STR(run_options, name, "name", NULL, "What to call it; default: run- and eight letters.",
            .letter = 'n'),
    CFG_STR(run_options, require, "require", NULL,
            "Layers of isolation to insist on, such as ids,memory; 'croft doctor' lists them."),
    CFG_BOOL(run_options, discard, "discard", false, "Drop changes without listing them."),
    CFG_BOOL(run_options, no_new_privs, "no-new-privs", false,
             "sudo and set-uid programs gain nothing inside."),
    CFG_BOOL(run_options, tty, "tty", true, "Do not allocate a terminal."),
    CFG_BOOL(run_options, json, "json", false,
             "At the end, an object about the run on standard error."),
};

/* --- flags that may be given again --- */

struct more {
    const char *env[MORE_MAX + 8];
    size_t env_count;
    struct run_mount mounts[NATIVE_MOUNTS];
    size_t mount_count;
    struct arena *a;
    const char *const *envp;
};

static fallible add_env(struct more *m, const char *text)
{
    if (m->env_count >= ARRAY_LEN(m->env) - 1)
        return err_new(ERR_LIMIT, "--env: at most %d", MORE_MAX);
    if (strchr(text, '=')) {
        m->env[m->env_count++] = text;
        return NULL;
    }
    const char *value = cfg_env_get(m->envp, text);
    if (!value)
        return NULL; /* not set here, not set there */
    struct str pair = arena_printf(m->a, "%s=%s", text, value);
    TRY(arena_check(m->a));
    m->env[m->env_count++] = pair.p;
    return NULL;
}

static fallible add_mount(struct more *m, const char *text, enum native_mount_mode mode)
{
    const char *colon = strrchr(text, ':');

    if (m->mount_count == NATIVE_MOUNTS)
        return err_new(ERR_LIMIT, "at most %d mounts", NATIVE_MOUNTS);
    struct str host = colon ? str_n(text, (size_t)(colon - text)) : str_of(text);
    struct run_mount *to = &m->mounts[m->mount_count++];
    to->mode = mode;
    to->source = arena_cstr(m->a, host);
    to->target = colon ? colon + 1 : NULL;
    if (!to->target && to->source && *to->source == '/')
        to->target = to->source;
    return arena_check(m->a);
}

/* A mount without a target appears inside at the path it has here. Below the workspace (NULL: none)
 * it appears at the path the command knows. */
static fallible place_mounts(struct more *m, const char *workspace)
{
    size_t n = workspace ? strlen(workspace) : 0;
    char path[PATH_MAX];

    for (size_t i = 0; i < m->mount_count; i++) {
        struct run_mount *to = &m->mounts[i];
        if (to->target)
            continue;
        if (!realpath(to->source, path))
            return err_sys("'%s'", to->source);
        bool in = workspace && strncmp(path, workspace, n) == 0 && (path[n] == '/' || !path[n]);
        to->target = arena_printf(m->a, "%s%s", in ? RUN_WORKSPACE : "", in ? path + n : path).p;
    }
    return arena_check(m->a);
}

static fallible take_one(struct more *m, struct str name, const char *value)
{
    if (str_eq(name, STR("env")))
        return add_env(m, value);
    return add_mount(m, value, str_eq(name, STR("rw")) ? NATIVE_RW : NATIVE_RO);
}

static bool is_repeatable(struct str name)
{
    return str_eq(name, STR("env")) || str_eq(name, STR("rw")) || str_eq(name, STR("ro"));
}

static fallible take_more(struct more *m, int *argc, char **argv)
{
    int kept = 0, at = 0;

    for (; at < *argc && strcmp(argv[at], "--") != 0; at++) {
        struct str value = str_of(argv[at]), name;
        bool has = str_cut(&value, '=', &name);
        bool flag = str_starts(name, STR("--"));
        name = str_from(name, 2);
        if (!flag || !is_repeatable(name)) {
            argv[kept++] = argv[at];
            continue;
        }
        if (!has && (at + 1 >= *argc || strcmp(argv[at + 1], "--") == 0))
            return err_new(ERR_INVALID, "--" STR_FMT " needs a value", STR_ARG(name));
        TRY(take_one(m, name, has ? value.p : argv[++at]));
    }
    while (at < *argc)
        argv[kept++] = argv[at++];
    *argc = kept;
    return NULL;
}

/* Flags that were taken out left copies at the end. */
static const char *const *command_of(int argc, char **argv)
{
    argv[argc] = NULL;
    return (const char *const *)argv + 1;
}

/* --- what goes in --- */

static bool has_env(const struct more *m, const char *text)
{
    size_t n = strcspn(text, "=");

    for (size_t i = 0; i < m->env_count; i++) {
        if (strncmp(m->env[i], text, n) == 0 && m->env[i][n] == '=')
            return true;
    }
    return false;
}

/* A variable set with --env or by the image stays. */
static fallible add_default(struct more *m, const char *text)
{
    return text && has_env(m, text) ? NULL : add_env(m, text);
}

static fallible image_env(struct more *m, const struct image_config *image)
{
    struct str pair;

    for (const struct json *at = image->env ? image->env->first : NULL;
         image_config_next(&at, &pair);)
        TRY(add_default(m, arena_cstr(m->a, pair)));
    return arena_check(m->a);
}

/* HOME is known inside, where the users are. */
static fallible base_env(struct more *m, const char *user)
{
    static const char *const pass[] = {"TERM", "COLORTERM", "LANG", "LC_ALL", "TZ", "NO_COLOR"};
    struct str rest = str_of(user), name;
    uint64_t number;

    TRY(add_default(m, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
    str_cut(&rest, ':', &name);
    if (!str_to_u64(name, &number))
        TRY(add_default(m, arena_printf(m->a, "USER=" STR_FMT, STR_ARG(name)).p));
    for (size_t i = 0; i < ARRAY_LEN(pass); i++)
        TRY(add_default(m, pass[i]));
    return arena_check(m->a);
}

static bool is_home(const char *path)
{
    const char *home = getenv("HOME");
    struct passwd_user us;
    struct err *e = passwd_by_uid(PASSWD_ETC, geteuid(), &us);
    bool yes = (home && strcmp(path, home) == 0) || (!e && strcmp(path, us.home) == 0);

    err_free(e);
    return yes;
}

/* Hides croft's own state: it must not be seen inside, nor copied, for a copy may be applied
 * later. */
static fallible hide_state(struct more *m, const char *workspace, const char *state)
{
    size_t n = strlen(workspace);
    char real[PATH_MAX];

    if (realpath(state, real))
        state = real;
    if (n == 1) /* "/" */
        n = 0;
    if (strncmp(state, workspace, n) != 0 || (state[n] != '/' && state[n]))
        return NULL;
    if (!state[n])
        return err_new(ERR_INVALID, "'%s' is where croft keeps its own", workspace);
    if (m->mount_count == NATIVE_MOUNTS)
        return err_new(ERR_LIMIT, "at most %d mounts, one of which hides '%s'", NATIVE_MOUNTS,
                       state);
    m->mounts[m->mount_count++] =
        (struct run_mount){.source = arena_printf(m->a, "%s/" BOX_PLACE, state).p,
                           .target = arena_printf(m->a, RUN_WORKSPACE "%s", state + n).p,
                           .mode = NATIVE_RO};
    return arena_check(m->a);
}

/* A copy-on-write view of `/` would show a sandbox everything there is. */
static fallible add_workspace(struct more *m, const struct run_options *o, const char *state)
{
    static const char *const never[] = {"/",     "/etc", "/proc", "/sys", "/dev",
                                        "/root", "/var", "/run",  "/home"};
    char path[4096];

    if (o->no_workspace)
        return place_mounts(m, NULL);
    if (o->workspace.p && !realpath(o->workspace.p, path))
        return err_sys("workspace '%s'", o->workspace.p);
    if (!o->workspace.p && !getcwd(path, sizeof path))
        return err_sys(
            "this directory cannot be found any more, so go to one that is there, or say "
            "--workspace DIR or --bare");
    bool too_much = is_home(path);
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        too_much |= strcmp(path, never[i]) == 0;
    if (too_much && !o->workspace.p)
        return err_new(ERR_INVALID,
                       "this is '%s': too much to show to a sandbox unasked; go to a project, "
                       "or say --workspace DIR or --bare",
                       path);
    if (m->mount_count == NATIVE_MOUNTS)
        return err_new(ERR_LIMIT, "at most %d mounts, the workspace included", NATIVE_MOUNTS);
    TRY(place_mounts(m, path));
    memmove(m->mounts + 1, m->mounts, m->mount_count * sizeof *m->mounts);
    m->mount_count++;
    m->mounts[0] = (struct run_mount){
        .source = arena_cstr(m->a, str_of(path)), .target = RUN_WORKSPACE, .mode = NATIVE_OVERLAY};
    return hide_state(m, path, state);
}

/* --- what to say --- */

/* Looks only at changes that are kept, so a run without changes pays nothing. A file written back
 * as it was is no change, and is dropped. */
static fallible count_changes(struct cli *cli, const char *id, struct changes *sum, bool *kept)
{
    own_fd state = -1;
    own_done(overlays) k = {.dir = -1};
    uint64_t keep_ns;

    TRY(cli_open_state(cli, &state));
    TRY(overlay_open(state, id, NULL, &k));
    for (size_t i = 0; i < k.count; i++) {
        struct changes_source src = overlay_source(&k.layers[i]);
        struct changes c;
        TRY(changes_scan(&src, &c));
        for (size_t n = 0; n < CHANGE_KINDS; n++)
            sum->kinds[n] += c.kinds[n];
        sum->count += c.count;
        changes_done(&c);
    }
    if (sum->count) {
        err_free(keep_expire(cli, state, &keep_ns)); /* 'croft diff --list' says it */
        return NULL;
    }
    TRY(overlay_drop(state, &k, OVERLAY_NOTHING));
    *kept = false;
    return NULL;
}

/* --- what the store has --- */

struct stored {
    struct image image;
    struct snap snap;
};

/* Warns when the copy would mix files of two directories. It may be wanted, and does no harm before
 * an apply, which refuses it. */
static fallible check_directory(const struct cli *cli, const char *name, const struct snap *snap)
{
    own_fd dir = open(snap->source.p, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool other;

    if (dir < 0)
        return err_sys("the snapshot's directory '%s'", snap->source.p);
    TRY(overlay_is_other(snap->which, dir, &other));
    if (other)
        fd_print(cli->err,
                 "croft run: '%s' is another directory than the one snapshot '%s' was made of: its "
                 "changes lie over this one's files now, and 'croft apply' will want --force\n",
                 snap->source.p, name);
    return NULL;
}

/* Finds a snapshot of a directory, or of a whole sandbox, which contains the directory too. */
static fallible find_snapshot(const struct cli *cli, int state, struct arena *a,
                              struct run_options *o, struct stored *ret, struct run_spec *s)
{
    own_fd whole = -1;
    struct err *e = snaps_find(state, o->from.p, a, &ret->snap);

    if (!e) {
        s->from = &ret->snap;
        ret->snap.source = o->workspace = arena_copy(a, ret->snap.source);
        TRY(arena_check(a));
        return check_directory(cli, o->from.p, &ret->snap);
    }
    if (err_code(e) != ERR_NOT_FOUND)
        return e;
    struct err *neither = whole_open(state, o->from.p, &whole);
    if (neither) {
        err_free(neither);
        return e;
    }
    err_free(e);
    s->whole = o->from.p;
    o->no_workspace = true;
    return NULL;
}

static fallible find_stored(struct cli *cli, struct arena *a, struct run_options *o,
                            struct stored *ret, struct run_spec *s)
{
    own_fd state = -1;

    if (!o->image.p && !o->from.p)
        return NULL;
    if (o->image.p && o->root.p)
        return err_new(ERR_INVALID, "--root and --image are two root file systems; give one");
    if (o->from.p && (o->no_workspace || o->workspace.p))
        return err_new(ERR_INVALID,
                       "--from brings its own workspace: not with --workspace, --bare");
    TRY(cli_open_state(cli, &state));
    if (o->image.p) {
        TRY(images_find(state, o->image.p, a, &ret->image));
        s->image = &ret->image;
    }
    if (o->from.p)
        TRY(find_snapshot(cli, state, a, o, ret, s));
    return arena_check(a);
}

/* The image's default: its entry point and command, or a shell. */
static fallible image_command(struct arena *a, const struct image *image,
                              const char *const **ret_argv)
{
    static const char *const keys[] = {"Entrypoint", "Cmd"};
    const char **argv = arena_alloc(a, (MORE_MAX + 2) * sizeof *argv);
    size_t n = 0;

    if (!argv)
        return arena_check(a);
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        const struct json *list = json_get(image->config, str_of(keys[k]));
        for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->count; i++) {
            const struct json *word = json_at(list, i);
            if (n == MORE_MAX || word->type != JSON_STR)
                return err_new(ERR_INVALID, "the image's command is not one; say one after '--'");
            argv[n++] = arena_cstr(a, word->s);
        }
    }
    if (!n)
        argv[n++] = "sh";
    argv[n] = NULL;
    *ret_argv = argv;
    return arena_check(a);
}

static const char *image_dir(struct arena *a, struct str dir)
{
    return arena_printf(a, "%s" STR_FMT, dir.p[0] == '/' ? "" : "/", STR_ARG(dir)).p;
}

static fallible run_fill(struct cli *cli, struct arena *a, const struct run_options *o,
                         struct more *m, struct run_spec *s)
{
    char name[RNG_HEX_LEN + 1];
    struct str state = {0};
    struct image_config image = {0};

    if (s->image)
        TRY_WRAP(image_config_read(s->image->config, &image), "the image's configuration");
    TRY(image_env(m, &image));
    if (s->image && !s->argv)
        TRY(image_command(a, s->image, &s->argv));
    s->user = o->user.p ? o->user.p : image.user.p ? arena_cstr(a, image.user) : "root";
    TRY(arena_check(a));
    TRY(base_env(m, s->user));
    TRY(cli_state_path(cli, a, &state));
    TRY(add_workspace(m, o, state.p));
    const struct run_limits limits = {.memory = o->memory,
                                      .disk = o->disk,
                                      .pids = o->pids,
                                      .nofile = o->nofile,
                                      .cpus = o->cpus};
    TRY(run_limits_check(&limits, state.p));
    rng_hex(rng_system(), name);
    s->state = state.p;
    s->id = o->name.p ? o->name.p : arena_printf(a, "run-%.8s", name).p;
    s->root = o->root.p;
    s->workdir = o->workdir.p                   ? o->workdir.p
                 : !o->no_workspace || s->whole ? RUN_WORKSPACE
                 : image.working_dir.p          ? image_dir(a, image.working_dir)
                                                : "/";
    s->mounts = m->mounts;
    s->mount_count = m->mount_count;
    s->env = m->env;
    s->limits = (struct native_limits){.memory_bytes = o->memory,
                                       .disk_bytes = o->disk,
                                       .pids = (uint32_t)o->pids,
                                       .cpu_milli = (uint32_t)(o->cpus * 1000),
                                       .nofile = (uint32_t)o->nofile};
    s->otherwise = (struct native_limits){.memory_bytes = run_all_memory() / 2, .pids = PIDS};
    s->tty = o->tty && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    s->no_new_privs = o->no_new_privs;
    s->keep = !o->discard;
    s->last = true;
    s->require = o->require;
    return arena_check(a);
}

static bool asks_limit(const struct run_options *o)
{
    return o->memory || o->disk || o->pids || o->nofile || o->cpus > 0;
}

/* The first run on a machine, or after it changed, takes seconds: say why. */
static void run_announce(void *arg)
{
    struct cli *cli = arg;

    err_free(fd_write_all(cli->err, /* nowhere left to report it */
                          STR("croft run: making layers of this machine's system, once; this takes "
                              "a few seconds\n")));
}

static int run_command(struct cli *cli, int argc, char **argv)
{
    static const char *const shell[] = {"bash", NULL};
    own_done(arena) a;
    struct run_options o;
    struct run_result r;
    struct run_spec s = {.in = STDIN_FILENO, .out = STDOUT_FILENO, .err = STDERR_FILENO};

    arena_init(&a, 8u << 20);
    struct more m = {.a = &a, .envp = cli->envp};
    struct err *e = take_more(&m, &argc, argv);
    if (!e)
        e = cli_flags(cli, &a, &o, &argc, argv);
    if (!e && argc > 0 && strcmp(argv[0], "--") != 0)
        e = err_new(ERR_INVALID, "'%.80s': put the command after '--'", argv[0]);
    if (e)
        return cli_misuse(cli, e), RUN_OURS;
    struct stored stored;
    e = find_stored(cli, &a, &o, &stored, &s);
    s.argv = argc > 1 ? command_of(argc, argv) : s.image ? NULL : shell;
    if (!e)
        e = run_fill(cli, &a, &o, &m, &s);
    if (!e && !o.json) {
        left_tell(s.state, cli->err);
        below_tell(cli->err, &s);
    }
    s.on_making = run_announce;
    s.arg = cli;
    if (!e)
        e = run_limits_explain(run_sandbox(&s, &r), s.state);
    if (e)
        return cli_fail(cli, e), RUN_OURS;
    struct changes sum = {0};
    e = r.kept ? count_changes(cli, s.id, &sum, &r.kept) : NULL;
    const struct changes *known = e || (o.discard && !r.kept) ? NULL : &sum;
    err_free(e); /* 'croft diff' says why */
    if (r.unread && isatty(cli->err))
        return r.exit_code; /* it would wait there for good */
    if (o.json)
        run_say_json(cli->err, &s, &r, known);
    else {
        left_tell(s.state, cli->err);
        r.unlimited = r.unlimited && (asks_limit(&o) || left_is_new(s.state, STR(UNLIMITED)));
        run_say(cli->err, &s, &r, known);
    }
    return r.exit_code;
}

CLI_COMMAND(run_command) = {
    .name = "run",
    .group = CLI_HERE,
    .summary = "run a command, or a shell, in a sandbox of its own",
    .usage = "[FLAG ...] [-- COMMAND ...]",
    .help =
        "Without a command: a shell. The current directory is /workspace inside, as a copy: the\n"
        "command may wreck it, and at the end you are told what changed and how to keep it. The\n"
        "rest of the system is this machine's own /usr, as a copy too, with no network, none of\n"
        "your files, variables, processes or devices.\n"
        "\n"
        "  croft run                              a shell to try things in\n"
        "  croft run -- make test                 builds here, changes nothing here\n"
        "  croft run --memory 512M --pids 100 -- ./untrusted\n"
        "  croft run --rw out:/workspace/out -- ./generate    out/ is changed for real\n"
        "  croft run --env TOKEN -- ./script      passes one variable on\n"
        "  croft run --image debian:12            another system, see croft image\n"
        "  croft run --from SNAPSHOT              goes on where croft snapshot was taken\n"
        "\n"
        "Exit code: the command's; 128+n when signal n ended it; 125 when croft failed,\n"
        "126 when the command cannot be run, 127 when there is none of that name.",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = run_command,
};
