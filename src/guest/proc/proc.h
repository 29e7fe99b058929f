// SPDX-License-Identifier: Apache-2.0
/* proc.h — a process that serves us (a kernel, a plugin), in a process session of its own. It ends
 * with everything it started.
 *
 * What it writes to descriptors 1 and 2 comes through one pipe, in the order it was written. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "guest/spawn/spawn.h"
#include "loop/loop.h"

#define PROC_LAST_WORDS 4096

struct proc_config {
    char *const *argv; /* argv[0] is a path */
    char *const *env;
    const char *cwd; /* NULL, or gone: "/" */
    const struct proc_user *user;
    struct spawner *spawner; /* NULL: fork here */
    int in_fd;               /* its input; 0, -1: nothing. Borrowed */
    int out_fd;              /* its output; 0, -1: comes here. Borrowed */
    bool quiet;              /* what it writes to descriptor 2 is dropped */
    bool works;              /* what it starts is the client's work, not ours */
    int extra_fd;            /* becomes descriptor 3; -1: none. Borrowed */
};

struct proc {
    struct loop *loop;
    pid_t pid; /* 0: not started, or reaped */
    struct spawn_child child;
    struct loop_io io;
    int out;          /* read end */
    struct buf words; /* the last it wrote, for the story of its death */
    void (*on_text)(struct proc *p, struct str text); /* may be NULL */
    void (*on_exit)(struct proc *p);
    int code, status; /* in on_exit, as in loop_child */
};

/* Zero *p first and set the callbacks. */
fallible proc_start(struct proc *p, struct loop *loop, const struct proc_config *config);
void proc_stop(struct proc *p);              /* kills the session; twice is fine */
void proc_signal(struct proc *p, int signo); /* to the whole group, as a terminal would */
void proc_drain(struct proc *p);             /* on_text for what is in the pipe already */
/* "exit status 1" or "signal 9 (Killed)". */
void proc_describe(const struct proc *p, char *out, size_t size);
