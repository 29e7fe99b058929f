// SPDX-License-Identifier: Apache-2.0
/* spawn.h — the one way a process is started in the guest.
 *
 * It gets a session of its own, exactly the descriptors it is given, and never the server's key.
 * With a forker it is forked there, in the cgroup of the work, and its parent is pid 1, which says
 * when it ends; without one it is forked here. A program that cannot be run is an error that names
 * it, in both cases. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"

#define SPAWN_FDS_MAX     12
#define SPAWN_BYTES_MAX   (8u << 20) /* of arguments and environment */
#define SPAWN_STRINGS_MAX 16384u

struct proc_user { /* NULL where it is asked for: as we are */
    const char *name, *home;
    uid_t uid;
    gid_t gid, also; /* as in struct passwd_user */
};

struct spawn_plan {
    const char *program; /* a path */
    const char *const *argv;
    const char *const *env; /* SESSION_API_KEY is left out, unless: */
    bool keeps_key;
    const char *cwd, *cwd_else; /* NULL, or gone: the next one, then "/", unless: */
    bool cwd_only;
    const struct proc_user *user;
    const int *fds; /* become 0, 1, 2 …; borrowed */
    size_t fds_len;
    bool tty;             /* descriptor 0 becomes the controlling terminal */
    bool tty_if_free;     /* … unless another session has it */
    bool dies_with_maker; /* the server's death is its death */
    bool own;             /* serves us, with all it starts: see spawn_count_work */
    /* Called, if not NULL, while a forker forks: what need not be done before. Perhaps twice. */
    void (*asked)(void *arg);
    void *arg;
};

struct spawner { /* a forker; NULL where one is asked for: fork here */
    int forker;  /* requests go here; borrowed */
    struct list children;
};

struct spawn_child {
    void (*fn)(struct spawn_child *c); /* reaped */
    pid_t pid;                         /* 0: not started, or reaped */
    int code, status;                  /* in fn, as in loop_child */
    struct loop_child direct;
    struct list link; /* among the forker's */
    bool own;
};

void spawner_init(struct spawner *s, int forker);
/* Called for each end that pid 1 reports; unknown processes are fine. */
void spawner_exited(struct spawner *s, pid_t pid, int code, int status);

fallible spawn_start(struct loop *loop, struct spawner *s, const struct spawn_plan *plan,
                     struct spawn_child *c, void (*fn)(struct spawn_child *c));
/* A process started before us: pid 1 will tell its end. */
void spawn_adopt(struct spawner *s, struct spawn_child *c, pid_t pid,
                 void (*fn)(struct spawn_child *c));
void spawn_end(struct spawn_child *c); /* kills its session, fn is not called; twice is fine */
void spawn_kill_session(pid_t sid);    /* every process that stayed in it */

/* Counts processes that run for the sandbox's user, in the background too. Not counted: pid 1, the
 * forker, the server inside, processes it started, and those that `own` ones started.
 *
 * If our init is not pid 1, in a sandbox that hides nothing, only its descendants count: not
 * processes that another program started for the user, such as at or systemd-run. */
unsigned spawn_count_work(const struct spawner *s);

/* In a new process: a session of its own, no signal blocked. */
void spawn_alone(void);

/* Forks here, and the caller reaps. */
fallible spawn_fork(const struct spawn_plan *plan, pid_t *ret_pid);
void spawn_reap(pid_t pid); /* of one that was killed: takes a moment, no more */

/* The forker's life: forks what is asked for until the other end closes. born gets the number of
 * each process, written by itself before it runs anything; -1: they are not counted. */
void spawn_forker(int requests, int born);
