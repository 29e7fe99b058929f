// SPDX-License-Identifier: Apache-2.0
/* join.c — the host's /usr as a layer of the root's own overlay: one file system fewer for every
 * sandbox.
 *
 * That layer's root is /usr itself. So in the base above it /usr/NAME is a directory that redirects
 * to /NAME. The layer's names at the root are hidden: by whiteouts, and by making every directory
 * there opaque.
 *
 * For root only: an ordinary user's overlays follow no redirects. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "host/rootfs/inner.h"
#include "host/tree/inner.h"

#define NAMES_BYTES (4u << 20)
#define DIR_FLAGS   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static fallible join_mark(int dir, const char *name, const char *attribute, struct str value)
{
    own_fd fd = openat(dir, name, DIR_FLAGS, 0);

    if (fd < 0 || fsetxattr(fd, attribute, value.p, value.len, 0) < 0)
        return err_sys("mark '%s'", name);
    return NULL;
}

/* Files beside the directories are few and small, if there are any: copies, made anew when they
 * change (stamp.c). */
static fallible join_file(const struct take *t, const char *path, const struct stat *st)
{
    struct err *e =
        S_ISREG(st->st_mode) && (size_t)st->st_size > t->left->file_bytes
            ? err_new(ERR_TOO_LARGE, "it is larger than %zu MB", t->left->file_bytes >> 20)
            : take_path(t, path);

    if (!e || err_code(e) != ERR_TOO_LARGE)
        return e;
    log_warn("a file is not in the sandboxes", KV("path", path), KV_ERR(e));
    err_free(e);
    return NULL;
}

static fallible join_name(const struct take *t, int usr, int into, const char *name)
{
    char path[NAME_MAX + 8];
    struct stat st;

    if (fstatat(usr, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : err_sys("look at '/usr/%s'", name);
    if (!S_ISDIR(st.st_mode)) {
        snprintf(path, sizeof path, "usr/%s", name);
        return join_file(t, path, &st);
    }
    if ((st.st_mode & 05) != 05)
        return NULL; /* hidden */
    if (mkdirat(into, name, 0755) < 0)
        return err_sys("make '/usr/%s'", name);
    snprintf(path, sizeof path, "/%s", name);
    return join_mark(into, name, "trusted.overlay.redirect", str_of(path));
}

static fallible read_usr(int host, int *ret_usr, struct buf *names, size_t *ret_count)
{
    own_fd usr = openat(host, "usr", DIR_FLAGS, 0);

    if (usr < 0)
        return err_sys("open '/usr'");
    TRY(tree_read_names(usr, NAMES_BYTES, names, ret_count));
    *ret_usr = take_fd(&usr);
    return NULL;
}

fallible join_build(int host, int base)
{
    own_done(buf) names = {0};
    own_fd usr = -1, into = -1;
    size_t count = 0;
    struct take_limits left = {16u << 20, 64u << 20, 1000};
    struct take t = {host, base, NULL, &left};

    TRY(read_usr(host, &usr, &names, &count));
    TRY(fd_make_dirs(base, STR("usr"), 0755, &into));
    for (const char *name = names.p; count--; name += strlen(name) + 1)
        TRY(join_name(&t, usr, into, name));
    return NULL;
}

static fallible close_dirs(int base)
{
    own_done(buf) names = {0};
    size_t count = 0;
    struct stat st;

    TRY(tree_read_names(base, NAMES_BYTES, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        if (fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return err_sys("look at '%s'", name);
        if (S_ISDIR(st.st_mode))
            TRY(join_mark(base, name, "trusted.overlay.opaque", STR("y")));
    }
    return NULL;
}

fallible join_cover(int host, int base)
{
    own_done(buf) names = {0};
    own_fd usr = -1, top = openat(base, ".", DIR_FLAGS, 0);
    size_t count = 0;

    if (top < 0)
        return err_sys("open the root's layer");
    TRY(close_dirs(top));
    TRY(read_usr(host, &usr, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1)
        if (mknodat(base, name, S_IFCHR, 0) < 0 && errno != EEXIST)
            return err_sys("hide '%s'", name);
    return NULL;
}
