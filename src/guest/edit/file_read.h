// SPDX-License-Identifier: Apache-2.0
/* file_read.h — the `read` action with its default implementation: lines of a text file, or a
 * picture, film or PDF as a data URL. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "guest/edit/edit.h"

#define FILE_READ_MAX_BYTES (64u << 20)

struct file_read_args {
    struct str path;
    int64_t start, end; /* from 0, end excluded; -1: to the last line */
    bool refuse_media;  /* as the original does for absolute paths: ERROR_BINARY_FILE */
};

/* The error is for want of memory only; all else is a result. */
fallible file_read(const struct edit_space *s, const struct file_read_args *args, struct arena *a,
                   struct edit_result *ret_result);

/* Asked first by every read. For a binary file it fills in ERROR_BINARY_FILE and gives true.
 * Documents that the editor can convert pass. */
bool file_read_refuses(const struct edit_space *s, struct str path, struct edit_result *ret_result);
