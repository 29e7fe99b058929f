// SPDX-License-Identifier: Apache-2.0
/* relay.h — a person's terminal joined to the sandbox's, until the sandbox ends. */
#pragma once

#include "base/err.h"

struct relay {
    int in, out; /* ours */
    int master;  /* the sandbox's terminal; -1: it has our descriptors, only signals pass */
    int pidfd;   /* pid 1 */
    int end;     /* readable at the end; -1: the death of pid 1 is the end */
};

/* Returns at the end, when the last output has been written. Window size and signals are
 * passed on; the terminal is put back as it was. */
fallible relay_run(const struct relay *r);
