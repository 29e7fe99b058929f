// SPDX-License-Identifier: Apache-2.0
/* logs.c — croft logs: what a server's sandbox said, and says from now on. */
#include <string.h>
#include <unistd.h>

#include "cli/ask.h"
#include "net/sse.h"

struct logs_options {
    bool json, follow;
    struct str tail, since;
};

struct job {
    struct ask k;
    struct logs_options o;
    /* Parsed for --json, and where a person follows: the events' ids are places to go on from.
     * Other readers get the bytes as they are, and those do not show where an event ends. */
    struct sse_parser events;
    struct buf out, last; /* last: such an id; empty: none yet */
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

static void put_text(struct job *j, struct str data)
{
    own_done(arena) a;
    struct json *piece = NULL;

    arena_init(&a, 16u << 20);
    err_free(json_parse(&a, data, NULL, &piece)); /* what is no piece is not shown */
    buf_add(&j->out, json_get_str(piece, "text", STR("")));
}

static void on_event(void *arg, const struct sse_event *e)
{
    struct job *j = arg;

    if (!str_eq(e->event, STR("log")))
        return;
    if (j->o.json)
        buf_addf(&j->out, STR_FMT "\n", STR_ARG(e->data));
    else
        put_text(j, e->data);
    buf_reset(&j->last);
    buf_add(&j->last, e->id);
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

    if (j->last.len)
        return arena_printf(&j->k.arena, STR_FMT "?follow=true&since=" STR_FMT, STR_ARG(path),
                            STR_ARG(buf_str(&j->last)));
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

static fallible logs_stream(struct job *j, const struct json *sandbox)
{
    own_done(buf) refused = {0};
    bool events = j->o.json || (j->o.follow && isatty(j->k.cli->out));
    int status;
    struct ask_stream s = {
        .method = "GET",
        .refused = &refused,
        .path = path_of(j, sandbox),
        .accept = events ? STR("text/event-stream") : (struct str){0},
        .each = events ? write_events : write_out,
        .arg = j,
    };

    buf_init(&refused, 1u << 20);
    TRY(arena_check(&j->k.arena));
    sse_parser_init(&j->events, 1u << 20, on_event, j);
    struct err *e = ask_stream(&j->k, &s, &status);
    sse_parser_done(&j->events);
    TRY(e);
    return ask_refused(&j->k, status, buf_str(&refused));
}

static fallible logs_show(struct job *j, struct cli *cli, int argc, char **argv)
{
    struct attempts tries = {0};
    struct json *sandbox;

    TRY(ask_open(&j->k, cli));
    TRY(cli_flags(cli, &j->k.arena, &j->o, &argc, argv));
    TRY(check_word("tail", j->o.tail));
    TRY(check_word("since", j->o.since));
    if (argc != 1)
        return cli_wrong(cli, argc ? "one sandbox at a time" : "which sandbox?");
    TRY(ask_sandbox(&j->k, argv[0], &sandbox));
    struct err *e = logs_stream(j, sandbox);
    while (e && j->last.len && ask_once_more(&j->k, &tries, &e))
        e = logs_stream(j, sandbox);
    return e;
}

static int logs_run(struct cli *cli, int argc, char **argv)
{
    struct job j = {.code = CLI_OK};

    buf_init(&j.out, 64u << 20);
    buf_init(&j.last, 256);
    struct err *e = logs_show(&j, cli, argc, argv);
    int code = e ? cli_fail(cli, e) : j.code;
    buf_done(&j.out);
    buf_done(&j.last);
    ask_close(&j.k);
    return code;
}

static const struct cfg_row rows[] = {
    CFG_BOOL(logs_options, follow, "follow", false, "Go on as more is said, until it ends.",
             .letter = 'f'),
    CFG_STR(logs_options, tail, "tail", NULL, "Begin with this many of the last lines.",
            .letter = 'n'),
    CFG_STR(logs_options, since, "since", NULL, "Begin at a place from --json's output."),
    CFG_BOOL(logs_options, json, "json", false, "Print a JSON object for each piece."),
};

CLI_COMMAND(logs) = {
    .name = "logs",
    .group = CLI_SANDBOXES,
    .summary = "show what a server's sandbox said, and says",
    .usage = "SANDBOX",
    .help =
        "That is what its own server and, of a command run as given, what that command wrote.\n"
        "Following costs the sandbox nothing; it ends when the sandbox ends. On a terminal, or\n"
        "with --json, it waits up to a minute for a server that has gone, and goes on.\n",
    .options = {.rows = rows, .count = ARRAY_LEN(rows)},
    .run = logs_run,
};
