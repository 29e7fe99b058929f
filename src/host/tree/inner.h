// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of this folder. */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"

/* The names in a directory but for "." and "..", each with its NUL; the caller ends names. */
fallible tree_read_names(int fd, size_t limit_bytes, struct buf *names, size_t *ret_count);
/* Opens a directory for reading: no link, and not what is mounted on it (errno EXDEV). */
int tree_open_here(int dir, const char *name);
/* Opens ".." of fd, which must be the directory `want` was taken of. */
fallible tree_open_above(int fd, const struct stat *want, int *ret_fd);
