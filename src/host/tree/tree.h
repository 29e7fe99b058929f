// SPDX-License-Identifier: Apache-2.0
/* tree.h — directory trees by descriptor: walk, copy, remove.
 *
 * A tree that a guest wrote is input: any name, any depth, any kind of file. Nothing here follows a
 * link or builds a path for the kernel. A deep tree costs memory, not descriptors.
 *
 * No other process may move the tree's directories meanwhile; if one does, the walk ends with
 * ERR_CONFLICT. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/str.h"

enum tree_when {
    TREE_LEAF,  /* anything but a directory */
    TREE_ENTER, /* a directory, before what is in it */
    TREE_LEAVE, /* the same directory, after it */
};

struct tree_at {
    int dir; /* the directory that holds it */
    const char *name;
    struct str path; /* below the root, "a/b"; a NUL follows it */
    const struct stat *st;
};

struct tree_visitor {
    /* In the order of the names' bytes. *skip, at TREE_ENTER: do not go in; no TREE_LEAVE then. */
    fallible (*visit)(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                      bool *skip);
    bool one_filesystem; /* do not enter directories of other file systems, nor show them */
};

#define TREE_NAMES_MAX (256u << 20) /* bytes of names held at once; more is ERR_TOO_LARGE */
#define TREE_PATH_MAX  (8u << 20)

/* root may be O_PATH. Every entry below it, not root itself. */
fallible tree_walk(int root, struct tree_visitor *v);

/* Every file below root that is no directory, in no order, on root's file system alone. Nothing in
 * it ends this: neither depth, nor number, nor what cannot be looked at (the first such error is
 * given at the end); while others move directories it begins anew, a few times. */
typedef fallible (*tree_look)(void *arg, int dir, const char *name);
fallible tree_each(int root, tree_look look, void *arg);

/* Whether something is mounted on name in dir, seen from here. */
fallible tree_is_mount(int dir, const char *name, bool *ret_mount);

/* Removes name in dir and all below it, of any size; a missing name is no error. A mount below it
 * ends the removal with ERR_CONFLICT, and the rest stays. */
fallible tree_remove(int dir, const char *name);
fallible tree_empty(int dir); /* all in it; dir itself stays */

/* Copies the bytes of a regular file by descriptor, from its start; shares blocks where it can. */
fallible tree_copy_bytes(int from, int to);

/* Gives name in dir ("": dir itself) the owner of another file. An ordinary user can give files
 * only to ids of its own: other files stay the user's. */
fallible tree_chown_like(int dir, const char *name, const struct stat *like);

/* Waits for the exclusive lock of a store: dir/.lock, until the descriptor is closed. */
fallible tree_lock(int dir, int *ret_fd);
