// SPDX-License-Identifier: Apache-2.0
/* scratch.h — a directory for a bench, removed when the bench ends or is killed.
 *
 * A janitor, forked first and in a session of its own, waits until the bench and the programs that
 * hold `word` are gone. Then it ends the processes that were handed to it and removes the
 * directory. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

#define SCRATCH_DIR 64

struct scratch {
    char dir[SCRATCH_DIR]; /* absolute, 0755: a sandbox of another id may have to look in */
    int word;              /* to the janitor; a child that keeps it is waited for */
    pid_t janitor;
};

/* parent: an absolute path of at most 40 letters without commas and colons, such as /var/tmp. */
fallible scratch_open(struct scratch *s, const char *parent);
/* The janitor ends it: SIGTERM first, SIGKILL when that does not help. */
fallible scratch_hand(const struct scratch *s, int pidfd);
/* Waits until all is gone; an error says what is left. */
fallible scratch_close(struct scratch *s);
