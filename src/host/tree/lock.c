// SPDX-License-Identifier: Apache-2.0
/* lock.c — one process at a time changes a store below the state directory. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "host/tree/tree.h"

fallible tree_lock(int dir, int *ret_fd)
{
    own_fd fd = openat(dir, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys("open the lock");
    while (flock(fd, LOCK_EX) < 0) {
        if (errno != EINTR)
            return err_sys("lock");
    }
    *ret_fd = take_fd(&fd);
    return NULL;
}
