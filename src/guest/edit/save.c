// SPDX-License-Identifier: Apache-2.0
/* save.c — replacing a file whole: a temporary beside it takes its mode and owner, then its name.
 *
 * That is impossible for a file mounted by itself, or a directory or owner that is not ours. There
 * room is made first, the bytes are written in place, and put back if that fails. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rng.h"
#include "guest/edit/space.h"

#define LINKS_MAX  40
#define NO_REPLACE 1u /* RENAME_NOREPLACE, which musl does not name */

/* The real place of a path: a directory held open and a name in it that is no link. */
struct place {
    int dir;
    char name[NAME_MAX + 1];
};

static void place_done(struct place *p)
{
    own_close(p->dir);
}

static struct str last_name(struct str path)
{
    struct str head;

    while (str_find_char(path, '/') >= 0)
        str_cut(&path, '/', &head);
    return path;
}

static fallible enter_place(const struct edit_space *s, struct str path, struct place *p)
{
    struct str name = last_name(path);
    own_fd dir = -1;

    if (name.len == 0 || str_eq(name, STR(".")) || str_eq(name, STR("..")))
        return err_sysno(EISDIR, "write '" STR_FMT "'", STR_ARG(path));
    if (name.len > NAME_MAX)
        return err_sysno(ENAMETOOLONG, "write '" STR_FMT "'", STR_ARG(path));
    if (memchr(name.p, '\0', name.len))
        return err_new(ERR_INVALID, "the path holds a NUL byte");
    TRY(space_open(s, space_parent(path), O_PATH | O_DIRECTORY, &dir));
    memcpy(p->name, name.p, name.len);
    p->name[name.len] = '\0';
    own_close(p->dir);
    p->dir = take_fd(&dir);
    return NULL;
}

/* Follows the links at the end of path. The text of a link is put behind the directory it is in, so
 * each round is opened from the top again and stays within the boundary. */
static fallible find_place(const struct edit_space *s, struct str path, struct place *p)
{
    char text[PATH_MAX], link[PATH_MAX];

    if (path.len >= sizeof text)
        return err_sysno(ENAMETOOLONG, "write a path of %zu bytes", path.len);
    memcpy(text, path.p, path.len);
    struct str at = str_n(text, path.len);
    for (int i = 0; i < LINKS_MAX; i++) {
        TRY(enter_place(s, at, p));
        ssize_t n = readlinkat(p->dir, p->name, link, sizeof link);
        if (n < 0 && (errno == EINVAL || errno == ENOENT))
            return NULL;
        if (n < 0)
            return err_sys("write '" STR_FMT "'", STR_ARG(path));
        size_t keep = link[0] == '/' ? 0 : at.len - last_name(at).len;
        if (keep + (size_t)n >= sizeof text)
            return err_sysno(ENAMETOOLONG, "write '" STR_FMT "'", STR_ARG(path));
        memcpy(text + keep, link, (size_t)n);
        at = str_n(text, keep + (size_t)n);
    }
    return err_sysno(ELOOP, "write '" STR_FMT "'", STR_ARG(path));
}

static fallible check_same(const struct place *p, const struct stat *old)
{
    struct stat now;

    if (fstatat(p->dir, p->name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("look at '%s'", p->name);
    if (now.st_dev != old->st_dev || now.st_ino != old->st_ino || now.st_size != old->st_size ||
        now.st_mtim.tv_sec != old->st_mtim.tv_sec || now.st_mtim.tv_nsec != old->st_mtim.tv_nsec)
        return err_sysno(ESTALE, "'%s' was changed by somebody else", p->name);
    return NULL;
}

static fallible set_owner(int fd, uid_t uid, gid_t gid, mode_t mode)
{
    if (uid != EDIT_NO_OWNER && fchown(fd, uid, gid) < 0)
        return err_sys("change the owner");
    if (fchmod(fd, mode & 07777) < 0) /* after the owner: chown clears set-id bits */
        return err_sys("change the mode");
    return NULL;
}

static fallible save_fill(int fd, struct str data)
{
    TRY(fd_write_all(fd, data));
    if (fsync(fd) < 0)
        return err_sys("fsync");
    return NULL;
}

static fallible put_name(const struct place *p, const char *temp, bool is_new)
{
    if (is_new) {
        if (syscall(SYS_renameat2, p->dir, temp, p->dir, p->name, NO_REPLACE) == 0)
            return NULL;
        if (errno != EINVAL && errno != ENOSYS && errno != EPERM)
            return err_sys("rename");
    }
    if (renameat(p->dir, temp, p->dir, p->name) < 0)
        return err_sys("rename");
    return NULL;
}

/* Without a name until it is whole, where the file system can: nothing is left if we are killed. */
static int open_beside(const struct place *p, const char *temp, bool named)
{
    if (!named)
        return openat(p->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    return openat(p->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static bool give_name(const struct place *p, const char *temp, int fd)
{
    char self[32];

    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, p->dir, temp, AT_SYMLINK_FOLLOW) == 0;
}

/* *ret_again: it could not be made without a name, or not be given one. *ret_owner_err is set only
 * for a new file; for an old one losing its owner is a failure. */
static fallible replace_by(const struct edit_space *s, const struct space_save *save,
                           const struct place *p, bool named, bool *ret_again,
                           struct err **ret_owner_err)
{
    char temp[sizeof ".croft-" + RNG_HEX_LEN] = ".croft-";
    const struct stat *old = save->old;

    rng_hex(rng_system(), temp + strlen(temp));
    own_fd fd = open_beside(p, temp, named);
    *ret_again = fd < 0 && !named;
    if (fd < 0)
        return named ? err_sys("create a file beside '%s'", p->name) : NULL;
    struct err *owner = set_owner(fd, old ? old->st_uid : s->uid, old ? old->st_gid : s->gid,
                                  old ? old->st_mode : save->mode);
    struct err *e = old ? owner : NULL;
    if (!e)
        e = save_fill(fd, save->data);
    *ret_again = !e && !named && !give_name(p, temp, fd);
    if (!e && !*ret_again)
        e = put_name(p, temp, !old);
    if (e)
        unlinkat(p->dir, temp, 0);
    if (!old && !e && !*ret_again && ret_owner_err)
        *ret_owner_err = owner;
    else if (!old)
        err_free(owner); /* the file is there, or something worse is being told */
    return e;
}

static fallible save_replace(const struct edit_space *s, const struct space_save *save,
                             const struct place *p, struct err **ret_owner_err)
{
    bool again;

    TRY(replace_by(s, save, p, false, &again, ret_owner_err));
    return again ? replace_by(s, save, p, true, &again, ret_owner_err) : NULL;
}

static fallible pwrite_all(int fd, struct str data)
{
    off_t at = 0;

    while (data.len) {
        ssize_t n = pwrite(fd, data.p, data.len, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_sys("write");
        at += n;
        data = str_from(data, (size_t)n);
    }
    if (ftruncate(fd, at) < 0)
        return err_sys("truncate");
    return NULL;
}

static fallible write_in_place(const struct space_save *save, const struct place *p)
{
    own_fd fd = openat(p->dir, p->name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);

    if (fd < 0)
        return err_sys("open '%s'", p->name);
    off_t more = (off_t)save->data.len - (off_t)save->old_data.len;
    int errnum = more > 0 ? posix_fallocate(fd, (off_t)save->old_data.len, more) : 0;
    struct err *e = NULL;
    if (errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG)
        e = err_sysno(errnum, "write '%s'", p->name);
    if (!e)
        e = pwrite_all(fd, save->data);
    if (!e && fsync(fd) < 0)
        e = err_sys("fsync");
    if (e)
        err_free(pwrite_all(fd, save->old_data)); /* the first failure is the one to tell */
    return e;
}

static bool only_in_place(const struct err *e)
{
    switch (err_errno(e)) {
    case EACCES:
    case EPERM:
    case EBUSY:
    case EXDEV:
        return true;
    default:
        return false;
    }
}

fallible space_save(const struct edit_space *s, const struct space_save *save,
                    struct err **ret_owner_err)
{
    __attribute__((cleanup(place_done))) struct place p = {.dir = -1};

    if (ret_owner_err)
        *ret_owner_err = NULL;
    TRY(find_place(s, save->path, &p));
    if (save->old)
        TRY(check_same(&p, save->old));
    struct err *e = save_replace(s, save, &p, ret_owner_err);
    if (!e || !save->old || !only_in_place(e))
        return e;
    err_free(e); /* the way round says what is wrong, if that fails too */
    return write_in_place(save, &p);
}

static fallible make_dir(const struct edit_space *s, struct str path)
{
    __attribute__((cleanup(place_done))) struct place p = {.dir = -1};

    TRY(enter_place(s, path, &p));
    if (mkdirat(p.dir, p.name, 0777) < 0)
        return err_sys("make directory '" STR_FMT "'", STR_ARG(path));
    if (s->uid != EDIT_NO_OWNER &&
        fchownat(p.dir, p.name, s->uid, s->gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != EPERM)
        return err_sys("give directory '" STR_FMT "' to its user", STR_ARG(path));
    return NULL;
}

fallible space_make_parents(const struct edit_space *s, struct str path, struct str *ret_failed)
{
    struct str parent = space_parent(path);
    struct stat st;

    for (size_t end = 1; end <= parent.len; end++) {
        if (end < parent.len && parent.p[end] != '/')
            continue;
        struct str dir = str_first(parent, end);
        if (s->root.len && dir.len < s->root.len)
            continue;
        struct err *e = space_stat(s, dir, &st);
        if (e && err_errno(e) == ENOENT) {
            err_free(e);
            e = make_dir(s, dir);
        }
        if (e) {
            *ret_failed = dir;
            return e;
        }
    }
    return NULL;
}
