// SPDX-License-Identifier: Apache-2.0
/* in.h — inside of the reader: the index (in.c, in_index.c) and unpacking (in_unpack.c).
 *
 * An archive may change under our hands, so every record is read and checked again when it is
 * used; only positions are remembered. */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"
#include "base/inflate.h"
#include "guest/zip/format.h"
#include "guest/zip/place.h"
#include "guest/zip/zip.h"

#define ZIP_WINDOW     (256u << 10)
#define ZIP_UNPACK_BUF (64u << 10)

struct zip_in_entry {
    uint64_t at;     /* of its record in the index */
    uint64_t offset; /* of its local record, in the file */
    uint64_t end;    /* at least so far does it reach */
    uint64_t hash;   /* of its path; the lowest bit says that it is a directory */
};

/* A record of the index as it stands. */
struct zip_in_record {
    struct str name; /* in the window: until the next read */
    uint16_t made_by, flags, method;
    uint32_t crc, attributes;
    int32_t mtime_s; /* 0: not said */
    uint64_t packed_bytes, size_bytes, offset;
    size_t record_bytes;
};

/* Placing goes from the last entry to the first: a directory is finished when all is in it. */
enum zip_in_phase { ZIP_IN_UNPACK, ZIP_IN_CHECK, ZIP_IN_PLACE, ZIP_IN_DONE };

struct zip_in {
    struct zip_in_config config;
    int fd;
    uint64_t file_bytes, base; /* base: what stands before the archive, such as a program */
    uint64_t index_at, index_end, count;
    struct zip_in_entry *entries; /* those that will be unpacked, in the order of their data */
    size_t entry_count, entry_cap;
    uint64_t total_bytes;
    char *window;
    uint64_t window_at;
    size_t window_len;
    struct buf path; /* of the record read last: clean, relative, without a slash at its end */

    enum zip_in_phase phase;
    size_t at;
    /* the file being unpacked */
    int out;
    struct zip_in_record now; /* but for its name */
    uint64_t data_at, data_end, written;
    uint32_t crc;
    bool fold;               /* zip_crc_can_fold() */
    struct inflate *inflate; /* NULL until the first that is deflated */
    struct str in;           /* read and not unpacked yet; in in_buf */
    bool ended;
    char *in_buf;
    /* where the last file went, to go on from there */
    int parent;
    struct buf parent_path;
};

/* As stat has it; 0: the archive does not say. */
static inline mode_t zip_in_type(const struct zip_in_record *r)
{
    return r->made_by == ZIP_MADE_BY_UNIX ? r->attributes >> 16 & S_IFMT : 0;
}
static inline bool zip_in_is_special(mode_t type)
{
    return type && type != S_IFREG && type != S_IFDIR && type != S_IFLNK;
}

enum zip_in_name { ZIP_NAME_FILE, ZIP_NAME_DIR, ZIP_NAME_UNSAFE, ZIP_NAME_NOTHING };

/* --- in.c --- */
/* len bytes of the archive at a place; valid until the next call. */
fallible zip_in_window(struct zip_in *z, uint64_t at, size_t len, const char **ret_p);
fallible zip_in_read_record(struct zip_in *z, uint64_t at, struct zip_in_record *ret_record);
/* Makes z->path of the record's name. */
fallible zip_in_read_path(struct zip_in *z, const struct zip_in_record *r,
                          enum zip_in_name *ret_kind);
/* --- in_index.c --- */
fallible zip_in_check_index(struct zip_in *z);
/* --- in_name.c --- */
fallible zip_name_clean(struct str name, bool utf8, bool exact, struct buf *path,
                        enum zip_in_name *ret_kind);
