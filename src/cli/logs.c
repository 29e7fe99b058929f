// SPDX-License-Identifier: Apache-2.0
/* logs.c — croft logs: what a server's sandbox said, and says from now on. */
#include <string.h>

#include "cli/ask.h"
#include "net/sse.h"

struct logs_options {
    bool json, follow;
    struct str tail, since;
};

struct job {
    struct ask k;
    struct logs_options o;
    struct sse_parser events; /* of --json */
    struct buf out;
    int code;
};

static bool put_out(struct job *j)
{
    j->code = cli_put(j->k.cli, &j->out);
    buf_reset(&j->out);
    return j->code == CLI_OK;
}

static bool write_out(void *arg, struct str piece)
{
    struct job *j = arg;

    buf_add(&j->out, piece);
    return put_out(j);
}

static void on_event(void *arg, const struct sse_event *e)
{
    struct job *j = arg;

    if (str_eq(e->event, STR("log")))
        buf_addf(&j->out, STR_FMT "\n", STR_ARG(e->data));
}

static bool write_events(void *arg, struct str piece)
{
    struct job *j = arg;
    own(err) e = sse_parser_feed(&j->events, piece);

    return !e && put_out(j);
}

static struct str path_of(struct job *j, const struct json *sandbox)
{
    const struct logs_options *o = &j->o;
    const char *follow = o->follow ? "true" : "false";
    struct str path = ask_path(&j->k, sandbox, "/logs");

    return arena_printf(&j->k.arena, STR_FMT "?follow=%s%s" STR_FMT "%s" STR_FMT, STR_ARG(path),
                        follow, o->tail.p ? "&tail=" : "", STR_ARG(o->tail),
                        o->since.p ? "&since=" : "", STR_ARG(o->since));
}

/* Both go into a query: what they are is the server's to say, but not more than a word. */
static fallible check_word(const char *flag, struct str word)
{
    for (size_t i = 0; i < word.len; i++)
        if (word.p[i] <= ' ' || strchr("&#%+?", word.p[i]))
            return err_new(ERR_INVALID, "--%s '" STR_FMT "' makes no sense", flag,
                           STR_ARG(str_first(word, 80)));
    return NULL;
}

static fallible stream(struct job *j, const struct json *sandbox)
{
    own_done(buf) refused = {0};
    int status;
    struct ask_stream s = {
        .method = "GET",
        .refused = &refused,
        .path = path_of(j, sandbox),
        .accept = j->o.json ? STR("text/event-stream") : (struct str){0},
        .each = j->o.json ? write_events : write_out,
        .arg = j,
    };

    buf_init(&refused, 1u << 20);
    TRY(arena_check(&j->k.arena));
    TRY(ask_stream(&j->k, &s, &status));
    return ask_refused(&j->k, status, buf_str(&refused));
}

static fallible show(struct job *j, struct cli *cli, int argc, char **argv)
{
    struct json *sandbox;

    TRY(ask_open(&j->k, cli));
    TRY(cli_flags(cli, &j->k.arena, &j->o, &argc, argv));
    TRY(check_word("tail", j->o.tail));
    TRY(check_word("since", j->o.since));
    if (argc != 1)
        return cli_wrong(cli, argc ? "one sandbox at a time" : "which sandbox?");
    TRY(ask_sandbox(&j->k, argv[0], &sandbox));
    return stream(j, sandbox);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct job j = {.code = CLI_OK};

    buf_init(&j.out, 64u << 20);
    sse_parser_init(&j.events, 1u << 20, on_event, &j);
    struct err *e = show(&j, cli, argc, argv);
    int code = e ? cli_fail(cli, e) : j.code;
    sse_parser_done(&j.events);
    buf_done(&j.out);
    ask_close(&j.k);
    return code;
}

static const struct cfg_row rows[] = {
    CFG_BOOL(logs_options, follow, "follow", false, "Go on as more is said, until it ends.",
             .letter = 'f'),
    CFG_STR(logs_options, tail, "tail", NULL, "Begin with that many last lines.", .letter = 'n'),
    CFG_STR(logs_options, since, "since", NULL, "Begin at a place that --json said."),
    CFG_BOOL(logs_options, json, "json", false, "Print a JSON object for each piece."),
};

CLI_COMMAND(logs) = {
    .name = "logs",
    .summary = "show what a server's sandbox said, and says",
    .usage = "SANDBOX",
    .help = "That is what its own server and, of a command run as given, what that command wrote.\n"
            "Following costs the sandbox nothing; it ends when the sandbox ends.\n",
    .options = {.rows = rows, .count = ARRAY_LEN(rows)},
    .run = run,
};
