// SPDX-License-Identifier: Apache-2.0
/* source.h — bytes that are pulled: a piece of a file, or what it unpacks to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

struct source {
    /* Up to n bytes, n > 0; 0 in *ret_len is the end. */
    fallible (*read)(struct source *s, void *p, size_t n, size_t *ret_len);
};

/* All n bytes, or fewer only at the end. */
fallible source_fill(struct source *s, void *p, size_t n, size_t *ret_len);

struct source_file { /* `size` bytes of a seekable file from `at` on; fd is borrowed */
    struct source source;
    int fd;
    uint64_t at, left;
};
void source_file_init(struct source_file *f, int fd, uint64_t at, uint64_t size);

struct source_mem {
    struct source source;
    const char *p;
    size_t left;
};
void source_mem_init(struct source_mem *m, const void *p, size_t n);

struct source_hash { /* passes on what it reads, hashing and counting it */
    struct source source;
    struct source *from;
    struct sha256 hash;
    uint64_t bytes, limit_bytes; /* more is ERR_TOO_LARGE */
};
void source_hash_init(struct source_hash *h, struct source *from, uint64_t limit_bytes);
/* Reads the rest as well: a digest is of all there is. */
fallible source_hash_end(struct source_hash *h, uint8_t out[SHA256_LEN]);

/* gzip, zstd, xz or none of them, by its first bytes. Both are the caller's to keep alive. */
struct decoder;
fallible decoder_new(struct source *from, struct decoder **ret);
void decoder_free(struct decoder *d);
OWNABLE(decoder)
struct source *decoder_source(struct decoder *d);
