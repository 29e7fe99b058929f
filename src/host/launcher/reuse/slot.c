// SPDX-License-Identifier: Apache-2.0
/* slot.c — the range of ids, the user namespace and the control groups of a sandbox, used again.
 *
 * To make and remove them is a third of a short life's processor time. No process inside can see or
 * change them: ids are not on disk, and the groups' numbers are the host's. A limit or a count
 * could reach the next sandbox, so a part remembers both. A slot with groups that hold memory,
 * stand still or have run out of memory is not used again. */
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/reuse/reuse.h"

#define CHARGED_BYTES (4u << 20) /* still: the kernel's own caches, which it gives back */

bool reuse_take_slot(struct box_host *h, struct box_spare *e)
{
    struct reuse_part p;

    if (!reuse_take(h->reuse, REUSE_SLOT, REUSE_ANY, &p))
        return false;
    e->slot = p.slot;
    e->userns = p.fds[0];
    e->limits = p.limits;
    e->cpu_ns = p.cpu_ns;
    e->again = true;
    return true;
}

bool reuse_put_slot(struct box_host *h, struct box *b)
{
    struct reuse_part p;
    char group[BOX_NAME];

    reuse_part_init(&p, b->slot);
    box_group_name(b->slot, group);
    if (!h->reuse || b->single_use || b->userns < 0 ||
        !cg_is_bare(&h->cg, group, CHARGED_BYTES, &p.cpu_ns))
        return false;
    p.limits = b->limits;
    p.fds[0] = take_fd(&b->userns);
    reuse_put(h->reuse, REUSE_SLOT, &p);
    return true;
}
