// SPDX-License-Identifier: Apache-2.0
/* history.h — lines that left the screen, as the bytes a reader gets.
 *
 * The last line may be open: its next row is still on the screen. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

struct term_chunk;

struct term_history {
    struct term_chunk *head, *tail;
    size_t bytes, limit_bytes;
    size_t lines; /* whole ones */
    size_t dropped;
    size_t spaces; /* at the end of the open line: written only if something follows */
    bool open;
    bool head_cut; /* the first line has lost its start, and was counted for it */
    bool no_memory;
};

void term_history_init(struct term_history *h, size_t limit_bytes);
void term_history_done(struct term_history *h);

/* A row's text; the line goes on with the next row if wrapped. */
void term_history_push(struct term_history *h, struct str row, bool wrapped);
void term_history_end_line(struct term_history *h);
void term_history_keep(struct term_history *h, size_t lines);
/* Every line followed by '\n' but the open one. */
void term_history_put(const struct term_history *h, struct buf *out);
