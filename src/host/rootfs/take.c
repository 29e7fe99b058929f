// SPDX-License-Identifier: Apache-2.0
/* take.c — copies of the host's files for a layer: only what everybody may read, never a set-id
 * bit, links as they are. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/rootfs/inner.h"
#include "host/tree/tree.h"

static fallible take_give(int fd, const struct stat *st)
{
    struct timespec times[2] = {st->st_atim, st->st_mtim};

    if (geteuid() == 0 && fchown(fd, st->st_uid, st->st_gid) < 0)
        return err_sys("set the owner");
    if (fchmod(fd, st->st_mode & 01777) < 0)
        return err_sys("set the mode");
    if (futimens(fd, times) < 0)
        return err_sys("set the times");
    return NULL;
}

static fallible take_count_files(struct take_limits *left, off_t size)
{
    if (!left->files || (uint64_t)size > left->total_bytes)
        return err_new(ERR_TOO_LARGE, "the host's files are more than croft copies");
    left->files--;
    left->total_bytes -= (size_t)size;
    return NULL;
}

static fallible take_file(const struct take *t, int from_dir, int to_dir, const char *name)
{
    struct stat st;
    own_fd from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);

    if (from < 0 || fstat(from, &st) < 0)
        return errno == ENOENT || errno == EACCES ? NULL : err_sys("open");
    if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) || (size_t)st.st_size > t->left->file_bytes)
        return NULL;
    TRY(take_count_files(t->left, st.st_size));
    own_fd to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return err_sys("create");
    TRY(tree_copy_bytes(from, to));
    return take_give(to, &st);
}

static fallible take_link(const struct take *t, int from_dir, int to_dir, const char *name)
{
    char text[PATH_MAX];
    ssize_t n = readlinkat(from_dir, name, text, sizeof text - 1);

    if (n < 0)
        return errno == ENOENT ? NULL : err_sys("read the link");
    text[n] = '\0';
    TRY(take_count_files(t->left, 0));
    if (symlinkat(text, to_dir, name) < 0)
        return err_sys("make the link");
    return NULL;
}

struct tree_take {
    struct tree_visitor v;
    const struct take *t;
    struct str above; /* path of the tree below t->from */
    int from, to;     /* of the tree */
};

static bool left_out(const struct take *t, struct str above, struct str path)
{
    char whole[PATH_MAX];

    snprintf(whole, sizeof whole, STR_FMT "%s" STR_FMT, STR_ARG(above),
             above.len && path.len ? "/" : "", STR_ARG(path));
    for (size_t i = 0; t->without && t->without[i]; i++) {
        if (strcmp(t->without[i], whole) == 0)
            return true;
    }
    return false;
}

/* The copy of the directory that holds an entry. */
static fallible open_beside(const struct tree_take *c, struct str path, int *ret_fd)
{
    const char *slash = memrchr(path.p, '/', path.len);
    struct str above = slash ? str_first(path, (size_t)(slash - path.p)) : STR(".");

    return fd_open_beneath(c->to, above, O_RDONLY | O_DIRECTORY, 0, ret_fd);
}

static fallible enter_dir(const struct tree_take *c, const struct tree_at *at, bool *skip)
{
    own_fd to = -1;

    *skip = (at->st->st_mode & 05) != 05 || left_out(c->t, c->above, at->path);
    if (*skip)
        return NULL;
    TRY(take_count_files(c->t->left, 0));
    TRY(open_beside(c, at->path, &to));
    if (mkdirat(to, at->name, 0700) < 0)
        return err_sys("make the directory");
    return NULL;
}

static fallible leave_dir(const struct tree_take *c, const struct tree_at *at)
{
    own_fd fd = -1;

    TRY(fd_open_beneath(c->to, at->path, O_RDONLY | O_DIRECTORY, 0, &fd));
    return take_give(fd, at->st);
}

static fallible take_one(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                         bool *skip)
{
    const struct tree_take *c = container_of(v, struct tree_take, v);
    struct err *e = NULL;
    own_fd to = -1;

    if (when == TREE_ENTER)
        e = enter_dir(c, at, skip);
    else if (when == TREE_LEAVE)
        e = leave_dir(c, at);
    else if (!left_out(c->t, c->above, at->path) &&
             (S_ISREG(at->st->st_mode) || S_ISLNK(at->st->st_mode))) {
        e = open_beside(c, at->path, &to);
        if (!e)
            e = S_ISLNK(at->st->st_mode) ? take_link(c->t, at->dir, to, at->name)
                                         : take_file(c->t, at->dir, to, at->name);
    }
    return e ? err_wrap(e, "'%s'", at->path.p) : NULL;
}

static fallible take_tree(const struct take *t, int from_dir, int to_dir, const char *name,
                          struct str path, const struct stat *st)
{
    if ((st->st_mode & 05) != 05)
        return NULL;
    if (mkdirat(to_dir, name, 0700) < 0 && errno != EEXIST)
        return err_sys("make the directory");
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    own_fd from = openat(from_dir, name, flags, 0), to = openat(to_dir, name, flags, 0);
    if (from < 0 || to < 0)
        return err_sys("open the directory");
    struct tree_take c = {{.visit = take_one, .one_filesystem = true}, t, path, from, to};
    TRY(tree_walk(from, &c.v));
    return take_give(to, st);
}

static fallible take_from(const struct take *t, int from, int to, const char *name, struct str path)
{
    struct stat st;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : err_sys("look");
    if (S_ISDIR(st.st_mode))
        return take_tree(t, from, to, name, path, &st);
    if (S_ISLNK(st.st_mode))
        return take_link(t, from, to, name);
    return S_ISREG(st.st_mode) ? take_file(t, from, to, name) : NULL;
}

fallible take_path(const struct take *t, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct str above = slash ? str_n(path, (size_t)(slash - path)) : STR(".");
    own_fd from = -1, to = -1;

    if (left_out(t, STR(""), str_of(path)))
        return NULL;
    struct err *e = fd_open_beneath(t->from, above, O_RDONLY | O_DIRECTORY, 0, &from);
    if (e && err_errno(e) == ENOENT) {
        err_free(e);
        return NULL;
    }
    TRY(e);
    TRY(fd_make_dirs(t->to, above, 0755, &to));
    TRY_WRAP(take_from(t, from, to, slash ? slash + 1 : path, str_of(path)), "copy '%s'", path);
    return NULL;
}

fallible take_write(int dir, const char *name, struct str data, mode_t mode)
{
    own_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys("create '%s'", name);
    TRY_WRAP(fd_write_all(fd, data), "'%s'", name);
    if (fchmod(fd, mode) < 0)
        return err_sys("set the mode of '%s'", name);
    return NULL;
}

fallible take_dir(int dir, const char *name, mode_t mode, uid_t uid, gid_t gid)
{
    own_fd fd = -1;

    TRY(fd_make_dirs(dir, str_of(name), 0755, &fd));
    if ((geteuid() == 0 || uid) && fchown(fd, uid, gid) < 0)
        return err_sys("set the owner of '%s'", name);
    if (fchmod(fd, mode) < 0)
        return err_sys("set the mode of '%s'", name);
    return NULL;
}
