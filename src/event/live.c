// SPDX-License-Identifier: Apache-2.0
/* live.c — records that are delivered and never stored.
 *
 * They wait in one queue of the log until every subscriber has taken them; each knows its next one.
 * A live record comes after the last one appended before it, so it waits for that to be durable. */
#include <stdlib.h>

#include "base/mem.h"
#include "event/inner.h"

struct event_live {
    struct list link; /* in the log, until it is dropped */
    unsigned takers;  /* subscribers that have not taken it */
    uint64_t after;   /* the id of the record before it */
    struct event_record r;
    char bytes[];
};

static size_t live_size(const struct event_record *r)
{
    return r->kind.len + r->id.len + r->payload.len;
}

static struct str put_bytes(char **at, struct str s)
{
    struct str copy = {.p = *at, .len = s.len};

    if (s.len)
        memcpy(*at, s.p, s.len);
    *at += s.len;
    return copy;
}

static fallible live_new(const struct event_log *log, const struct event_record *r,
                         struct event_live **ret_live)
{
    struct event_live *v = mem_try(sizeof *v + live_size(r));

    if (!v)
        return err_no_memory();
    char *at = v->bytes;
    v->after = log->gather->chain.seq;
    v->r = (struct event_record){
        .wall_ns = r->wall_ns ? r->wall_ns : clock_wall_ns(loop_clock(log->loop)),
        .kind = put_bytes(&at, r->kind),
        .id = put_bytes(&at, r->id),
        .payload = put_bytes(&at, r->payload),
    };
    *ret_live = v;
    return NULL;
}

static struct event_live *live_next(const struct event_log *log, const struct event_live *v)
{
    return v->link.next == &log->lives ? NULL : container_of(v->link.next, struct event_live, link);
}

static void live_unlink(struct event_log *log, struct event_live *v)
{
    if (list_empty(&v->link))
        return;
    list_del(&v->link);
    log->live_count--;
    log->live_bytes -= live_size(&v->r);
}

static void live_taken(struct event_log *log, struct event_live *v)
{
    if (--v->takers)
        return;
    live_unlink(log, v);
    free(v);
}

/* The one that gives it at this moment, if any, still holds it. */
static void drop_oldest(struct event_log *log)
{
    struct event_live *v = LIST_FIRST(&log->lives, struct event_live, link);
    struct event_live *next = live_next(log, v);

    v->takers++;
    LIST_EACH(s, &log->subs, struct event_sub, link) {
        if (s->live_at != v)
            continue;
        s->live_at = next;
        s->live_missed++;
        v->takers--;
    }
    live_unlink(log, v);
    live_taken(log, v);
}

fallible event_log_live(struct event_log *log, const struct event_record *r)
{
    struct event_live *v;
    unsigned takers = 0;

    if (log->closing)
        return err_new(ERR_CLOSED, "event log '%s' is closed", log->file.name);
    TRY(event_record_check(r, EVENT_LIVE_BYTES));
    LIST_EACH(s, &log->subs, struct event_sub, link)
        takers += s->on_live != NULL;
    if (!takers)
        return NULL;
    TRY(live_new(log, r, &v));
    v->takers = takers;
    list_add(&log->lives, &v->link);
    log->live_count++;
    log->live_bytes += live_size(r);
    LIST_EACH(s, &log->subs, struct event_sub, link) {
        if (!s->on_live)
            continue;
        if (!s->live_at)
            s->live_at = v;
        event_sub_pump(s);
    }
    while (log->live_count > EVENT_LIVE_RECORDS || log->live_bytes > EVENT_LIVE_BYTES)
        drop_oldest(log);
    return NULL;
}

void event_lives_give(struct event_sub *s, const bool *gone)
{
    while (!*gone && !s->paused && s->live_at && s->live_at->after <= s->after) {
        struct event_log *log = s->log;
        struct event_live *v = s->live_at;
        s->live_at = live_next(log, v);
        if (event_filter_match(s->filter, &v->r)) {
            uint64_t missed = s->live_missed;
            s->live_missed = 0;
            s->on_live(s, &v->r, missed);
        }
        live_taken(log, v);
    }
}

void event_lives_leave(struct event_sub *s)
{
    while (s->live_at) {
        struct event_live *v = s->live_at;
        s->live_at = live_next(s->log, v);
        live_taken(s->log, v);
    }
}

void event_lives_fall_back(struct event_log *log)
{
    LIST_EACH(v, &log->lives, struct event_live, link)
        if (v->after > log->file.chain.seq)
            v->after = log->file.chain.seq;
    event_subs_notice(log);
}
