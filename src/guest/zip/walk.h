// SPDX-License-Identifier: Apache-2.0
/* walk.h — a tree, entry by entry, by directory descriptors: any depth with few of them open.
 *
 * A directory that is too deep to stay open is opened again through "..", and must then be the one
 * that it was. Links are never followed here. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/str.h"

struct zip_walk_entry {
    struct str path;  /* from the top of the walk; valid until the next call */
    const char *name; /* its last part */
    int dir;          /* that holds it; borrowed until the next call */
    struct stat st;   /* of the entry itself, links not followed */
};

struct zip_walk;
#define ZIP_WALK_PATH_MAX 32768u
/* dir is taken over, also on failure. */
fallible zip_walk_new(int dir, struct zip_walk **ret_walk);
void zip_walk_free(struct zip_walk *w);
OWNABLE(zip_walk)
void zip_walk_pass(struct zip_walk *w); /* the entry given last is not gone into */
/* Directories come before what they hold. *ret_more is false at the end. What vanishes meanwhile is
 * passed over. */
fallible zip_walk_next(struct zip_walk *w, struct zip_walk_entry *ret_entry, bool *ret_more);
