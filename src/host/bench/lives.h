// SPDX-License-Identifier: Apache-2.0
/* lives.h — many users of one server at once, each from POST /start on, and the bashes they are
 * compared with.
 *
 * One poll() serves all of them, without threads, so that times are the server's and not the
 * bench's. An error in one life is that life's. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "host/bench/served.h"

#define LIVES_COMMAND "echo \"c\"roft-$((6*7))" /* its echo on a terminal is not its output */
#define LIVES_OUTPUT  "croft-42"
/* The body of a POST /execute_action. */
#define LIVES_ACTION(command)                                                                      \
    "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"" command "\",\"blocking\":true}}}"

enum lives_kind {
    LIVES_START,       /* until it runs */
    LIVES_COMMAND_OUT, /* until the output of a first command */
    LIVES_WHOLE,       /* until it is stopped again */
    LIVES_FIRST,       /* of those that run: until the output of a first command */
    LIVES_STOP,        /* of those that run */
    LIVES_BASH,        /* a bare interactive bash on a pty, until the same output */
};

struct life {
    double begin_ms, claim_ms, end_ms; /* claim and end: since begin */
    struct err *error;                 /* NULL: it went well */
    char id[40], key[100];             /* "": none runs */
    uint16_t port;
    /* lives.c's own */
    int step;
    double due_ms;
    struct talk *api, box;
    int pty;
    pid_t pid;
};

struct lives_plan {
    struct served *server; /* not of LIVES_BASH */
    enum lives_kind kind;
    size_t count, most; /* most at once */
    double every_ms;    /* one begins every so often; 0: as soon as it may */
};

void lives_init(struct life *l, size_t count);
void lives_done(struct life *l, size_t count);
/* ret_ms: from the first one's begin to the last one's end. */
fallible lives_run(const struct lives_plan *plan, struct life *l, double *ret_ms);
double lives_now_ms(void);
