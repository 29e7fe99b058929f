// SPDX-License-Identifier: Apache-2.0
/* split.h — is a text one bash command, several, or the beginning of one?
 *
 * Refuses only what is certainly several complete commands that upstream's parser (bashlex) would
 * have told apart; whatever is doubtful counts as one and bash has the last word. Linear in the
 * length of the text, whatever it holds. */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum split_verdict {
    SPLIT_ONE,        /* one command, or text only bash can judge */
    SPLIT_SEVERAL,    /* two or more, see parts */
    SPLIT_INCOMPLETE, /* bash would wait for more: an open quote, here-document, `if`, trailing | …
                       */
};

struct split {
    enum split_verdict verdict;
    struct str
        *parts; /* SPLIT_SEVERAL only; slices of the text, comments kept with what they follow */
    size_t count;
};

/* Fails only when the arena is used up. */
fallible split_commands(struct arena *arena, struct str text, struct split *ret_split);
