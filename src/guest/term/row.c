// SPDX-License-Identifier: Apache-2.0
/* row.c — a wide character is its code point and, to the right, HALF. No edit may leave one without
 * the other, so each first mends both of its edges.
 *
 * Clusters live in a pool per row. Overwritten ones stay there as garbage, which is collected when
 * the pool is full: a row's memory is bounded whatever is drawn on it. */
#include "guest/term/row.h"

#include <stdlib.h>

#include "base/utf8.h"

#define HALF              0x80000000u
#define IN_MARKS          0x40000000u
#define CLUSTER_MAX_BYTES 64

/* --- memory --- */

void term_row_clear(struct term_row *r)
{
    r->len = r->marks_len = 0;
    r->wrapped = r->marks_full = false;
    if (!r->has_cells)
        return;
    free(r->marks);
    r->marks = NULL;
    r->marks_cap = 0;
    r->cap *= sizeof *r->cells; /* the same memory, read as bytes */
    r->has_cells = false;
}

void term_row_done(struct term_row *r)
{
    free(r->ascii);
    free(r->marks);
    *r = (struct term_row){0};
}

static bool row_grow(struct term_row *r, unsigned want, unsigned columns)
{
    if (want <= r->cap)
        return true;
    unsigned cap = want < 64 ? 64 : want * 2;
    if (cap > columns)
        cap = columns;
    void *p = realloc(r->ascii, (size_t)cap * (r->has_cells ? sizeof *r->cells : 1));
    if (!p)
        return false;
    r->ascii = p;
    r->cap = cap;
    return true;
}

static bool make_cells(struct term_row *r)
{
    if (r->has_cells)
        return true;
    unsigned cap = r->len < 64 ? 64 : r->len;
    if (r->cap < cap * sizeof *r->cells) {
        void *p = realloc(r->ascii, cap * sizeof *r->cells);
        if (!p)
            return false;
        r->ascii = p;
        r->cap = (uint32_t)(cap * sizeof *r->cells);
    }
    for (unsigned i = r->len; i-- > 0;) /* in place: from the end */
        r->cells[i] = (unsigned char)r->ascii[i];
    r->cap /= sizeof *r->cells;
    r->has_cells = true;
    return true;
}

/* --- columns --- */

static void row_fill(struct term_row *r, unsigned x, unsigned end)
{
    if (x >= end)
        return;
    if (!r->has_cells) {
        memset(r->ascii + x, ' ', end - x);
        return;
    }
    for (; x < end; x++)
        r->cells[x] = ' ';
}

/* No wide character lies across the edge to the left of x after this. */
static void row_mend(struct term_row *r, unsigned x)
{
    if (r->has_cells && x < r->len && r->cells[x] == HALF)
        r->cells[x - 1] = r->cells[x] = ' ';
}

/* Makes columns x to end writable; what is between len and x becomes blank. */
static bool open_columns(struct term_row *r, unsigned x, unsigned end, unsigned columns)
{
    if (!row_grow(r, end, columns))
        return false;
    row_mend(r, x);
    row_mend(r, end);
    row_fill(r, r->len, x);
    if (end > r->len)
        r->len = end;
    return true;
}

bool term_row_write_ascii(struct term_row *r, unsigned x, struct str text, unsigned columns)
{
    if (!open_columns(r, x, x + (unsigned)text.len, columns))
        return false;
    if (!r->has_cells) {
        memcpy(r->ascii + x, text.p, text.len);
        return true;
    }
    for (size_t i = 0; i < text.len; i++)
        r->cells[x + i] = (unsigned char)text.p[i];
    return true;
}

bool term_row_write(struct term_row *r, unsigned x, uint32_t cp, unsigned width, unsigned columns)
{
    if (!make_cells(r) || !open_columns(r, x, x + width, columns))
        return false;
    r->cells[x] = cp;
    if (width == 2)
        r->cells[x + 1] = HALF;
    return true;
}

void term_row_erase(struct term_row *r, unsigned x, unsigned end)
{
    if (x >= r->len || x >= end)
        return;
    row_mend(r, x);
    row_mend(r, end);
    if (end >= r->len)
        r->len = x;
    else
        row_fill(r, x, end);
}

bool term_row_insert(struct term_row *r, unsigned x, unsigned n, unsigned columns)
{
    if (x >= r->len)
        return true;
    if (n > columns - x)
        n = columns - x;
    unsigned end = r->len + n < columns ? r->len + n : columns;
    if (!row_grow(r, end, columns))
        return false;
    row_mend(r, x);
    row_mend(r, end - n); /* the part beyond falls off the right edge */
    unsigned stay = end - n - x;
    if (r->has_cells)
        memmove(r->cells + x + n, r->cells + x, stay * sizeof *r->cells);
    else
        memmove(r->ascii + x + n, r->ascii + x, stay);
    row_fill(r, x, x + n);
    r->len = end;
    return true;
}

void term_row_delete(struct term_row *r, unsigned x, unsigned n)
{
    if (x >= r->len)
        return;
    if (n > r->len - x)
        n = r->len - x;
    row_mend(r, x);
    row_mend(r, x + n);
    unsigned stay = r->len - x - n;
    if (r->has_cells)
        memmove(r->cells + x, r->cells + x + n, stay * sizeof *r->cells);
    else
        memmove(r->ascii + x, r->ascii + x + n, stay);
    r->len -= n;
}

/* --- clusters --- */

static struct str cluster_at(const struct term_row *r, uint32_t cell)
{
    const char *at = r->marks + (cell & ~IN_MARKS);

    return str_n(at + 1, (unsigned char)at[0]);
}

/* Gives a pool without garbage, half empty at least, or says that the row has enough marks. */
static bool row_collect(struct term_row *r, unsigned limit)
{
    char *fresh = malloc(limit);
    uint32_t used = 0;

    if (!fresh)
        return false;
    for (unsigned i = 0; i < r->len; i++) {
        if (!(r->cells[i] & IN_MARKS))
            continue;
        struct str text = cluster_at(r, r->cells[i]);
        memcpy(fresh + used, text.p - 1, text.len + 1);
        r->cells[i] = IN_MARKS | used;
        used += (uint32_t)text.len + 1;
    }
    free(r->marks);
    r->marks = fresh;
    r->marks_len = used;
    r->marks_cap = limit;
    r->marks_full = used > limit / 2;
    return true;
}

static bool reserve_marks(struct term_row *r, unsigned columns)
{
    unsigned want = r->marks_len + CLUSTER_MAX_BYTES + 1, limit = columns * 16 + 1024;

    if (want <= r->marks_cap)
        return true;
    if (want > limit)
        return row_collect(r, limit);
    unsigned cap = want * 2 < limit ? want * 2 : limit;
    char *p = realloc(r->marks, cap);
    if (!p)
        return false;
    r->marks = p;
    r->marks_cap = cap;
    return true;
}

/* The column where the character that covers x starts; false: nothing was drawn there. */
static bool find_base(const struct term_row *r, unsigned x, unsigned *ret_x)
{
    if (x >= r->len)
        return false;
    *ret_x = r->has_cells && r->cells[x] == HALF ? x - 1 : x;
    return true;
}

bool term_row_mark(struct term_row *r, unsigned x, uint32_t cp, unsigned columns)
{
    if (r->marks_full || !find_base(r, x, &x))
        return true;
    if (!make_cells(r) || !reserve_marks(r, columns))
        return false;
    if (r->marks_full)
        return true;
    char text[CLUSTER_MAX_BYTES + 4];
    size_t len;
    if (r->cells[x] & IN_MARKS) {
        struct str old = cluster_at(r, r->cells[x]);
        memcpy(text, old.p, old.len);
        len = old.len;
        if (old.p + old.len == r->marks + r->marks_len) /* the newest one grows in place */
            r->marks_len -= (uint32_t)old.len + 1;
    } else {
        len = utf8_encode(r->cells[x], text);
    }
    char mark[4];
    size_t n = utf8_encode(cp, mark);
    if (len + n <= CLUSTER_MAX_BYTES) {
        memcpy(text + len, mark, n);
        len += n;
    }
    r->cells[x] = IN_MARKS | r->marks_len;
    r->marks[r->marks_len] = (char)len;
    memcpy(r->marks + r->marks_len + 1, text, len);
    r->marks_len += (uint32_t)len + 1;
    return true;
}

bool term_row_cluster(const struct term_row *r, unsigned x, uint32_t *ret_first, uint32_t *ret_last)
{
    if (!find_base(r, x, &x))
        return false;
    if (!r->has_cells || !(r->cells[x] & IN_MARKS)) {
        *ret_first = *ret_last = r->has_cells ? r->cells[x] : (unsigned char)r->ascii[x];
        return true;
    }
    struct str text = cluster_at(r, r->cells[x]);
    utf8_decode(text, ret_first);
    size_t last = text.len - 1;
    while ((text.p[last] & 0xc0) == 0x80)
        last--;
    utf8_decode(str_from(text, last), ret_last);
    return true;
}

/* --- text --- */

bool term_row_is_blank(const struct term_row *r)
{
    for (unsigned i = 0; i < r->len; i++)
        if (r->has_cells ? r->cells[i] != ' ' : r->ascii[i] != ' ')
            return false;
    return true;
}

void term_row_put(const struct term_row *r, struct buf *out)
{
    if (!r->has_cells) {
        buf_add_mem(out, r->ascii, r->len);
        return;
    }
    char *start = buf_reserve(out, (size_t)r->len * 4 + r->marks_len), *to = start;
    if (!start)
        return;
    for (unsigned i = 0; i < r->len; i++) {
        uint32_t cell = r->cells[i];
        if (cell < 0x80) {
            *to++ = (char)cell;
        } else if (cell & IN_MARKS) {
            struct str text = cluster_at(r, cell);
            memcpy(to, text.p, text.len);
            to += text.len;
        } else if (cell != HALF) {
            to += utf8_encode(cell, to);
        }
    }
    buf_commit(out, (size_t)(to - start));
}
