// SPDX-License-Identifier: Apache-2.0
/* row.h — one row of a screen: a byte per column while it is plain ASCII, cells once it is not.
 *
 * Every function that may grow the row gives false when memory cannot be had; the row then stays
 * as it was. Columns beyond len are blank. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct term_row {
    union {
        char *ascii;
        uint32_t *cells; /* a code point, the right half of a wide one, or a place in marks */
    };
    uint32_t cap, len; /* in columns */
    bool has_cells;
    bool wrapped;    /* the line goes on in the next row */
    bool marks_full; /* no more marks until the row is cleared */
    char *marks;     /* clusters of several code points: a length byte, then UTF-8 */
    uint32_t marks_len, marks_cap;
};

void term_row_clear(struct term_row *r); /* keeps the memory of its columns */
void term_row_done(struct term_row *r);

bool term_row_write_ascii(struct term_row *r, unsigned x, struct str text, unsigned columns);
/* width is 1 or 2 and fits. */
bool term_row_write(struct term_row *r, unsigned x, uint32_t cp, unsigned width, unsigned columns);
/* Joins cp to the character that covers column x. Beyond a limit it is dropped, silently. */
bool term_row_mark(struct term_row *r, unsigned x, uint32_t cp, unsigned columns);
/* First and last code point of the character that covers column x; false: none there. */
bool term_row_cluster(const struct term_row *r, unsigned x, uint32_t *ret_first,
                      uint32_t *ret_last);

void term_row_erase(struct term_row *r, unsigned x, unsigned end);
bool term_row_insert(struct term_row *r, unsigned x, unsigned n, unsigned columns);
void term_row_delete(struct term_row *r, unsigned x, unsigned n);

bool term_row_is_blank(const struct term_row *r);
/* Appends the characters, trailing blanks included. */
void term_row_put(const struct term_row *r, struct buf *out);
