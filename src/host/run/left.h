// SPDX-License-Identifier: Apache-2.0
/* left.h — what could not be tidied up behind a run. A child finds that after the run's end, so the
 * next 'croft run' says it.
 *
 * state/left holds it until then, and state/left.told what was said within a day, which is not said
 * again. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* From here on what is logged is gathered. Gives where, for left_keep(); -1: it is lost. */
int left_listen(void);
/* Notes it in the state directory, with e if there is one (borrowed), and closes `gathered`. */
void left_keep(int state, int gathered, const struct err *e);
/* Says on fd what is noted in the state directory of that path, as 'croft run' says things. */
void left_tell(const char *state, int fd);
/* Whether that line has not been said within a day; then it counts as said now. */
bool left_is_new(const char *state, struct str line);
