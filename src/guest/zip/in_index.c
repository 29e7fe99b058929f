// SPDX-License-Identifier: Apache-2.0
/* in_index.c — what is refused before anything is written: see zip_in_new. */
#include <stdlib.h>
#include <sys/statfs.h>

#include "guest/zip/format.h"
#include "guest/zip/in.h"

#define RATIO_FROM (64u << 20)
#define HASH_START 0xcbf29ce484222325u
#define HASH_STEP  0x100000001b3u

static uint64_t hash_char(uint64_t h, char c)
{
    return (h ^ (unsigned char)c) * HASH_STEP;
}

static uint64_t hash_of(struct str path, bool dir)
{
    uint64_t h = HASH_START;

    for (size_t i = 0; i < path.len; i++)
        h = hash_char(h, path.p[i]);
    return h << 1 | dir;
}

static int by_hash(const void *a, const void *b)
{
    uint64_t x = ((const struct zip_in_entry *)a)->hash, y = ((const struct zip_in_entry *)b)->hash;

    return x < y ? -1 : x > y;
}

static int by_offset(const void *a, const void *b)
{
    const struct zip_in_entry *x = a, *y = b;

    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1)
                                  : (x->at < y->at ? -1 : x->at > y->at);
}

static fallible check_method(const struct zip_in *z, const struct zip_in_record *r)
{
    struct str path = buf_str(&z->path);

    if (r->flags & (ZIP_FLAG_ENCRYPTED | ZIP_FLAG_STRONG | ZIP_FLAG_MASKED))
        return err_new(ERR_UNSUPPORTED, "entry '" STR_FMT "' is encrypted", STR_ARG(path));
    if ((r->method != ZIP_STORED && r->method != ZIP_DEFLATED) || r->flags & ZIP_FLAG_PATCH)
        return err_new(ERR_UNSUPPORTED,
                       "entry '" STR_FMT "' is packed by method %u; only 0 (stored) and 8 "
                       "(deflated) are known",
                       STR_ARG(path), r->method);
    return NULL;
}

static fallible check_sizes(struct zip_in *z, const struct zip_in_record *r)
{
    struct str path = buf_str(&z->path);

    if (r->method == ZIP_STORED && r->packed_bytes != r->size_bytes)
        return err_new(ERR_CORRUPT, "entry '" STR_FMT "' is stored with two sizes", STR_ARG(path));
    if (r->packed_bytes > z->file_bytes || r->offset > z->file_bytes)
        return err_new(ERR_CORRUPT, "entry '" STR_FMT "' lies outside of the archive",
                       STR_ARG(path));
    /* deflate packs 1032 bytes into one at best */
    if (r->size_bytes / 1040 > r->packed_bytes + 1)
        return err_new(ERR_CORRUPT, "entry '" STR_FMT "' cannot be as large as it says",
                       STR_ARG(path));
    if (__builtin_add_overflow(z->total_bytes, r->size_bytes, &z->total_bytes))
        return err_new(ERR_TOO_LARGE, "the archive holds more than there can be");
    return NULL;
}

static fallible add_entry(struct zip_in *z, const struct zip_in_record *r, uint64_t at, bool dir)
{
    if (z->entry_count == z->entry_cap) {
        size_t cap = z->entry_cap ? 2 * z->entry_cap : 64;
        struct zip_in_entry *p = realloc(z->entries, cap * sizeof *p);
        if (!p)
            return err_no_memory();
        z->entries = p;
        z->entry_cap = cap;
    }
    uint64_t offset = z->base + r->offset;
    z->entries[z->entry_count++] =
        (struct zip_in_entry){at, offset, offset + ZIP_LOCAL_SIZE + r->name.len + r->packed_bytes,
                              hash_of(buf_str(&z->path), dir)};
    return NULL;
}

static fallible check_record(struct zip_in *z, uint64_t at, size_t *ret_bytes)
{
    struct zip_in_record r;
    enum zip_in_name kind;

    TRY(zip_in_read_record(z, at, &r));
    *ret_bytes = r.record_bytes;
    if (z->config.left_out && r.name.len > ZIP_PATH_MAX) {
        z->config.left_out(z->config.arg, r.name);
        return NULL;
    }
    TRY(zip_in_read_path(z, &r, &kind));
    if (kind == ZIP_NAME_UNSAFE && !z->config.skip_unsafe)
        return err_new(ERR_INVALID, "entry '" STR_FMT "' would lead out of the directory",
                       STR_ARG(str_first(r.name, 200)));
    if (z->config.exact && zip_in_is_special(zip_in_type(&r))) {
        if (z->config.left_out)
            z->config.left_out(z->config.arg, buf_str(&z->path));
        return NULL;
    }
    if (kind == ZIP_NAME_UNSAFE ||
        (kind == ZIP_NAME_NOTHING && (!z->config.exact || z->config.no_top)))
        return NULL;
    TRY(check_method(z, &r));
    TRY(check_sizes(z, &r));
    return add_entry(z, &r, at, kind != ZIP_NAME_FILE);
}

/* --- all of them together --- */

static bool is_file_hash(const struct zip_in *z, uint64_t hash)
{
    struct zip_in_entry key = {.hash = hash << 1};

    return z->entry_count && bsearch(&key, z->entries, z->entry_count, sizeof key, by_hash) != NULL;
}

/* No directory on the way to a file may be a file itself. Entries are sorted by hash. */
static fallible check_parents(struct zip_in *z)
{
    for (size_t i = 0; i < z->entry_count; i++) {
        struct zip_in_record r;
        enum zip_in_name kind;
        TRY(zip_in_read_record(z, z->entries[i].at, &r));
        TRY(zip_in_read_path(z, &r, &kind));
        uint64_t h = HASH_START;
        for (size_t k = 0; k < z->path.len; h = hash_char(h, z->path.p[k++]))
            if (z->path.p[k] == '/' && is_file_hash(z, h))
                return err_new(ERR_INVALID,
                               "entry '" STR_FMT "' lies in another entry that is a file",
                               STR_ARG(buf_str(&z->path)));
    }
    return NULL;
}

static fallible check_names(struct zip_in *z)
{
    struct zip_in_record r;
    enum zip_in_name kind;

    if (!z->entry_count)
        return NULL;
    qsort(z->entries, z->entry_count, sizeof *z->entries, by_hash);
    for (size_t i = 1; i < z->entry_count; i++) {
        const struct zip_in_entry *a = &z->entries[i - 1], *b = &z->entries[i];
        if (a->hash >> 1 != b->hash >> 1 || (a->hash & b->hash & 1))
            continue; /* a directory may be named twice */
        TRY(zip_in_read_record(z, b->at, &r));
        TRY(zip_in_read_path(z, &r, &kind));
        return err_new(ERR_INVALID, "two entries are called '" STR_FMT "'",
                       STR_ARG(buf_str(&z->path)));
    }
    return check_parents(z);
}

/* Entries that share bytes are how a small archive holds petabytes. */
static fallible check_overlap(struct zip_in *z)
{
    if (!z->entry_count)
        return NULL;
    qsort(z->entries, z->entry_count, sizeof *z->entries, by_offset);
    for (size_t i = 0; i < z->entry_count; i++) {
        uint64_t next = i + 1 < z->entry_count ? z->entries[i + 1].offset : z->index_at;
        if (z->entries[i].end > next)
            return err_new(ERR_CORRUPT, "two entries of the archive overlap");
    }
    return NULL;
}

static fallible check_total(struct zip_in *z)
{
    struct statfs fs;
    uint64_t limit = z->config.limits.bytes;

    if (z->total_bytes > RATIO_FROM && z->total_bytes / z->config.limits.ratio > z->file_bytes)
        return err_new(ERR_TOO_LARGE,
                       "the archive would grow from %llu bytes to %llu, more than %u-fold",
                       (unsigned long long)z->file_bytes, (unsigned long long)z->total_bytes,
                       z->config.limits.ratio);
    if (limit && z->total_bytes > limit)
        return err_new(ERR_TOO_LARGE, "the archive holds %llu bytes, at most %llu are taken",
                       (unsigned long long)z->total_bytes, (unsigned long long)limit);
    if (fstatfs(z->config.staging, &fs) < 0)
        return err_sys("look for free space");
    uint64_t bytes_free = (uint64_t)fs.f_bavail * (uint64_t)fs.f_frsize;
    if (z->total_bytes > bytes_free)
        return err_new(ERR_TOO_LARGE, "the archive holds %llu bytes, the disk has %llu free",
                       (unsigned long long)z->total_bytes, (unsigned long long)bytes_free);
    return NULL;
}

fallible zip_in_check_index(struct zip_in *z)
{
    uint64_t at = z->index_at;

    for (uint64_t i = 0; i < z->count; i++) {
        size_t bytes;
        TRY(check_record(z, at, &bytes));
        at += bytes;
    }
    if (at != z->index_end)
        return err_new(ERR_CORRUPT, "the archive's index is shorter than it says");
    TRY(check_total(z));
    TRY(check_names(z));
    return check_overlap(z);
}
