// SPDX-License-Identifier: Apache-2.0
/* snaps.h — snapshots of a sandbox's copy of a directory, from which forks start.
 *
 * A snapshot is a list of frozen layers over the directory. The upper layer of a stopped sandbox is
 * renamed and never written again; the sandbox goes on with an empty one above it. That costs the
 * same for any size.
 *
 * A sandbox that runs is paused, and its upper layer, which holds only its changes, is copied.
 *
 * Sandboxes and snapshots share layers: state/snap/layers has them, state/snap/NAME.json lists
 * those of a snapshot. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define SNAPS_LAYERS_MAX 100
#define SNAPS_FLATTEN_AT 20 /* longer stacks are worth snaps_flatten */
#define SNAPS_LAYER_LEN  32

struct snap {
    struct str name, source; /* source: the directory on the host */
    struct str
        which; /* directory that was, as the sandbox noted it (host/overlay); .len 0: unknown */
    struct str layers[SNAPS_LAYERS_MAX]; /* topmost first */
    size_t layer_count;
    uint64_t made_wall_ns;
    uint64_t since_ns; /* when the changes of the lowest began; 0: when that layer was made */
};

/* Takes one of mount n of the sandbox with the directory box. name must be new. copy: the sandbox
 * still exists and is paused. Texts of the result live in a. */
fallible snaps_take(int state, int box, unsigned n, const char *name, bool copy, struct arena *a,
                    struct snap *ret);
/* Makes one layer of a stack that has grown long, for the snapshot and the stopped sandbox it was
 * taken of. Files are shared by hard links, some 10 us each. Sandboxes on the old layers keep them.
 * It runs after the snapshot was answered. */
fallible snaps_flatten(int state, int box, unsigned n, const char *name);
fallible snaps_find(int state, const char *name, struct arena *a, struct snap *ret);
/* In the order of their names. */
fallible snaps_list(int state, struct arena *a, struct snap **ret_list, size_t *ret_count);
/* Layers that neither a snapshot nor a sandbox stands on go too. */
fallible snaps_remove(int state, const char *name);
fallible snaps_sweep(int state); /* those layers alone, after a sandbox went */

/* --- what a sandbox stands on: box/mNl, a link that names the layers --- */

struct snaps_stack {
    int fds[SNAPS_LAYERS_MAX]; /* O_RDONLY directories, topmost first */
    size_t count;
    uint64_t since_ns; /* as above; a copy of a layer is younger than what it holds */
};
void snaps_stack_done(struct snaps_stack *s);
/* Notes that mount n of a new sandbox stands on the snapshot. */
fallible snaps_note(int box, unsigned n, const struct snap *snap);
/* Mount n's upper is a copy of `of`, and what changed in the directory since that was made is a
 * conflict. Nothing to do for one that stands on older layers. */
fallible snaps_note_copy(int box, unsigned n, int of);
fallible snaps_open(int state, const struct snap *snap, struct snaps_stack *ret);
/* The layers below mount n's own upper; none when it is no fork. */
fallible snaps_open_noted(int state, int box, unsigned n, struct snaps_stack *ret);
