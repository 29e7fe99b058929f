// SPDX-License-Identifier: Apache-2.0
/* given.h — the three descriptors a sandbox gets of ours. What it sets on them is set for everybody
 * who has them, the shell we were started from included. */
#pragma once

#include <stdbool.h>
#include <termios.h>

#include "base/err.h"

enum { GIVEN_FDS = 3 };

struct given {
    int fds[GIVEN_FDS];
    int flags[GIVEN_FDS]; /* -1: it is not open */
    bool is_terminal[GIVEN_FDS];
    struct termios modes[GIVEN_FDS];
};

/* Refuses what reaches further than its bytes. */
fallible given_check(const int fds[GIVEN_FDS]);

void given_note(struct given *g, const int fds[GIVEN_FDS]);
/* A terminal's modes only where nobody else can have set them: we are in the foreground, and no
 * pager in our line of commands reads what we write. */
void given_restore(const struct given *g);
