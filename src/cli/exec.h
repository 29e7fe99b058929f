// SPDX-License-Identifier: Apache-2.0
/* exec.h — inside of exec and shell: the run and its output (exec.c), what comes in (exec_input.c).
 */
#pragma once

#include <sys/ioctl.h>
#include <termios.h>

#include "cli/ask.h"
#include "loop/loop.h"
#include "net/sse.h"
#include "out/client.h"

#define EXEC_QUEUE_BYTES (1u << 20) /* typed and not yet sent */
enum { EXEC_STOPS = 4 };            /* signals that end us */

struct exec_options {
    bool interactive, tty, json;
    struct str workdir;
};

struct exec {
    struct ask k;
    struct exec_options o;
    struct ask_inside inside;
    struct str shell;       /* its path */
    struct str pipe;        /* for what comes in; .p NULL: it is typed */
    struct str token, mark; /* mark: written, with the token, when the command has the pipe open */
    struct buf before;      /* output, until that was seen */
    struct http_call *watch, *run, *send;
    struct sse_parser sse;
    struct buf answer, looked, queue; /* queue: typed and not yet sent */
    struct buf gathered;              /* output, for --json */
    uint64_t seen, want;              /* bytes of output */
    bool began; /* the command has: what is typed before it would be the shell's */
    bool knows_end, resized, in_ended, raw, tty_out;
    bool takes_input;
    bool held_cr;  /* the last byte of output, which a line end may follow */
    bool tell_end; /* of input */
    bool file;     /* what comes in can be read at any time, and not be waited for */
    struct termios was;
    struct loop_io in;
    struct loop_signal winch, stops[EXEC_STOPS];
    bool over, finishing;
    bool open; /* the shell */
    int code;
    struct err *failed;
};

void exec_end(struct exec *x, struct err *e);
/* To the shell's path and rest. */
fallible exec_call(struct exec *x, const char *method, const char *rest, struct str body,
                   const struct http_call_events *events, struct http_call **ret);

/* --- exec_input.c --- */
void exec_get_size(struct winsize *size); /* of this terminal, or a usual one */
fallible exec_open_input(struct exec *x);
void exec_send_next(struct exec *x); /* what waits, if it is time for it */
