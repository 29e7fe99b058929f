// SPDX-License-Identifier: Apache-2.0
/* box_used_slot.c — what a sandbox leaves that the next one can be made of.
 *
 * Making and removing groups, a user namespace and a network namespace is a third of a short life's
 * processor time. Nothing inside can see or change the first two: ids are not on disk, and groups
 * have numbers that are all the host's. What could reach the next sandbox is a limit, a count,
 * memory that is still charged, a group that stands still: so a used slot remembers limits and
 * processor time, and one with any of the others is not used again. Of network namespaces see
 * box_net.c. Processes, mounts and all other namespaces are new in every sandbox. */
#include "base/own.h"
#include "host/launcher/box_inner.h"

#define USED_SLOT_BYTES                                                                            \
    (4u << 20) /* charged still: the kernel's own caches, which it gives back                      \
                */

bool box_used_slot_take(struct box_host *h, struct box_spare *e)
{
    if (!h->used_slot_count)
        return false;
    const struct used_slot *k = &h->used_slots[--h->used_slot_count];
    e->slot = k->slot;
    e->userns = k->userns;
    e->net = k->net >= 0;
    h->net_given = k->net;
    e->limits = k->limits;
    e->cpu_ns = k->cpu_ns;
    e->again = true;
    return true;
}

bool box_used_slot_keep(struct box_host *h, struct box *b)
{
    struct used_slot k = {.slot = b->slot, .limits = b->limits};
    char group[BOX_NAME];

    box_group_name(b->slot, group);
    if (b->worn || b->userns < 0 || h->used_slot_count == BOX_USED_SLOTS ||
        !cg_is_bare(&h->cg, group, USED_SLOT_BYTES, &k.cpu_ns))
        return false;
    k.userns = take_fd(&b->userns);
    k.net = take_fd(&b->net);
    h->used_slots[h->used_slot_count++] = k;
    return true;
}

void box_host_rest(struct box_host *h)
{
    while (h->used_slot_count) {
        struct used_slot *k = &h->used_slots[--h->used_slot_count];
        own_close_p(&k->userns);
        box_net_drop(h, &k->net);
        box_forget_slot(h, k->slot);
    }
    box_net_let_go(h);
}
