// SPDX-License-Identifier: Apache-2.0
/* tree.h — directories as a whole: given to a user, copied. Never through a link. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* chown -R of all below dir, not of dir itself. Failures are counted and are no error: a mount
 * inside may be read-only. ours: leaves out directories of the host, see tree_is_ours(). */
struct tree_count {
    unsigned long seen, failed;
    int first_errno; /* of what failed */
};
void tree_give(int dir, uid_t uid, gid_t gid, bool ours, struct tree_count *count);
/* Is it mounted as the root is? Of all mounts only overlays of this sandbox are (host/launcher:
 * mounts.c). Any other is a directory of the host, whose files keep their owners. */
bool tree_is_ours(int dir);
/* Files, directories and links below `from`, into `to`, with their modes, owned by uid and gid. */
fallible tree_copy(int from, int to, uid_t uid, gid_t gid);
