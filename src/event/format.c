// SPDX-License-Identifier: Apache-2.0
/* format.c — records to bytes and back. Lengths are checked before anything is read by them. */
#include "event/format.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define VERSION      1
#define PIECE_BYTES  (256u << 10)
#define RECORD_LEAST (EVENT_RECORD_EXTRA + 1)

const char EVENT_READER_END[] = "ends here";

static const uint8_t log_magic[8] = "croftlog", index_magic[8] = "croftidx";

static void put_u32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

static void put_u64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}

static uint32_t get_u32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static uint64_t get_u64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

void event_header_put(uint8_t out[EVENT_HEADER_LEN], struct event_header *h)
{
    memcpy(out, log_magic, sizeof log_magic);
    put_u32(out + 8, VERSION);
    put_u32(out + 12, EVENT_HEADER_LEN);
    put_u64(out + 16, h->created_ns);
    put_u64(out + 24, h->marker);
    sha256(str_n(out, 32), h->hash);
    memcpy(out + 32, h->hash, SHA256_LEN);
}

const char *event_header_get(const uint8_t in[EVENT_HEADER_LEN], struct event_header *ret_h)
{
    struct event_header h = {.created_ns = get_u64(in + 16), .marker = get_u64(in + 24)};

    if (memcmp(in, log_magic, sizeof log_magic) != 0)
        return "is not an event log";
    sha256(str_n(in, 32), h.hash);
    if (memcmp(h.hash, in + 32, SHA256_LEN) != 0)
        return "has a header that does not match its hash";
    if (get_u32(in + 8) != VERSION || get_u32(in + 12) != EVENT_HEADER_LEN)
        return "is an event log of another version";
    *ret_h = h;
    return NULL;
}

void event_index_header_put(uint8_t out[EVENT_HEADER_LEN], const struct event_header *h)
{
    memset(out, 0, EVENT_HEADER_LEN);
    memcpy(out, index_magic, sizeof index_magic);
    put_u32(out + 8, VERSION);
    put_u32(out + 12, EVENT_ENTRY_LEN);
    memcpy(out + 32, h->hash, SHA256_LEN);
}

bool event_record_put(struct buf *out, const struct event_record *r, uint64_t marker,
                      uint64_t synced, struct event_chain *chain)
{
    size_t len = EVENT_RECORD_EXTRA + r->kind.len + r->id.len + r->payload.len;
    uint8_t *p = (uint8_t *)buf_reserve(out, len);

    if (!p)
        return false;
    put_u64(p, marker);
    put_u32(p + 8, (uint32_t)len);
    p[12] = (uint8_t)r->kind.len;
    p[13] = (uint8_t)r->id.len;
    p[14] = p[15] = 0;
    put_u64(p + 16, chain->seq + 1);
    put_u64(p + 24, r->wall_ns);
    put_u64(p + 32, synced);
    memcpy(p + 40, chain->head, SHA256_LEN);
    uint8_t *to = mempcpy(p + EVENT_RECORD_HEAD, r->kind.p, r->kind.len);
    if (r->id.len)
        to = mempcpy(to, r->id.p, r->id.len);
    if (r->payload.len)
        memcpy(to, r->payload.p, r->payload.len);
    sha256(str_n(p, len - SHA256_LEN), chain->head);
    memcpy(p + len - SHA256_LEN, chain->head, SHA256_LEN);
    chain->seq++;
    buf_commit(out, len);
    return true;
}

struct event_entry event_view_entry(const struct event_view *v)
{
    return (struct event_entry){htole64(v->at), htole64(get_u64(v->hash))};
}

const char *event_chain_step(struct event_chain *chain, const struct event_view *v, bool check_hash)
{
    uint8_t hash[SHA256_LEN];

    if (check_hash) {
        sha256(str_n(v->prev - 40, v->len - SHA256_LEN), hash);
        if (memcmp(hash, v->hash, SHA256_LEN) != 0)
            return "does not match its hash";
    }
    if (v->r.seq != chain->seq + 1)
        return "is out of sequence";
    if (memcmp(v->prev, chain->head, SHA256_LEN) != 0)
        return "does not carry the hash of the one before it";
    chain->seq = v->r.seq;
    memcpy(chain->head, v->hash, SHA256_LEN);
    return NULL;
}

fallible event_pread(int fd, void *p, size_t n, uint64_t at, size_t *ret_len)
{
    size_t have = 0;

    while (have < n) {
        ssize_t got = pread(fd, (char *)p + have, n - have, (off_t)(at + have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys("read at offset %" PRIu64, at + have);
        if (got == 0)
            break;
        have += (size_t)got;
    }
    *ret_len = have;
    return NULL;
}

fallible event_pwrite(int fd, const void *p, size_t n, uint64_t at)
{
    while (n) {
        ssize_t put = pwrite(fd, p, n, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return err_sysno(put ? errno : ENOSPC, "write at offset %" PRIu64, at);
        p = (const char *)p + put;
        n -= (size_t)put;
        at += (uint64_t)put;
    }
    return NULL;
}

void event_reader_init(struct event_reader *rd, int fd, uint64_t marker, uint64_t at, uint64_t end)
{
    *rd = (struct event_reader){
        .fd = fd, .marker = marker, .at = at, .end = end, .piece_bytes = PIECE_BYTES};
    buf_init(&rd->piece, EVENT_RECORD_MAX + PIECE_BYTES);
}

void event_reader_done(struct event_reader *rd)
{
    buf_done(&rd->piece);
}

/* Makes n bytes from rd->at on available if the file has them; gives how many there are. */
static fallible format_fill(struct event_reader *rd, size_t n, size_t *ret_have)
{
    uint64_t skip = rd->at - rd->piece_at;
    uint64_t left = rd->end - rd->at;

    if (rd->piece.len < skip || rd->piece.len - skip < n) {
        size_t want = n > rd->piece_bytes ? n : rd->piece_bytes;
        if (want > left)
            want = (size_t)left;
        buf_reset(&rd->piece);
        rd->piece_at = rd->at;
        skip = 0;
        char *to = buf_reserve(&rd->piece, want);
        if (!to)
            return err_no_memory();
        TRY(event_pread(rd->fd, to, want, rd->at, &rd->piece.len));
    }
    *ret_have = rd->piece.len - (size_t)skip;
    return NULL;
}

static const char *head_fault(const struct event_reader *rd, const uint8_t *p, size_t *ret_len)
{
    size_t len = get_u32(p + 8);

    if (get_u64(p) != rd->marker)
        return "does not begin like a record";
    if (len < RECORD_LEAST || len > EVENT_RECORD_MAX || !p[12] || p[12] > EVENT_KIND_MAX ||
        p[13] > EVENT_ID_MAX || EVENT_RECORD_EXTRA + (size_t)p[12] + p[13] > len)
        return "has impossible lengths";
    if (len > rd->end - rd->at)
        return "is cut short";
    *ret_len = len;
    return NULL;
}

static struct event_view view_of(const uint8_t *p, size_t len, uint64_t at)
{
    const char *text = (const char *)p + EVENT_RECORD_HEAD;
    size_t kind = p[12], id = p[13];

    return (struct event_view){
        .r = {.seq = get_u64(p + 16),
              .wall_ns = get_u64(p + 24),
              .kind = str_n(text, kind),
              .id = str_n(text + kind, id),
              .payload = str_n(text + kind + id, len - EVENT_RECORD_EXTRA - kind - id)},
        .at = at,
        .synced = get_u64(p + 32),
        .len = len,
        .prev = p + 40,
        .hash = p + len - SHA256_LEN,
    };
}

fallible event_reader_next(struct event_reader *rd, struct event_view *ret_view,
                           const char **ret_why)
{
    size_t have = 0, len = 0;

    *ret_why = EVENT_READER_END;
    if (rd->at >= rd->end)
        return NULL;
    TRY(format_fill(rd, EVENT_RECORD_HEAD, &have));
    *ret_why = "is cut short";
    if (have < EVENT_RECORD_HEAD)
        return NULL;
    const uint8_t *p = (const uint8_t *)rd->piece.p + (rd->at - rd->piece_at);
    *ret_why = head_fault(rd, p, &len);
    if (*ret_why)
        return NULL;
    TRY(format_fill(rd, len, &have));
    if (have < len) { /* the file shrank under us */
        *ret_why = "is cut short";
        return NULL;
    }
    p = (const uint8_t *)rd->piece.p + (rd->at - rd->piece_at);
    *ret_view = view_of(p, len, rd->at);
    rd->at += len;
    return NULL;
}
