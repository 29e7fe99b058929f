// SPDX-License-Identifier: Apache-2.0
/* tail.c — looks behind a broken record for whole ones.
 *
 * Only one commit can be unfinished, and its pages may reach the disk in any order. So a whole
 * record behind a hole is no damage if it belongs to that commit.
 *
 * Two witnesses must say so: the index, which learns of a record after the sync, and `synced` in
 * the record. Without an index a whole record behind a broken one counts as damage. */
#include "event/tail.h"

#include <endian.h>

#include "event/file.h"

#define PIECE (256u << 10)
#define LEAST (EVENT_RECORD_EXTRA + 1)

struct search {
    struct event_reader rd;
    uint64_t seq, from, size; /* seq: of the broken record */
    uint64_t hash_budget;     /* a hostile file may hold a marker every eight bytes */
    uint64_t synced;          /* newest seen */
    struct event_tail *out;
};

/* Is there a whole record at this offset? */
static fallible try_at(struct search *s, uint64_t at)
{
    struct event_view v;
    const char *why = NULL;
    struct event_chain c = {0};

    s->rd.at = at;
    TRY(event_reader_next(&s->rd, &v, &why));
    if (why || v.r.seq <= s->seq || v.r.seq - s->seq > (s->size - s->from) / LEAST)
        return NULL;
    if (v.len > s->hash_budget) {
        s->out->damaged = true;
        s->out->reason = "too many beginnings of records behind damage";
        return NULL;
    }
    s->hash_budget -= v.len;
    c.seq = v.r.seq - 1;
    memcpy(c.head, v.prev, SHA256_LEN);
    if (event_chain_step(&c, &v, true))
        return NULL;
    if (!s->out->later_seq) {
        s->out->later_seq = v.r.seq;
        s->out->later_at = at;
    }
    if (v.synced > s->synced)
        s->synced = v.synced;
    return NULL;
}

static fallible tail_search(struct search *s)
{
    uint64_t marker = htole64(s->rd.marker);
    own_done(buf) piece;

    buf_init(&piece, PIECE);
    char *p = buf_reserve(&piece, PIECE);
    if (!p)
        return err_no_memory();
    for (uint64_t at = s->from + 1; at + LEAST <= s->size && !s->out->damaged;) {
        size_t n;
        TRY(event_pread(s->rd.fd, p, PIECE, at, &n));
        const char *hit = p;
        while (!s->out->damaged &&
               (hit = memmem(hit, n - (size_t)(hit - p), &marker, sizeof marker))) {
            TRY(try_at(s, at + (uint64_t)(hit - p)));
            hit++;
        }
        if (n < PIECE)
            break;
        at += PIECE - (sizeof marker - 1);
    }
    return NULL;
}

fallible event_tail_judge(int fd, uint64_t marker, uint64_t seq, uint64_t at, uint64_t size,
                          uint64_t acked, struct event_tail *ret_tail)
{
    struct event_tail t = {0};
    struct search s = {
        .seq = seq, .from = at, .size = size, .hash_budget = 4ull * EVENT_CUT_MAX, .out = &t};
    bool known = acked != EVENT_COUNT_UNKNOWN;

    event_reader_init(&s.rd, fd, marker, at, size);
    s.rd.piece_bytes = 4096;
    struct err *e = tail_search(&s);
    event_reader_done(&s.rd);
    TRY(e);
    if (t.later_seq && (!known || acked >= seq || s.synced >= seq)) {
        t.damaged = true;
    } else if (known && acked > seq) {
        t.damaged = true;
        t.later_seq = 0;
        t.reason = "acknowledged records behind it are gone";
    } else if (size - at > EVENT_CUT_MAX) {
        t.damaged = true;
        t.later_seq = 0;
        t.reason = "more is broken than one commit can leave";
    }
    if (t.damaged && !t.reason)
        t.reason = "valid records follow it";
    *ret_tail = t;
    return NULL;
}
