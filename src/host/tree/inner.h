// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of this folder. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"

/* The names in a directory but for "." and "..", each with its NUL; the caller ends names. */
fallible tree_read_names(int fd, size_t limit_bytes, struct buf *names, size_t *ret_count);
/* Opens a directory for reading: no link, and not what is mounted on it (errno EXDEV). */
int tree_open_here(int dir, const char *name);
/* Opens ".." of fd, which must be the directory `want` was taken of. */
fallible tree_open_above(int fd, const struct stat *want, int *ret_fd);

#define TREE_PIECE (32u << 10) /* of names, read at once */

struct tree_dent { /* what getdents64 gives */
    uint64_t ino;
    int64_t off; /* behind it */
    unsigned short len;
    unsigned char type;
    char name[];
};

/* A walk that keeps no path: where it is, and of the directories above what it needs to come back.
 */
struct tree_descent {
    struct tree_step {
        struct stat st;
        off_t next; /* in its names */
    } * above;
    size_t depth, cap;
    int fd;
    char *piece;
};

fallible tree_descent_init(struct tree_descent *d, int fd); /* takes fd over */
void tree_descent_done(struct tree_descent *d);
fallible tree_descend(struct tree_descent *d, int fd, off_t next); /* takes fd over */
fallible tree_ascend(struct tree_descent *d, off_t *ret_next);
