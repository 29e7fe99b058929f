// SPDX-License-Identifier: Apache-2.0
/* plain.h — text that somebody else chose, for a person's terminal: it must not act on it.
 *
 * What is escaped: controls, bytes that are not UTF-8, and what turns the direction of writing or
 * has no width. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* One name, in a line with others: as it is, or in quotes with escapes as in C. */
void plain_put_name(struct buf *out, struct str name);
/* The same, followed by blanks up to width columns. An empty one is only blanks. */
void plain_put_cell(struct buf *out, struct str text, size_t width);
/* Text of several lines: line ends and tabs stay, the rest is as utf8_add_shown has it. */
void plain_put_lines(struct buf *out, struct str text);
