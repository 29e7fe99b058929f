// SPDX-License-Identifier: Apache-2.0
/* layers.c — the copies of layers that overlays are made of, with the ids of one slot, used again.
 *
 * They are the launcher's own: no sandbox has them, for an overlay makes private copies of its own.
 * To close a copy that is mounted nowhere waits for a grace period of RCU, and a sandbox takes
 * three. The next sandbox of the same slot and root file system takes these instead. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/mounts.h"
#include "host/launcher/reuse/reuse.h"

void reuse_drop_layers(struct box_host *h, uint32_t slot)
{
    struct reuse_part p;

    if (reuse_take(h->reuse, REUSE_LAYERS, slot, &p))
        reuse_part_done(&p);
}

void reuse_take_layers(struct box_host *h, uint32_t slot, const char *id,
                       struct reuse_part *ret_part)
{
    if (reuse_take(h->reuse, REUSE_LAYERS, slot, ret_part)) {
        if (strcmp(ret_part->layers, id) == 0)
            return;
        reuse_part_done(ret_part);
    }
    reuse_part_init(ret_part, slot);
    snprintf(ret_part->layers, sizeof ret_part->layers, "%s", id);
}

/* An image that was removed and came again has its id, and other directories. */
static bool is_of(int copy, int dir)
{
    struct stat was, is;

    return fstat(copy, &was) == 0 && fstat(dir, &is) == 0 && was.st_dev == is.st_dev &&
           was.st_ino == is.st_ino;
}

fallible reuse_copy_layer(struct reuse_part *p, unsigned n, int dir, int userns, int *ret_mount)
{
    int *fd = &p->fds[n];

    if (*fd >= 0 && !is_of(*fd, dir))
        own_close(take_fd(fd));
    if (*fd < 0)
        TRY(mounts_clone(dir, userns, n != REUSE_HOME, fd));
    *ret_mount = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
    return *ret_mount < 0 ? err_sys("copy a descriptor") : NULL;
}
