// SPDX-License-Identifier: Apache-2.0
/* session.h — shells: the default one, others by name beside it, and one for each static run.
 *
 * Each takes its commands one after the other, in the order they came, and waits for no other. The
 * bash of a session starts with its first command. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "guest/live/live.h"

#define SESSION_DEFAULT    "default"
#define SESSION_NAME_BYTES 64
#define SESSIONS_MAX       16 /* with names */
#define STATIC_MAX         64 /* static runs at a time */

struct exec;
struct shell;

struct session {
    struct exec *exec;
    struct list link;                  /* in exec->sessions, until its processes are gone */
    char name[SESSION_NAME_BYTES + 1]; /* empty: of a static run */
    char *cwd, **env;                  /* env NULL: the server's */
    unsigned columns, rows;            /* 0: as shell.h has it */
    struct shell *shell;               /* NULL: the next command starts it */
    unsigned open;                     /* shells, until their processes are gone */
    struct list queue;                 /* run actions that wait for it */
    bool taken;                        /* by one */
    bool gone;                         /* closed: freed with its last process */
    struct live live;                  /* what its programs write */
    bool watched;                      /* it ends with who watches that */
    struct session_pipe *pipe;         /* NULL: its input is the terminal's */
};

struct session_config {
    struct str name; /* checked; empty: for a static run */
    struct str cwd;
    char **env; /* taken over, with its strings; NULL: the server's */
    unsigned columns, rows;
    bool watched;
};

/* ERR_UNPROCESSABLE for a bad name, ERR_CONFLICT for one in use, ERR_LIMIT. */
fallible session_new(struct exec *e, const struct session_config *config,
                     struct session **ret_session);
/* ERR_NOT_FOUND. */
fallible session_find(const struct exec *e, struct str name, struct session **ret_session);
/* ERR_UNPROCESSABLE unless it is the absolute path of a directory. */
fallible session_check_cwd(struct arena *a, struct str cwd);
fallible session_start(struct session *s); /* its bash, if it does not run */
/* Whatever waits is answered; the processes are killed. Frees itself when they are gone. */
void session_close(struct session *s);
/* The same for its bash alone: the next command starts another. */
void session_reset(struct session *s);
/* Something else than a shell works for it: it stays as long as that. */
static inline void session_hold(struct session *s)
{
    s->open++;
}
void session_release(struct session *s);
struct str session_cwd(const struct session *s); /* where its next command runs */
void session_free_env(char **env);

/* pipe.c: input of a command that wants no terminal, through a fifo that is made at path. */
struct http_req;
fallible session_pipe_new(struct session *s, struct str path);
/* req is answered when all is in the fifo, or the shell is closed. */
fallible session_pipe_send(struct session *s, struct http_req *req, struct str bytes, bool end);
void session_pipe_close(struct session *s); /* none is fine */
fallible shells_answer(struct http_req *req, int status, const struct session *s);

/* run.c: answers what waits in the queue. */
void run_fail_queue(struct session *s);
