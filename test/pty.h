// SPDX-License-Identifier: Apache-2.0
/* pty.h — a program on a terminal; the test types and reads. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"

struct pty {
    int master;
    pid_t pid;
    struct buf seen; /* since the last thing that was waited for */
};

/* The terminal is the program's controlling one. */
void pty_start(struct pty *p, const char *const *argv, unsigned rows, unsigned columns);
void pty_type(struct pty *p, const char *text);
void pty_resize(struct pty *p, unsigned rows, unsigned columns);
/* Reads until this was seen, and forgets everything up to its end. The echo of what was typed is
 * seen too: wait for what only the program can know. */
void pty_await(struct pty *p, const char *text);
/* Reads to the end; what was left is in seen. Gives the exit code. */
int pty_end(struct pty *p);
