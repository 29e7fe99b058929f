// SPDX-License-Identifier: Apache-2.0
/* text.h — the text of a file, and the way back to its bytes.
 *
 * A file is UTF-8 if it is valid, else UTF-16 if its mark says so and it is valid, else Latin-1,
 * which maps every byte to one code point and back: no file is damaged by a wrong guess. The view
 * has \n only; `text` has the line ends of the file, and edits to the view are made there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

enum text_encoding { TEXT_UTF8, TEXT_UTF8_BOM, TEXT_UTF16LE, TEXT_UTF16BE, TEXT_LATIN1 };

struct text {
    struct str raw;  /* the bytes of the file */
    struct str text; /* as UTF-8, without byte order mark */
    struct str view; /* with \n for \r\n and \r; the same slice as text if it has no \r */
    enum text_encoding encoding;
};

/* Refused memory shows in arena_check only, here and below. */
void text_decode(struct arena *a, struct str raw, struct text *ret_text);
/* The bytes of text in an encoding. False if it cannot be written so; *ret_why then says it as
 * Python would ("'latin-1' codec can't encode character …"). */
bool text_encode(struct arena *a, struct str text, enum text_encoding encoding, struct str *ret_raw,
                 struct str *ret_why);
bool text_is_utf16(struct str raw); /* has the mark and is valid to its end */

struct str text_universal(struct arena *a, struct str text); /* \r\n and \r become \n */
/* The ending of most lines: "\n", "\r\n" or "\r". */
struct str text_line_end(struct str text);
/* The text with view[from, to) replaced. Text that stays keeps its line ends; new lines end as most
 * lines do. */
struct str text_splice(struct arena *a, const struct text *t, size_t from, size_t to,
                       struct str with);

/* Makes out[0, n), whose lines are ended, ready to be followed by other lines. */
void text_part(char *out, size_t n, struct str next);

/* Lines of a view, counted as Python's file iterator does: an unterminated last one counts. */
size_t text_count_lines(struct str view);
size_t text_count_char(struct str s, char c);
/* Byte offset at which the n-th line, from 0, begins; the end of the view if it has fewer. */
size_t text_line_at(struct str view, size_t n);
struct str text_lines(struct str view, size_t from, size_t to); /* lines [from, to), with ends */
