// SPDX-License-Identifier: Apache-2.0
/* ids.h — the private range of 64 Ki user ids of each sandbox (its slot), and its user namespace.
 *
 * A range is claimed by a symlink that is named after it and holds the sandbox's id: one system
 * call, exclusive between every croft on the machine, and readable both ways after a crash. Layers
 * are idmapped, so these ids never reach a disk. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define IDS_COUNT  65536u
#define IDS_SLOTS  0x8000u
#define IDS_LOWEST 0x70000000u /* above what distributions hand out */

struct rng;

static inline uint32_t ids_base(unsigned slot)
{
    return IDS_LOWEST + slot * IDS_COUNT;
}

/* dir holds the claims. ERR_LIMIT when none is found free. */
fallible ids_claim(int dir, const char *id, struct rng *rng, unsigned *ret_slot);
fallible ids_release(int dir, unsigned slot);

struct ids_range {
    uint32_t uid, gid, count; /* what 0 inside is, here */
    uint32_t sub_uid, sub_gid,
        sub_count; /* what follows, if it lies elsewhere: an ordinary user's */
};

/* The first process of the last namespace that was made: dying or dead. It is reaped when the next
 * one is made, or by ids_reap(), so that the launcher does not wait for its end. */
struct ids_holder {
    pid_t pid; /* 0: none */
    pid_t parent;
    _Alignas(16) char stack[8192];
};
void ids_reap(struct ids_holder *h);

/* A user namespace, child of ours, held by a descriptor alone. */
fallible ids_make_userns(struct ids_holder *h, const struct ids_range *r, int *ret_ns);

/* Between the two the process is, with the capabilities it has, the owner of namespaces that are
 * made, which may look at and limit what is in them. Root may lack the capabilities that others
 * need for that. If there is no way back the process ends. */
struct ids_owner {
    uid_t me;
    int dumpable;
};
fallible ids_own(struct ids_owner *o, uint32_t owner);
void ids_disown(const struct ids_owner *o);

/* Files made from here to ids_leave belong to the range's root; an overlay needs that to make its
 * work directory, or it silently mounts read-only. */
fallible ids_enter(const struct ids_range *r);
fallible ids_leave(void);
