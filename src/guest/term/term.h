// SPDX-License-Identifier: Apache-2.0
/* term.h — what a program's output looks like to a reader: a terminal without a screen height.
 *
 * Bytes in, rendered text out: carriage returns overwrite, cursor movement is applied, colours
 * vanish, the alternate screen disappears when it is left. The text is what was ever drawn, not
 * what a screen of some height still shows: neither rows nor `clear` lose it.
 *
 * Bytes are a pty's: a line feed without a carriage return goes straight down. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"

struct term;

struct term_config {      /* zero: the default */
    unsigned columns;     /* 1000 */
    unsigned rows;        /* 1000: what cursor addressing and full-screen programs see */
    size_t history_lines; /* 11000 with the screen's: the oldest beyond are dropped and counted */
    size_t history_bytes; /* 16 MB: the same by size, of what has left the screen */
};

struct term *term_new(const struct term_config *config); /* NULL: no memory */
void term_free(struct term *t);
OWNABLE(term)
void term_feed(struct term *t, struct str bytes); /* any split gives the same text */
/* The text stays, what is drawn next goes by the new size. False: no memory, nothing changed. */
bool term_resize(struct term *t, unsigned columns, unsigned rows);
void term_reset(struct term *t); /* as new; memory beyond a little is given back */

/* Appends the text so far: each line right-trimmed, wrapped lines joined, trailing empty lines
 * dropped, '\n' between. While the alternate screen is shown, it comes after the rest. */
void term_text(const struct term *t, struct buf *out);
size_t term_dropped_lines(const struct term *t);
/* Grows whenever the text may have changed. */
uint64_t term_version(const struct term *t);
/* Answers to the program's questions (cursor position, device attributes), to be typed back; empty:
 * none. Valid until the next feed. */
struct str term_replies(const struct term *t);
bool term_no_memory(const struct term *t); /* some output is missing from the text */
