// SPDX-License-Identifier: Apache-2.0
/* scratch.h — a directory for a bench that goes when the bench goes, whoever ends it.
 *
 * A janitor, forked first and in a session of its own, waits until the bench and the programs it
 * was told of are gone: closed, interrupted or killed is the same to it. Then it ends what was
 * handed to it, removes the control groups of the scratch's name, ends the sandboxes of state/ and
 * removes the directory. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

#define SCRATCH_DIR   64
#define SCRATCH_GROUP 40

struct scratch {
    char dir[SCRATCH_DIR];     /* absolute, 0755: a sandbox of another id may have to look in */
    char group[SCRATCH_GROUP]; /* control groups of this name, in any hierarchy, are ours */
    int word;                  /* to the janitor; a child that keeps it is waited for */
    pid_t janitor;
};

/* parent: an absolute path of at most 40 letters without commas and colons, such as /var/tmp. */
fallible scratch_open(struct scratch *s, const char *parent);
/* The janitor ends it: SIGTERM first, SIGKILL when that does not help. */
fallible scratch_hand(const struct scratch *s, int pidfd);
/* Waits until all is gone; an error says what is left. */
fallible scratch_close(struct scratch *s);
