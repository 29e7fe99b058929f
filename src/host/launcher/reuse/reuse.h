// SPDX-License-Identifier: Apache-2.0
/* reuse.h — parts of a sandbox that the next one is made of, see slot.c and layers.c.
 *
 * A part is put here and taken once. There is room for REUSE_MOST: the oldest one goes for the
 * next. A part not taken for REUSE_AGE_MS goes too.
 *
 * A box_host without struct reuse reuses nothing: every sandbox is made anew, with no other
 * change. */
#pragma once

#include <stdbool.h>

#include "sandbox/native/msg.h"

#define REUSE_MOST   256
#define REUSE_AGE_MS 2000
#define REUSE_FDS    17
#define REUSE_ANY    UINT32_MAX

struct box;
struct box_host;
struct box_spare;
struct loop;
struct reuse;

enum reuse_kind { REUSE_SLOT, REUSE_LAYERS };

struct reuse_part {
    uint32_t slot;
    int fds[REUSE_FDS];          /* its user namespace, or copies of layers; -1: not there */
    struct native_limits limits; /* REUSE_SLOT: what its groups are set to, */
    uint64_t cpu_ns;             /* and what they have counted */
    char layers[72];             /* REUSE_LAYERS: of which root file system */
};

/* False under the address sanitizer: its tests run with everything made anew. */
bool reuse_by_default(void);
/* NULL where too few files may be open. loop NULL: parts do not go by age. */
struct reuse *reuse_new(struct box_host *h, struct loop *loop);
void reuse_free(struct reuse *r); /* it is empty */

void reuse_put(struct reuse *r, enum reuse_kind kind, struct reuse_part *part); /* takes its fds */
/* slot REUSE_ANY: that of the last one put. False: there is none; r may be NULL. */
bool reuse_take(struct reuse *r, enum reuse_kind kind, uint32_t slot, struct reuse_part *ret_part);
void reuse_clear(struct reuse *r); /* drops all; NULL is fine */
unsigned reuse_count(const struct reuse *r, enum reuse_kind kind);
/* Drops the oldest part if it was put before that. Gives in how many ms the next one is due, 0:
 * there is none. */
uint64_t reuse_tidy(struct reuse *r, uint64_t now_ns);

void reuse_part_init(struct reuse_part *p, uint32_t slot);
void reuse_part_done(struct reuse_part *p);

/* --- slot.c --- */

bool reuse_take_slot(struct box_host *h, struct box_spare *e);
/* False: the slot shows a trace of its sandbox, or nothing is used again. */
bool reuse_put_slot(struct box_host *h, struct box *b);

/* --- layers.c --- */

/* Copies are of so many overlays of a root file system, and so many layers of each. */
#define REUSE_ROOTS       4
#define REUSE_LAYERS_EACH 4
#define REUSE_HOME        (REUSE_ROOTS * REUSE_LAYERS_EACH) /* state/box; writable */

/* Copies of this root file system's layers for a slot; none yet when there are none. */
void reuse_take_layers(struct box_host *h, uint32_t slot, const char *id,
                       struct reuse_part *ret_part);
/* Another descriptor of copy n, which is made if it is not there or not of dir. */
fallible reuse_copy_layer(struct reuse_part *p, unsigned n, int dir, int userns, int *ret_mount);
void reuse_drop_layers(struct box_host *h, uint32_t slot); /* with the slot */
