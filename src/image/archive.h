// SPDX-License-Identifier: Apache-2.0
/* archive.h — the contents of a file given as an image: a docker archive, an OCI archive, or the
 * tar of a root file system. Finds the pieces; unpacks nothing. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "image/source.h"

#define ARCHIVE_LAYERS_MAX 120
#define ARCHIVE_TEXT_MAX   256
#define ARCHIVE_CONFIG_MAX (1u << 20)

struct archive_piece {
    uint64_t at, size;
};

struct archive {     /* plain data: goes through a pipe */
    uint32_t rootfs; /* one layer: the file itself */
    uint32_t layer_count;
    struct archive_piece layers[ARCHIVE_LAYERS_MAX]; /* lowest first */
    uint8_t diff_ids[ARCHIVE_LAYERS_MAX][SHA256_LEN];
    struct archive_piece config; /* size 0: none */
    char name[ARCHIVE_TEXT_MAX]; /* "debian:12" when the archive says so, else "" */
};

/* Does what begins like this hold an image, or is it a root file system? */
bool archive_is_image(const char *first_name);

/* fd is a seekable file that holds an uncompressed image archive of `size` bytes. */
fallible archive_read(int fd, uint64_t size, struct archive *ret);

/* The parts of the configuration that matter to run it, as one JSON object with the keys of OCI. */
struct buf;
fallible archive_config(struct str config, struct buf *ret_json);
