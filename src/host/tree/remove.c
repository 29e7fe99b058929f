// SPDX-License-Identifier: Apache-2.0
/* remove.c — a tree goes away, whatever a guest made of it.
 *
 * Names are read a piece at a time and removed before the next piece, so neither many files nor
 * deep directories cost memory that matters. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define DEEP 64

struct remover {
    struct tree_descent d;
    int top;
    unsigned lifted;
};

/* A directory of a guest that runs as our own user may be closed to us: it is still ours. */
static int open_dir(int dir, const char *name)
{
    int fd = tree_open_here(dir, name);

    if (fd >= 0 || errno != EACCES)
        return fd;
    own_fd path = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (path < 0 || fchmodat(dir, name, 0700, 0) < 0)
        return -1;
    return tree_open_here(dir, name);
}

static fallible not_opened(const char *name)
{
    if (errno == EXDEV)
        return err_new(ERR_CONFLICT, "something is mounted on '%.200s'", name);
    return err_sys("open '%.200s'", name);
}

/* Moves a deep entry to the top first: a confined process pays for each name by its depth. */
static bool remove_lift(struct remover *r, const char *name)
{
    char up[32];

    snprintf(up, sizeof up, ".deep-%u", r->lifted++);
    return r->d.depth >= DEEP && renameat(r->d.fd, name, r->top, up) == 0;
}

static fallible go_down(struct remover *r, const char *name)
{
    int fd = open_dir(r->d.fd, name);

    return fd < 0 ? not_opened(name) : tree_descend(&r->d, fd, 0);
}

static int unlink_one(int dir, const char *name, int flags)
{
    if (unlinkat(dir, name, flags) == 0 || errno == ENOENT)
        return 0;
    if (errno != EACCES || fchmodat(dir, ".", 0700, 0) < 0)
        return errno;
    return unlinkat(dir, name, flags) == 0 ? 0 : errno;
}

enum { LEFT = -1 }; /* the piece is not finished: we went into a directory */

/* Gives how many names it removed, or LEFT. */
static fallible remove_piece(struct remover *r, size_t n, long *ret_removed)
{
    long removed = 0;

    for (size_t at = 0; at < n;) {
        const struct tree_dent *e = (const struct tree_dent *)(void *)(r->d.piece + at);
        at += e->len;
        if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
            continue;
        bool dir = e->type == DT_DIR;
        int errnum = unlink_one(r->d.fd, e->name, dir ? AT_REMOVEDIR : 0);
        if (!dir && errnum == EISDIR) /* the file system did not say what it is */
            errnum = unlink_one(r->d.fd, e->name, AT_REMOVEDIR);
        if ((errnum == ENOTEMPTY || errnum == EEXIST) && remove_lift(r, e->name))
            errnum = 0;
        if (errnum == ENOTEMPTY || errnum == EEXIST) {
            *ret_removed = LEFT;
            return go_down(r, e->name);
        }
        if (errnum)
            return err_sysno(errnum, "remove '%s'", e->name);
        removed++;
    }
    *ret_removed = removed;
    return NULL;
}

/* One pass over the directory we are in. */
static fallible remove_pass(struct remover *r, long *ret_removed)
{
    long removed = 0;

    if (lseek(r->d.fd, 0, SEEK_SET) < 0)
        return err_sys("rewind a directory");
    for (;;) {
        long part, n = syscall(SYS_getdents64, r->d.fd, r->d.piece, TREE_PIECE);
        if (n < 0)
            return err_sys("read a directory");
        *ret_removed = removed;
        if (n == 0)
            return NULL;
        TRY(remove_piece(r, (size_t)n, &part));
        if (part == LEFT) {
            *ret_removed = LEFT;
            return NULL;
        }
        removed += part;
    }
}

static fallible remove_all(struct remover *r)
{
    for (;;) {
        long removed;
        TRY(remove_pass(r, &removed));
        if (removed) /* names may be passed over while others go: until a pass finds none */
            continue;
        if (!r->d.depth)
            return NULL;
        off_t next;
        TRY(tree_ascend(&r->d, &next)); /* from the start again: names went */
    }
}

fallible tree_empty(int dir)
{
    int fd = open_dir(dir, ".");

    if (fd < 0)
        return err_sys("open the directory");
    struct remover r = {.top = dir};
    struct err *e = tree_descent_init(&r.d, fd);
    if (!e)
        e = remove_all(&r);
    tree_descent_done(&r.d);
    return e;
}

/* Mounts on the way to it are the caller's affair; it, and what is below, is not on one. */
static fallible remove_in(int dir, const char *path, const char *slash)
{
    char parent[PATH_MAX];

    snprintf(parent, sizeof parent, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    own_fd at = openat(dir, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (at < 0)
        return errno == ENOENT ? NULL : err_sys("open '%.200s'", parent);
    return tree_remove(at, slash + 1);
}

fallible tree_remove(int dir, const char *name)
{
    const char *slash = strrchr(name, '/');

    if (slash && slash[1])
        return remove_in(dir, name, slash);
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return NULL;
    if (errno != EISDIR && errno != EPERM)
        return err_sys("remove '%.200s'", name);
    own_fd fd = open_dir(dir, name);
    if (fd < 0)
        return not_opened(name);
    TRY_WRAP(tree_empty(fd), "remove '%.200s'", name);
    if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_sys("remove directory '%.200s'", name);
    return NULL;
}
