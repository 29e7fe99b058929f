// SPDX-License-Identifier: Apache-2.0
/* look.c — opening entries by path, a name at a time, following nothing.
 *
 * Paths may be longer than the kernel takes. The directory of the last path stays open: entries
 * come in order, so most share it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/changes/inner.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

void lookup_init(struct lookup *l, int root)
{
    l->root = root;
    l->dir = -1;
    l->ours = false;
    buf_init(&l->above, 16u << 20);
}

void lookup_init_layer(struct lookup *l, int root)
{
    lookup_init(l, root);
    l->ours = true;
}

void lookup_forget(struct lookup *l)
{
    own_close(l->dir);
    l->dir = -1;
}

void lookup_done(struct lookup *l)
{
    lookup_forget(l);
    buf_done(&l->above);
}

static fallible not_there(int errnum, struct str path)
{
    bool missing = errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP;

    if (errnum == EXDEV)
        return err_new(ERR_CONFLICT, "something is mounted above '" STR_FMT "'",
                       STR_ARG(str_first(path, 200)));
    struct err *e = err_sysno(errnum, "open '" STR_FMT "'", STR_ARG(str_first(path, 200)));

    return missing ? err_recode(e, ERR_NOT_FOUND) : e;
}

static fallible open_dir(int root, struct str path, int *ret_fd)
{
    own_fd fd = tree_open_here(root, ".");
    struct str rest = path, name;

    if (fd < 0)
        return not_there(errno, path);
    while (str_cut(&rest, '/', &name) || name.len) {
        char text[NAME_MAX + 1];
        if (name.len > NAME_MAX)
            return not_there(ENAMETOOLONG, path);
        memcpy(text, name.p, name.len);
        text[name.len] = '\0';
        int next = tree_open_here(fd, text);
        if (next < 0)
            return not_there(errno, path);
        own_close(fd);
        fd = next;
    }
    *ret_fd = take_fd(&fd);
    return NULL;
}

fallible lookup_parent(struct lookup *l, struct str path, int *ret_dir, const char **ret_name)
{
    const char *slash = memrchr(path.p, '/', path.len);
    struct str above = slash ? str_first(path, (size_t)(slash - path.p)) : STR("");

    *ret_name = slash ? slash + 1 : path.p;
    if (l->dir >= 0 && str_eq(buf_str(&l->above), above)) {
        *ret_dir = l->dir;
        return NULL;
    }
    lookup_forget(l);
    buf_reset(&l->above);
    TRY(open_dir(l->root, above, &l->dir));
    buf_add(&l->above, above);
    TRY(buf_check(&l->above));
    *ret_dir = l->dir;
    return NULL;
}

fallible lookup_stat(struct lookup *l, struct str path, struct stat *ret)
{
    const char *name;
    int dir;

    TRY(lookup_parent(l, path, &dir, &name));
    if (fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) < 0)
        return not_there(errno, path);
    return NULL;
}

fallible lookup_mount(struct lookup *l, struct str path, bool *ret_mount)
{
    const char *name;
    int dir;

    TRY(lookup_parent(l, path, &dir, &name));
    return entry_is_mount(dir, name, ret_mount);
}

fallible lookup_open(struct lookup *l, struct str path, mode_t type, int *ret_fd)
{
    const char *name;
    int dir, flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct stat st;

    TRY(lookup_parent(l, path, &dir, &name));
    /* Opening a device or fifo is an act of its own: look first, and again at what was opened. */
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return not_there(errno, path);
    own_fd fd = type_of(st.st_mode) == type ? openat(dir, name, flags, 0) : -1;
    if (fd < 0 && l->ours && errno == EACCES && type_of(st.st_mode) == type)
        fd = open_closed(dir, name, &st);
    if (fd < 0 && type_of(st.st_mode) == type)
        return not_there(errno, path);
    if (fd < 0 || fstat(fd, &st) < 0 || type_of(st.st_mode) != type)
        return err_new(ERR_CONFLICT, "'" STR_FMT "' was replaced while it was being read",
                       STR_ARG(str_first(path, 200)));
    *ret_fd = take_fd(&fd);
    return NULL;
}

/* Checks the inode: a process that still runs in there may put a link in the name's place. */
int open_closed(int dir, const char *name, const struct stat *st)
{
    bool is_dir = S_ISDIR(st->st_mode);
    int kind = O_NOFOLLOW | O_CLOEXEC | (is_dir ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY);
    own_fd at = openat(dir, name, O_PATH | kind, 0);
    char path[40];
    struct stat now;

    if (at < 0 || fstat(at, &now) < 0)
        return -1;
    if (now.st_ino != st->st_ino || now.st_uid != geteuid()) {
        errno = EACCES;
        return -1;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", at);
    if (chmod(path, (st->st_mode & 07777) | (is_dir ? 0700 : 0400)) < 0)
        return -1;
    own_fd fd = openat(dir, name, O_RDONLY | kind, 0);
    int errnum = errno;
    if (!is_dir)
        chmod(path, st->st_mode & 07777); /* ours a moment ago: so now */
    errno = errnum;
    return take_fd(&fd);
}

bool is_closed(const struct err *e)
{
    return err_errno(e) == EACCES || err_errno(e) == EPERM;
}

fallible lookup_link(struct lookup *l, struct str path, struct arena *a, struct str *ret)
{
    char text[PATH_MAX];
    const char *name;
    int dir;

    TRY(lookup_parent(l, path, &dir, &name));
    ssize_t n = readlinkat(dir, name, text, sizeof text);
    if (n < 0)
        return not_there(errno, path);
    *ret = arena_copy(a, str_n(text, (size_t)n));
    return ret->p ? NULL : err_no_memory();
}

fallible changes_read(const struct changes_source *src, const struct change *c, bool old,
                      size_t limit_bytes, struct buf *out)
{
    struct lookup l;
    own_fd fd = -1;
    struct stat st;

    if (old)
        lookup_init(&l, src->lower);
    else
        lookup_init_layer(&l, src->uppers[c->layer]);
    struct err *e =
        lookup_open(&l, old && c->kind == CHANGE_RENAMED ? c->from : c->path, S_IFREG, &fd);
    lookup_done(&l);
    TRY(e);
    if (fstat(fd, &st) < 0)
        return err_sys("look at it");
    if ((uint64_t)st.st_size > limit_bytes)
        return err_new(ERR_TOO_LARGE, "%llu bytes", (unsigned long long)st.st_size);
    for (size_t n = 1; n;) { /* it may grow meanwhile */
        char piece[16384];
        ssize_t got = read(fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys("read");
        n = (size_t)got;
        if (out->len + n > limit_bytes)
            return err_new(ERR_TOO_LARGE, "more than %zu bytes", limit_bytes);
        buf_add(out, str_n(piece, n));
    }
    return buf_check(out);
}
