// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of the terminal model, included by no other. */
#pragma once

#include "guest/term/history.h"
#include "guest/term/row.h"
#include "guest/term/term.h"

#define TERM_PARAM_MAX   65535u
#define TERM_PARAM_COUNT 16

struct term_cursor {
    unsigned x, y; /* x may equal columns: the next character wraps */
    bool origin;   /* rows are counted from the top margin */
    bool shifted;  /* G1 rather than G0 */
    bool line_drawing[2];
};

struct term_screen {
    struct term_row *rows; /* NULL: not in use */
    unsigned *order;       /* a ring of indices into rows, from first */
    unsigned first;
    unsigned used;    /* rows from here on are blank */
    unsigned touched; /* ... and from here on have never been drawn on */
    struct term_cursor saved;
};

enum term_state {
    TERM_GROUND,
    TERM_ESC,
    TERM_ESC_MORE, /* after an intermediate byte */
    TERM_CSI,
    TERM_STRING,     /* OSC, APC, PM, SOS, a title: ends with the line at the latest */
    TERM_STRING_DCS, /* may hold line ends, and is bounded instead */
    TERM_STRING_ESC, /* an ESC inside either: what follows it decides */
};

struct term_parser {
    enum term_state state, string;
    size_t string_bytes;
    unsigned params[TERM_PARAM_COUNT], param_count;
    char prefix, middle; /* '?' of CSI ? 25 h; '!' of CSI ! p; 0: none */
    bool has_colon;
    char utf8[4]; /* the start of a character */
    unsigned utf8_len;
    uint32_t utf8_state;
};

struct term {
    struct term_config config;
    unsigned columns, rows;
    struct term_screen main, alt, *on;
    struct term_cursor at, at_main; /* at_main: to return to from the alternate screen */
    unsigned top, bottom;           /* margins, both inside */
    bool no_wrap, insert, newline;
    bool homed;                /* by its address, and not moved since */
    uint32_t repeatable;       /* the last character drawn, for REP; 0: none */
    bool *tab_stops, own_tabs; /* own: they are not those of a fresh terminal */
    struct term_history history;
    struct term_parser parser;
    struct buf scratch, replies;
    bool changed, no_memory;
    uint64_t version;
};

/* screen.c: rows and where they go */
bool term_screen_open(struct term *t, struct term_screen *s);
void term_screen_close(struct term *t, struct term_screen *s);
static inline unsigned *term_screen_slot(const struct term *t, const struct term_screen *s,
                                         unsigned y)
{
    unsigned i = s->first + y;

    return &s->order[i < t->rows ? i : i - t->rows];
}
static inline struct term_row *term_screen_row(const struct term *t, const struct term_screen *s,
                                               unsigned y)
{
    return &s->rows[*term_screen_slot(t, s, y)];
}
void term_screen_grow(struct term *t); /* to the row under the cursor */
/* The row under the cursor, about to be drawn on. */
static inline struct term_row *term_row_here(struct term *t)
{
    t->changed = true;
    if (t->at.y >= t->on->used)
        term_screen_grow(t);
    return term_screen_row(t, t->on, t->at.y);
}
/* Between top and the bottom margin; what is scrolled out goes to the history. */
void term_scroll_up(struct term *t, unsigned top, unsigned n);
void term_scroll_down(struct term *t, unsigned top, unsigned n);
void term_delete_rows(struct term *t, unsigned top, unsigned n);
void term_line_feed(struct term *t);
void term_reverse_line_feed(struct term *t);
void term_clear(struct term *t); /* what was drawn goes to the history */
/* The row above y wraps no longer: the next row does not continue it. */
void term_cut_above(struct term *t, unsigned y);
void term_erase_rows(struct term *t, unsigned y, unsigned end);
void term_show_alternate(struct term *t, bool on);
/* Trailing blanks are taken back as far as start. */
void term_put_screen(const struct term *t, const struct term_screen *s, struct buf *out,
                     size_t start);

/* draw.c: characters onto rows */
void term_draw_ascii(struct term *t, struct str text);
void term_draw(struct term *t, uint32_t cp);
void term_repeat(struct term *t, unsigned n);

/* control.c: what sequences do */
void term_control(struct term *t, char c);
void term_escape(struct term *t, char c);
void term_csi(struct term *t, char c);
void term_reset_modes(struct term *t);
void term_reset_tabs(struct term *t);
