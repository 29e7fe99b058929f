// SPDX-License-Identifier: Apache-2.0
/* out.h — inside of the writer: its state, and the records between the data (out_record.c). */
#pragma once

#include "base/buf.h"
#include "guest/zip/walk.h"
#include "guest/zip/zip.h"

struct zip_out_entry {
    struct buf name;
    uint32_t mode; /* st_mode */
    int64_t mtime_s;
    uint64_t size_bytes, packed_bytes;
    uint64_t offset; /* of its local record */
    uint32_t crc;
    bool data_after; /* sizes follow the data */
    bool large;      /* 64-bit sizes */
};

enum zip_out_state { ZIP_OUT_NEXT, ZIP_OUT_DATA, ZIP_OUT_INDEX, ZIP_OUT_END, ZIP_OUT_DONE };

struct zip_out {
    struct zip_out_config config;
    enum zip_out_state state;
    bool fold;             /* zip_crc_can_fold() */
    struct zip_walk *walk; /* NULL: one file, or its end */
    struct zip_out_entry entry;
    int fd;          /* of the entry's file */
    uint64_t left;   /* bytes still to be read from it */
    uint64_t made;   /* bytes of the archive so far, records waiting in head included */
    struct buf head; /* records that wait to be pulled */
    size_t head_at;
    uint64_t entries;
    struct buf index; /* of what is written: sent last; to index_fd when it gets long */
    int index_fd;
    uint64_t index_bytes, index_at; /* in index_fd */
    uint64_t index_start;
};

void zip_out_put_local(struct zip_out *z);   /* into head */
void zip_out_put_after(struct zip_out *z);   /* into head */
void zip_out_put_central(struct zip_out *z); /* into index */
void zip_out_put_end(struct zip_out *z);     /* into head */
