// SPDX-License-Identifier: Apache-2.0
/* plain.h — foreign text for a person's terminal, which must not act on it.
 *
 * Escaped are controls, bytes that are not UTF-8, and characters without width or that change the
 * direction of writing. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* One name, in a line with others: as it is, or in quotes with escapes as in C. */
void plain_put_name(struct buf *out, struct str name);
/* The same, followed by blanks up to width columns. An empty one is only blanks. */
void plain_put_cell(struct buf *out, struct str text, size_t width);
/* Text of several lines: line ends and tabs stay, the rest is as utf8_add_shown has it. */
void plain_put_lines(struct buf *out, struct str text);
