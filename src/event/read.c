// SPDX-License-Identifier: Apache-2.0
/* read.c — pages of durable records, oldest or newest first.
 *
 * Backwards the index gives the offsets of a stretch of records, which is then read in one piece
 * and given from its end. */
#include "event/inner.h"
#include "event/log.h"

#define STRETCH_RECORDS 256
#define STRETCH_BYTES   (1u << 20)

struct walk {
    struct event_log *log;
    const struct event_query *q;
    bool (*each)(const struct event_record *r, void *arg);
    void *arg;
    struct event_page page;
    size_t looked;
    bool full;
};

/* Notes a record passed; true when the page is full or long enough. */
static bool page_ends(struct walk *w, const struct event_record *r)
{
    w->looked++;
    if (event_filter_match(w->q->filter, r)) {
        w->page.count++;
        if (!w->each(r, w->arg) || (w->q->limit && w->page.count >= w->q->limit))
            w->full = true;
    }
    if (w->q->scan_limit && w->looked >= w->q->scan_limit)
        w->full = true;
    return w->full;
}

static fallible read_up(struct walk *w, struct event_reader *rd, uint64_t from, uint64_t last)
{
    struct event_file *f = &w->log->file;
    struct event_chain chain = {.seq = from - 1};
    struct event_view v;
    const char *why = NULL;

    memcpy(chain.head, f->header.hash, SHA256_LEN);
    while (chain.seq < last) {
        uint64_t at = rd->at;
        TRY_WRAP(event_reader_next(rd, &v, &why), "'%s'", f->name);
        if (!why && chain.seq == from - 1 && from > 1)
            memcpy(chain.head, v.prev, SHA256_LEN); /* the one before was not read */
        if (!why)
            why = event_chain_step(&chain, &v, true);
        if (why)
            return event_file_fault(f, chain.seq + 1, at, why);
        if (page_ends(w, &v.r)) {
            w->page.next = chain.seq < last ? chain.seq : 0;
            return NULL;
        }
    }
    return NULL;
}

static fallible page_up(struct walk *w)
{
    struct event_file *f = &w->log->file;
    struct event_reader rd;
    uint64_t at, last = f->chain.seq; /* as of now: `each` may append */

    if (w->q->after >= last)
        return NULL;
    TRY(event_file_locate(f, w->q->after + 1, &at));
    event_reader_init(&rd, f->fd, f->header.marker, at, f->end);
    if (w->q->limit && w->q->limit < STRETCH_RECORDS && !w->q->filter)
        rd.piece_bytes = 64u << 10;
    struct err *e = read_up(w, &rd, w->q->after + 1, last);
    event_reader_done(&rd);
    return e;
}

struct stretch {
    uint64_t first, last; /* ids */
    uint64_t at, end;     /* offsets */
    struct event_view views[STRETCH_RECORDS];
};

/* As many records up to `last` as fit the limits, at least one. */
static fallible stretch_choose(struct walk *w, struct stretch *s, uint64_t last, uint64_t end)
{
    struct event_file *f = &w->log->file;
    uint64_t most = STRETCH_RECORDS;

    if (w->q->limit && !w->q->filter && w->q->limit - w->page.count < most)
        most = w->q->limit - w->page.count;
    s->last = last;
    s->end = end;
    s->first = last > most ? last - most + 1 : 1;
    for (;;) {
        TRY(event_file_locate(f, s->first, &s->at));
        if (s->first == last || (s->at < end && end - s->at <= STRETCH_BYTES))
            return NULL;
        s->first += (last - s->first + 1) / 2;
    }
}

static fallible stretch_load(struct walk *w, struct stretch *s, struct event_reader *rd)
{
    struct event_file *f = &w->log->file;
    struct event_chain chain = {.seq = s->first - 1};
    const char *why = NULL;

    rd->piece_bytes = s->end - s->at < STRETCH_BYTES ? (size_t)(s->end - s->at) : STRETCH_BYTES;
    rd->piece_bytes = rd->piece_bytes < 1 ? 1 : rd->piece_bytes;
    memcpy(chain.head, f->header.hash, SHA256_LEN);
    while (chain.seq < s->last) {
        struct event_view *v = &s->views[chain.seq + 1 - s->first];
        uint64_t at = rd->at;
        TRY_WRAP(event_reader_next(rd, v, &why), "'%s'", f->name);
        if (!why && chain.seq + 1 == s->first && s->first > 1)
            memcpy(chain.head, v->prev, SHA256_LEN);
        if (!why)
            why = event_chain_step(&chain, v, true);
        if (why)
            return event_file_fault(f, chain.seq + 1, at, why);
    }
    return NULL;
}

static fallible stretch_give(struct walk *w, struct stretch *s)
{
    struct event_file *f = &w->log->file;
    struct event_reader rd;

    event_reader_init(&rd, f->fd, f->header.marker, s->at, s->end);
    struct err *e = stretch_load(w, s, &rd);
    for (uint64_t seq = s->last; !e && !w->full && seq >= s->first; seq--)
        if (page_ends(w, &s->views[seq - s->first].r))
            w->page.next = seq > 1 ? seq : 0;
    event_reader_done(&rd);
    return e;
}

static fallible page_down(struct walk *w)
{
    struct event_file *f = &w->log->file;
    uint64_t end, last = f->chain.seq;
    struct stretch s;

    if (w->q->after && w->q->after <= last)
        last = w->q->after - 1;
    if (!last)
        return NULL;
    TRY(event_file_locate(f, last + 1, &end));
    while (last && !w->full) {
        TRY(stretch_choose(w, &s, last, end));
        TRY(stretch_give(w, &s));
        last = s.first - 1;
        end = s.at;
    }
    return NULL;
}

fallible event_log_read(struct event_log *log, const struct event_query *q,
                        bool (*each)(const struct event_record *r, void *arg), void *arg,
                        struct event_page *ret_page)
{
    struct walk w = {.log = log, .q = q, .each = each, .arg = arg};

    TRY(q->descending ? page_down(&w) : page_up(&w));
    if (ret_page)
        *ret_page = w.page;
    return NULL;
}
