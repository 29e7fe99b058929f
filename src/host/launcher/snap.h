// SPDX-License-Identifier: Apache-2.0
/* snap.h — snapshots of the launcher's sandboxes, and what stands on one. */
#pragma once

#include "host/rootfs/rootfs.h"
#include "host/snaps/snaps.h"
#include "sandbox/native/msg.h"

struct launcher;
struct launcher_box;

#define LAUNCHER_THAW "thaw" /* in box/<ID>: frozen for a snapshot alone */

fallible launcher_snapshot(struct launcher *l, struct launcher_box *b,
                           const struct native_request *r, bool *ret_later);
fallible launcher_snapshot_remove(struct launcher *l, const struct native_request *r,
                                  bool *ret_later);
fallible launcher_snapshot_list(struct launcher *l, const char *after, struct native_reply *reply);
/* Makes the directory of a sandbox that goes on from a snapshot. */
fallible launcher_stand(const struct launcher *l, const struct native_request *r);
/* The layers a sandbox stands on, above its root file system's and its mounts' own. */
fallible launcher_add_layers(const struct launcher *l, const struct native_request *r,
                             struct rootfs *fs, struct snaps_stack below[NATIVE_MOUNTS]);
bool launcher_stands(const struct launcher *l, const char *id);
void launcher_sweep_layers(struct launcher *l); /* by a child: those that no sandbox stands on */

/* Gives a sandbox that has ended the files of its beginning, or of the snapshot. */
fallible launcher_rollback(struct launcher *l, struct launcher_box *b,
                           const struct native_request *r, bool *ret_later);

bool launcher_is_half_back(const struct launcher *l, const char *id); /* it was cut short */
