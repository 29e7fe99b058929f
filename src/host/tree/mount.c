// SPDX-License-Identifier: Apache-2.0
/* mount.c — a file system mounted somewhere in a tree is not part of it. The device tells nothing:
 * a bind mount has that of the tree. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/tree/inner.h"
#include "host/tree/tree.h"

int tree_open_here(int dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};

    for (;;) {
        long fd = syscall(SYS_openat2, dir, name, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) /* something was renamed meanwhile */
            return (int)fd;
    }
}

fallible tree_is_mount(int dir, const char *name, bool *ret_mount)
{
    struct statx x;

    if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &x) < 0)
        return err_sys("look at '%.200s'", name);
    *ret_mount = x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    return NULL;
}
