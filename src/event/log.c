// SPDX-License-Identifier: Apache-2.0
/* log.c — group commit: while one batch is written and synced, the next one gathers.
 *
 * Ids and hashes are given when appending, so a batch that fails takes the gathering one with it.
 * The thread touches only the flight_ members, the flight's buffers and the two descriptors. */
#include "event/log.h"

#include <endian.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "event/inner.h"

#define KEEP_BYTES (1u << 20) /* a buffer larger than this is given back after every use */

static void commit_soon(struct event_log *log);
static void on_commit_done(struct loop_work *w);

static void batch_reset(struct event_batch *b)
{
    buf_reset(&b->bytes);
    buf_reset(&b->entries);
    if (b->bytes.cap > KEEP_BYTES)
        buf_done(&b->bytes);
    list_init(&b->waiting);
    b->count = 0;
    b->written = 0;
}

/* A host has thousands of logs, most of them silent: those hold no buffers. */
static void release_buffers(struct event_log *log)
{
    for (size_t i = 0; i < ARRAY_LEN(log->batches); i++) {
        buf_done(&log->batches[i].bytes);
        buf_done(&log->batches[i].entries);
    }
}

static void log_destroy(struct event_log *log)
{
    release_buffers(log);
    err_free(log->poison);
    event_file_close(&log->file);
    free(log);
}

static void on_gone(struct loop_later *l)
{
    log_destroy(container_of(l, struct event_log, gone));
}

/* On a thread, or on the loop where there is none. */
static void flight_run(struct event_log *log)
{
    const struct event_batch *b = log->flight;

    log->flight_err = event_pwrite(log->file.fd, b->bytes.p + b->written, b->bytes.len - b->written,
                                   log->flight_at + b->written);
    if (log->flight_err)
        return;
    uint64_t begun = clock_mono_ns(loop_clock(log->loop));
    int synced = fdatasync(log->file.fd);
    log->flight_sync_ns = clock_mono_ns(loop_clock(log->loop)) - begun;
    if (synced < 0) {
        log->flight_err = err_sys("fdatasync");
        log->flight_poisons = true;
        return;
    }
    if (!log->flight_indexes)
        return;
    struct err *e = event_pwrite(log->file.index_fd, b->entries.p, b->entries.len,
                                 EVENT_HEADER_LEN + (b->chain.seq - b->count) * EVENT_ENTRY_LEN);
    log->flight_indexed = e == NULL;
    err_free(e); /* the loop sees that the index lags, says so and tries again */
}

static void on_work_run(struct loop_work *w)
{
    flight_run(container_of(w, struct event_log, work));
}

static void commit_start(struct event_log *log)
{
    struct err *e = NULL;

    loop_timer_stop(&log->delay);
    loop_later_cancel(&log->start);
    log->flight = log->gather;
    log->gather = log->flight == &log->batches[0] ? &log->batches[1] : &log->batches[0];
    log->gather->chain = log->flight->chain;
    log->flight_at = log->file.end;
    log->flight_indexes = log->file.indexed == log->file.chain.seq;
    log->flight_indexed = log->flight_poisons = false;
    log->flight_err = NULL;
    if (!log->options.inline_sync)
        e = loop_work(log->loop, &log->work, on_work_run, on_commit_done);
    if (!e && !log->options.inline_sync)
        return;
    err_free(e); /* no thread to be had: then the loop waits for the disk itself */
    flight_run(log);
    on_commit_done(&log->work);
}

static void on_start(struct loop_later *l)
{
    struct event_log *log = container_of(l, struct event_log, start);

    if (!log->flight && log->gather->count)
        commit_start(log);
}

static void on_delay(struct loop_timer *t)
{
    struct event_log *log = container_of(t, struct event_log, delay);

    if (!log->flight && log->gather->count)
        commit_start(log);
}

static void commit_soon(struct event_log *log)
{
    if (log->flight || !log->gather->count)
        return;
    bool enough = log->gather->bytes.len >= log->options.pending_bytes / 4;
    if (!log->options.delay_ms || log->closing || enough)
        loop_later(log->loop, &log->start, on_start);
    else if (!log->delay.loop)
        loop_timer_start(log->loop, &log->delay, log->options.delay_ms, on_delay);
}

static void list_move_all(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

/* Any callback may append again, cancel others or free the log. */
static void log_tell(struct list *waiting, const struct err *why)
{
    while (!list_empty(waiting)) {
        struct event_append *a = container_of(waiting->next, struct event_append, link);
        list_del(&a->link);
        a->done(a, why);
    }
}

/* Cuts off a failed commit, and the records written behind it: they must not come back as history.
 * Their appenders get an error. */
static void flight_failed(struct event_log *log, struct list *told)
{
    struct event_batch *b = log->flight;

    if (ftruncate(log->file.fd, (off_t)log->flight_at) < 0)
        log->flight_poisons = true;
    if (log->flight_poisons)
        log->poison = err_copy(log->flight_err);
    log_error("event log commit failed: these records are lost", KV("log", log->file.name),
              KV("records", b->count), KV("poisoned", log->flight_poisons),
              KV_ERR(log->flight_err));
    list_move_all(told, &b->waiting);
    list_move_all(told, &log->gather->waiting);
    batch_reset(b);
    batch_reset(log->gather);
    loop_later_cancel(&log->start);
    loop_timer_stop(&log->delay);
    log->gather->chain = log->file.chain;
    log->flight = NULL;
    event_lives_fall_back(log);
}

static void flight_landed(struct event_log *log, struct list *told)
{
    struct event_batch *b = log->flight;
    struct event_file *f = &log->file;

    f->chain = b->chain;
    f->end += b->bytes.len;
    log->commits++;
    if (log->options.on_commit && !log->closing)
        log->options.on_commit(log->options.arg, b->count, log->flight_sync_ns);
    if (log->flight_indexed) {
        f->indexed = f->chain.seq;
        f->indexed_end = f->end;
    } else {
        struct err *e = event_index_extend(f);
        if (e)
            log_warn("event index lags", KV("log", f->name), KV("indexed", f->indexed), KV_ERR(e));
        err_free(e); /* reading walks the rest, the next commit tries again */
    }
    list_move_all(told, &b->waiting);
    batch_reset(b);
    log->flight = NULL;
}

static void on_commit_done(struct loop_work *w)
{
    struct event_log *log = container_of(w, struct event_log, work);
    struct err *why = NULL;
    struct list told;

    list_init(&told);
    if (log->flight_err) {
        why = err_wrap(log->flight_err, "event log '%s'", log->file.name);
        log->flight_err = why;
        flight_failed(log, &told);
        log->flight_err = NULL;
    } else {
        flight_landed(log, &told);
        event_subs_notice(log);
    }
    log->delivering = true;
    log_tell(&told, why);
    log->delivering = false;
    err_free(why);
    if (!log->gather->count)
        release_buffers(log);
    if (!log->closing) {
        commit_soon(log);
    } else if (log->gather->count) {
        log->options.inline_sync = true; /* the loop may be on its way out */
        commit_start(log);
    } else {
        loop_later(log->loop, &log->gone, on_gone);
    }
}

/* Should it fail, the commit does it again, and says so; nothing is written behind a gap. */
static void write_ahead(struct event_log *log, uint64_t base)
{
    struct event_batch *b = log->gather;

    if (log->flight && log->flight->written < log->flight->bytes.len)
        return;
    struct err *e = event_pwrite(log->file.fd, b->bytes.p + b->written, b->bytes.len - b->written,
                                 base + b->written);

    if (!e)
        b->written = b->bytes.len;
    err_free(e);
}

fallible event_log_append(struct event_log *log, const struct event_record *r,
                          struct event_append *a)
{
    struct event_batch *b = log->gather;
    struct event_record stamped = *r;
    size_t pending = b->bytes.len + (log->flight ? log->flight->bytes.len : 0);

    if (log->closing)
        return err_new(ERR_CLOSED, "event log '%s' is closed", log->file.name);
    if (log->poison)
        return err_new(ERR_IO, "event log '%s' must be opened again: %s", log->file.name,
                       err_text(log->poison));
    TRY(event_record_check(r, log->options.record_max));
    size_t len = EVENT_RECORD_EXTRA + r->kind.len + r->id.len + r->payload.len;
    if (pending && pending + len > log->options.pending_bytes)
        return err_new(ERR_BUSY, "event log '%s' has %zu bytes waiting for the disk",
                       log->file.name, pending);
    if (!stamped.wall_ns)
        stamped.wall_ns = clock_wall_ns(loop_clock(log->loop));
    struct event_entry *entry = (void *)buf_reserve(&b->entries, sizeof *entry);
    size_t at = b->bytes.len;
    if (!entry || !event_record_put(&b->bytes, &stamped, log->file.header.marker,
                                    log->file.chain.seq, &b->chain)) {
        b->bytes.no_memory = b->entries.no_memory = false;
        return err_no_memory();
    }
    uint64_t base = log->file.end + (log->flight ? log->flight->bytes.len : 0);
    uint64_t check;
    memcpy(&check, b->chain.head, sizeof check); /* as in event_view_entry: bytes as they lie */
    *entry = (struct event_entry){htole64(base + at), check};
    buf_commit(&b->entries, sizeof *entry);
    b->count++;
    if (a) {
        a->seq = b->chain.seq;
        list_add(&b->waiting, &a->link);
    }
    if (log->options.write_at_once)
        write_ahead(log, base);
    commit_soon(log);
    return NULL;
}

static fallible sink_append(struct event_sink *sink, const struct event_record *r,
                            struct event_append *a)
{
    return event_log_append(container_of(sink, struct event_log, sink), r, a);
}

static fallible sink_live(struct event_sink *sink, const struct event_record *r)
{
    return event_log_live(container_of(sink, struct event_log, sink), r);
}

static const struct event_sink_ops log_sink_ops = {sink_append, sink_live};

struct event_sink *event_log_sink(struct event_log *log)
{
    return &log->sink;
}

static struct event_options settled_options(const struct event_options *options)
{
    struct event_options o = options ? *options : (struct event_options){0};

    if (!o.record_max || o.record_max > EVENT_RECORD_MAX)
        o.record_max = EVENT_RECORD_MAX;
    if (o.record_max < 1024) /* room for the overhead, kind and id */
        o.record_max = 1024;
    if (!o.pending_bytes || o.pending_bytes > EVENT_PENDING_MAX)
        o.pending_bytes = EVENT_PENDING_MAX;
    return o;
}

fallible event_log_open(struct loop *loop, int dir, struct str name,
                        const struct event_options *options, struct event_log **ret_log)
{
    struct event_log *log = mem_try(sizeof *log);

    if (!log)
        return err_no_memory();
    log->sink.ops = &log_sink_ops;
    log->loop = loop;
    log->options = settled_options(options);
    list_init(&log->subs);
    list_init(&log->lives);
    for (size_t i = 0; i < ARRAY_LEN(log->batches); i++) {
        buf_init(&log->batches[i].bytes, EVENT_CUT_MAX);
        buf_init(&log->batches[i].entries, EVENT_CUT_MAX);
        list_init(&log->batches[i].waiting);
    }
    log->gather = &log->batches[0];
    struct err *e =
        event_file_open(&log->file, dir, name, &log->options, clock_wall_ns(loop_clock(loop)));
    if (e) {
        log_destroy(log);
        return err_wrap(e, "open event log '" STR_FMT "'", STR_ARG(str_first(name, 255)));
    }
    log->gather->chain = log->file.chain;
    *ret_log = log;
    return NULL;
}

void event_log_free(struct event_log *log)
{
    if (!log || log->closing)
        return;
    log->closing = true;
    struct err *why = err_new(ERR_CLOSED, "event log '%s' was closed", log->file.name);
    event_subs_end(log, why);
    err_free(why);
    if (log->flight || log->delivering)
        return; /* on_commit_done goes on */
    if (log->gather->count)
        commit_start(log);
    else
        loop_later(log->loop, &log->gone, on_gone);
}

void event_log_info(const struct event_log *log, struct event_info *ret_info)
{
    *ret_info = (struct event_info){
        .last_seq = log->file.chain.seq,
        .next_seq = log->gather->chain.seq + 1,
        .bytes = log->file.end,
        .commits = log->commits,
        .poisoned = log->poison != NULL,
        .repair = log->file.repair,
    };
    memcpy(ret_info->head, log->file.chain.head, sizeof ret_info->head);
}
