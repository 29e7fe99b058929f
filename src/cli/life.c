// SPDX-License-Identifier: Apache-2.0
/* life.c — croft stop, pause, resume and rm: of one or more sandboxes of a server. */
#include <string.h>

#include "cli/ask.h"

struct life_options {
    bool json;
};

static const struct cfg_row rows[] = {
    CFG_BOOL(life_options, json, "json", false, "Print the sandboxes as JSON, one per line."),
};

static fallible life_one(struct ask *k, const char *name, const char *method, const char *what,
                         bool json, struct buf *out)
{
    struct json *s;
    struct ask_answer r;

    TRY(ask_sandbox(k, name, &s));
    TRY(ask_work(k, method, ask_path(k, s, what), (struct str){0}, &r));
    if (json)
        buf_addf(out, STR_FMT "\n", STR_ARG(r.text.len ? r.text : STR("{}")));
    else
        buf_addf(out, STR_FMT "\n", STR_ARG(json_get_str(s, "runtime_id", STR(""))));
    return NULL;
}

/* Does all that can be done, and prints each failure. */
static int life_each(struct cli *cli, int argc, char **argv, const char *method, const char *what)
{
    struct life_options o = {0};
    struct ask k = {0};
    own_done(buf) out;
    int code = CLI_OK;

    buf_init(&out, 16u << 20);
    struct err *e = ask_open(&k, cli);
    if (!e)
        e = cli_flags(cli, &k.arena, &o, &argc, argv);
    if (!e && argc == 0) {
        ask_close(&k);
        return cli_misuse(cli, err_new(ERR_INVALID, "which sandbox?"));
    }
    for (int i = 0; !e && i < argc; i++) {
        struct err *failed = life_one(&k, argv[i], method, what, o.json, &out);
        if (failed)
            code = cli_fail(cli, failed);
    }
    if (e)
        code = cli_fail(cli, e);
    else if (cli_put(cli, &out) != CLI_OK)
        code = CLI_FAILED;
    ask_close(&k);
    return code;
}

static int run_stop(struct cli *cli, int argc, char **argv)
{
    return life_each(cli, argc, argv, "POST", "/stop");
}

static int run_pause(struct cli *cli, int argc, char **argv)
{
    return life_each(cli, argc, argv, "POST", "/pause");
}

static int run_resume(struct cli *cli, int argc, char **argv)
{
    return life_each(cli, argc, argv, "POST", "/resume");
}

static int run_rm(struct cli *cli, int argc, char **argv)
{
    return life_each(cli, argc, argv, "DELETE", "");
}

#define OPTIONS                                                                                    \
    {                                                                                              \
        .rows = rows, .count = ARRAY_LEN(rows)                                                     \
    }
#define WHICH "A sandbox is named by its id, its session, or the beginning of either.\n"

CLI_COMMAND(stop) = {
    .name = "stop",
    .group = CLI_SANDBOXES,
    .summary = "end the processes of a server's sandbox, keep its files",
    .usage = "SANDBOX ...",
    .help = WHICH "'croft resume' starts it again with the files it had.\n",
    .options = OPTIONS,
    .run = run_stop,
};

CLI_COMMAND(pause) = {
    .name = "pause",
    .group = CLI_SANDBOXES,
    .summary = "freeze a server's sandbox",
    .usage = "SANDBOX ...",
    .help = WHICH "Its processes stand still and keep their memory.\n",
    .options = OPTIONS,
    .run = run_pause,
};

CLI_COMMAND(resume) = {
    .name = "resume",
    .group = CLI_SANDBOXES,
    .summary = "let a paused or stopped sandbox go on",
    .usage = "SANDBOX ...",
    .help = WHICH,
    .options = OPTIONS,
    .run = run_resume,
};

CLI_COMMAND(rm) = {
    .name = "rm",
    .group = CLI_SANDBOXES,
    .summary = "end a server's sandbox and remove all it left",
    .usage = "SANDBOX ...",
    .help = WHICH,
    .options = OPTIONS,
    .run = run_rm,
};
