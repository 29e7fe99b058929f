// SPDX-License-Identifier: Apache-2.0
/* exec_input.c — what comes in, to be typed or piped into a command; one request at a time. */
#include <errno.h>
#include <unistd.h>

#include "base/b64.h"
#include "cli/exec.h"
#include "wire/shells.h"

#define SIDE_OR(n, otherwise) ((n) ? (n) : (otherwise))

static void input_look(struct exec *x);
static void take_input(struct exec *x);

/* Not begun: the run is still on its way to the shell, and the next look comes after it. */
static void on_look_done(struct http_call *call, struct err *e)
{
    struct exec *x = http_call_owner(call);
    struct json *shell = NULL;

    x->send = NULL;
    if (!e)
        e = json_parse(&x->k.arena, arena_copy(&x->k.arena, buf_str(&x->looked)), NULL, &shell);
    x->began = json_get_bool(shell, "running", false) || x->knows_end;
    if (e)
        exec_end(x, e);
    else
        exec_send_next(x);
}

static void on_look_body(struct http_call *call, struct str piece)
{
    buf_add(&((struct exec *)http_call_owner(call))->looked, piece);
}

static void input_look(struct exec *x)
{
    static const struct http_call_events events = {.on_body = on_look_body,
                                                   .on_done = on_look_done};

    buf_reset(&x->looked);
    struct err *e = exec_call(x, "GET", "", (struct str){0}, &events, &x->send);
    if (e)
        exec_end(x, e);
}

static void on_send_done(struct http_call *call, struct err *e)
{
    struct exec *x = http_call_owner(call);

    x->send = NULL;
    if (e)
        exec_end(x, e);
    else
        exec_send_next(x);
}

void exec_get_size(struct winsize *size)
{
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, size) < 0)
        *size = (struct winsize){0};
    size->ws_col = SIDE_OR(size->ws_col, 80);
    size->ws_row = SIDE_OR(size->ws_row, 24);
}

static void put_input(struct exec *x, struct jw *w, struct buf *coded)
{
    b64_add(coded, buf_str(&x->queue));
    wire_put_input(w, buf_str(coded), x->tell_end);
    x->tell_end = false;
    buf_reset(&x->queue);
}

void exec_send_next(struct exec *x)
{
    static const struct http_call_events events = {.on_done = on_send_done};
    own_done(buf) body;
    own_done(buf) coded;
    struct jw w;
    bool size = x->resized;

    buf_init(&coded, 2 * EXEC_QUEUE_BYTES);
    buf_init(&body, 2 * EXEC_QUEUE_BYTES);
    if (x->send || (!size && x->queue.len == 0 && !x->tell_end))
        return;
    if (!x->began) {
        if (!x->pipe.p)
            input_look(x);
        return;
    }
    jw_init(&w, &body, JW_WEB);
    if (size) {
        struct winsize now;
        exec_get_size(&now);
        wire_put_size(&w, now.ws_col, now.ws_row);
    } else {
        put_input(x, &w, &coded);
    }
    x->resized = false;
    struct err *e =
        exec_call(x, "POST", size ? "/resize" : "/input", buf_str(&body), &events, &x->send);
    if (e)
        exec_end(x, e);
    else if (!x->in_ended && x->in.loop)
        err_free(loop_io_want(&x->in, EPOLLIN)); /* cannot fail for what is watched already */
    else if (!x->in_ended && x->file)
        take_input(x);
}

static void take_input(struct exec *x)
{
    char page[16384];
    ssize_t n = read(STDIN_FILENO, page, sizeof page);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        loop_io_stop(&x->in);
        x->in_ended = true;
        x->tell_end = x->pipe.p;
        if (!x->pipe.p) /* as a terminal says it */
            buf_add_char(&x->queue, '\x04');
        return;
    }
    buf_add_mem(&x->queue, page, (size_t)n);
    if (x->queue.len > EXEC_QUEUE_BYTES / 2 && x->in.loop)
        err_free(loop_io_want(&x->in, 0));
}

static void on_input(struct loop_io *io)
{
    struct exec *x = container_of(io, struct exec, in);

    take_input(x);
    exec_send_next(x);
}

static void on_winch(struct loop_signal *s)
{
    struct exec *x = container_of(s, struct exec, winch);

    x->resized = true;
    exec_send_next(x);
}

fallible exec_open_input(struct exec *x)
{
    if (!x->takes_input)
        return NULL;
    if (!x->pipe.p && tcgetattr(STDIN_FILENO, &x->was) == 0) {
        struct termios t = x->was;
        cfmakeraw(&t);
        x->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &t) == 0;
        TRY(loop_signal_start(x->k.loop, &x->winch, SIGWINCH, on_winch));
    }
    struct err *e = loop_io_start(x->k.loop, &x->in, STDIN_FILENO, EPOLLIN, on_input);
    if (!e || err_code(e) != ERR_FORBIDDEN)
        return e;
    err_free(e); /* a file, which is always ready */
    x->file = true;
    take_input(x);
    exec_send_next(x);
    return NULL;
}
