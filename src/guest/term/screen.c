// SPDX-License-Identifier: Apache-2.0
/* screen.c — the rows a program can still reach, and how they leave for the history.
 *
 * Nothing drawn on the main screen is lost by scrolling or clearing it: both only move rows. The
 * alternate screen keeps nothing. */
#include "guest/term/inner.h"

#include <stdlib.h>

#include "base/mem.h"

bool term_screen_open(struct term *t, struct term_screen *s)
{
    struct term_row *rows = mem_try(t->rows * sizeof *rows);
    unsigned *order = rows ? mem_try(t->rows * sizeof *order) : NULL;

    if (!order) {
        free(rows);
        return false;
    }
    for (unsigned i = 0; i < t->rows; i++)
        order[i] = i;
    *s = (struct term_screen){.rows = rows, .order = order};
    return true;
}

void term_screen_close(struct term *t, struct term_screen *s)
{
    for (unsigned i = 0; s->rows && i < t->rows; i++)
        term_row_done(&s->rows[i]);
    free(s->rows);
    free(s->order);
    *s = (struct term_screen){0};
}

static struct term_row *row_at(const struct term *t, unsigned y)
{
    return term_screen_row(t, t->on, y);
}

static void limit_history(struct term *t)
{
    term_history_keep(&t->history, t->config.history_lines - t->main.used);
}

void term_screen_grow(struct term *t)
{
    t->on->used = t->at.y + 1;
    if (t->on->touched < t->on->used)
        t->on->touched = t->on->used;
    limit_history(t);
}

/* --- rows to history --- */

static void push_row(struct term *t, const struct term_row *r, bool wrapped)
{
    if (!r->has_cells) {
        term_history_push(&t->history, str_n(r->ascii, r->len), wrapped);
        return;
    }
    buf_reset(&t->scratch);
    term_row_put(r, &t->scratch);
    t->no_memory |= buf_failed(&t->scratch);
    term_history_push(&t->history, buf_str(&t->scratch), wrapped);
}

void term_cut_above(struct term *t, unsigned y)
{
    if (y > 0)
        row_at(t, y - 1)->wrapped = false;
    else if (t->on == &t->main)
        term_history_end_line(&t->history);
}

/* Rows above them stay on the screen unless y is 0, so a line cannot go on from one to the other.
 */
static void push_rows(struct term *t, unsigned y, unsigned n)
{
    if (t->on != &t->main)
        return;
    if (y > 0)
        term_history_end_line(&t->history);
    for (unsigned i = y; i < y + n; i++) {
        const struct term_row *r = row_at(t, i);
        push_row(t, r, r->wrapped && (y == 0 || i + 1 < y + n));
    }
}

/* --- scrolling --- */

static void screen_reverse(struct term *t, unsigned y, unsigned end)
{
    for (; y + 1 < end; y++) {
        unsigned *a = term_screen_slot(t, t->on, y), *b = term_screen_slot(t, t->on, --end),
                 kept = *a;
        *a = *b;
        *b = kept;
    }
}

/* Rows y + n and on move to y; the first n come after them. */
static void screen_rotate(struct term *t, unsigned y, unsigned end, unsigned n)
{
    t->on->touched = t->rows;
    if (y == 0 && end == t->rows) {
        t->on->first = (t->on->first + n) % t->rows;
        return;
    }
    screen_reverse(t, y, y + n);
    screen_reverse(t, y + n, end);
    screen_reverse(t, y, end);
}

static void clear_rows(struct term *t, unsigned y, unsigned end)
{
    t->changed = true;
    for (; y < end; y++)
        term_row_clear(row_at(t, y));
}

static void remove_rows(struct term *t, unsigned top, unsigned n)
{
    unsigned end = t->bottom + 1;

    clear_rows(t, top, top + n);
    screen_rotate(t, top, end, n);
    if (t->on->used <= end && t->on->used > top)
        t->on->used = t->on->used - top > n ? t->on->used - n : top;
    limit_history(t);
}

void term_delete_rows(struct term *t, unsigned top, unsigned n)
{
    unsigned size = t->bottom + 1 - top;

    if (n > size)
        n = size;
    row_at(t, t->bottom)->wrapped = false;
    term_cut_above(t, top);
    remove_rows(t, top, n);
}

void term_scroll_up(struct term *t, unsigned top, unsigned n)
{
    unsigned size = t->bottom + 1 - top, drawn = t->on->used > top ? t->on->used - top : 0;

    if (n > size)
        n = size;
    row_at(t, t->bottom)->wrapped = false;
    push_rows(t, top, n < drawn ? n : drawn);
    if (top > 0 || n >= drawn) /* else the line goes on in the row that is now the first */
        term_cut_above(t, top);
    remove_rows(t, top, n);
}

void term_scroll_down(struct term *t, unsigned top, unsigned n)
{
    unsigned size = t->bottom + 1 - top;

    if (n > size)
        n = size;
    term_cut_above(t, top);
    clear_rows(t, t->bottom + 1 - n, t->bottom + 1);
    screen_rotate(t, top, t->bottom + 1, size - n);
    if (n < size)
        row_at(t, t->bottom)->wrapped = false;
    if (t->on->used > top)
        t->on->used = t->on->used + n < t->rows ? t->on->used + n : t->rows;
    limit_history(t);
}

void term_line_feed(struct term *t)
{
    if (t->at.y != t->bottom) {
        t->at.y += t->at.y + 1 < t->rows;
        return;
    }
    push_rows(t, t->top, 1);
    if (t->top > 0)
        term_cut_above(t, t->top);
    remove_rows(t, t->top, 1);
}

void term_reverse_line_feed(struct term *t)
{
    if (t->at.y == t->top)
        term_scroll_down(t, t->top, 1);
    else if (t->at.y > 0)
        t->at.y--;
}

/* --- erasing --- */

/* One more than the last row with something on it. */
static unsigned drawn_rows(const struct term *t, const struct term_screen *s)
{
    unsigned n = s->used;

    while (n > 0 && term_row_is_blank(term_screen_row(t, s, n - 1)))
        n--;
    return n;
}

void term_clear(struct term *t)
{
    push_rows(t, 0, drawn_rows(t, t->on));
    if (t->on == &t->main)
        term_history_end_line(&t->history);
    clear_rows(t, 0, t->on->used);
    t->on->used = 0;
    limit_history(t);
}

void term_erase_rows(struct term *t, unsigned y, unsigned end)
{
    if (y < end)
        term_cut_above(t, y);
    clear_rows(t, y, end < t->on->used ? end : t->on->used);
}

void term_show_alternate(struct term *t, bool on)
{
    if (on == (t->on == &t->alt))
        return;
    if (on && !term_screen_open(t, &t->alt)) {
        t->no_memory = true; /* the program draws over the main screen */
        return;
    }
    t->changed = true;
    t->top = 0;
    t->bottom = t->rows - 1;
    if (on) {
        t->at_main = t->at;
        t->on = &t->alt;
        return;
    }
    t->at = t->at_main;
    t->on = &t->main;
    term_screen_close(t, &t->alt);
}

/* --- text --- */

static void end_text_line(struct buf *out, size_t start)
{
    while (out->len > start && out->p[out->len - 1] == ' ')
        out->len--;
    buf_add_char(out, '\n');
}

void term_put_screen(const struct term *t, const struct term_screen *s, struct buf *out,
                     size_t start)
{
    unsigned n = drawn_rows(t, s);

    if (n == 0 && s == &t->main && t->history.open)
        end_text_line(out, start);
    for (unsigned y = 0; y < n; y++) {
        const struct term_row *r = term_screen_row(t, s, y);
        term_row_put(r, out);
        if (!r->wrapped || y + 1 == n)
            end_text_line(out, start);
    }
}
