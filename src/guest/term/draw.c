// SPDX-License-Identifier: Apache-2.0
/* draw.c — characters onto the row under the cursor.
 *
 * After the last column the cursor waits beside it; only the next character wraps, so a line of
 * exactly the width takes one row. */
#include "guest/term/inner.h"

#include "base/own.h"
#include "guest/term/width.h"

#define ZERO_WIDTH_JOINER 0x200du
#define SKIN_TONE_FIRST   0x1f3fbu
#define SKIN_TONE_LAST    0x1f3ffu

/* From '_' to '~' in the VT100's special graphics. */
static const uint16_t line_drawing[] = {
    ' ',    0x25c6, 0x2592, 0x2409, 0x240c, 0x240d, 0x240a, 0x00b0, 0x00b1, 0x2424, 0x240b,
    0x2518, 0x2510, 0x250c, 0x2514, 0x253c, 0x23ba, 0x23bb, 0x2500, 0x23bc, 0x23bd, 0x251c,
    0x2524, 0x2534, 0x252c, 0x2502, 0x2264, 0x2265, 0x03c0, 0x2260, 0x00a3, 0x00b7,
};

static void draw_wrap(struct term *t)
{
    struct term_row *r = term_row_here(t);

    if (t->at.x < t->columns) /* a wide one did not fit: what stood there is not part of the line */
        term_row_erase(r, t->at.x, t->columns);
    r->wrapped = t->at.y == t->bottom || t->at.y + 1 < t->rows;
    term_line_feed(t);
    t->at.x = 0;
}

static void make_room(struct term *t, unsigned width)
{
    if (t->at.x + width <= t->columns)
        return;
    if (t->no_wrap)
        t->at.x = t->columns - width;
    else
        draw_wrap(t);
}

static void draw_advance(struct term *t, unsigned n)
{
    t->at.x += n;
    if (t->no_wrap && t->at.x >= t->columns)
        t->at.x = t->columns - 1;
}

/* --- ASCII --- */

static void write_ascii(struct term *t, unsigned x, struct str text)
{
    if (!term_row_write_ascii(term_row_here(t), x, text, t->columns))
        t->no_memory = true;
}

static void draw_run(struct term *t, struct str text)
{
    while (text.len) {
        make_room(t, 1);
        unsigned room = t->columns - t->at.x;
        struct str piece = str_first(text, room);
        write_ascii(t, t->at.x, piece);
        if (t->no_wrap && text.len > room) { /* the rest piles up in the last column */
            write_ascii(t, t->columns - 1, str_from(text, text.len - 1));
            piece = text;
        }
        draw_advance(t, piece.len < room ? (unsigned)piece.len : room);
        text = str_from(text, piece.len);
    }
}

static uint32_t draw_translate(const struct term *t, char c)
{
    if (c < '_' || !t->at.line_drawing[t->at.shifted])
        return (unsigned char)c;
    return line_drawing[c - '_'];
}

void term_draw_ascii(struct term *t, struct str text)
{
    if (!t->insert && !t->at.line_drawing[t->at.shifted]) {
        draw_run(t, text);
        t->repeatable = (unsigned char)text.p[text.len - 1];
        return;
    }
    for (size_t i = 0; i < text.len; i++)
        term_draw(t, draw_translate(t, text.p[i]));
}

/* --- everything else --- */

/* Whether cp belongs to the emoji before it: after a joiner, or a skin tone. */
static bool draw_continues(struct term *t, uint32_t cp)
{
    uint32_t first, last;

    if (t->at.x == 0 || !term_width_is_pictograph(cp) ||
        !term_row_cluster(term_row_here(t), t->at.x - 1, &first, &last) ||
        !term_width_is_pictograph(first))
        return false;
    return last == ZERO_WIDTH_JOINER || (cp >= SKIN_TONE_FIRST && cp <= SKIN_TONE_LAST);
}

static void draw_join(struct term *t, uint32_t cp)
{
    if (t->at.x == 0)
        return;
    if (!term_row_mark(term_row_here(t), t->at.x - 1, cp, t->columns))
        t->no_memory = true;
}

static void draw_cell(struct term *t, uint32_t cp, unsigned width)
{
    make_room(t, width);
    struct term_row *r = term_row_here(t);
    bool ok = !t->insert || term_row_insert(r, t->at.x, width, t->columns);
    char ascii = (char)cp;

    if (cp < 0x80)
        ok = ok && term_row_write_ascii(r, t->at.x, str_n(&ascii, 1), t->columns);
    else
        ok = ok && term_row_write(r, t->at.x, cp, width, t->columns);
    t->no_memory |= !ok;
    draw_advance(t, width);
}

void term_draw(struct term *t, uint32_t cp)
{
    if (cp < 0xa0 && cp >= 0x7f) /* eight-bit controls */
        return;
    unsigned width = term_width(cp);
    if (width == 0 || draw_continues(t, cp)) {
        draw_join(t, cp);
        return;
    }
    draw_cell(t, cp, width < t->columns ? width : t->columns);
    t->repeatable = cp;
}

/* Up to the end of the row, as tmux does: four bytes must not draw a screen full. */
void term_repeat(struct term *t, unsigned n)
{
    unsigned width = term_width(t->repeatable), room = t->columns - t->at.x;

    if (!t->repeatable)
        return;
    for (n = n < room / width ? n : room / width; n > 0; n--)
        term_draw(t, t->repeatable);
}
