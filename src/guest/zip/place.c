// SPDX-License-Identifier: Apache-2.0
/* place.c — see place.h. */
#include "guest/zip/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/rng.h"

#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY)
#define COPY_PIECE (256u << 10)

fallible place_own(int fd, struct place_owner owner)
{
    if (owner.uid == (uid_t)-1 && owner.gid == (gid_t)-1)
        return NULL;
    if (fchown(fd, owner.uid, owner.gid) < 0)
        return err_sys("set the owner to %u:%u", (unsigned)owner.uid, (unsigned)owner.gid);
    return NULL;
}

static fallible last_name(struct str path, char name[NAME_MAX + 1])
{
    struct str last = path, head;

    while (str_find_char(last, '/') >= 0)
        str_cut(&last, '/', &head);
    if (last.len > NAME_MAX)
        return err_sysno(ENAMETOOLONG, "make directory '" STR_FMT "'", STR_ARG(path));
    memcpy(name, last.p, last.len);
    name[last.len] = '\0';
    return NULL;
}

static fallible make_dir(int dir, int parent, struct str path, struct place_owner owner,
                         int *ret_fd)
{
    char name[NAME_MAX + 1];

    TRY(last_name(path, name));
    bool made = mkdirat(parent, name, 0755) == 0;
    if (!made && errno != EEXIST)
        return err_sys("make directory '" STR_FMT "'", STR_ARG(path));
    own_fd fd = -1;
    TRY(fd_open_beneath(dir, path, DIR_FLAGS, 0, &fd));
    if (made)
        TRY_WRAP(place_own(fd, owner), "directory '" STR_FMT "'", STR_ARG(path));
    *ret_fd = take_fd(&fd);
    return NULL;
}

/* NULL owner: stops at the first that is missing, with -1. */
static fallible walk_dirs(int dir, struct str path, const struct place_owner *owner, int *ret_fd)
{
    own_fd parent = -1;
    char name[NAME_MAX + 1] = "";
    struct stat st;
    struct err *whole = fd_open_beneath(dir, path.len ? path : STR("."), DIR_FLAGS, 0, ret_fd);

    if (!whole || err_errno(whole) != ENOENT)
        return whole;
    err_free(whole);
    for (size_t end = 1; end <= path.len; end++) {
        bool ends_name = end == path.len || path.p[end] == '/';
        if (!ends_name || path.p[end - 1] == '/')
            continue;
        struct str so_far = str_first(path, end);
        int fd = -1, above = parent >= 0 ? parent : dir;
        struct err *e = fd_open_beneath(dir, so_far, DIR_FLAGS, 0, &fd);
        if (e && err_errno(e) == ENOENT && owner) {
            err_free(e);
            e = make_dir(dir, above, so_far, *owner, &fd);
        } else if (e && err_errno(e) == ENOENT) {
            err_free(last_name(so_far, name)); /* ENOENT: it is not too long */
            if (fstatat(above, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return e; /* a link to nowhere */
            err_free(e);
            return NULL;
        }
        TRY(e);
        own_close(parent);
        parent = fd;
    }
    *ret_fd = take_fd(&parent);
    return NULL;
}

fallible place_dirs(int dir, struct str path, struct place_owner owner, int *ret_fd)
{
    return walk_dirs(dir, path, &owner, ret_fd);
}

fallible place_find(int dir, struct str path, int *ret_fd)
{
    *ret_fd = -1;
    return walk_dirs(dir, path, NULL, ret_fd);
}

fallible place_may(int dir, const char *name)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        errno = EISDIR;
    else if (strlen(name) > NAME_MAX)
        errno = ENAMETOOLONG;
    else
        return NULL;
    return err_sys("give the file its name");
}

static fallible copy_bytes(int from, int to)
{
    own_free char *piece = mem_try(COPY_PIECE);

    if (!piece)
        return err_no_memory();
    for (;;) {
        ssize_t n = read(from, piece, COPY_PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys("read");
        if (n == 0)
            return NULL;
        TRY(fd_write_all(to, str_n(piece, (size_t)n)));
    }
}

static fallible copy_file(int from_dir, const char *from, int to_dir, const char *temp)
{
    struct stat st;
    own_fd in = openat(from_dir, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    if (in < 0 || fstat(in, &st) < 0)
        return err_sys("open");
    own_fd out = openat(to_dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return err_sys("create");
    TRY(copy_bytes(in, out));
    if (fchown(out, st.st_uid, st.st_gid) < 0 || fchmod(out, st.st_mode & 0777) < 0)
        return err_sys("set the owner");
    return NULL;
}

static fallible move_across(int from_dir, const char *from, int to_dir, const char *to)
{
    char temp[sizeof ".upload-" + RNG_HEX_LEN] = ".upload-";

    rng_hex(rng_system(), temp + strlen(temp));
    struct err *e = copy_file(from_dir, from, to_dir, temp);
    if (!e && renameat(to_dir, temp, to_dir, to) < 0)
        e = err_sys("rename");
    unlinkat(e ? to_dir : from_dir, e ? temp : from, 0);
    return e ? err_wrap(e, "copy to another disk") : NULL;
}

fallible place_file(int from_dir, const char *from, int to_dir, const char *to)
{
    if (renameat(from_dir, from, to_dir, to) == 0)
        return NULL;
    if (errno == EXDEV)
        return move_across(from_dir, from, to_dir, to);
    return err_sys("give the file its name");
}
