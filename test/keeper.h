// SPDX-License-Identifier: Apache-2.0
/* keeper.h — a test and all that comes of it, ended together.
 *
 * Between the runner and each test stands a keeper: parent of the test and of every orphan the test
 * makes, whatever session, group or namespace that went to. When the test has ended, well or not,
 * the keeper ends what is left of it by its pid, takes away the control groups of the sandboxes
 * among it, and removes the test's directory. */
#pragma once

#include <sys/types.h>

struct test;

#define KEEPER_LATE 124 /* the keeper's exit code for a test over its time */

/* The keeper's pid. It exits with the test's code, 128+n for signal n. */
pid_t keeper_start(const struct test *t, unsigned limit_s, int output);
