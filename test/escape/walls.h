// SPDX-License-Identifier: Apache-2.0
/* walls.h — what a process is to the host's /proc while it is shut in: whose, in which namespaces
 * and control groups, behind which filter. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct walls {
    bool begun;
    char groups[2048]; /* of the probe when it began */
};

/* Each writes the first thing that is not as it should be to out, if that is empty. */
void walls_begin(struct walls *w, pid_t pid, char *out, size_t size);
void walls_check(const struct walls *w, pid_t pid, const char *who, char *out, size_t size);
/* A whole small file, terminated; -1: cannot be read. */
ssize_t walls_read(const char *path, char *text, size_t size);
