// SPDX-License-Identifier: Apache-2.0
/* control.c — the effects of control characters and escape sequences; parse.c reads them.
 *
 * Others are ignored: colours, titles, the mouse, bracketed paste and the like leave no trace in
 * text. */
#include "guest/term/inner.h"

#define TAB_COLUMNS 8

static unsigned at_most(unsigned n, unsigned limit)
{
    return n < limit ? n : limit;
}

/* --- moving --- */

static void move_x(struct term *t, unsigned x)
{
    t->homed = false;
    t->at.x = at_most(x, t->columns - 1);
}

/* Counted from the top margin in origin mode, and then bound by the margins. */
static void move_y(struct term *t, unsigned y)
{
    if (t->at.origin)
        t->at.y = at_most(t->top + y, t->bottom);
    else
        t->at.y = at_most(y, t->rows - 1);
}

static void move_left(struct term *t, unsigned n)
{
    unsigned x = at_most(t->at.x, t->columns - 1);

    move_x(t, x > n ? x - n : 0);
}

static void move_up(struct term *t, unsigned n)
{
    unsigned stop = t->at.y >= t->top ? t->top : 0;

    t->homed = false;
    t->at.y = t->at.y - stop > n ? t->at.y - n : stop;
}

static void move_down(struct term *t, unsigned n)
{
    t->at.y = at_most(t->at.y + n, t->at.y <= t->bottom ? t->bottom : t->rows - 1);
}

static void control_tab(struct term *t, unsigned n)
{
    unsigned x = t->at.x;

    for (; n > 0 && x + 1 < t->columns; n--)
        do
            x++;
        while (x + 1 < t->columns && !t->tab_stops[x]);
    t->at.x = x;
}

static void tab_back(struct term *t, unsigned n)
{
    unsigned x = at_most(t->at.x, t->columns - 1);

    for (; n > 0 && x > 0; n--)
        do
            x--;
        while (x > 0 && !t->tab_stops[x]);
    move_x(t, x);
}

void term_reset_tabs(struct term *t)
{
    t->own_tabs = false;
    for (unsigned x = 0; x < t->columns; x++)
        t->tab_stops[x] = x % TAB_COLUMNS == 0;
}

static void clear_tabs(struct term *t, unsigned which)
{
    t->own_tabs = true;
    if (which == 0 && t->at.x < t->columns)
        t->tab_stops[t->at.x] = false;
    if (which == 3)
        memset(t->tab_stops, 0, t->columns * sizeof *t->tab_stops);
}

/* --- erasing --- */

/* A row that is not drawn to its end does not go on in the next one. */
static void control_erase(struct term *t, unsigned x, unsigned end)
{
    struct term_row *r = term_row_here(t);

    term_row_erase(r, x, end);
    r->wrapped = r->wrapped && end < t->columns;
    if (x == 0 && end == t->columns) /* and nothing goes on in a row that starts anew */
        term_cut_above(t, t->at.y);
}

static void erase_in_line(struct term *t, unsigned how)
{
    if (how == 0 && t->at.x < t->columns)
        control_erase(t, t->at.x, t->columns);
    else if (how == 1)
        control_erase(t, 0, at_most(t->at.x + 1, t->columns));
    else if (how == 2)
        control_erase(t, 0, t->columns);
}

/* Home and erase below is how many terminals clear; a progress display that happens to start in
 * the first row moves up to it instead. 3 would forget what has scrolled out: never. */
static void erase_in_screen(struct term *t, unsigned how)
{
    if (how == 2 || (how == 0 && t->homed && t->at.x == 0 && t->at.y == 0)) {
        term_clear(t);
    } else if (how == 0) {
        erase_in_line(t, 0);
        term_erase_rows(t, t->at.y + 1, t->rows);
    } else if (how == 1) {
        term_erase_rows(t, 0, t->at.y);
        erase_in_line(t, 1);
    }
}

static void insert_columns(struct term *t, unsigned n)
{
    if (t->at.x >= t->columns)
        return;
    if (!term_row_insert(term_row_here(t), t->at.x, n, t->columns))
        t->no_memory = true;
}

static void delete_columns(struct term *t, unsigned n)
{
    struct term_row *r = term_row_here(t);

    term_row_delete(r, at_most(t->at.x, t->columns - 1), n);
    r->wrapped = false;
}

static void insert_rows(struct term *t, unsigned n, bool remove)
{
    if (t->at.y < t->top || t->at.y > t->bottom)
        return;
    t->at.x = 0;
    if (remove)
        term_delete_rows(t, t->at.y, n);
    else
        term_scroll_down(t, t->at.y, n);
}

/* --- modes --- */

static void save_cursor(struct term *t)
{
    t->on->saved = t->at;
}

static void restore_cursor(struct term *t)
{
    t->homed = false;
    t->at = t->on->saved;
}

void term_reset_modes(struct term *t)
{
    t->no_wrap = t->insert = t->newline = false;
    t->at.origin = t->at.shifted = false;
    memset(t->at.line_drawing, 0, sizeof t->at.line_drawing);
    t->top = 0;
    t->bottom = t->rows - 1;
    t->on->saved = (struct term_cursor){0};
}

static void reset_terminal(struct term *t)
{
    term_show_alternate(t, false);
    term_clear(t);
    term_reset_modes(t);
    term_reset_tabs(t);
    t->at.x = t->at.y = 0;
    t->repeatable = 0;
}

static void set_private_mode(struct term *t, unsigned mode, bool on)
{
    switch (mode) {
    case 6:
        t->at.origin = on;
        move_x(t, 0);
        move_y(t, 0);
        break;
    case 7:
        t->no_wrap = !on;
        break;
    case 1048:
        if (on)
            save_cursor(t);
        else
            restore_cursor(t);
        break;
    case 47:
    case 1047:
    case 1049:
        if (on && mode == 1049 && t->on == &t->main)
            save_cursor(t);
        term_show_alternate(t, on);
        break;
    }
}

static void set_modes(struct term *t, bool on)
{
    const struct term_parser *p = &t->parser;

    for (unsigned i = 0; i < p->param_count; i++) {
        if (p->prefix == '?')
            set_private_mode(t, p->params[i], on);
        else if (p->params[i] == 4)
            t->insert = on;
        else if (p->params[i] == 20)
            t->newline = on;
    }
}

static void set_margins(struct term *t, unsigned top, unsigned bottom)
{
    bottom = at_most(bottom, t->rows);
    if (top >= bottom)
        return;
    t->top = top - 1;
    t->bottom = bottom - 1;
    move_x(t, 0);
    move_y(t, 0);
}

/* --- replies --- */

static void report_status(struct term *t, unsigned what)
{
    const char *prefix = t->parser.prefix == '?' ? "?" : "";
    unsigned y = t->at.y - (t->at.origin && t->at.y >= t->top ? t->top : 0);

    if (what == 5 && !*prefix)
        buf_add_cstr(&t->replies, "\033[0n");
    else if (what == 6)
        buf_addf(&t->replies, "\033[%s%u;%uR", prefix, y + 1, at_most(t->at.x, t->columns - 1) + 1);
}

static void report_attributes(struct term *t, unsigned what)
{
    if (what != 0)
        return;
    if (t->parser.prefix == 0)
        buf_add_cstr(&t->replies, "\033[?1;2c"); /* a VT100 with advanced video */
    else if (t->parser.prefix == '>')
        buf_add_cstr(&t->replies, "\033[>0;0;0c");
}

/* --- dispatch --- */

void term_control(struct term *t, char c)
{
    switch (c) {
    case '\b':
        move_left(t, 1);
        break;
    case '\t':
        control_tab(t, 1);
        break;
    case '\n':
    case '\v':
    case '\f':
        term_line_feed(t);
        if (t->newline)
            t->at.x = 0;
        break;
    case '\r':
        move_x(t, 0);
        break;
    case 0x0e:
        t->at.shifted = true;
        break;
    case 0x0f:
        t->at.shifted = false;
        break;
    }
}

void term_escape(struct term *t, char c)
{
    char middle = t->parser.middle;

    if (middle == '(' || middle == ')')
        t->at.line_drawing[middle == ')'] = c == '0';
    if (middle)
        return;
    switch (c) {
    case '7':
        save_cursor(t);
        break;
    case '8':
        restore_cursor(t);
        break;
    case 'D':
        term_line_feed(t);
        break;
    case 'E':
        t->at.x = 0;
        term_line_feed(t);
        break;
    case 'H':
        t->tab_stops[at_most(t->at.x, t->columns - 1)] = t->own_tabs = true;
        break;
    case 'M':
        t->homed = false;
        term_reverse_line_feed(t);
        break;
    case 'Z':
        buf_add_cstr(&t->replies, "\033[?1;2c");
        break;
    case 'c':
        reset_terminal(t);
        break;
    }
}

/* 0 stands for what the sequence does without a number, as on a real one. */
static unsigned control_param(const struct term *t, unsigned i, unsigned otherwise)
{
    const struct term_parser *p = &t->parser;

    return i < p->param_count && p->params[i] ? p->params[i] : otherwise;
}

static void csi_move(struct term *t, char c, unsigned n)
{
    switch (c) {
    case 'A':
        move_up(t, n);
        break;
    case 'B':
    case 'e':
        move_down(t, n);
        break;
    case 'C':
    case 'a':
        move_x(t, t->at.x + n);
        break;
    case 'D':
        move_left(t, n);
        break;
    case 'E':
        move_x(t, 0);
        move_down(t, n);
        break;
    case 'F':
        move_x(t, 0);
        move_up(t, n);
        break;
    case 'G':
    case '`':
        move_x(t, n - 1);
        break;
    case 'H':
    case 'f':
        move_y(t, n - 1);
        move_x(t, control_param(t, 1, 1) - 1);
        t->homed = t->at.x == 0 && t->at.y == 0;
        break;
    case 'I':
        control_tab(t, n);
        break;
    case 'Z':
        tab_back(t, n);
        break;
    case 'd':
        move_y(t, n - 1);
        break;
    }
}

static void csi_edit(struct term *t, char c, unsigned n)
{
    switch (c) {
    case '@':
        insert_columns(t, n);
        break;
    case 'L':
        insert_rows(t, n, false);
        break;
    case 'M':
        insert_rows(t, n, true);
        break;
    case 'P':
        delete_columns(t, n);
        break;
    case 'S':
        term_scroll_up(t, t->top, n);
        break;
    case 'T':
        term_scroll_down(t, t->top, n);
        break;
    case 'X':
        control_erase(t, at_most(t->at.x, t->columns - 1), at_most(t->at.x + n, t->columns));
        break;
    case 'b':
        term_repeat(t, n);
        break;
    case 'g':
        clear_tabs(t, control_param(t, 0, 0));
        break;
    case 'r':
        set_margins(t, n, control_param(t, 1, t->rows));
        break;
    case 's':
        save_cursor(t);
        break;
    case 'u':
        restore_cursor(t);
        break;
    }
}

void term_csi(struct term *t, char c)
{
    const struct term_parser *p = &t->parser;

    if (p->has_colon)
        return;
    if (p->middle) {
        if (p->middle == '!' && c == 'p')
            term_reset_modes(t);
        return;
    }
    if (c == 'h' || c == 'l')
        set_modes(t, c == 'h');
    else if (c == 'c')
        report_attributes(t, control_param(t, 0, 0));
    else if (p->prefix != 0 && p->prefix != '?')
        return;
    else if (c == 'n')
        report_status(t, control_param(t, 0, 0));
    else if (c == 'J')
        erase_in_screen(t, control_param(t, 0, 0));
    else if (c == 'K')
        erase_in_line(t, control_param(t, 0, 0));
    else if (p->prefix == 0) {
        csi_move(t, c, control_param(t, 0, 1));
        csi_edit(t, c, control_param(t, 0, 1));
    }
}
