// SPDX-License-Identifier: Apache-2.0
/* in.c — the reader: where the index is, and its records one by one. */
#include "guest/zip/in.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "guest/zip/crc.h"
#include "guest/zip/format.h"

#define COMMENT_MAX 0xffffu

static fallible read_at(struct zip_in *z, uint64_t at, char *p, size_t len)
{
    while (len) {
        ssize_t n = pread(z->fd, p, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys("read the archive");
        if (n == 0)
            return err_new(ERR_CORRUPT, "the archive is cut off");
        p += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return NULL;
}

fallible zip_in_window(struct zip_in *z, uint64_t at, size_t len, const char **ret_p)
{
    if (at > z->file_bytes || len > z->file_bytes - at || len > ZIP_WINDOW)
        return err_new(ERR_CORRUPT, "the archive is cut off");
    if (at < z->window_at || at + len > z->window_at + z->window_len) {
        uint64_t left = z->file_bytes - at;
        z->window_len = 0; /* in case it fails */
        size_t n = left < ZIP_WINDOW ? (size_t)left : ZIP_WINDOW;
        TRY(read_at(z, at, z->window, n));
        z->window_at = at;
        z->window_len = n;
    }
    *ret_p = z->window + (at - z->window_at);
    return NULL;
}

/* --- where the index is --- */

/* The last record of that kind whose comment ends with the file. */
static fallible find_end(struct zip_in *z, uint64_t *ret_at)
{
    size_t tail = ZIP_END_SIZE + COMMENT_MAX;
    const char *p = "";

    if (tail > z->file_bytes)
        tail = (size_t)z->file_bytes;
    TRY(zip_in_window(z, z->file_bytes - tail, tail, &p));
    for (size_t i = tail < ZIP_END_SIZE ? 0 : tail - ZIP_END_SIZE + 1; i > 0; i--) {
        const char *at = p + i - 1;
        if (zip_get32(at) != (uint32_t)ZIP_SIG_END ||
            zip_get16(at + 20) != tail - (i - 1) - ZIP_END_SIZE)
            continue;
        *ret_at = z->file_bytes - tail + i - 1;
        return NULL;
    }
    return err_new(ERR_CORRUPT, "the file is not a zip archive");
}

struct end {
    uint64_t at, disks, count_here, count, bytes, offset;
};

static bool needs_64(const struct end *e)
{
    return e->count == ZIP_MAX16 || e->bytes == ZIP_MAX32 || e->offset == ZIP_MAX32;
}

/* The 64-bit record stands where its locator says, or right before it when something was put in
 * front of the archive. */
static fallible read_end64(struct zip_in *z, struct end *e)
{
    const char *p = "";

    if (e->at < ZIP_LOCATOR64_SIZE + ZIP_END64_SIZE)
        return NULL;
    TRY(zip_in_window(z, e->at - ZIP_LOCATOR64_SIZE, ZIP_LOCATOR64_SIZE, &p));
    if (zip_get32(p) != (uint32_t)ZIP_SIG_LOCATOR64)
        return NULL; /* 65535 entries, say, and not one more */
    uint64_t at = zip_get64(p + 8), before = e->at - ZIP_LOCATOR64_SIZE - ZIP_END64_SIZE;
    if (zip_get32(p + 4) != 0 || zip_get32(p + 16) > 1)
        return err_new(ERR_UNSUPPORTED, "the archive has several parts");
    if (at > before)
        return err_new(ERR_CORRUPT, "the archive's end points past itself");
    TRY(zip_in_window(z, at, ZIP_END64_SIZE, &p));
    if (zip_get32(p) != (uint32_t)ZIP_SIG_END64) {
        at = before;
        TRY(zip_in_window(z, at, ZIP_END64_SIZE, &p));
    }
    if (zip_get32(p) != (uint32_t)ZIP_SIG_END64)
        return err_new(ERR_CORRUPT, "the archive's end has no 64-bit part");
    *e = (struct end){.at = at,
                      .disks = (uint64_t)zip_get32(p + 16) | zip_get32(p + 20),
                      .count_here = zip_get64(p + 24),
                      .count = zip_get64(p + 32),
                      .bytes = zip_get64(p + 40),
                      .offset = zip_get64(p + 48)};
    return NULL;
}

static fallible zip_in_find_index(struct zip_in *z)
{
    struct end e = {0};
    const char *p = "";

    TRY(find_end(z, &e.at));
    TRY(zip_in_window(z, e.at, ZIP_END_SIZE, &p));
    e.disks = (uint64_t)(zip_get16(p + 4) | zip_get16(p + 6));
    e.count_here = zip_get16(p + 8);
    e.count = zip_get16(p + 10);
    e.bytes = zip_get32(p + 12);
    e.offset = zip_get32(p + 16);
    if (needs_64(&e))
        TRY(read_end64(z, &e));
    if (e.disks || e.count_here != e.count)
        return err_new(ERR_UNSUPPORTED, "the archive has several parts");
    if (e.bytes > e.at || e.offset > e.at - e.bytes || e.count > e.bytes / ZIP_CENTRAL_SIZE)
        return err_new(ERR_CORRUPT, "the archive's index does not fit into it");
    if (e.count > z->config.limits.entries)
        return err_new(ERR_TOO_LARGE, "the archive has %llu entries, at most %llu are taken",
                       (unsigned long long)e.count, (unsigned long long)z->config.limits.entries);
    z->index_at = e.at - e.bytes;
    z->index_end = e.at;
    z->base = z->index_at - e.offset;
    z->count = e.count;
    return NULL;
}

/* --- its records --- */

/* Numbers that did not fit stand in the extra field, only those, in this order; the time too. */
static fallible read_extra(struct str extra, struct zip_in_record *r)
{
    uint64_t *numbers[] = {&r->size_bytes, &r->packed_bytes, &r->offset};
    unsigned wide = 0;

    while (extra.len >= 4) {
        struct str field = str_from(extra, 4);
        size_t len = zip_get16(extra.p + 2);
        if (len > field.len)
            return err_new(ERR_CORRUPT, "the archive's index has a broken extra field");
        uint16_t id = zip_get16(extra.p);
        extra = str_from(field, len);
        if (id == ZIP_EXTRA_TIME && len >= 5 && field.p[0] & 1)
            r->mtime_s = (int32_t)zip_get32(field.p + 1);
        if (id != ZIP_EXTRA_64 || wide++)
            continue;
        field = str_first(field, len);
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
            if (*numbers[i] != ZIP_MAX32)
                continue;
            if (field.len < 8)
                return err_new(ERR_CORRUPT, "the archive's index lacks a 64-bit number");
            *numbers[i] = zip_get64(field.p);
            field = str_from(field, 8);
        }
    }
    return NULL;
}

fallible zip_in_read_record(struct zip_in *z, uint64_t at, struct zip_in_record *ret_record)
{
    const char *p = "";

    TRY(zip_in_window(z, at, ZIP_CENTRAL_SIZE, &p));
    if (zip_get32(p) != (uint32_t)ZIP_SIG_CENTRAL)
        return err_new(ERR_CORRUPT, "the archive's index is damaged");
    size_t name = zip_get16(p + 28), extra = zip_get16(p + 30), comment = zip_get16(p + 32);
    size_t whole = ZIP_CENTRAL_SIZE + name + extra + comment;
    if (at > z->index_end || whole > z->index_end - at)
        return err_new(ERR_CORRUPT, "the archive's index is longer than it says");
    TRY(zip_in_window(z, at, whole, &p));
    *ret_record = (struct zip_in_record){
        .name = str_n(p + ZIP_CENTRAL_SIZE, name),
        .made_by = zip_get16(p + 4) >> 8,
        .flags = zip_get16(p + 8),
        .method = zip_get16(p + 10),
        .crc = zip_get32(p + 16),
        .packed_bytes = zip_get32(p + 20),
        .size_bytes = zip_get32(p + 24),
        .attributes = zip_get32(p + 38),
        .offset = zip_get32(p + 42),
        .record_bytes = whole,
    };
    return read_extra(str_n(p + ZIP_CENTRAL_SIZE + name, extra), ret_record);
}

fallible zip_in_read_path(struct zip_in *z, const struct zip_in_record *r,
                          enum zip_in_name *ret_kind)
{
    return zip_name_clean(r->name, r->flags & ZIP_FLAG_UTF8, z->config.exact, &z->path, ret_kind);
}

/* --- life --- */

fallible zip_in_new(int fd, const struct zip_in_config *config, struct zip_in **ret_in)
{
    own(zip_in) z = mem_try(sizeof *z);
    struct stat st;

    if (!z)
        return err_no_memory();
    z->config = *config;
    z->fd = fd;
    z->out = z->parent = -1;
    z->fold = zip_crc_can_fold();
    buf_init(&z->path, ZIP_PATH_MAX);
    buf_init(&z->parent_path, ZIP_PATH_MAX);
    if (!z->config.limits.entries)
        z->config.limits.entries = 500000;
    if (!z->config.limits.ratio)
        z->config.limits.ratio = 250;
    z->window = malloc(ZIP_WINDOW);
    z->in_buf = malloc(ZIP_UNPACK_BUF);
    if (!z->window || !z->in_buf)
        return err_no_memory();
    if (fstat(fd, &st) < 0)
        return err_sys("stat the archive");
    z->file_bytes = (uint64_t)st.st_size;
    TRY(zip_in_find_index(z));
    TRY(zip_in_check_index(z));
    *ret_in = take(&z);
    return NULL;
}
