// SPDX-License-Identifier: Apache-2.0
/* box_dirs.h — which directories of sandboxes serve another, and how the others go.
 *
 * Used by who makes many. Where one cannot be kept, nobody notices: it is made and deleted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define BOX_SPARE  "spare" /* in BOX_GONE: where they wait */
#define BOX_SPARES 32
#define BOX_LAYERS 4 /* of one sandbox whose directory may serve another */

struct box;
struct box_host;
struct box_spec;

/* An upper layer nobody has written to, as it was when its overlay was made. */
struct box_layer {
    const char *upper, *work; /* names in box/<ID>, for as long as the program lives */
    uint64_t ino, bytes, blocks;
    int64_t changed_s, written_s;
    uint32_t changed_ns, written_ns;
    int watch; /* of box_dirs.watch, on the overlay: ends with it */
};

struct box_layers {
    unsigned count; /* 0: that directory serves nobody else */
    unsigned lives; /* sandboxes it has served */
    struct box_layer at[BOX_LAYERS];
};

/* Directories of sandboxes that wrote nothing, shared with who clears their work directories. */
struct box_spare {
    uint64_t word; /* number << 2 | what it is; its name is the number. 0: there is none */
    unsigned lives, layers;
    const char *upper[BOX_LAYERS], *work[BOX_LAYERS];
};

struct box_dirs {
    int gone;  /* where BOX_SPARE is; not ours; -1: none is kept */
    int watch; /* inotify */
    uint64_t next;
    struct box_spare *spares; /* BOX_SPARES; NULL: none is kept */
};

/* Of the launcher that holds the lock; gone: BOX_GONE, without any of another's. */
void box_dirs_open(struct box_host *h, int gone);
void box_dirs_close(struct box_host *h);
/* box/<ID> for spec, whose roots and disk are set: one that served before, or a new one. */
fallible box_dirs_make(struct box_host *h, struct box_spec *spec);
/* Of one that is dead and to be removed: box/<ID> is nobody's any more, and kept for another once
 * it is cleared. False: it is not fit for that, and is still to be deleted. */
bool box_dirs_keep(struct box_host *h, struct box *b);
/* By who may wait for the disk. */
void box_dirs_clear(const struct box_dirs *d);
bool box_dirs_any(const struct box_dirs *d);
void box_dirs_forget(struct box_dirs *d); /* BOX_SPARE is to be deleted */
