// SPDX-License-Identifier: Apache-2.0
/* index.c — where each record begins. Entries are written only after the record is on disk, so an
 * entry is also evidence that the record had been acknowledged; none is believed unseen. */
#include <endian.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "event/file.h"

#define ENTRIES_AT_ONCE 1024
#define LAST_TRIES      4 /* a torn tail costs one or two entries, not a rebuild */

static uint64_t entry_at(uint64_t seq)
{
    return EVENT_HEADER_LEN + (seq - 1) * EVENT_ENTRY_LEN;
}

fallible event_index_count(int index_fd, const struct event_header *h, uint64_t *ret_count)
{
    uint8_t want[EVENT_HEADER_LEN], got[EVENT_HEADER_LEN];
    struct stat st;
    size_t n;

    event_index_header_put(want, h);
    TRY(event_pread(index_fd, got, sizeof got, 0, &n));
    if (fstat(index_fd, &st) < 0)
        return err_sys("stat the index");
    *ret_count = EVENT_COUNT_UNKNOWN;
    if (n == sizeof got && memcmp(want, got, n) == 0)
        *ret_count = ((uint64_t)st.st_size - EVENT_HEADER_LEN) / EVENT_ENTRY_LEN;
    return NULL;
}

fallible event_index_get(int index_fd, uint64_t seq, struct event_entry *ret_entry)
{
    struct event_entry e = {0};
    size_t n;

    TRY_WRAP(event_pread(index_fd, &e, sizeof e, entry_at(seq), &n), "index");
    if (n < sizeof e)
        e = (struct event_entry){0}; /* offset 0 is never a record */
    *ret_entry = (struct event_entry){le64toh(e.at), le64toh(e.check)};
    return NULL;
}

/* Whether the entry leads to record seq, whole and with the hash the entry remembers. */
static fallible entry_holds(struct event_file *f, uint64_t seq, uint64_t log_size,
                            struct event_chain *ret_chain, uint64_t *ret_end)
{
    struct event_entry e = {0};
    struct event_view v;
    struct event_reader rd;
    const char *why = NULL;

    *ret_end = 0;
    TRY(event_index_get(f->index_fd, seq, &e));
    if (e.at < EVENT_HEADER_LEN || e.at >= log_size)
        return NULL;
    event_reader_init(&rd, f->fd, f->header.marker, e.at, log_size);
    rd.piece_bytes = 4096;
    struct err *err = event_reader_next(&rd, &v, &why);
    if (!err && !why) {
        struct event_chain c = {.seq = seq - 1};
        memcpy(c.head, v.prev, SHA256_LEN);
        if (!event_chain_step(&c, &v, true) && le64toh(event_view_entry(&v).check) == e.check) {
            *ret_chain = c;
            *ret_end = rd.at;
        }
    }
    event_reader_done(&rd);
    return err;
}

fallible event_index_find_last(struct event_file *f, uint64_t count, uint64_t log_size,
                               struct event_chain *ret_chain)
{
    uint64_t end = 0;

    f->indexed = 0;
    f->indexed_end = EVENT_HEADER_LEN;
    for (uint64_t i = 0; i < LAST_TRIES && i < count; i++) {
        TRY(entry_holds(f, count - i, log_size, ret_chain, &end));
        if (!end)
            continue;
        f->indexed = count - i;
        f->indexed_end = end;
        return NULL;
    }
    *ret_chain = (struct event_chain){0};
    memcpy(ret_chain->head, f->header.hash, SHA256_LEN);
    return NULL;
}

fallible event_index_reset(struct event_file *f)
{
    uint8_t header[EVENT_HEADER_LEN];

    f->indexed = 0;
    f->indexed_end = EVENT_HEADER_LEN;
    event_index_header_put(header, &f->header);
    if (ftruncate(f->index_fd, 0) < 0)
        return err_sys("empty the index of '%s'", f->name);
    TRY_WRAP(event_pwrite(f->index_fd, header, sizeof header, 0), "index of '%s'", f->name);
    return NULL;
}

static fallible put_entries(struct event_file *f, const struct event_entry *entries, size_t n,
                            uint64_t end)
{
    TRY_WRAP(event_pwrite(f->index_fd, entries, n * sizeof *entries, entry_at(f->indexed + 1)),
             "index of '%s'", f->name);
    f->indexed += n;
    f->indexed_end = end;
    return NULL;
}

static fallible index_extend(struct event_file *f, struct event_reader *rd)
{
    struct event_entry entries[ENTRIES_AT_ONCE];
    struct event_view v;
    const char *why = NULL;
    size_t n = 0;

    for (;;) {
        uint64_t seq = f->indexed + n + 1;
        TRY(event_reader_next(rd, &v, &why));
        if (!why && v.r.seq != seq)
            why = "is out of sequence";
        if (why == EVENT_READER_END)
            return n ? put_entries(f, entries, n, rd->at) : NULL;
        if (why)
            return event_file_fault(f, seq, rd->at, why);
        entries[n++] = event_view_entry(&v);
        if (n == ENTRIES_AT_ONCE) {
            TRY(put_entries(f, entries, n, rd->at));
            n = 0;
        }
    }
}

fallible event_index_extend(struct event_file *f)
{
    struct event_reader rd;
    struct stat st;

    if (fstat(f->index_fd, &st) < 0)
        return err_sys("stat the index of '%s'", f->name);
    if ((uint64_t)st.st_size > entry_at(f->indexed + 1) &&
        ftruncate(f->index_fd, (off_t)entry_at(f->indexed + 1)) < 0)
        return err_sys("cut the index of '%s'", f->name);
    event_reader_init(&rd, f->fd, f->header.marker, f->indexed_end, f->end);
    struct err *e = index_extend(f, &rd);
    event_reader_done(&rd);
    return e;
}

/* The entry may be anything: it counts only if that record begins there. */
static fallible look_up(struct event_file *f, uint64_t seq, uint64_t *ret_at)
{
    struct event_entry e = {0};
    struct event_view v;
    struct event_reader rd;
    const char *why = NULL;

    *ret_at = 0;
    TRY(event_index_get(f->index_fd, seq, &e));
    if (e.at < EVENT_HEADER_LEN || e.at >= f->end)
        return NULL;
    event_reader_init(&rd, f->fd, f->header.marker, e.at, f->end);
    rd.piece_bytes = 4096;
    struct err *err = event_reader_next(&rd, &v, &why);
    if (!err && !why && v.r.seq == seq)
        *ret_at = e.at;
    event_reader_done(&rd);
    return err;
}

static fallible walk_to(struct event_file *f, uint64_t seq, uint64_t *ret_at)
{
    struct event_view v;
    struct event_reader rd;
    const char *why = NULL;
    struct err *e = NULL;
    uint64_t at = f->indexed < seq ? f->indexed : 0;

    event_reader_init(&rd, f->fd, f->header.marker, at ? f->indexed_end : EVENT_HEADER_LEN, f->end);
    for (; !e && at + 1 < seq; at++) {
        e = event_reader_next(&rd, &v, &why);
        if (!e && !why && v.r.seq != at + 1)
            why = "is out of sequence";
        if (!e && why)
            e = event_file_fault(f, at + 1, rd.at, why);
    }
    *ret_at = rd.at;
    event_reader_done(&rd);
    return e;
}

fallible event_file_locate(struct event_file *f, uint64_t seq, uint64_t *ret_at)
{
    if (seq == f->chain.seq + 1) {
        *ret_at = f->end;
        return NULL;
    }
    if (seq <= f->indexed) {
        TRY(look_up(f, seq, ret_at));
        if (*ret_at)
            return NULL;
        log_warn("event index is wrong, rebuilding it", KV("log", f->name), KV("seq", seq));
        own(err) e = event_index_reset(f);
        if (!e)
            e = event_index_extend(f);
        if (e && err_code(e) == ERR_CORRUPT)
            return take(&e);
        if (e)
            log_warn("event index cannot be rebuilt", KV("log", f->name), KV_ERR(e));
        if (!e && seq <= f->indexed) {
            TRY(look_up(f, seq, ret_at));
            if (*ret_at)
                return NULL;
        }
    }
    return walk_to(f, seq, ret_at);
}
