// SPDX-License-Identifier: Apache-2.0
/* serve.c — croft serve: the Runtime API and its sandboxes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "host/config/settings.h"
#include "host/server/backing.h"
#include "host/server/server.h"
#include "sandbox/backend.h"

#define KEY_BYTES 4096

extern const char croft_guest_start[], croft_guest_end[];

struct log_settings {
    struct str level, format;
};

static const struct cfg_row log_rows[] = {
    CFG_STR(log_settings, level, "log.level", "info", "How much to report.", .flag = "log-level",
            .at_start = true, .choices = "debug|info|warn|error|off"),
    CFG_STR(log_settings, format, "log.format", "auto",
            "Form of the log: auto is text on a terminal and JSON lines otherwise.",
            .flag = "log-format", .at_start = true, .choices = "auto|text|json"),
};
CFG_TABLE(log) = {log_rows, ARRAY_LEN(log_rows), .size = sizeof(struct log_settings)};

struct serve_options {
    struct str config, state, api_key_file;
};

static const struct cfg_row rows[] = {
    CFG_STR(serve_options, state, "state", NULL,
            "Where sandboxes, rows and keys are kept; the same as --state-dir."),
    CFG_STR(serve_options, api_key_file, "api-key-file", NULL,
            "A file with the first key; or set CROFT_API_KEY."),
    CFG_STR(serve_options, config, "config", NULL,
            "Read this file as well: TOML, or YAML or JSON by its name."),
};

static fallible read_key(const char *flag, struct str path, struct arena *a, struct str *ret_key)
{
    own_done(buf) file;

    buf_init(&file, KEY_BYTES);
    TRY_WRAP(fd_read_file(path.p, &file), "%s", flag);
    *ret_key = arena_copy(a, str_trim(buf_str(&file)));
    TRY(arena_check(a));
    return ret_key->len ? NULL
                        : err_new(ERR_INVALID, "%s '" STR_FMT "' is empty", flag, STR_ARG(path));
}

/* The key of --api-key-file, else CROFT_API_KEY; without both the setting counts. */
static fallible find_key(const struct serve_options *o, struct arena *a, const char *const *envp,
                         struct str *ret_key)
{
    const char *named = cfg_env_get(envp, "CROFT_API_KEY");

    *ret_key = (struct str){0};
    if (named && !*named)
        return err_new(ERR_INVALID, "CROFT_API_KEY is empty: give it a key, or unset it to serve "
                                    "this machine alone without one");
    if (named)
        *ret_key = str_of(named);
    return o->api_key_file.p ? read_key("--api-key-file", o->api_key_file, a, ret_key) : NULL;
}

/* A backend's warning is printed whatever the log leaves out. */
static fallible check_backend(struct cli *cli, const struct settings *s)
{
    const struct sbx_backend *b = backing_row(s);

    if (b->warning)
        fd_print(cli->err, "croft serve: backend '%s': %s\n", b->name, b->warning);
    return backing_check(s);
}

static fallible find_state(const struct serve_options *o, const struct settings *s, struct arena *a,
                           const char *const *envp, struct str *ret_path)
{
    char here[4096];

    if (!o->state.p)
        return settings_state_dir(s, a, envp, geteuid() == 0, ret_path);
    *ret_path = o->state;
    if (o->state.len && o->state.p[0] == '/')
        return NULL;
    if (!getcwd(here, sizeof here))
        return err_sys("where are we");
    *ret_path = arena_printf(a, "%s/" STR_FMT, here, STR_ARG(o->state));
    return arena_check(a);
}

/* One reading of files, environment and flags; each SIGHUP makes another. Reading takes the flags
 * out of an argv, so each reading has a copy. The server borrows from all of them until it ends. */
#define ARGS_MAX 64
struct reading {
    struct cli *cli;
    char *argv[ARGS_MAX + 1];
    int argc;
    struct settings settings;
    struct serve_options options;
    struct reading *next; /* the newest is the first's next */
};

/* *ret_usage: an error is in what was typed, not in what was read. */
static fallible read_all(struct reading *r, bool *ret_usage)
{
    struct cfg_table options = {rows, ARRAY_LEN(rows), &r->options};
    char *argv[ARGS_MAX + 1];
    int argc = r->argc;

    memcpy(argv, r->argv, sizeof argv);
    *ret_usage = true;
    TRY(settings_begin(&r->settings, &options, &argc, argv));
    TRY(cli_no_more(argc, argv));
    *ret_usage = false;
    return settings_load(&r->settings, r->options.config, r->cli->envp);
}

static fallible serve_reload_settings(void *arg, const struct settings **ret_settings)
{
    struct reading *first = arg, *r = mem_new(sizeof *r);
    bool usage;

    r->cli = first->cli;
    r->argc = first->argc;
    memcpy(r->argv, first->argv, sizeof r->argv);
    struct err *e = read_all(r, &usage);
    if (e) {
        settings_done(&r->settings);
        free(r);
        return e;
    }
    r->next = first->next;
    first->next = r;
    *ret_settings = &r->settings;
    return NULL;
}

static void free_readings(struct reading *r)
{
    for (struct reading *next; r; r = next) {
        next = r->next;
        settings_done(&r->settings);
        free(r);
    }
}

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@+"

/* The command as it was typed; for a person to copy. */
static const char *again_of(struct reading *r)
{
    struct str all = STR("croft serve");

    for (int i = 0; i < r->argc; i++) {
        struct str arg = str_of(r->argv[i]);
        bool plain = arg.len && strspn(arg.p, PLAIN) == arg.len;
        const char *quote = plain ? "" : "\"";
        all = arena_printf(&r->settings.arena, STR_FMT " %s" STR_FMT "%s", STR_ARG(all), quote,
                           STR_ARG(arg), quote);
    }
    return arena_cstr(&r->settings.arena, all);
}

static fallible serve_begin(struct cli *cli, struct reading *r)
{
    const struct serve_options *o = &r->options;
    const struct settings *s = &r->settings;
    struct arena *a = &r->settings.arena;
    const struct log_settings *log = settings_of(s, CFG_TABLE_OF(log));
    enum log_level level = LOG_INFO;
    enum log_format format = LOG_AUTO;
    struct str state;
    struct server_config c = {.settings = s,
                              .envp = cli->envp,
                              .out = cli->out,
                              .err = cli->err,
                              .again = again_of(r),
                              .reload = serve_reload_settings,
                              .arg = r};

    log_level_parse(log->level, &level);
    if (!str_eq(log->format, STR("auto")))
        format = str_eq(log->format, STR("text")) ? LOG_TEXT : LOG_JSON;
    log_setup(cli->err, level, format);
    TRY(find_key(o, a, cli->envp, &c.api_key));
    TRY(check_backend(cli, s));
    c.guest = str_n(croft_guest_start, (size_t)(croft_guest_end - croft_guest_start));
    TRY(find_state(o, s, a, cli->envp, &state));
    while (state.len > 1 && state.p[state.len - 1] == '/')
        state.len--;
    c.state = arena_cstr(a, state);
    TRY(arena_check(a));
    return server_run(&c);
}

static int cli_serve_run(struct cli *cli, int argc, char **argv)
{
    bool usage = true;

    if (argc > ARGS_MAX)
        return cli_misuse(cli, err_new(ERR_INVALID, "more than %d arguments", ARGS_MAX));
    struct reading *r = mem_new(sizeof *r);
    r->cli = cli;
    r->argc = argc;
    memcpy(r->argv, argv, (size_t)argc * sizeof *argv);
    struct err *e = read_all(r, &usage);
    if (!e)
        e = serve_begin(cli, r);
    int code = e && usage ? cli_misuse(cli, e) : cli_fail(cli, e);
    free_readings(r);
    return code;
}

CLI_COMMAND(serve_begin) = {
    .name = "serve",
    .group = CLI_SERVER,
    .summary = "serve the Runtime API: sandboxes for agents, over HTTP",
    .usage = "[--listen ADDRESS:PORT] [--state DIR] [OPTION ...]",
    .help =
        "Prints its address when it is ready. Without a key it listens on loopback only and\n"
        "any program on this machine may ask; the first key is CROFT_API_KEY or in the file of\n"
        "--api-key-file, others are made with 'croft token'. Also listens on the unix socket\n"
        "server/api.sock below the state directory. Started by root it becomes the user\n"
        "'croft', or 'nobody', after it has forked the process that makes sandboxes.\n"
        "At SIGTERM or Ctrl-C it ends the processes of all sandboxes and keeps their files: start "
        "it\n"
        "again, and 'croft resume' goes on with one. --at-exit keep lets them run on, --at-exit\n"
        "delete removes them. Killed, it loses nothing: the next one takes over what lives. SIGHUP "
        "reads the settings anew: pools, quotas, times and\n"
        "bounds. These wait for the next start: listen, state_dir, backend, api_key, domain and\n"
        "public_url of [server], [limits], [log], what [sandbox] says of another server, and "
        "where\n"
        "a [mount.NAME] leads.\n"
        "\n"
        "With --backend remote the sandboxes are those of another machine's server, whose urls\n"
        "must lead there from here (a croft there has public_url or domain set): clients talk to\n"
        "this server, which asks the other, forwards what goes in and out, and waits and asks\n"
        "again while it is away. With --backend local commands are plain processes of the\n"
        "server's user: nothing isolates them, for trying things out only.",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .takes_settings = true,
    .run = cli_serve_run,
};
