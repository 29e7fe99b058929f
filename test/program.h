// SPDX-License-Identifier: Apache-2.0
/* program.h — programs started by tests. None outlives the test. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

struct program {
    const char *const *argv; /* argv[0] is looked for in PATH */
    const char *const *env;  /* NULL: the test's own */
    const int *fds;          /* fds[i] becomes its descriptor i; -1: the test's own */
    size_t fd_count;
};

pid_t program_start(const struct program *p);
int program_wait(pid_t pid); /* its exit code; 128+n for signal n; 127: no such program */
int program_stop(pid_t pid); /* the same, after SIGTERM */
/* Runs a command to its end, both outputs together in *into; gives the exit code. */
int program_run(const char *const *argv, struct buf *into);
