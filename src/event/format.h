// SPDX-License-Identifier: Apache-2.0
/* format.h — the bytes of a log and of its index; little-endian, no padding. Not for users.
 *
 * log    header: magic[8] version u32 size u32 created_ns u64 marker u64, SHA-256 of these 32 bytes
 *        record: marker u64 len u32 kind_len u8 id_len u8 zero u16 seq u64 wall_ns u64 synced u64
 *                prev[32] kind id payload, SHA-256 of all of it
 * index  header: magic[8] version u32 entry u32 zero[16], the hash in the log's header
 *        entry:  offset u64, first 8 bytes of the record's hash
 *
 * The marker is random per log and never leaves the host: a payload cannot imitate a record to
 * a search behind damage. synced is the last id known to be on disk when the record
 * was written, which tells one unfinished commit from damage to acknowledged records. */
#pragma once

#include "base/buf.h"
#include "base/hash.h"
#include "event/event.h"

#define EVENT_HEADER_LEN   64
#define EVENT_RECORD_HEAD  72
#define EVENT_RECORD_EXTRA (EVENT_RECORD_HEAD + SHA256_LEN)
#define EVENT_ENTRY_LEN    16

struct event_header {
    uint64_t created_ns, marker;
    uint8_t hash[SHA256_LEN]; /* what the first record carries as prev */
};

struct event_entry {
    uint64_t at, check;
};

/* A record where it lies in memory. */
struct event_view {
    struct event_record r;
    uint64_t at, synced; /* at: offset in the file */
    size_t len;
    const uint8_t *prev, *hash;
};

/* How far a walk has come. */
struct event_chain {
    uint64_t seq; /* of the last record, 0: none */
    uint8_t head[SHA256_LEN];
};

void event_header_put(uint8_t out[EVENT_HEADER_LEN], struct event_header *h); /* fills h->hash */
/* NULL, or what is wrong with it: "is not an event log", … */
const char *event_header_get(const uint8_t in[EVENT_HEADER_LEN], struct event_header *ret_h);
void event_index_header_put(uint8_t out[EVENT_HEADER_LEN], const struct event_header *h);

/* Appends one record after `chain` and moves the chain on; false if the buffer refuses. */
bool event_record_put(struct buf *out, const struct event_record *r, uint64_t marker,
                      uint64_t synced, struct event_chain *chain);
struct event_entry event_view_entry(const struct event_view *v);
/* NULL if v follows the chain, which then moves on; else what is wrong. */
const char *event_chain_step(struct event_chain *chain, const struct event_view *v,
                             bool check_hash);

/* Reads records one after the other, in large pieces. */
struct event_reader {
    int fd; /* borrowed */
    uint64_t marker;
    uint64_t at, end; /* at: of the next record */
    size_t piece_bytes;
    struct buf piece;
    uint64_t piece_at;
};
void event_reader_init(struct event_reader *rd, int fd, uint64_t marker, uint64_t at, uint64_t end);
void event_reader_done(struct event_reader *rd);
/* *ret_why: NULL for a record whose lengths are sound; EVENT_READER_END at the end; otherwise the
 * fault of the record at rd->at, where the reader stays. The view lasts until the next call. */
extern const char EVENT_READER_END[];
fallible event_reader_next(struct event_reader *rd, struct event_view *ret_view,
                           const char **ret_why);

/* Exactly n bytes, or fewer at the end of the file. */
fallible event_pread(int fd, void *p, size_t n, uint64_t at, size_t *ret_len);
fallible event_pwrite(int fd, const void *p, size_t n, uint64_t at);
