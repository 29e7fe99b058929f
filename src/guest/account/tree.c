// SPDX-License-Identifier: Apache-2.0
/* tree.c — see tree.h. A descriptor and a directory stream are open per level, so depth is limited;
 * what is deeper counts as failed. */
#include "guest/account/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#define DEPTH_MAX 128
#define COPY_MAX  (16u << 20) /* of one file */

/* The next entry that is not "." or ".."; NULL at the end. */
static const char *next_name(DIR *d)
{
    const struct dirent *e;

    while ((e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            return e->d_name;
    return NULL;
}

static DIR *open_stream(int dir)
{
    int own_descriptor = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = own_descriptor < 0 ? NULL : fdopendir(own_descriptor);

    if (!d && own_descriptor >= 0)
        close(own_descriptor);
    return d;
}

static void tree_note(struct tree_count *count)
{
    if (!count->failed++)
        count->first_errno = errno;
}

/* Asked for files too: a single file of the host may be mounted. (The C library here has no
 * statx.) */
static bool is_mounted(int dir, const char *name)
{
    struct {
        uint32_t mask, block;
        uint64_t attributes;
        char rest[240];
    } x = {0};

    return syscall(SYS_statx, dir, name, AT_SYMLINK_NOFOLLOW, 0, &x) == 0 && x.attributes & 0x2000;
}

static void give_below(int dir, uid_t uid, gid_t gid, bool ours, struct tree_count *count,
                       unsigned depth)
{
    DIR *d = open_stream(dir);
    struct stat st;

    if (!d) {
        tree_note(count);
        return;
    }
    for (const char *name; (name = next_name(d));) {
        count->seen++;
        bool known = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
        bool deeper = known && S_ISDIR(st.st_mode);
        own_fd sub =
            deeper ? openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (ours && (sub >= 0 ? !tree_is_ours(sub) : is_mounted(dir, name)))
            continue;
        if (!known || (deeper && sub < 0) ||
            ((st.st_uid != uid || st.st_gid != gid) &&
             fchownat(dir, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)) {
            tree_note(count);
        } else if (deeper) {
            errno = ELOOP;
            if (depth >= DEPTH_MAX)
                tree_note(count);
            else
                give_below(sub, uid, gid, ours, count, depth + 1);
        }
    }
    closedir(d);
}

bool tree_is_ours(int dir)
{
    struct statfs root, fs;

    return statfs("/", &root) == 0 && fstatfs(dir, &fs) == 0 && fs.f_type == root.f_type &&
           fs.f_flags == root.f_flags;
}

void tree_give(int dir, uid_t uid, gid_t gid, bool ours, struct tree_count *count)
{
    *count = (struct tree_count){0};
    give_below(dir, uid, gid, ours, count, 0);
}

static fallible copy_file(int from, int to, const char *name, mode_t mode)
{
    own_fd in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    own_fd out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0777);
    own_done(buf) bytes;

    buf_init(&bytes, COPY_MAX);
    if (in < 0 || out < 0)
        return err_sys("copy '%s'", name);
    TRY_WRAP(fd_read_all(in, &bytes), "copy '%s'", name);
    return fd_write_all(out, buf_str(&bytes));
}

static fallible copy_below(int from, int to, uid_t uid, gid_t gid, unsigned depth);

static fallible copy_one(int from, int to, const char *name, uid_t uid, gid_t gid, unsigned depth)
{
    char target[PATH_MAX];
    struct stat st;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("stat '%s'", name);
    if (S_ISREG(st.st_mode)) {
        TRY(copy_file(from, to, name, st.st_mode));
    } else if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(from, name, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = '\0';
        if (n < 0 || symlinkat(target, to, name) < 0)
            return err_sys("copy '%s'", name);
    } else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
        if (mkdirat(to, name, st.st_mode & 0777) < 0)
            return err_sys("make '%s'", name);
        own_fd a = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        own_fd b = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (a < 0 || b < 0)
            return err_sys("open '%s'", name);
        TRY(copy_below(a, b, uid, gid, depth + 1));
    } else {
        return NULL; /* devices are not copied */
    }
    if (fchownat(to, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("chown '%s'", name);
    return NULL;
}

static fallible copy_below(int from, int to, uid_t uid, gid_t gid, unsigned depth)
{
    struct err *e = NULL;
    DIR *d = open_stream(from);

    if (!d)
        return err_sys("list");
    for (const char *name; !e && (name = next_name(d));)
        e = copy_one(from, to, name, uid, gid, depth);
    closedir(d);
    return e;
}

fallible tree_copy(int from, int to, uid_t uid, gid_t gid)
{
    return copy_below(from, to, uid, gid, 0);
}
