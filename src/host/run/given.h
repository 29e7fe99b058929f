// SPDX-License-Identifier: Apache-2.0
/* given.h — the three descriptors that a sandbox gets of croft run's. A flag set on one is set for
 * every process that has it, the calling shell included. */
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
/* A terminal's modes, only where no other process can have set them: croft run is in the
 * foreground, and no pager in the line of commands reads its output. */
void given_restore(const struct given *g);
