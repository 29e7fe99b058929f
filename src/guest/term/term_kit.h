// SPDX-License-Identifier: Apache-2.0
/* term_kit.h — what the tests of the terminal share; test/test.h comes first. */
#pragma once

#include "base/own.h"
#include "guest/term/term.h"

static const struct term_config small_size = {.columns = 10, .rows = 4};

static inline void text_of(const struct term *t, struct buf *out)
{
    buf_init(out, SIZE_MAX / 2);
    term_text(t, out);
}

static inline void check_text(const struct term *t, const char *name, const char *how,
                              struct str want)
{
    own_done(buf) got = {0};

    text_of(t, &got);
    if (!str_eq(buf_str(&got), want))
        FAIL("%s (%s): got \"" STR_FMT "\", want \"" STR_FMT "\"", name, how,
             STR_ARG(buf_str(&got)), STR_ARG(want));
    CHECK(!term_no_memory(t));
}
