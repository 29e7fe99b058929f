// SPDX-License-Identifier: Apache-2.0
/* box_host.h — the state directory, and what all sandboxes of a process share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/kernel/confine.h"
#include "host/launcher/cg.h"
#include "host/launcher/fd_slot.h"
#include "host/launcher/ids.h"
#include "host/subids/subids.h"

#define BOX_STATE 4096
#define BOX_PLACE "mnt"  /* in the state: where a process mounts things that it alone sees, */
#define BOX_LOOK  "look" /* and where a launcher's children mount them, which see each other's */
#define BOX_GONE  "gone" /* in the state: what has been removed and is not deleted yet */

/* Shared by all sandboxes of a process. */
struct box_host {
    char state[BOX_STATE]; /* the directory below which everything is kept, 0700 */
    int dir;               /* that directory */
    int boxes, ids;        /* directories in it */
    int exe;               /* croft-guest, through a read-only mount */
    bool by_path;          /* how overlays take their layers here, see mounts.h */
    int look;              /* then: BOX_LOOK, whatever is mounted on it */
    bool user;             /* not root: what the kernel grants, with one id or */
    struct subids sub;     /* with a range */
    int landlock;          /* version, 0: none */
    struct cg cg;
    struct confine_filter filter, nested; /* nested: of NATIVE_NESTED */
    struct rng *rng;
    char boot[40]; /* which run of the machine this is */
    struct fd_slot fd_slot;
    struct ids_holder holder;
    bool many;           /* box_host_many(): */
    int bare;            /* a mount namespace with nothing in it, see box_bare.c; -1: none */
    int names;           /* a file system in memory for their names, see identity.h; -1: none */
    int noted;           /* the box/<ID>/root made last, */
    char noted_id[72];   /* and what it says; -1: none */
    struct reuse *reuse; /* parts of removed sandboxes; NULL: none is used again */
};

fallible box_host_open(struct box_host *h, const char *state, struct rng *rng);
/* What the machine can do; for layers.h only. state: the directory it would be in, which need not
 * exist; NULL: none. */
void box_host_look(struct box_host *h, const char *state);
void box_host_close(struct box_host *h);
/* For a program that makes many sandboxes: on ext4 without a journal they are spread over the disk
 * (a "top directory"). There a new inode passes by all that were freed in its group within the last
 * minute. With a journal they stay together, for each group of inodes must be read once. */
void box_host_spread(const struct box_host *h);
/* The same; namespaces of mounts start empty, and names are in memory. */
fallible box_host_many(struct box_host *h);
/* In a child that makes sandboxes too: it has a slot for descriptors of its own from now on. */
fallible box_host_forked(struct box_host *h);

/* The ids a sandbox has: a range of its own, or all that an ordinary user has. */
struct ids_range box_ids(const struct box_host *h, unsigned slot);
