// SPDX-License-Identifier: Apache-2.0
/* source.c — files, memory, and a hash in passing. */
#include "image/source.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

fallible source_fill(struct source *s, void *p, size_t n, size_t *ret_len)
{
    size_t len = 0;

    while (len < n) {
        size_t got;
        TRY(s->read(s, (char *)p + len, n - len, &got));
        if (!got)
            break;
        len += got;
    }
    *ret_len = len;
    return NULL;
}

static fallible file_read(struct source *s, void *p, size_t n, size_t *ret_len)
{
    struct source_file *f = (struct source_file *)s;
    size_t want = n < f->left ? n : (size_t)f->left;
    ssize_t got;

    do
        got = want ? pread(f->fd, p, want, (off_t)f->at) : 0;
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_sys("read the archive");
    f->at += (uint64_t)got;
    f->left -= (uint64_t)got;
    *ret_len = (size_t)got;
    return NULL;
}

void source_file_init(struct source_file *f, int fd, uint64_t at, uint64_t size)
{
    *f = (struct source_file){{file_read}, fd, at, size};
}

static fallible mem_read(struct source *s, void *p, size_t n, size_t *ret_len)
{
    struct source_mem *m = (struct source_mem *)s;
    size_t got = n < m->left ? n : m->left;

    if (got)
        memcpy(p, m->p, got);
    m->p += got;
    m->left -= got;
    *ret_len = got;
    return NULL;
}

void source_mem_init(struct source_mem *m, const void *p, size_t n)
{
    *m = (struct source_mem){{mem_read}, p, n};
}

static fallible hash_read(struct source *s, void *p, size_t n, size_t *ret_len)
{
    struct source_hash *h = (struct source_hash *)s;

    TRY(h->from->read(h->from, p, n, ret_len));
    sha256_add(&h->hash, p, *ret_len);
    h->bytes += *ret_len;
    if (h->bytes > h->limit_bytes)
        return err_new(ERR_TOO_LARGE, "it unpacks to more than %llu bytes",
                       (unsigned long long)h->limit_bytes);
    return NULL;
}

void source_hash_init(struct source_hash *h, struct source *from, uint64_t limit_bytes)
{
    *h = (struct source_hash){.source = {hash_read}, .from = from, .limit_bytes = limit_bytes};
    sha256_init(&h->hash);
}

fallible source_hash_end(struct source_hash *h, uint8_t out[SHA256_LEN])
{
    char rest[16384];
    size_t n;

    do
        TRY(hash_read(&h->source, rest, sizeof rest, &n));
    while (n);
    sha256_done(&h->hash, out);
    return NULL;
}
