// SPDX-License-Identifier: Apache-2.0
/* exec_shell.h — shells: the default one, others by name beside it, and one for each static run.
 *
 * Each takes its commands one after the other, in the order they came, and waits for no other. The
 * bash of a shell starts with its first command. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "guest/live/live.h"

#define EXEC_SHELL_DEFAULT    "default"
#define EXEC_SHELL_NAME_BYTES 64
#define EXEC_SHELLS_MAX       16 /* with names */
#define STATIC_MAX            64 /* static runs at a time */

struct exec;
struct shell;

struct exec_shell {
    struct exec *exec;
    struct list link;                     /* in exec->shells, until its processes are gone */
    char name[EXEC_SHELL_NAME_BYTES + 1]; /* empty: of a static run */
    char *cwd, **env;                     /* env NULL: the server's */
    unsigned columns, rows;               /* 0: as shell.h has it */
    struct shell *shell;                  /* NULL: the next command starts it */
    unsigned open;                        /* shells, until their processes are gone */
    struct list queue;                    /* run actions that wait for it */
    bool taken;                           /* one of them has it */
    bool gone;                            /* closed: freed with its last process */
    struct live live;                     /* what its programs write */
    bool watched;                         /* it ends with the reader of its output */
    struct exec_shell_pipe *pipe;         /* NULL: its input is the terminal's */
};

struct exec_shell_config {
    struct str name; /* checked; empty: for a static run */
    struct str cwd;
    char **env; /* taken over, with its strings; NULL: the server's */
    unsigned columns, rows;
    bool watched;
};

/* ERR_UNPROCESSABLE for a bad name, ERR_CONFLICT for one in use, ERR_LIMIT. */
fallible exec_shell_new(struct exec *e, const struct exec_shell_config *config,
                        struct exec_shell **ret_shell);
/* ERR_NOT_FOUND. */
fallible exec_shell_find(const struct exec *e, struct str name, struct exec_shell **ret_shell);
/* ERR_UNPROCESSABLE unless it is the absolute path of a directory. */
fallible exec_shell_check_cwd(struct arena *a, struct str cwd);
fallible exec_shell_start(struct exec_shell *s); /* its bash, if it does not run */
/* Whatever waits is answered; the processes are killed. Frees itself when they are gone. */
void exec_shell_close(struct exec_shell *s);
/* The same for its bash alone: the next command starts another. */
void exec_shell_reset(struct exec_shell *s);
/* Something else than a shell works for it: it stays as long as that. */
static inline void exec_shell_hold(struct exec_shell *s)
{
    s->open++;
}
void exec_shell_release(struct exec_shell *s);
struct str exec_shell_cwd(const struct exec_shell *s); /* where its next command runs */
void exec_shell_free_env(char **env);

/* pipe.c: input of a command that wants no terminal, through a fifo that is made at path. */
struct http_req;
fallible exec_shell_pipe_new(struct exec_shell *s, struct str path);
/* req is answered when all is in the fifo, or the shell is closed. */
fallible exec_shell_pipe_send(struct exec_shell *s, struct http_req *req, struct str bytes,
                              bool end);
void exec_shell_pipe_close(struct exec_shell *s); /* none is fine */
void shells_answer(struct http_req *req, int status, const struct exec_shell *s);

/* run.c: answers what waits in the queue. */
void run_fail_queue(struct exec_shell *s);
