// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of this folder. */
#pragma once

#include "base/hash.h"
#include "host/images/images.h"
#include "image/archive.h"
#include "image/layer.h"

#define RECORD_MAX (2u << 20)

struct imagestore {
    int dir, layers, tmp; /* state/images and the two below it */
    int lock;             /* held while the store is changed */
};
fallible imagestore_open(int state, bool change, struct imagestore *ret);
void imagestore_done(struct imagestore *s);

/* Writes the record; an older image of the same name loses it. Names the same image had stay, and
 * are added to it, in a. */
fallible imagestore_publish(const struct imagestore *s, struct arena *a, struct image *image);

/* Removes the layers no image has. */
fallible imagestore_sweep(const struct imagestore *s);

/* --- unpack.c: what workers do --- */
/* Finds the pieces of the archive. spool is an empty file that takes it when it is compressed;
 * *ret_spooled says that the pieces are in there. */
fallible unpack_inspect(int tmp, int fd, uint64_t size, int spool, uint64_t limit_bytes,
                        struct archive *ret, bool *ret_spooled);
fallible unpack_config(int tmp, int fd, const struct archive_piece *piece, struct buf *ret_json);
/* One layer into the empty directory dir. */
fallible unpack_layer(int dir, int fd, const struct archive_piece *piece,
                      const struct layer_limits *limits, struct layer_result *ret);
