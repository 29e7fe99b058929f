// SPDX-License-Identifier: Apache-2.0
/* setid.c — see setid.h. Others may be at work in the directory: what is changed is a descriptor
 * that was looked at, never a name. */
#include "host/launcher/setid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "host/tree/tree.h"

#define CAPS "security.capability"

static uint64_t changed_ns(const struct stat *st)
{
    return (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec;
}

static fallible strip_fd(int fd, uint64_t since_ns)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys("look at a file");
    if (!S_ISREG(st.st_mode) || changed_ns(&st) < since_ns)
        return NULL;
    if (fremovexattr(fd, CAPS) < 0 && errno != ENODATA && errno != EOPNOTSUPP)
        return err_sys("take off file capabilities");
    if (st.st_mode & (S_ISUID | S_ISGID) && fchmod(fd, st.st_mode & 01777) < 0)
        return err_sys("take off set-id bits");
    return NULL;
}

static fallible setid_look(void *since_ns, int dir, const char *name)
{
    const uint64_t *since = since_ns;
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : err_sys("look at a file");
    if (!S_ISREG(st.st_mode) || changed_ns(&st) < *since)
        return NULL;
    own_fd fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) /* gone, or another's by now */
        return errno == ENOENT || errno == ELOOP || errno == ENXIO ? NULL : err_sys("open a file");
    return strip_fd(fd, *since);
}

fallible setid_strip(int source, uint64_t since_wall_ns)
{
    /* Files are stamped with a clock that ticks, and may be a little behind. */
    uint64_t since_ns = since_wall_ns - 1000000000u;
    struct stat st;
    char path[32];

    if (fstat(source, &st) < 0)
        return err_sys("look at a mounted directory");
    if (S_ISDIR(st.st_mode))
        return err_wrap(tree_each(source, setid_look, &since_ns),
                        "set-id files in a mounted directory");
    if (!S_ISREG(st.st_mode))
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", source);
    own_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? err_sys("open a mounted file") : strip_fd(fd, since_ns);
}
