// SPDX-License-Identifier: Apache-2.0
/* plan.h — what 'croft run' is to start: everything looked up and opened. Nothing is begun but the
 * sandbox's directory, if something must be noted in it first. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/launcher/box.h"
#include "host/rootfs/rootfs.h"
#include "host/run/given.h"
#include "host/run/run.h"
#include "host/snaps/snaps.h"

enum { RUN_END_FD = 3 }; /* inside */

struct plan {
    struct native_request req;
    struct box_spec spec;
    struct rootfs rootfs;
    struct box_root roots[ROOTFS_MOUNTS_MAX];
    struct snaps_stack below;
    const char *pid1[16];
    struct given given; /* as they were before it ran */
    sigset_t signals;   /* the same */
    uint64_t began_wall_ns;
    bool unlimited;
    bool made; /* its directory: something is noted in it before it starts */
    int end;   /* gets the exit code when all but pid 1 is dead; -1: its death tells */
};

void plan_init(struct plan *p);
void plan_done(struct plan *p);
fallible plan_make(const struct box_host *h, const struct run_spec *s, struct plan *p);
