// SPDX-License-Identifier: Apache-2.0
/* wrap.h — prose in lines of at most 80 columns, for --help. A code point takes one column. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#define WRAP_COLUMNS 80

/* Words with one blank between them. The cursor stands at column; later lines begin with indent
 * blanks. A word is never cut: one that is longer than a line has a line of its own. Ends without a
 * line end. */
void wrap_put_words(struct buf *out, struct str text, size_t column, size_t indent);
/* Paragraphs. Empty lines, and lines that begin with a blank, stay as they are. */
void wrap_put_text(struct buf *out, struct str text);
