// SPDX-License-Identifier: Apache-2.0
/* roots.h — numbers of the directories that sandboxes may mount, for records of sandboxes and
 * snapshots. STATE/roots keeps them for ever: a line for each number, from 1 on. */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct grant;

/* numbers[i]: of grants[i]; what is new is added to the file. */
fallible roots_number(const char *state, const struct grant *grants, size_t count,
                      unsigned *numbers);
