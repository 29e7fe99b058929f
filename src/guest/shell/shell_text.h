// SPDX-License-Identifier: Apache-2.0
/* shell_text.h — the words of a result, to the byte as upstream's clients and models know them. */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "guest/shell/shell.h"

#define SHELL_TEXT_LIMIT 30000 /* characters of content, as upstream */

/* Each appends. Prefix and suffix are empty for SHELL_SEVERAL and SHELL_FAILED: there the content
 * is the text of an error. limit_chars 0: none. */
void shell_text_content(struct buf *b, const struct shell_result *r, size_t limit_chars);
void shell_text_prefix(struct buf *b, const struct shell_result *r);
void shell_text_suffix(struct buf *b, const struct shell_result *r);

/* First half, a marker, last half, counted in code points. */
void shell_text_truncate(struct buf *b, struct str text, size_t limit_chars);
/* The text that now adds to before. An overwritten progress bar counts from the start of its line.
 * dropped: lines lost from the top since before was taken. */
struct str shell_text_since(struct str before, struct str now, size_t dropped);
struct str shell_text_strip(struct str s); /* as Python's str.strip() */
