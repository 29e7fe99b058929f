// SPDX-License-Identifier: Apache-2.0
/* inner.h — a plan as bytes, and what a new process makes of them. */
#pragma once

#include "base/buf.h"
#include "base/passwd.h"
#include "guest/spawn/spawn.h"

enum spawn_flag {
    SPAWN_USER = 1,
    SPAWN_TTY = 2,
    SPAWN_DIES = 4,
    SPAWN_TTY_TRY = 8,
    SPAWN_CWD = 16
};

enum spawn_step { /* where a new process failed */
                  SPAWN_AT_FORK,
                  SPAWN_AT_MESSAGE,
                  SPAWN_AT_FDS,
                  SPAWN_AT_TTY,
                  SPAWN_AT_USER,
                  SPAWN_AT_CWD,
                  SPAWN_AT_EXEC,
};

struct spawn_head { /* then groups, then program, cwd, cwd_else, argv …, env …, each ended by NUL */
    uint32_t uid, gid, flags, groups, argc, envc;
};

struct spawn_status { /* through a pipe that exec closes */
    int32_t pid, errnum, step;
};

struct spawn_job {
    struct spawn_head head;
    gid_t groups[PASSWD_GROUPS_MAX];
    const char *program, *cwd[2];
    char **argv, **env; /* one block, at argv */
};

fallible spawn_pack(struct buf *b, const struct spawn_plan *plan);
/* The strings stay where they are; free(ret->argv) after use. False: not a plan. */
bool spawn_parse(struct str bytes, struct spawn_job *ret);
void spawn_default_signals(int from, int to); /* blocked ones stay blocked */
/* Called in the new process; never returns. Its signals have their defaults, except SIGPIPE. Takes
 * the numbers in fds apart. */
_Noreturn void spawn_become(const struct spawn_job *job, const int *fds, size_t fds_len,
                            int status);
void spawn_tell(int status, int errnum, enum spawn_step step);
