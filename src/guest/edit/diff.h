// SPDX-License-Identifier: Apache-2.0
/* diff.h — which lines changed, as Python's difflib sees it.
 *
 * Small texts give the very opcodes of SequenceMatcher. Large ones are first trimmed at both ends,
 * and one that still costs too much is told as one big change: always right, not always short. */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Lines [old_from, old_to) became [new_from, new_to), counted from 0; in order, never touching. */
struct diff_change {
    size_t old_from, old_to, new_from, new_to;
};

struct diff {
    struct diff_change *changes; /* in the arena */
    size_t count;
};

/* Lines are the pieces between \n, so a text that ends in \n has an empty last one. */
fallible diff_lines(struct arena *a, struct str old_text, struct str new_text,
                    struct diff *ret_diff);
/* unified_diff(n=0) with path for both names, each line right-trimmed, joined by \n; "" if equal.
 */
fallible diff_unified(struct arena *a, struct str old_text, struct str new_text, struct str path,
                      struct str *ret_text);
