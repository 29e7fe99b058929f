// SPDX-License-Identifier: Apache-2.0
/* tar.h — a tar archive read entry by entry: ustar, pax and GNU long names.
 *
 * Names come out clean: no leading "/" or "./", no "..", no empty parts, no NUL. What a careful tar
 * never writes (a bad checksum, a name that climbs, sparse files) is an error, not a guess. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/source.h"

enum tar_type {
    TAR_FILE,
    TAR_HARD_LINK,
    TAR_LINK,
    TAR_DIR,
    TAR_FIFO,
    TAR_DEVICE,
};

#define TAR_XATTRS_MAX 64

struct tar_xattr {
    struct str name; /* "security.capability", without a NUL */
    struct str value;
};

struct tar_entry {
    enum tar_type type;
    const char *path;   /* "" is the root itself */
    const char *target; /* of links; as it is for TAR_LINK, clean for TAR_HARD_LINK */
    unsigned mode;      /* permissions and set-id bits */
    uint64_t uid, gid, size;
    int64_t mtime_s;
    struct tar_xattr xattrs[TAR_XATTRS_MAX];
    size_t xattr_count;
};

struct tar {
    struct source *from;
    uint64_t left, pad;                 /* of the entry that is open */
    uint64_t at;                        /* bytes read so far */
    struct buf path, link, pax, global; /* texts of the entry; pax records of it and of all */
    bool has_path, has_link;
    struct tar_entry entry;
};

void tar_init(struct tar *t, struct source *from);
void tar_done(struct tar *t);
/* *ret_entry is NULL at the end, good until the next call. Unread data of an entry is passed
 * over. */
fallible tar_next(struct tar *t, const struct tar_entry **ret_entry);
/* Data of the entry; 0 at its end. */
fallible tar_read(struct tar *t, void *p, size_t n, size_t *ret_len);
