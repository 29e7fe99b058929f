// SPDX-License-Identifier: Apache-2.0
/* relay.h — a person's terminal joined to the sandbox's, until the sandbox ends. */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"

struct relay {
    int in, out; /* ours */
    int master;  /* the sandbox's terminal; -1: it has our descriptors, only signals pass */
    int pidfd;   /* pid 1 */
    int end;     /* readable at the end; -1: the death of pid 1 is the end */
    const sigset_t *before; /* of relay_hold(), and in force again when relay_run() has returned */
};

/* Signals wait for relay_run() from here on: they are for what the sandbox runs, which may be there
 * before we have come so far. */
void relay_hold(sigset_t *ret_before);

/* Returns at the end, when the last output has been written. After a signal that ends, it returns
 * also when the output is not read: then *ret_unread. Window size and signals are passed on; the
 * terminal is put back as it was. The flags of out may be changed. */
fallible relay_run(const struct relay *r, bool *ret_unread);
