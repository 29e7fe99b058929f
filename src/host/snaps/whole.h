// SPDX-License-Identifier: Apache-2.0
/* whole.h — snapshots of a whole sandbox: every upper layer it has, its root file system's too.
 *
 * state/snap/whole/NAME holds the sandbox's record, and one link for each upper layer, which names
 * its frozen layers. These are in the store of snaps.h, and are swept with it. The host's own
 * directories are not in a snapshot. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "host/rootfs/rootfs.h"
#include "host/snaps/snaps.h"

/* ERR_CONFLICT: the name is taken. */
fallible whole_check_new(int state, const char *name);
/* Takes one of the sandbox with the directory box, which must not write meanwhile. uppers: where
 * its upper layers are, mostly box. copy: copies them, if it still exists or they are elsewhere.
 *
 * Otherwise they are frozen in place, which costs the same for any size. ret_taken may be NULL. */
struct whole_taken {
    size_t deepest; /* layers of its tallest stack */
    uint64_t copied_bytes;
};
fallible whole_take(int state, int box, int uppers, const char *name, bool copy,
                    struct whole_taken *ret_taken);
/* Its directory, with the file "record" of the sandbox it was taken of. */
fallible whole_open(int state, const char *name, int *ret_dir);
/* A new sandbox, with the directory box, stands on it from now on. */
fallible whole_stand(int state, const char *name, int box);
/* The layers below an upper of this sandbox; none when it stands on nothing. */
fallible whole_layers(int state, int box, const char *upper, struct snaps_stack *ret);
/* The same, put above those the mount has. */
fallible whole_add_below(int state, int box, struct rootfs_mount *m);
bool whole_stands(int box);                 /* on layers of the store */
bool whole_has(int dir, const char *upper); /* a snapshot's directory, or a sandbox's */
/* Has a root file system made of these mounts a place for each part of the snapshot? */
fallible whole_check_fits(int whole, struct rootfs *fs);

/* One layer of each stack that has grown long, by hard links. Sandboxes on the old ones keep them.
 */
fallible whole_flatten(int state, const char *name);
/* After it: the sandbox it was taken of, which must not run, stands on the short stacks too. */
fallible whole_restand(int state, const char *name, int box);
/* Sandboxes on its layers keep those; the others go. */
fallible whole_remove(int state, const char *name);
/* Names one after the other, each with its NUL, in no order. */
fallible whole_list(int state, struct buf *names, size_t *ret_count);
/* Gives a sandbox that does not run empty upper layers again, above the snapshot's layers, or above
 * none (name NULL). If cut short, it is done again: box/WHOLE_RESET is there until it is done. */
#define WHOLE_RESET "reset"
fallible whole_reset(int state, int box, const char *name);
/* Removes what a snapshot that was cut short left, and layers without users. No snapshot may be
 * taken meanwhile. */
fallible whole_sweep(int state);

/* --- for snaps.c: every layer a snapshot or a sandbox stands on --- */
struct snapstore;
struct snap;
typedef void whole_each(void *arg, const struct snap *stack);
fallible whole_each_used(const struct snapstore *s, struct arena *a, whole_each *fn, void *arg);
fallible whole_each_of_box(int box, struct arena *a, whole_each *fn, void *arg);
