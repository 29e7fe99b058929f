// SPDX-License-Identifier: Apache-2.0
/* verify.c — the whole log against itself and its index; see verify.h. */
#include "event/verify.h"

#include <endian.h>
#include <stdio.h>
#include <sys/stat.h>

#include "event/file.h"
#include "event/tail.h"

#define ENTRIES_AT_ONCE 1024

struct check {
    struct event_verdict v;
    struct event_header header;
    struct event_chain chain;
    uint64_t size;
    int log, index;
    uint64_t acked; /* entries of the index, EVENT_COUNT_UNKNOWN without */
    void (*fn)(void *arg, const struct event_record *r); /* may be NULL */
    void *arg;
    struct event_entry entries[ENTRIES_AT_ONCE];
    uint64_t loaded_from, loaded; /* ids in entries */
};

static void verify_note(struct check *c, enum event_state state, uint64_t at, uint64_t seq,
                        const char *why)
{
    c->v.state = state;
    c->v.bad_offset = at;
    c->v.bad_seq = seq;
    c->v.after_bytes = c->size > at ? c->size - at : 0;
    snprintf(c->v.why, sizeof c->v.why, "%s", why);
}

static fallible load_entries(struct check *c, uint64_t seq)
{
    size_t n;

    TRY_WRAP(event_pread(c->index, c->entries, sizeof c->entries,
                         EVENT_HEADER_LEN + (seq - 1) * EVENT_ENTRY_LEN, &n),
             "index");
    c->loaded_from = seq;
    c->loaded = n / EVENT_ENTRY_LEN;
    return NULL;
}

/* The first wrong entry is remembered; the walk goes on, the log matters more. */
static fallible check_entry(struct check *c, const struct event_view *v)
{
    uint64_t seq = v->r.seq;
    struct event_entry want = event_view_entry(v);

    if (c->acked == EVENT_COUNT_UNKNOWN || seq > c->acked || c->v.index == EVENT_INDEX_WRONG)
        return NULL;
    if (seq - c->loaded_from >= c->loaded)
        TRY(load_entries(c, seq));
    const struct event_entry *got = &c->entries[seq - c->loaded_from];
    if (c->loaded && got->at == want.at && got->check == want.check)
        return NULL;
    c->v.index = EVENT_INDEX_WRONG;
    verify_note(c, EVENT_BAD_INDEX, v->at, seq, "does not match its index entry");
    return NULL;
}

static fallible check_records(struct check *c, struct event_reader *rd, const char **ret_why)
{
    struct event_view v;
    const char *why = NULL;

    for (;;) {
        TRY(event_reader_next(rd, &v, &why));
        if (!why)
            why = event_chain_step(&c->chain, &v, true);
        if (why)
            break;
        c->v.bytes = rd->at;
        c->v.records++;
        c->v.first_seq = c->v.first_seq ? c->v.first_seq : v.r.seq;
        c->v.last_seq = v.r.seq;
        TRY(check_entry(c, &v));
        if (c->fn)
            c->fn(c->arg, &v.r);
    }
    *ret_why = why == EVENT_READER_END ? NULL : why;
    return NULL;
}

static fallible check_index_header(struct check *c)
{
    struct stat st;

    c->acked = EVENT_COUNT_UNKNOWN;
    c->v.index = EVENT_INDEX_MISSING;
    if (c->index < 0)
        return NULL;
    TRY(event_index_count(c->index, &c->header, &c->acked));
    if (c->acked != EVENT_COUNT_UNKNOWN) {
        c->v.index = EVENT_INDEX_OK;
        return NULL;
    }
    if (fstat(c->index, &st) == 0 && st.st_size > 0) {
        c->v.index = EVENT_INDEX_WRONG;
        verify_note(c, EVENT_BAD_INDEX, 0, 0, "has an index that is not its own");
    }
    return NULL;
}

static fallible judge_tail(struct check *c, const char *why)
{
    struct event_tail t;
    uint64_t seq = c->chain.seq + 1, at = c->v.bytes;

    TRY(event_tail_judge(c->log, c->header.marker, seq, at, c->size, c->acked, &t));
    verify_note(c, t.damaged ? EVENT_CORRUPT : EVENT_TORN, at, seq, why);
    return NULL;
}

static void judge_index_length(struct check *c)
{
    if (c->v.state != EVENT_OK || c->v.index != EVENT_INDEX_OK)
        return;
    if (c->acked < c->v.records)
        c->v.index = EVENT_INDEX_SHORT;
    if (c->acked <= c->v.records)
        return;
    c->v.index = EVENT_INDEX_WRONG;
    verify_note(c, EVENT_CORRUPT, c->size, c->chain.seq + 1,
                "is missing: the index remembers it as acknowledged");
}

static fallible check_log(struct check *c)
{
    uint8_t bytes[EVENT_HEADER_LEN];
    struct event_reader rd;
    const char *why = NULL;
    size_t n;

    TRY(event_pread(c->log, bytes, sizeof bytes, 0, &n));
    why = n < sizeof bytes ? "is too short for an event log" : event_header_get(bytes, &c->header);
    if (why) {
        c->v.index = EVENT_INDEX_MISSING;
        verify_note(c, EVENT_CORRUPT, 0, 0, why);
        return NULL;
    }
    memcpy(c->chain.head, c->header.hash, SHA256_LEN);
    c->v.created_ns = c->header.created_ns;
    c->v.bytes = EVENT_HEADER_LEN;
    TRY(check_index_header(c));
    event_reader_init(&rd, c->log, c->header.marker, EVENT_HEADER_LEN, c->size);
    struct err *e = check_records(c, &rd, &why);
    event_reader_done(&rd);
    TRY(e);
    if (why)
        return judge_tail(c, why);
    judge_index_length(c);
    return NULL;
}

fallible event_verify(int log, int index, struct event_verdict *ret_verdict)
{
    return event_verify_each(log, index, NULL, NULL, ret_verdict);
}

fallible event_verify_each(int log, int index, void (*fn)(void *arg, const struct event_record *r),
                           void *arg, struct event_verdict *ret_verdict)
{
    struct check c = {.log = log, .index = index, .fn = fn, .arg = arg};
    struct stat st;

    if (fstat(log, &st) < 0)
        return err_sys("stat the log");
    if (!S_ISREG(st.st_mode))
        return err_new(ERR_INVALID, "not a regular file");
    c.size = (uint64_t)st.st_size;
    TRY(check_log(&c));
    memcpy(c.v.head, c.chain.head, SHA256_LEN);
    *ret_verdict = c.v;
    return NULL;
}

const char *event_state_word(enum event_state s)
{
    static const char *const words[] = {[EVENT_OK] = "ok",
                                        [EVENT_TORN] = "torn",
                                        [EVENT_CORRUPT] = "corrupt",
                                        [EVENT_BAD_INDEX] = "bad index"};

    return words[s];
}

const char *event_index_word(enum event_index_state s)
{
    static const char *const words[] = {[EVENT_INDEX_OK] = "ok",
                                        [EVENT_INDEX_MISSING] = "missing",
                                        [EVENT_INDEX_SHORT] = "short",
                                        [EVENT_INDEX_WRONG] = "wrong"};

    return words[s];
}
