// SPDX-License-Identifier: Apache-2.0
/* roots.h — directories that sandboxes may mount have numbers, which records of sandboxes and
 * snapshots hold. STATE/roots says which for good: a line for each number, from 1 on. */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct grant;

/* numbers[i]: of grants[i]; what is new is added to the file. */
fallible roots_number(const char *state, const struct grant *grants, size_t count,
                      unsigned *numbers);
