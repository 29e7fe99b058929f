// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of this folder. */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"
#include "base/map.h"
#include "host/changes/changes.h"

enum node_kind { NODE_WHITEOUT, NODE_DIR, NODE_FILE, NODE_LINK, NODE_SPECIAL, NODE_DEEP };

struct node { /* one entry of the layers, as if they were one */
    struct str path;
    mode_t mode;
    uint64_t size;
    uint64_t inode; /* of a file with several names; else 0 */
    uint8_t kind, layer;
    bool opaque; /* a directory: nothing of what is below shows */
};
#define PATH_LEN_MAX 4096 /* what is deeper is shown where it begins, and not gone into */

struct nodes {
    struct node *at;
    size_t count, cap;
};
void nodes_done(struct nodes *n);

/* The entries of all layers, in the order of their paths. Texts live in a. */
fallible layers_read(const struct changes_source *src, struct arena *a, struct nodes *ret);
/* Bytes, but '/' before all others: a directory, what is in it, then its neighbours. */
int path_cmp(struct str a, struct str b);
bool path_beneath(struct str path, struct str dir);

/* --- look.c: opening by path, without following anything or going into what is mounted there ---
 */
struct lookup { /* remembers the directory of the last path */
    int root, dir;
    bool ours; /* a layer: files that its guest closed are opened */
    struct buf above;
};
void lookup_init_layer(struct lookup *l, int root);
void lookup_init(struct lookup *l, int root);
void lookup_done(struct lookup *l);
void lookup_forget(struct lookup *l); /* after a directory went away */
/* The directory that holds path, borrowed until the next call, and the last name. */
fallible lookup_parent(struct lookup *l, struct str path, int *ret_dir, const char **ret_name);
/* ERR_NOT_FOUND when it or a directory on the way is not there or is none. */
fallible lookup_stat(struct lookup *l, struct str path, struct stat *ret);
fallible lookup_mount(struct lookup *l, struct str path, bool *ret_mount);
fallible lookup_open(struct lookup *l, struct str path, mode_t type, int *ret_fd);
fallible lookup_link(struct lookup *l, struct str path, struct arena *a, struct str *ret);
static inline mode_t type_of(mode_t mode)
{
    return mode & S_IFMT;
}

/* Opens what a guest closed in a layer of ours: a file for this once, a directory for good. st is
 * what it was; errno when it is not ours to open. */
int open_closed(int dir, const char *name, const struct stat *st);
bool is_closed(const struct err *e); /* we may not read it */

/* --- notes.c: files of the directory as our own applies left them --- */
struct notes {
    struct note {
        uint64_t inode; /* 0: something was removed */
        int64_t s, ns;  /* its last change */
    } * at;
    size_t count;
};
fallible notes_read(int fd, struct notes *ret);
void notes_done(struct notes *n);
bool notes_have(const struct notes *n, const struct stat *st);
bool notes_have_removed(const struct notes *n);
/* Was an entry copied up from a file that we removed? Then the sandbox had moved it. */
bool notes_have_origin(const struct notes *n, struct str origin);
void notes_add_origin(struct buf *to, struct str origin);
void notes_add(struct buf *to, const struct stat *st); /* NULL: something was removed */
void notes_write(int fd, const struct buf *from);

/* --- moved.c --- */
struct moved { /* what counts as a foreign change */
    struct timespec since;
    struct notes notes;
    struct map touched; /* files with several names, one of which we put or took away */
};
/* We changed it just now, and no other program did meanwhile. */
void moved_touch(struct moved *m, const struct stat *st);
bool moved_is_touched(const struct moved *m, const struct stat *st);
fallible moved_init(struct moved *m, const struct changes_source *src);
void moved_done(struct moved *m);
bool moved_is(const struct moved *m, const struct stat *st);
/* A file, not a directory, whose bytes changed. The bytes of its other names changed with them. */
bool moved_is_written(const struct moved *m, const struct stat *st);
/* Looks at path and, for a directory, at all that would go with it. */
fallible moved_look(const struct moved *m, struct lookup *lower, struct str path,
                    const struct stat *st, bool *ret_moved, bool *ret_mounted);
fallible entry_is_mount(int dir, const char *name, bool *ret_mount); /* what is gone is none */

/* --- origin.c --- */
#define ORIGIN_MAX 129 /* the kernel's MAX_HANDLE_SZ, and a type */
/* The origin that overlay would note if it copied the file up; .p NULL: none. */
struct str origin_of(int dir, const char *name, char key[ORIGIN_MAX]);
/* The origin that overlay noted for a copied-up entry; .p NULL: none. */
fallible origin_read(int fd, bool user, struct arena *a, struct str *ret);
/* An entry copied up from a file that is gone from its place is a conflict, unless the sandbox
 * moved it. */
fallible origins_check(const struct changes_source *src, const struct notes *notes,
                       struct changes *c);

/* --- rename.c --- */
fallible renames_find(const struct changes_source *src, struct changes *c);
