// SPDX-License-Identifier: Apache-2.0
/* aes_run.h — shell commands through /execute_action, written as rows: what is sent, what must
 * come.
 *
 * Every answer is compared as a whole: the bytes of the observation must be the ones its own fields
 * and the row make. A step that should time out with some output is polled until the output is
 * there, so a slow machine changes nothing. */
#pragma once

#include "test/aes.h"

enum run_end {
    RAN,     /* completed, with .rc */
    SOFT,    /* no new output for a while */
    HARD,    /* .timeout is over */
    REFUSED, /* not executed: something runs */
    NOTHING, /* nothing runs to be asked or spoken to */
    ERROR    /* an error observation */
};

struct run_step {
    int row;
    const char *command;
    enum run_end end;
    int rc;
    const char
        *want[5]; /* "=all of the content", "~holds", "!lacks", "^begins", "$ends"; {D}: dir */
    double timeout;
    bool in;       /* is_input */
    bool blocking; /* as sent; a step that should complete waits anyway */
    bool hidden, is_static;
    bool more; /* the prefix says that this continues the previous command's output */
    bool then; /* another row, which goes on where the one before stopped */
    const char
        *first; /* 's' waits until the command opens the fifo {D}/seen, 'g' lets it pass {D}/gate */
    const char *cwd;    /* of a static one */
    const char *dir;    /* metadata.working_dir wanted */
    const char *note;   /* part of the suffix beyond the usual; then the suffix only holds it */
    const char *prefix; /* part of a prefix that is neither empty nor the usual */
};

/* The observation of a command; content, suffix and so on by json_get_str. */
struct run_answer {
    struct json *json;
    struct str kind, content, command, prefix, suffix, working_dir, username, hostname, python;
    int64_t rc, pid;
    bool hidden;
};

struct run_answer aes_run(struct aes *a, const struct run_step *step);
/* Meets the running command at its fifos in the workspace, as .first does. */
void aes_meet(struct aes *a, const char *what);
/* A command that completes; no checks. */
struct run_answer aes_run_plain(struct aes *a, const char *command);
/* Runs each row in a fresh directory {D}/row-N, in one shell. Failures name the row. */
void aes_run_rows(struct aes *a, const struct run_step *steps, size_t count);
/* The same where the shell stands. */
void aes_run_here(struct aes *a, const struct run_step *steps, size_t count);
