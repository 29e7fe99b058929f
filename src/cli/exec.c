// SPDX-License-Identifier: Apache-2.0
/* exec.c — croft exec and croft shell: a command in a server's sandbox, on a terminal of its own.
 *
 * The command runs in a new shell of the server inside, which ends with us. Three requests are
 * under way: the output as events; the run, whose answer is the exit code; and the input.
 *
 * Input from a terminal is typed. Other input goes through a pipe, once the command has it: typed
 * bytes that a command leaves unread would be run by the shell. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/b64.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/rng.h"
#include "cli/exec.h"
#include "wire/shells.h"

enum { EXEC_OURS = 125 }; /* as docker has it: we failed, not the command */

#define DAYS_MS      (7u * 24 * 3600 * 1000)
#define DAYS_S       604800
#define EVENT_MAX    (1u << 20)
#define GATHER_BYTES (64u << 20) /* of output that --json can hold */

static const int stop_signals[EXEC_STOPS] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static const struct cfg_row rows[] = {
    CFG_BOOL(
        exec_options, interactive, "interactive", false,
        "Pass on standard input even when it is no terminal; without this flag there is none then.",
        .letter = 'i'),
    CFG_BOOL(exec_options, tty, "tty", false, "Accepted for -it: a command has a terminal anyway.",
             .letter = 't'),
    CFG_STR(exec_options, workdir, "workdir", NULL, "Where it runs; default: where shells start.",
            .letter = 'w'),
    CFG_BOOL(exec_options, json, "json", false,
             "Print exit code and output as one JSON object, when it has ended."),
};

void exec_end(struct exec *x, struct err *e)
{
    if (x->failed)
        err_free(e);
    else
        x->failed = e;
    x->over = true;
}

/* --- requests to the sandbox's server --- */

fallible exec_call(struct exec *x, const char *method, const char *rest, struct str body,
                   const struct http_call_events *events, struct http_call **ret)
{
    struct http_call_spec spec = {
        .method = str_of(method), .body = body, .idle_ms = DAYS_MS, .max_body_bytes = UINT64_MAX};
    struct str path = arena_printf(&x->k.arena, STR_FMT "%s", STR_ARG(x->shell), rest);

    return ask_inside_start(&x->k, &x->inside, path, (struct str){0}, &spec, events, x, ret);
}

static void keep_answer(struct http_call *call, struct str piece)
{
    struct exec *x = http_call_owner(call);

    buf_add(&x->answer, piece);
}

/* --- what it writes --- */

static fallible put_plain(struct exec *x, struct str bytes)
{
    if (!x->o.json)
        return fd_write_all(x->k.cli->out, bytes);
    buf_add(&x->gathered, str_first(bytes, GATHER_BYTES - x->gathered.len));
    return NULL;
}

/* The terminal inside put a return before every line end: one is taken away again, wherever the
 * output was cut. */
static void put_bytes(struct exec *x, struct str bytes)
{
    own_done(buf) out;

    buf_init(&out, 2 * EVENT_MAX);
    for (size_t i = 0; i < bytes.len; i++) {
        if (x->held_cr && bytes.p[i] != '\n')
            buf_add_char(&out, '\r');
        x->held_cr = !x->tty_out && bytes.p[i] == '\r';
        if (!x->held_cr)
            buf_add_char(&out, bytes.p[i]);
    }
    struct err *e = buf_check(&out);
    if (!e)
        e = put_plain(x, buf_str(&out));
    if (e && err_errno(e) == EPIPE) { /* the reader has gone, and the command goes too */
        err_free(e);
        x->code = 128 + SIGPIPE;
        x->over = true;
    } else if (e) {
        exec_end(x, e);
    }
}

static void put_out(struct exec *x, struct str bytes)
{
    if (!x->mark.p) {
        put_bytes(x, bytes);
        return;
    }
    buf_add(&x->before, bytes);
    ptrdiff_t at = str_find(buf_str(&x->before), x->mark);
    if (at < 0)
        return;
    struct str all = buf_str(&x->before);
    put_bytes(x, str_first(all, (size_t)at));
    put_bytes(x, str_from(all, (size_t)at + x->mark.len));
    x->mark = (struct str){0};
    x->began = true;
    exec_send_next(x);
}

/* No more comes: what was held back for that goes too. */
static void put_rest(struct exec *x)
{
    if (x->mark.p)
        put_bytes(x, buf_str(&x->before));
    if (x->held_cr)
        err_free(put_plain(x, STR("\r"))); /* nowhere left to report it */
}

static void put_json(struct exec *x, const char *sandbox)
{
    own_done(buf) out;
    struct jw w;

    buf_init(&out, 8 * (size_t)GATHER_BYTES);
    jw_init(&w, &out, JW_SPACED);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "sandbox", sandbox);
        jw_int(&w, "exit_code", x->code);
        jw_str(&w, "output", buf_str(&x->gathered));
        jw_bool(&w, "truncated", x->gathered.len == GATHER_BYTES);
    }
    buf_add_char(&out, '\n');
    if (cli_put(x->k.cli, &out) != CLI_OK)
        x->code = -1;
}

static void on_event(void *ctx, const struct sse_event *e)
{
    struct exec *x = ctx;
    own_done(buf) bytes;

    buf_init(&bytes, EVENT_MAX);
    if (str_eq(e->event, STR("end")))
        exec_end(x,
                 str_find(e->data, STR("too slow")) >= 0
                     ? err_new(ERR_LIMIT, "output came faster than it was taken, and some is lost")
                     : err_new(ERR_CLOSED, "the shell in the sandbox ended"));
    if (!str_eq(e->event, STR("output")))
        return;
    struct err *bad = b64_decode(e->data, &bytes);
    if (bad) {
        exec_end(x, bad);
        return;
    }
    put_out(x, buf_str(&bytes));
    if (!str_to_u64(e->id, &x->seen))
        exec_end(x, err_new(ERR_UPSTREAM, "an event without an id"));
    if (x->knows_end && x->seen >= x->want)
        x->over = true;
}

static void on_watch_body(struct http_call *call, struct str piece)
{
    struct exec *x = http_call_owner(call);
    struct err *e = x->finishing ? NULL : sse_parser_feed(&x->sse, piece);

    if (e)
        exec_end(x, e);
}

static void on_watch_done(struct http_call *call, struct err *e)
{
    struct exec *x = http_call_owner(call);

    x->watch = NULL;
    x->open = false;
    if (x->finishing)
        err_free(e); /* as we asked for */
    else
        exec_end(x, e ? e : err_new(ERR_CLOSED, "the sandbox's server ended the output"));
}

/* --- its end --- */

static void on_size_done(struct http_call *call, struct err *e)
{
    struct exec *x = http_call_owner(call);
    struct json *shell = NULL;

    x->run = NULL;
    if (!e)
        e = json_parse(&x->k.arena, arena_copy(&x->k.arena, buf_str(&x->answer)), NULL, &shell);
    if (e) {
        exec_end(x, e);
        return;
    }
    x->want = (uint64_t)json_get_int(shell, "output_bytes", 0);
    x->knows_end = true;
    x->over = x->over || x->seen >= x->want;
}

static fallible read_run(struct exec *x)
{
    struct json *body;
    struct str text = arena_copy(&x->k.arena, buf_str(&x->answer));

    TRY(buf_check(&x->answer));
    TRY(json_parse(&x->k.arena, text, NULL, &body));
    const struct json *extras = json_get(body, STR("extras"));
    const struct json *metadata = json_get(extras, STR("metadata"));
    if (!metadata)
        return err_new(ERR_UPSTREAM, STR_FMT,
                       STR_ARG(json_get_str(body, "detail", str_first(text, 300))));
    x->code = (int)json_get_int(metadata, "exit_code", EXEC_OURS);
    return NULL;
}

static void on_run_done(struct http_call *call, struct err *e)
{
    static const struct http_call_events events = {.on_body = keep_answer, .on_done = on_size_done};
    struct exec *x = http_call_owner(call);

    x->run = NULL;
    if (!e)
        e = read_run(x);
    buf_reset(&x->answer);
    if (!e)
        e = exec_call(x, "GET", "", (struct str){0}, &events, &x->run);
    if (e)
        exec_end(x, e);
}

/* Ours to end: what runs inside ends with its shell. */
static void on_stop(struct loop_signal *s)
{
    for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++)
        if (s->signo == stop_signals[i]) {
            struct exec *x = container_of(s - i, struct exec, stops[0]);
            x->code = 128 + s->signo;
            x->over = true;
        }
}

/* --- all of it --- */

static void put_quoted(struct buf *out, const char *arg)
{
    buf_add_char(out, '\'');
    for (; *arg; arg++)
        if (*arg == '\'')
            buf_add_cstr(out, "'\\''");
        else
            buf_add_char(out, *arg);
    buf_add_cstr(out, "' ");
}

/* The line runs in a subshell without the variables by which the server inside watches its shells.
 * A shell that we start would otherwise report its first prompt as the end of itself. */
static void put_line(const struct exec *x, struct buf *line, const char *const *argv)
{
    const char *term = x->tty_out ? cfg_env_get(x->k.cli->envp, "TERM") : "dumb";

    buf_add_cstr(line, "(\\builtin export -n PROMPT_COMMAND CROFT_A PS1 PS2; ");
    if (term) {
        buf_add_cstr(line, "\\builtin export TERM=");
        put_quoted(line, term);
        buf_add_cstr(line, "; ");
    }
    if (x->pipe.p) /* the escapes are printf's: the line itself is echoed */
        buf_addf(line, "\\builtin printf '\\033]7772;%%s\\007' " STR_FMT "; ", STR_ARG(x->token));
    for (; *argv; argv++)
        put_quoted(line, *argv);
    buf_add_char(line, ')');
    if (!x->takes_input)
        buf_add_cstr(line, " </dev/null");
    else if (x->pipe.p)
        buf_addf(line, " <'" STR_FMT "'", STR_ARG(x->pipe));
}

static fallible ask_shell(struct exec *x, const char *method, struct str path, struct str body)
{
    own_done(buf) text = {0};
    int status;
    struct ask_stream s = {.method = method,
                           .inside = &x->inside,
                           .path = path,
                           .body = body,
                           .each = ask_keep,
                           .arg = &text};

    buf_init(&text, EVENT_MAX);
    TRY(ask_stream(&x->k, &s, &status));
    return ask_refused(&x->k, status, buf_str(&text));
}

static fallible make_shell(struct exec *x)
{
    own_done(buf) body;
    struct winsize size;
    struct jw w;
    char token[13];

    buf_init(&body, 1u << 16);
    rng_token(rng_system(), token, sizeof token);
    x->token = arena_copy(&x->k.arena, str_of(token));
    struct str name = arena_printf(&x->k.arena, "exec-%s", token);
    x->shell = arena_printf(&x->k.arena, "/croft/v1/shells/" STR_FMT, STR_ARG(name));
    x->takes_input = x->o.interactive || (isatty(STDIN_FILENO) && x->tty_out);
    if (x->takes_input && !isatty(STDIN_FILENO)) {
        x->pipe = arena_printf(&x->k.arena, "/tmp/.croft-%s", token);
        x->mark = arena_printf(&x->k.arena, "\033]7772;%s\007", token);
    }
    TRY(arena_check(&x->k.arena));
    jw_init(&w, &body, JW_WEB);
    exec_get_size(&size);
    wire_put_new_shell(&w, &(struct wire_new_shell){.name = name,
                                                    .columns = size.ws_col,
                                                    .rows = size.ws_row,
                                                    .watched = true,
                                                    .pipe = x->pipe,
                                                    .cwd = x->o.workdir});
    TRY(buf_check(&body));
    TRY(ask_shell(x, "POST", STR("/croft/v1/shells"), buf_str(&body)));
    x->open = true;
    return NULL;
}

static fallible exec_begin(struct exec *x, const char *const *argv)
{
    static const struct http_call_events watch = {.on_body = on_watch_body,
                                                  .on_done = on_watch_done};
    static const struct http_call_events run = {.on_body = keep_answer, .on_done = on_run_done};
    own_done(buf) line;
    own_done(buf) body;
    struct jw w;

    buf_init(&line, 4u << 20);
    buf_init(&body, 8u << 20);
    put_line(x, &line, argv);
    jw_init(&w, &body, JW_WEB);
    wire_put_shell_run(&w, buf_str(&line), DAYS_S);
    TRY(buf_check(&line));
    TRY(buf_check(&body));
    for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++)
        TRY(loop_signal_start(x->k.loop, &x->stops[i], stop_signals[i], on_stop));
    TRY(exec_call(x, "GET", "/output", (struct str){0}, &watch, &x->watch));
    TRY(exec_call(x, "POST", "/run", buf_str(&body), &run, &x->run));
    return exec_open_input(x);
}

static void exec_finish(struct exec *x)
{
    struct http_call *const calls[] = {x->run, x->send};

    x->finishing = true;
    if (x->raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &x->was);
    loop_io_stop(&x->in);
    loop_signal_stop(&x->winch);
    for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++)
        loop_signal_stop(&x->stops[i]);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (calls[i])
            http_call_cancel(calls[i]);
    if (x->open) /* it would end with its watcher, but later: the server has to notice first */
        err_free(ask_shell(x, "DELETE", x->shell, (struct str){0})); /* it may be gone with all */
    if (x->watch)
        http_call_cancel(x->watch);
    sse_parser_done(&x->sse);
    buf_done(&x->before);
    buf_done(&x->answer);
    buf_done(&x->looked);
    buf_done(&x->queue);
    buf_done(&x->gathered);
}

static fallible in_sandbox(struct exec *x, const char *name, const char *const *argv)
{
    struct json *sandbox;
    struct ask_answer r;

    if (x->o.json && x->o.interactive && isatty(STDIN_FILENO))
        return cli_wrong(x->k.cli, "--json is for what is not typed on a terminal");
    TRY(ask_sandbox(&x->k, name, &sandbox));
    TRY(ask_inside(&x->k, sandbox, &x->inside));
    struct str status = json_get_str(sandbox, "status", STR(""));
    if (str_eq(status, STR("starting"))) { /* answered when it runs */
        TRY(ask_work(&x->k, "POST", ask_path(&x->k, sandbox, "/resume"), (struct str){0}, &r));
        status = json_get_str(r.body, "status", STR(""));
    }
    if (str_eq(status, STR("stopped"))) /* and not halted, which is "paused" */
        return err_new(ERR_CONFLICT,
                       "sandbox '%.80s' has ended and its files are gone; start a new one, from a "
                       "snapshot if there is one ('croft snapshot ls')",
                       name);
    if (!str_eq(status, STR("running")))
        return err_new(ERR_CONFLICT, "sandbox '%.80s' is " STR_FMT "; 'croft resume %.80s' first",
                       name, STR_ARG(status), name);
    x->tty_out = isatty(x->k.cli->out) && !x->o.json;
    TRY(make_shell(x));
    TRY(exec_begin(x, argv));
    while (!x->over)
        TRY(loop_turn(x->k.loop, -1));
    put_rest(x);
    return x->failed;
}

static int run_in(struct cli *cli, int argc, char **argv, const char *const *otherwise)
{
    struct exec x = {0};
    struct err *e = ask_open(&x.k, cli);

    sse_parser_init(&x.sse, EVENT_MAX, on_event, &x);
    signal(SIGPIPE, SIG_IGN);
    buf_init(&x.before, 2 * EVENT_MAX);
    buf_init(&x.answer, 64u << 20);
    buf_init(&x.looked, 1u << 20);
    buf_init(&x.queue, EXEC_QUEUE_BYTES);
    buf_init(&x.gathered, GATHER_BYTES);
    if (!e)
        e = cli_flags(cli, &x.k.arena, &x.o, &argc, argv);
    x.o.interactive |= otherwise != NULL;
    argv[argc] = NULL; /* flags were taken out before it */
    if (argc > 0 && strcmp(argv[0], "--") == 0) {
        argc--;
        argv++;
    }
    bool dashes = argc > 1 && strcmp(argv[1], "--") == 0;
    int at = dashes ? 2 : 1;
    const char *const *command = argc > at ? (const char *const *)argv + at : otherwise;
    int code = EXEC_OURS;
    if (!e && (argc == 0 || !command)) {
        code = cli_misuse(cli, err_new(ERR_INVALID, argc ? "which command?" : "which sandbox?"));
    } else {
        if (!e)
            e = in_sandbox(&x, argv[0], command);
        if (e)
            code = cli_fail(cli, e) == CLI_USAGE ? CLI_USAGE : EXEC_OURS;
        else {
            if (x.o.json)
                put_json(&x, argv[0]);
            code = x.code < 0 ? EXEC_OURS : x.code;
        }
    }
    exec_finish(&x);
    ask_close(&x.k);
    return code;
}

static int run_exec(struct cli *cli, int argc, char **argv)
{
    return run_in(cli, argc, argv, NULL);
}

static int run_shell(struct cli *cli, int argc, char **argv)
{
    static const char *const bash[] = {"bash", "-i", NULL}, *const quiet[] = {"bash", NULL};

    return run_in(cli, argc, argv, isatty(STDIN_FILENO) ? bash : quiet);
}

CLI_COMMAND(exec) = {
    .name = "exec",
    .group = CLI_SANDBOXES,
    .summary = "run a command in a server's sandbox",
    .usage = "SANDBOX -- COMMAND [ARGUMENT ...]",
    .help = "The command runs on a terminal of its own, as wide as this one. Its exit code is\n"
            "ours; 125: croft itself failed. The command ends when croft ends, by a signal or\n"
            "because its output has no reader any more. Its background processes live on, without\n"
            "their terminal.\n"
            "Input is this terminal's. With --interactive it is standard input, through a pipe;\n"
            "otherwise there is none. A terminal has one stream: standard error comes out here as\n"
            "standard output, in order. To have it apart: sh -c 'make test 2>/tmp/errors'.\n"
            "\n"
            "  croft exec demo -- make test\n"
            "  croft exec --interactive demo -- python3 < script.py\n"
            "  croft exec --json demo -- uname -r\n",
    .options = {.rows = rows, .count = ARRAY_LEN(rows)},
    .own_words = 1,
    .run = run_exec,
};

CLI_COMMAND(shell) = {
    .name = "shell",
    .group = CLI_SANDBOXES,
    .summary = "a shell in a server's sandbox",
    .usage = "SANDBOX",
    .help = "With jobs, C-c and C-z, and this terminal's size; its exit code is ours. Without a\n"
            "terminal it reads commands from what comes in.\n",
    .options = {.rows = rows + 2, .count = ARRAY_LEN(rows) - 2}, /* always interactive */
    .run = run_shell,
};
