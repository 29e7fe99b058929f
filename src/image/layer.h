// SPDX-License-Identifier: Apache-2.0
/* layer.h — one layer of an image, unpacked into an empty directory as overlay wants it.
 *
 * ".wh.NAME" becomes a whiteout. ".wh..wh..opq" becomes a note that the directory hides what is
 * below it: the attribute for that needs privilege, which this process should not have. Devices and
 * fifos are left out.
 *
 * Of two entries of one name the later counts, as after 'tar -r'. It takes the place of the first,
 * never of its target.
 *
 * These end the import: a later entry in the place of a directory with files, one that would go
 * through a link, and one of an id that a sandbox does not have. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "image/source.h"

struct layer_limits {
    uint64_t bytes; /* of the unpacked stream */
    uint64_t entries;
};
#define LAYER_BYTES_DEFAULT   (32ull << 30)
#define LAYER_ENTRIES_DEFAULT 2000000

struct layer_result {
    uint8_t diff_id[SHA256_LEN]; /* SHA-256 of the tar, not compressed: its name in the world */
    uint64_t bytes, entries, left_out;
};

struct layer_sink {
    /* A directory below the layer that hides what the layers under it have of it. */
    fallible (*opaque)(struct layer_sink *s, struct str path);
};

/* from may be compressed. owners: give files the archive's owners; without, all are ours. */
fallible layer_unpack(struct source *from, int dir, bool owners, const struct layer_limits *limits,
                      struct layer_sink *sink, struct layer_result *ret);
