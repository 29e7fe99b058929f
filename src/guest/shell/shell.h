// SPDX-License-Identifier: Apache-2.0
/* shell.h — a bash on a terminal of its own: one command at a time, its output, its
 * status.
 *
 * Completion is an event (bash reports through a FIFO), never a guess from the screen, so output
 * cannot fake it. A shell that dies is started again in its directory with its exported variables;
 * the result says so. Timeouts end the waiting, never the command. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct held;
struct held_item;
struct loop;
struct proc_user;
struct rng;
struct shell;
struct spawner;

struct shell_config {       /* zero: the default; strings are copied */
    const char *cwd;        /* "/" */
    const char *const *env; /* "NAME=value" …, NULL at the end */
    const char *bash;       /* "/bin/bash" */
    const char *term;       /* TERM, "xterm-256color" */
    const char *state_dir;  /* where the shell makes its private directory: /dev/shm, else /tmp */
    const struct proc_user *user; /* NULL: run as this process does; copied */
    struct spawner *spawner;      /* NULL: fork here */
    const char *init;             /* what every new bash runs first, quietly; not copied */
    struct held *held;            /* pid 1 holds it for the next server; NULL: not */
    const char *held_name;        /* under this name, "shell " in front */
    struct rng *rng;              /* the system's */
    unsigned columns, rows;       /* 1000 each */
    size_t history_lines;         /* of output kept per command: 11000 */
    uint64_t soft_timeout_ms;     /* without new output: 10 s */
    uint64_t start_timeout_ms;    /* for bash to begin a command: 10 s; then it is replaced */
    bool leaves;                  /* what commands that ended left in the background outlives it */
    bool named_keys;              /* UP, ENTER … as input are keys, not only C-x */
    uint64_t (*oom_kills)(void *arg); /* a counter that grows when a process was killed */
    /* As the programs wrote it, live; true: no more for a moment, so that they wait. */
    bool (*on_output)(void *arg, struct str bytes);
    void (*on_closed)(void *arg); /* after shell_close: everything is gone */
    void *arg;
};

enum shell_status {
    SHELL_COMPLETED,
    SHELL_NO_CHANGE,    /* no new output for the soft timeout; it runs on */
    SHELL_HARD_TIMEOUT, /* it runs on */
    SHELL_NOT_EXECUTED, /* the previous command still runs */
    SHELL_NOTHING_RUNS, /* input, or a request for more output, and no command to have it from */
    SHELL_SEVERAL,      /* several commands at once, see parts; nothing was sent */
    SHELL_FAILED,       /* see error */
};

enum shell_event { /* bits of shell_result.happened */
                   SHELL_RESPAWNED = 1 << 0,
                   SHELL_OOM =
                       1
                       << 1, /* a process of the sandbox was killed for lack of memory meanwhile */
};

struct shell_meta { /* -1 and empty where unknown */
    int exit_code;
    int pid; /* last background process, $! */
    struct str username, hostname, working_dir, python;
};

/* user, host and python as the shell of that user would have them, into the arena. */
struct arena;
fallible shell_meta_fill(struct arena *a, uid_t uid, struct str path, struct shell_meta *meta);

struct shell_result { /* everything borrowed, valid during the callback */
    enum shell_status status;
    struct str command;   /* as asked, stripped */
    struct str previous;  /* what a command that ended unasked still had to say */
    struct str text;      /* rendered; only what was not reported before */
    size_t dropped_lines; /* of text: the oldest, not kept */
    bool continued;       /* text follows what an earlier result reported */
    bool is_input;
    char key;          /* the x of C-x, or 0 */
    double timeout_s;  /* the one that ended the waiting */
    unsigned happened; /* SHELL_RESPAWNED … */
    struct shell_meta meta;
    const struct str *parts; /* SHELL_SEVERAL */
    size_t parts_count;
    const struct err *error; /* SHELL_FAILED */
};

struct shell_request {
    struct str command;       /* empty: more output of the running command */
    bool is_input;            /* for the running program */
    bool blocking;            /* no soft timeout */
    double hard_timeout_s;    /* 0: none */
    uint64_t soft_timeout_ms; /* 0: the shell's */
    void (*done)(void *arg, const struct shell_result *result);
    void *arg;
};

#define SHELL_COMMAND_MAX (16u << 20)

fallible shell_new(struct loop *loop, const struct shell_config *config, struct shell **ret_shell);
/* A shell the server before us left: its bash, its directory, the command that runs and what it
 * wrote since. The item stays the caller's, without its descriptors. The first request for the
 * very command that runs, or ended meanwhile, gets its result. */
fallible shell_adopt(struct loop *loop, const struct shell_config *config, struct held_item *item,
                     struct shell **ret_shell);
/* Kills the shell with all its processes. Safe in every callback; a waiting request is answered
 * SHELL_FAILED first. The memory goes once bash is reaped, by the loop. NULL is fine. */
void shell_close(struct shell *s);

/* done is called once, never from inside this call. ERR_BUSY while another request waits. */
fallible shell_run(struct shell *s, const struct shell_request *request);
/* The waiting request is dropped unanswered; its command runs on, as after a timeout. */
void shell_forget(struct shell *s);
void shell_interrupt(struct shell *s); /* as C-c typed at the terminal */

/* What a person does at the terminal while a command runs; ERR_CONFLICT when none does. */
fallible shell_send(struct shell *s, struct str bytes); /* typed as they are */
fallible shell_send_key(struct shell *s,
                        struct str key); /* "C-c", "UP", "ENTER", or one character */
/* The output so far is kept; what runs is told. */
fallible shell_resize(struct shell *s, unsigned columns, unsigned rows);

bool shell_is_running(const struct shell *s);    /* a command is, asked about or not */
struct str shell_command(const struct shell *s); /* the one that runs; empty: none */
struct str shell_cwd(const struct shell *s);     /* of the last command that completed */
pid_t shell_pid(const struct shell *s);          /* of bash; 0 between two of them */
