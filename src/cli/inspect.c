// SPDX-License-Identifier: Apache-2.0
/* inspect.c — croft inspect, stats and fork: one sandbox of a server, looked at closely. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "cli/ask.h"

struct inspect_options {
    bool json;
    uint64_t count;
};

/* One sandbox and the server it is on; ended by close_job whatever came of it. */
struct job {
    struct ask k;
    struct inspect_options o;
    struct json *sandbox;
    struct buf out;
};

static fallible open_job(struct job *j, struct cli *cli, int argc, char **argv)
{
    buf_init(&j->out, 64u << 20);
    TRY(ask_open(&j->k, cli));
    TRY(cli_flags(cli, &j->k.arena, &j->o, &argc, argv));
    if (argc != 1)
        return cli_wrong(cli, argc ? "one sandbox at a time" : "which sandbox?");
    return ask_sandbox(&j->k, argv[0], &j->sandbox);
}

static int close_job(struct job *j, struct cli *cli, struct err *e)
{
    int code = e ? cli_fail(cli, e) : cli_put(cli, &j->out);

    buf_done(&j->out);
    ask_close(&j->k);
    return code;
}

static void put_value(struct buf *out, const struct json *v, unsigned indent)
{
    struct jw w;

    if ((v->type == JSON_OBJECT || v->type == JSON_ARRAY) && v->count) {
        for (const struct json *at = v->first; at; at = at->next) {
            buf_addf(out, "\n%*s", (int)indent + 2, "");
            if (v->type == JSON_OBJECT)
                plain_put_cell(out, at->key, at->key.len + 2);
            put_value(out, at, indent + 2);
        }
        return;
    }
    if (v->type == JSON_STR) {
        plain_put_cell(out, v->s, 0);
        return;
    }
    jw_init(&w, out, 0);
    jw_value(&w, NULL, v);
}

static void put_object(struct buf *out, const struct json *object)
{
    for (const struct json *at = object->first; at; at = at->next) {
        plain_put_cell(out, at->key, 18);
        put_value(out, at, 16);
        buf_add_char(out, '\n');
    }
}

static fallible inspect_show(struct job *j, const char *rest)
{
    struct ask_answer r;

    TRY(ask_json(&j->k, "GET", ask_path(&j->k, j->sandbox, rest), (struct str){0}, &r));
    if (j->o.json)
        buf_addf(&j->out, STR_FMT "\n", STR_ARG(r.text));
    else if (r.body)
        put_object(&j->out, r.body);
    return NULL;
}

static int run_inspect(struct cli *cli, int argc, char **argv)
{
    struct job j = {0};
    struct err *e = open_job(&j, cli, argc, argv);

    if (!e)
        e = inspect_show(&j, "");
    return close_job(&j, cli, e);
}

static int run_stats(struct cli *cli, int argc, char **argv)
{
    struct job j = {0};
    struct err *e = open_job(&j, cli, argc, argv);

    if (!e)
        e = inspect_show(&j, "/stats");
    return close_job(&j, cli, e);
}

/* --- fork --- */

static fallible fork_it(struct job *j)
{
    struct ask_answer r;
    char body[64];

    snprintf(body, sizeof body, "{\"count\": %" PRIu64 "}", j->o.count);
    TRY(ask_work(&j->k, "POST", ask_path(&j->k, j->sandbox, "/fork"), str_of(body), &r));
    if (j->o.json) {
        buf_addf(&j->out, STR_FMT "\n", STR_ARG(r.text));
        return NULL;
    }
    const struct json *list = json_get(r.body, STR("sandboxes"));
    for (const struct json *s = list ? list->first : NULL; s; s = s->next)
        buf_addf(&j->out, STR_FMT "  " STR_FMT "\n",
                 STR_ARG(json_get_str(s, "runtime_id", STR(""))),
                 STR_ARG(json_get_str(s, "url", STR(""))));
    return NULL;
}

static int run_fork(struct cli *cli, int argc, char **argv)
{
    struct job j = {0};
    struct err *e = open_job(&j, cli, argc, argv);

    if (!e)
        e = fork_it(&j);
    return close_job(&j, cli, e);
}

#define JSON_ROW CFG_BOOL(inspect_options, json, "json", false, "Print JSON.")

static const struct cfg_row json_rows[] = {JSON_ROW};
static const struct cfg_row fork_rows[] = {
    CFG_UINT(inspect_options, count, "count", 1, "How many.", .letter = 'n', .min = 1, .max = 100),
    JSON_ROW,
};

CLI_COMMAND(inspect) = {
    .name = "inspect",
    .group = CLI_SANDBOXES,
    .summary = "show what a server knows of a sandbox, and of its start",
    .usage = "SANDBOX",
    .options = {.rows = json_rows, .count = ARRAY_LEN(json_rows)},
    .run = run_inspect,
};

CLI_COMMAND(stats) = {
    .name = "stats",
    .group = CLI_SANDBOXES,
    .summary = "show what a server's sandbox uses",
    .usage = "SANDBOX",
    .options = {.rows = json_rows, .count = ARRAY_LEN(json_rows)},
    .run = run_stats,
};

CLI_COMMAND(fork) = {
    .name = "fork",
    .group = CLI_SANDBOXES,
    .summary = "start copies of a server's sandbox, over the same files",
    .usage = "SANDBOX",
    .help = "The files are shared and copied when they are written; processes are not copied.\n",
    .options = {.rows = fork_rows, .count = ARRAY_LEN(fork_rows)},
    .run = run_fork,
};
