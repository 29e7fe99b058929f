// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of this folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* Top directories that a sandbox has from the host: links are made again, directories are mounted,
 * or joined to the root's layer. */
#define HOST_DIRS 7
extern const char *const host_dirs[HOST_DIRS];

/* --- stamp.c --- */
#define STAMP_LEN 32
/* Changes when what the layers are made of does, as far as some 50 stat calls can tell. */
fallible stamp_take(int host, char out[STAMP_LEN + 1]);

/* --- base.c: the layer of the root itself --- */
fallible base_build(int host, int layer);

/* --- home.c --- */
fallible home_fill(int host, int layer, const char *home, uid_t uid, gid_t gid);

/* --- etc.c --- */
fallible etc_build(int host, int etc);

/* --- accounts.c: passwd, group, shadow, gshadow, sudoers --- */
fallible accounts_write(int host_etc, int etc);

/* --- hide.c: whiteouts over what is not for everybody --- */
fallible hide_build(int host_dir, int layer);
/* Whiteouts at the top of such a layer go to one above it: with nothing below them they would be
 * listed. */
fallible hide_lift(int host_dir, int layer, int above);
/* Do two such layers hide the same? */
fallible hide_compare(int layer, int other, bool *ret_same);

/* --- join.c: /usr in the root's own overlay --- */
/* In base/usr: directories that redirect into /usr, and what lies beside them. */
fallible join_build(int host, int base);
/* Names of /usr must not show at the root: the last thing done to base. */
fallible join_cover(int host, int base);

/* --- take.c: copies what everybody may read --- */
struct take_limits {
    size_t file_bytes, total_bytes, files; /* larger files are left out; the rest are errors */
};
struct take {
    int from, to;
    const char *const
        *without; /* paths below from that are left out; NULL at the end; may be NULL */
    struct take_limits *left;
};
/* path is a file, a link or a directory with all in it; one that is not there is no error. */
fallible take_path(const struct take *t, const char *path);
fallible take_write(int dir, const char *name, struct str data, mode_t mode);
/* Makes it if it is missing; sets owner and mode either way. For an ordinary user, uid 0 is that
 * user. */
fallible take_dir(int dir, const char *name, mode_t mode, uid_t uid, gid_t gid);
