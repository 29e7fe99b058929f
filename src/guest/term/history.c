// SPDX-License-Identifier: Apache-2.0
/* history.c — a queue of bytes in chunks: in at the end, out at the front by whole lines.
 *
 * Lines hold no '\n', so it separates them; only a single line beyond the limit is cut inside. */
#include "guest/term/history.h"

#include <stdlib.h>

#define CHUNK_BYTES (16u << 10)

struct term_chunk {
    struct term_chunk *next;
    size_t start, end;
    char bytes[];
};

void term_history_init(struct term_history *h, size_t limit_bytes)
{
    *h = (struct term_history){.limit_bytes = limit_bytes};
}

void term_history_done(struct term_history *h)
{
    for (struct term_chunk *c = h->head, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    term_history_init(h, h->limit_bytes);
}

static struct term_chunk *add_chunk(struct term_history *h)
{
    struct term_chunk *c = malloc(sizeof *c + CHUNK_BYTES);

    if (!c) {
        h->no_memory = true;
        return NULL;
    }
    c->next = NULL;
    c->start = c->end = 0;
    if (h->tail)
        h->tail->next = c;
    else
        h->head = c;
    h->tail = c;
    return c;
}

/* Room at the end, at least one byte. */
static char *open_tail(struct term_history *h, size_t *ret_room)
{
    struct term_chunk *c = h->tail;

    if ((!c || c->end == CHUNK_BYTES) && !(c = add_chunk(h)))
        return NULL;
    *ret_room = CHUNK_BYTES - c->end;
    return c->bytes + c->end;
}

static void history_commit(struct term_history *h, size_t n)
{
    h->tail->end += n;
    h->bytes += n;
}

static void take_front(struct term_history *h, size_t n)
{
    struct term_chunk *c = h->head;

    c->start += n;
    h->bytes -= n;
    if (c->start < c->end)
        return;
    h->head = c->next;
    if (!h->head)
        h->tail = NULL;
    free(c);
}

static void drop_line(struct term_history *h)
{
    for (bool whole = false; !whole && h->head;) {
        struct term_chunk *c = h->head;
        char *from = c->bytes + c->start, *end = memchr(from, '\n', c->end - c->start);
        whole = end != NULL;
        take_front(h, whole ? (size_t)(end - from) + 1 : c->end - c->start);
    }
    h->lines--;
    h->dropped += !h->head_cut;
    h->head_cut = false;
}

/* Takes from the front of the only line, and no half characters. */
static void cut_line(struct term_history *h, size_t n)
{
    h->dropped += !h->head_cut;
    h->head_cut = true;
    while (n && h->head) {
        size_t here = h->head->end - h->head->start, part = n < here ? n : here;
        take_front(h, part);
        n -= part;
    }
    while (h->head && (h->head->bytes[h->head->start] & 0xc0) == 0x80)
        take_front(h, 1);
}

static void keep_bytes(struct term_history *h)
{
    if (h->spaces > h->limit_bytes) /* more could never be shown */
        h->spaces = h->limit_bytes;
    while (h->bytes > h->limit_bytes - h->spaces) {
        if (h->lines)
            drop_line(h);
        else
            cut_line(h, h->bytes - (h->limit_bytes - h->spaces));
    }
}

void term_history_keep(struct term_history *h, size_t lines)
{
    while (h->lines > lines)
        drop_line(h);
}

static void history_add(struct term_history *h, struct str s)
{
    while (s.len) {
        size_t room;
        char *to = open_tail(h, &room);
        if (!to)
            return;
        size_t n = s.len < room ? s.len : room;
        memcpy(to, s.p, n);
        history_commit(h, n);
        s = str_from(s, n);
    }
}

static void add_spaces(struct term_history *h)
{
    while (h->spaces) {
        size_t room;
        char *to = open_tail(h, &room);
        if (!to)
            return;
        size_t n = h->spaces < room ? h->spaces : room;
        memset(to, ' ', n);
        history_commit(h, n);
        h->spaces -= n;
        keep_bytes(h);
    }
}

void term_history_end_line(struct term_history *h)
{
    if (!h->open)
        return;
    h->open = false;
    h->spaces = 0;
    size_t had = h->bytes;
    history_add(h, STR("\n"));
    h->lines += h->bytes > had; /* no memory: the next line joins this one */
    keep_bytes(h);
}

void term_history_push(struct term_history *h, struct str row, bool wrapped)
{
    size_t len = row.len;

    while (len && row.p[len - 1] == ' ')
        len--;
    h->open = true;
    if (len) {
        add_spaces(h);
        history_add(h, str_first(row, len));
    }
    if (wrapped) {
        h->spaces += row.len - len;
        keep_bytes(h);
    } else {
        term_history_end_line(h);
    }
}

void term_history_put(const struct term_history *h, struct buf *out)
{
    for (const struct term_chunk *c = h->head; c; c = c->next)
        buf_add_mem(out, c->bytes + c->start, c->end - c->start);
    char *to = h->spaces ? buf_reserve(out, h->spaces) : NULL;
    if (to) {
        memset(to, ' ', h->spaces);
        buf_commit(out, h->spaces);
    }
}
