// SPDX-License-Identifier: Apache-2.0
/* host_layers.h — the layers of the host's own system, as it changes. */
#pragma once

#include "host/rootfs/rootfs.h"
#include "loop/loop.h"

struct launcher;

struct host_layers {
    struct loop_io changed; /* inotify; stopped: nothing is watched */
    struct loop_timer quiet, deep;
    bool under_way, again;
    bool swept;           /* a sandbox was removed since this look began */
    bool used;            /* a sandbox was made of the layers since they were looked at deeply */
    bool old;             /* there are older layers, kept for sandboxes that stand on them */
    bool unwatched;       /* something was replaced, and what is there now is not watched yet */
    struct rootfs layers; /* as long as nothing changes; none: mount_count is 0 */
    uint64_t looked_ns;
};

void host_layers_start(struct launcher *l);
fallible host_layers_open(struct launcher *l, struct rootfs *ret); /* for a sandbox of them */
void host_layers_box_gone(struct launcher *l);                     /* one was removed */
void host_layers_end(struct launcher *l);
