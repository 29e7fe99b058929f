// SPDX-License-Identifier: Apache-2.0
/* term.c — life of a terminal, and its text; see term.h.
 *
 * The text is history, then the main screen, then the alternate one while it is shown. */
#include "guest/term/term.h"

#include <stdlib.h>

#include "base/mem.h"
#include "guest/term/inner.h"

#define SIDE_MAX 4096 /* columns, rows */
#define REPLIES_MAX_BYTES                                                                          \
    4096 /* a program that asks more than this at once gets no more answers                        \
          */

static unsigned term_side(unsigned given, unsigned otherwise)
{
    unsigned n = given ? given : otherwise;

    return n < SIDE_MAX ? n : SIDE_MAX;
}

static void term_start(struct term *t)
{
    t->on = &t->main;
    term_reset_modes(t);
    term_history_init(&t->history, t->config.history_bytes);
    buf_init(&t->scratch, SIZE_MAX / 2); /* holds one row, which is bounded */
    buf_init(&t->replies, REPLIES_MAX_BYTES);
}

struct term *term_new(const struct term_config *config)
{
    struct term *t = mem_try(sizeof *t);

    if (!t)
        return NULL;
    t->config = *config;
    if (!t->config.history_lines)
        t->config.history_lines = 11000;
    if (!t->config.history_bytes)
        t->config.history_bytes = 16u << 20;
    t->columns = term_side(config->columns, 1000);
    t->rows = term_side(config->rows, 1000);
    if (t->rows > t->config.history_lines) /* the rows of the screen are lines too */
        t->rows = (unsigned)t->config.history_lines;
    t->tab_stops = mem_try(t->columns * sizeof *t->tab_stops);
    if (!t->tab_stops || !term_screen_open(t, &t->main)) {
        term_free(t);
        return NULL;
    }
    term_start(t);
    term_reset_tabs(t);
    return t;
}

static void drop_contents(struct term *t)
{
    term_screen_close(t, &t->alt);
    term_history_done(&t->history);
    buf_done(&t->scratch);
    buf_done(&t->replies);
}

void term_free(struct term *t)
{
    if (!t)
        return;
    drop_contents(t);
    term_screen_close(t, &t->main);
    free(t->tab_stops);
    free(t);
}

void term_reset(struct term *t)
{
    struct term fresh = {.config = t->config,
                         .columns = t->columns,
                         .rows = t->rows,
                         .main = {.rows = t->main.rows, .order = t->main.order},
                         .tab_stops = t->tab_stops,
                         .version = t->version + 1};

    for (unsigned i = 0; i < t->main.touched; i++) /* of a thousand: it is done at every command */
        term_row_done(&t->main.rows[t->main.order[i]]);
    drop_contents(t);
    if (t->own_tabs)
        term_reset_tabs(t);
    *t = fresh;
    term_start(t);
}

static bool is_drawn(const struct term *t, unsigned y)
{
    return term_screen_row(t, &t->main, y)->len > 0;
}

/* The text so far, drawn again on a screen of the new size. */
static void term_redraw(struct term *to, const struct term *from)
{
    own_done(buf) text;
    const struct term_cursor *at = from->on == &from->alt ? &from->at_main : &from->at;
    struct str rest, line;

    buf_init(&text, SIZE_MAX / 2);
    term_history_put(&from->history, &text);
    term_put_screen(from, &from->main, &text, 0);
    while (text.len && text.p[text.len - 1] == '\n')
        text.len--;
    for (unsigned y = at->y; y > 0 && (y >= from->main.used || !is_drawn(from, y)); y--)
        buf_add_char(&text, '\n'); /* the cursor is that far below the text */
    rest = buf_str(&text);
    for (bool more = rest.len > 0; more;) {
        more = str_cut(&rest, '\n', &line);
        term_feed(to, line);
        if (more)
            term_feed(to, STR("\r\n"));
    }
    if (at->x > to->at.x && at->x < to->columns) /* behind blanks, which text has not */
        to->at.x = at->x;
    to->history.dropped += from->history.dropped;
    to->version = from->version + 1;
}

bool term_resize(struct term *t, unsigned columns, unsigned rows)
{
    struct term_config config = t->config;

    config.columns = columns;
    config.rows = rows;
    own(term) fresh = term_new(&config);
    if (!fresh)
        return false;
    term_redraw(fresh, t);
    if (t->on == &t->alt)
        term_feed(fresh, STR("\033[?1049h"));
    struct term old = *t;
    *t = *fresh;
    *fresh = old;
    t->on = t->on == &fresh->main ? &t->main : &t->alt;
    fresh->on = &fresh->main;
    return true;
}

void term_text(const struct term *t, struct buf *out)
{
    size_t start_len = out->len;

    term_history_put(&t->history, out);
    term_put_screen(t, &t->main, out, start_len);
    if (t->on == &t->alt)
        term_put_screen(t, &t->alt, out, start_len);
    while (out->len > start_len && out->p[out->len - 1] == '\n')
        out->len--;
}

size_t term_dropped_lines(const struct term *t)
{
    return t->history.dropped;
}

uint64_t term_version(const struct term *t)
{
    return t->version;
}

struct str term_replies(const struct term *t)
{
    return buf_str(&t->replies);
}

bool term_no_memory(const struct term *t)
{
    return t->no_memory || t->history.no_memory;
}
