// SPDX-License-Identifier: Apache-2.0
/* sub.c — subscribers: each is a place in the file and pumps a piece per turn.
 *
 * Stored records are not queued in memory. Old and new ones are read the same way, so there is no
 * hand-over at which one could be lost or come twice. For live records see live.c. */
#include "event/inner.h"
#include "event/log.h"

#define PIECE_BYTES (64u << 10)
#define TURN_BYTES  (256u << 10) /* read per subscriber and turn, so that none starves */

static void on_pump(struct loop_later *l);

void event_sub_pump(struct event_sub *s)
{
    loop_later(s->log->loop, &s->pump, on_pump);
}

void event_sub_stop(struct event_sub *s)
{
    if (!s->log)
        return;
    loop_later_cancel(&s->pump);
    event_lives_leave(s);
    list_del(&s->link);
    s->log = NULL;
    if (s->gone)
        *s->gone = true;
    s->gone = NULL;
}

static void sub_end(struct event_sub *s, const struct err *why)
{
    event_sub_stop(s);
    if (s->on_end)
        s->on_end(s, why);
}

void event_subs_end(struct event_log *log, const struct err *why)
{
    while (!list_empty(&log->subs))
        sub_end(container_of(log->subs.next, struct event_sub, link), why);
}

void event_subs_notice(struct event_log *log)
{
    LIST_EACH(s, &log->subs, struct event_sub, link)
        event_sub_pump(s);
}

void event_sub_pause(struct event_sub *s)
{
    s->paused = true;
}

void event_sub_resume(struct event_sub *s)
{
    if (!s->paused)
        return;
    s->paused = false;
    if (s->log)
        event_sub_pump(s);
}

/* Refuses a subscriber that lags behind by more records or bytes than its queue allows. */
static fallible check_lag(const struct event_sub *s)
{
    const struct event_file *f = &s->log->file;
    uint64_t records = f->chain.seq - (s->after > s->since ? s->after : s->since);
    uint64_t bytes = f->end - (s->at > s->since_at ? s->at : s->since_at);

    if (records > s->queue_records)
        return err_new(ERR_LIMIT, "subscriber is %llu records behind, its limit is %llu",
                       (unsigned long long)records, (unsigned long long)s->queue_records);
    if (bytes > s->queue_bytes)
        return err_new(ERR_LIMIT, "subscriber is %llu bytes behind, its limit is %llu",
                       (unsigned long long)bytes, (unsigned long long)s->queue_bytes);
    return NULL;
}

/* Gives records until it is paused, stopped, through, or had its share of the turn. */
static fallible sub_pump(struct event_sub *s, struct event_reader *rd, const bool *gone)
{
    struct event_log *log = s->log;
    uint64_t begin = rd->at;

    event_lives_give(s, gone);
    while (!*gone && !s->paused && rd->at < rd->end && rd->at - begin < TURN_BYTES) {
        struct event_chain chain = {.seq = s->after};
        struct event_view v;
        const char *why = NULL;
        uint64_t at = rd->at;
        TRY_WRAP(event_reader_next(rd, &v, &why), "'%s'", log->file.name);
        if (!why) {
            memcpy(chain.head, v.prev, SHA256_LEN);
            why = event_chain_step(&chain, &v, v.r.seq <= s->since); /* live ones we just hashed */
        }
        if (why)
            return event_file_fault(&log->file, s->after + 1, at, why);
        s->after = v.r.seq;
        s->at = rd->at;
        if (event_filter_match(s->filter, &v.r))
            s->on_record(s, &v.r);
        event_lives_give(s, gone);
    }
    return NULL;
}

static fallible pump_turn(struct event_sub *s, bool *gone)
{
    struct event_file *f = &s->log->file;
    struct event_reader rd;

    if (s->paused)
        return check_lag(s);
    event_reader_init(&rd, f->fd, f->header.marker, s->at, f->end);
    rd.piece_bytes = PIECE_BYTES;
    s->gone = gone;
    struct err *e = sub_pump(s, &rd, gone);
    event_reader_done(&rd);
    if (!*gone)
        s->gone = NULL;
    return e;
}

static void on_pump(struct loop_later *l)
{
    struct event_sub *s = container_of(l, struct event_sub, pump);
    bool gone = false;
    struct err *e = pump_turn(s, &gone);

    if (gone) {
        err_free(e); /* it was stopped: none is left to hear it */
        return;
    }
    if (e) {
        sub_end(s, e);
        err_free(e);
        return;
    }
    if (s->paused)
        return;
    if (s->at < s->log->file.end) {
        event_sub_pump(s);
    } else if (!s->caught_up) {
        s->caught_up = true;
        if (s->on_caught_up)
            s->on_caught_up(s);
    }
}

fallible event_sub_start(struct event_log *log, struct event_sub *s)
{
    if (log->closing)
        return err_new(ERR_CLOSED, "event log '%s' is closed", log->file.name);
    if (s->after > log->file.chain.seq)
        return err_new(ERR_INVALID, "no record %llu to subscribe after: the last is %llu",
                       (unsigned long long)s->after, (unsigned long long)log->file.chain.seq);
    TRY(event_file_locate(&log->file, s->after + 1, &s->at));
    if (!s->queue_records)
        s->queue_records = EVENT_QUEUE_RECORDS;
    if (!s->queue_bytes)
        s->queue_bytes = EVENT_QUEUE_BYTES;
    s->since = log->file.chain.seq;
    s->since_at = log->file.end;
    s->paused = s->caught_up = false;
    s->live_at = NULL;
    s->live_missed = 0;
    s->gone = NULL;
    s->pump = (struct loop_later){0};
    s->log = log;
    list_add(&log->subs, &s->link);
    event_sub_pump(s);
    return NULL;
}
