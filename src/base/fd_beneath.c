// SPDX-License-Identifier: Apache-2.0
/* fd_beneath.c — opening a path a stranger chose without leaving the directory we hold.
 *
 * The kernel does it with openat2. The walk does the same where that call is missing (old kernels,
 * gVisor, seccomp filters). It holds a descriptor for every directory on the way, so ".." returns
 * to where we came from whatever was renamed meanwhile.
 *
 * "." is the directory itself; "" is no path. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EAGAIN_TRIES 32
#define WALK_LINKS   40  /* as the kernel */
#define WALK_DEPTH   128 /* descriptors held at once; the kernel has no such limit */

static bool makes_file(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static fallible copy_path(struct str path, char out[PATH_MAX])
{
    if (path.len == 0)
        return err_new(ERR_INVALID, "the path is empty");
    if (str_find_char(path, '\0') >= 0)
        return err_new(ERR_INVALID, "the path holds a NUL byte");
    if (path.len >= PATH_MAX)
        return err_sysno(ENAMETOOLONG, "open '" STR_FMT "…'", STR_ARG(str_first(path, 64)));
    memcpy(out, path.p, path.len);
    out[path.len] = '\0';
    return NULL;
}

/* A filter may answer EPERM for a call it does not know; the call itself would say EINVAL here. */
static bool openat2_missing(int errnum)
{
    if (errnum == EPERM)
        return syscall(SYS_openat2, -1, NULL, NULL, (size_t)0) < 0 && errno != EINVAL;
    return errnum == ENOSYS;
}

fallible fd_open_beneath(int dir, struct str path, int flags, mode_t mode, int *ret_fd)
{
    char text[PATH_MAX];
    TRY(copy_path(path, text));
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
                           .mode = makes_file(flags) ? mode & 07777 : 0,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};

    for (int i = 0; i < EAGAIN_TRIES; i++) {
        long fd = syscall(SYS_openat2, dir, text, &how, sizeof how);
        if (fd >= 0) {
            *ret_fd = (int)fd;
            return NULL;
        }
        int errnum = errno;
        if (openat2_missing(errnum))
            break;
        if (errnum != EAGAIN) /* a rename somewhere while ".." was being resolved */
            return err_sysno(errnum, "open '%s'", text);
    }
    /* also against a process that renames all the time: the walk cannot be starved */
    return fd_open_beneath_walk(dir, path, flags, mode, ret_fd);
}

struct walk {
    int fds[WALK_DEPTH]; /* directories below the one we were given */
    size_t depth;
    int root, flags;
    mode_t mode;
    unsigned links;
    char rest[2 * PATH_MAX]; /* what is still to be walked */
};

static void walk_done(struct walk *w)
{
    while (w->depth)
        own_close(w->fds[--w->depth]);
}

static int beneath_here(const struct walk *w)
{
    return w->depth ? w->fds[w->depth - 1] : w->root;
}

/* The steps give 0 to go on, an errno to stop, or OPENED. */
#define OPENED -1

/* Every magic link reads as an absolute path, "type:[…]", or "(unreachable)…". */
static bool is_magic(int link, const char *text)
{
    struct statfs fs;

    if (fstatfs(link, &fs) < 0)
        return true;
    return fs.f_type == PROC_SUPER_MAGIC && (text[0] == '/' || strpbrk(text, ":("));
}

/* Puts the text of the link before what is left to walk. */
static int beneath_follow(struct walk *w, int link)
{
    char text[PATH_MAX];
    ssize_t n = readlinkat(link, "", text, sizeof text);

    if (n < 0)
        return errno;
    if (n == 0 || n == sizeof text)
        return n ? ENAMETOOLONG : ENOENT;
    text[n] = '\0';
    if (++w->links > WALK_LINKS || is_magic(link, text))
        return ELOOP;
    if (text[0] == '/')
        return EXDEV;
    size_t rest = strlen(w->rest);
    if ((size_t)n + rest + 1 > sizeof w->rest)
        return ENAMETOOLONG;
    memmove(w->rest + n, w->rest, rest + 1); /* rest is empty or starts with '/' */
    memcpy(w->rest, text, (size_t)n);
    return 0;
}

static int beneath_enter(struct walk *w, const char *name)
{
    struct stat st;
    own_fd fd = openat(beneath_here(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);

    if (fd < 0 || fstat(fd, &st) < 0)
        return errno;
    if (S_ISLNK(st.st_mode))
        return beneath_follow(w, fd);
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    if (w->depth == WALK_DEPTH)
        return ENAMETOOLONG;
    w->fds[w->depth++] = take_fd(&fd);
    return 0;
}

static int beneath_leave(struct walk *w)
{
    if (w->depth == 0)
        return EXDEV;
    own_close(w->fds[--w->depth]);
    return 0;
}

/* Whether an open with O_NOFOLLOW failed on a link that is to be followed. If it is no link any
 * more, another process replaced it; that look counts as a link. */
static int follow_last(struct walk *w, const char *name, int errnum)
{
    struct stat st;
    own_fd fd = openat(beneath_here(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);

    if (fd < 0 || fstat(fd, &st) < 0)
        return errno;
    if (S_ISLNK(st.st_mode))
        return beneath_follow(w, fd);
    if (errnum != ELOOP || ++w->links > WALK_LINKS)
        return errnum;
    size_t n = strlen(name);
    memcpy(w->rest, name, n + 1);
    return 0;
}

static int open_last(struct walk *w, const char *name, int *ret_fd)
{
    struct stat st;
    own_fd fd = openat(beneath_here(w), name, w->flags | O_NOFOLLOW | O_CLOEXEC, w->mode);
    bool nofollow = w->flags & O_NOFOLLOW;

    if (fd < 0 && (nofollow || (errno != ELOOP && errno != ENOTDIR)))
        return errno;
    if (fd < 0)
        return follow_last(w, name, errno);
    if ((w->flags & O_PATH) && !nofollow) { /* such an open gives a link itself */
        if (fstat(fd, &st) < 0)
            return errno;
        if (S_ISLNK(st.st_mode))
            return beneath_follow(w, fd);
    }
    *ret_fd = take_fd(&fd);
    return OPENED;
}

/* Takes the next name off the rest; says whether nothing, or nothing but slashes, comes after. */
static int next_name(struct walk *w, char name[NAME_MAX + 1], bool *ret_last, bool *ret_slash)
{
    const char *from = w->rest + strspn(w->rest, "/");
    size_t n = strcspn(from, "/"), slashes = strspn(from + n, "/");

    if (n > NAME_MAX)
        return ENAMETOOLONG;
    memcpy(name, from, n);
    name[n] = '\0';
    *ret_slash = slashes > 0;
    *ret_last = from[n + slashes] == '\0';
    memmove(w->rest, from + n, strlen(from + n) + 1);
    return 0;
}

static int beneath_step(struct walk *w, int *ret_fd)
{
    char name[NAME_MAX + 1];
    bool last, slash;
    int errnum = next_name(w, name, &last, &slash);

    if (errnum)
        return errnum;
    if (name[0] == '\0') /* "name/": its directory has been entered */
        return open_last(w, ".", ret_fd);
    if (strcmp(name, "..") == 0)
        errnum = beneath_leave(w);
    else if (strcmp(name, ".") == 0)
        errnum = 0;
    else if (last && !slash)
        return open_last(w, name, ret_fd);
    else if (last && (w->flags & O_CREAT))
        return EISDIR;
    else
        return beneath_enter(w, name);
    return errnum || !last ? errnum : open_last(w, ".", ret_fd);
}

/* openat2 refuses what openat ignores. */
static bool flags_fit(int flags)
{
    if ((flags & O_PATH) && (flags & ~(O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)))
        return false;
    return (flags & (O_CREAT | O_DIRECTORY)) != (O_CREAT | O_DIRECTORY);
}

fallible fd_open_beneath_walk(int dir, struct str path, int flags, mode_t mode, int *ret_fd)
{
    __attribute__((cleanup(walk_done))) struct walk w;
    w.depth = w.links = 0;
    w.root = dir;
    w.flags = flags;
    w.mode = makes_file(flags) ? mode & 07777 : 0;
    TRY(copy_path(path, w.rest));
    int errnum = w.rest[0] == '/' ? EXDEV : flags_fit(flags) ? 0 : EINVAL;

    while (!errnum)
        errnum = beneath_step(&w, ret_fd);
    if (errnum == OPENED)
        return NULL;
    return err_sysno(errnum, "open '" STR_FMT "'", STR_ARG(path));
}

/* parent is where the missing last name of path belongs. */
static fallible make_dir(int dir, int parent, struct str path, mode_t mode, int *ret_fd)
{
    char name[NAME_MAX + 1];
    struct str last = path, head;

    while (str_find_char(last, '/') >= 0)
        str_cut(&last, '/', &head);
    if (last.len > NAME_MAX)
        return err_sysno(ENAMETOOLONG, "make directory '" STR_FMT "'", STR_ARG(path));
    memcpy(name, last.p, last.len);
    name[last.len] = '\0';
    if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
        return err_sys("make directory '" STR_FMT "'", STR_ARG(path));
    return fd_open_beneath(dir, path, O_RDONLY | O_DIRECTORY, 0, ret_fd);
}

fallible fd_make_dirs(int dir, struct str path, mode_t mode, int *ret_fd)
{
    own_fd parent = -1;
    struct err *whole = fd_open_beneath(dir, path, O_RDONLY | O_DIRECTORY, 0, ret_fd);

    if (!whole || err_errno(whole) != ENOENT)
        return whole; /* there already, or not a path we would make */
    err_free(whole);
    for (size_t end = 1; end <= path.len; end++) {
        bool ends_name = end == path.len || path.p[end] == '/';
        if (!ends_name || path.p[end - 1] == '/')
            continue;
        struct str so_far = str_first(path, end);
        int fd;
        struct err *e = fd_open_beneath(dir, so_far, O_RDONLY | O_DIRECTORY, 0, &fd);
        if (e && err_errno(e) == ENOENT) {
            err_free(e);
            e = make_dir(dir, parent >= 0 ? parent : dir, so_far, mode, &fd);
        }
        TRY(e);
        own_close(parent);
        parent = fd;
    }
    *ret_fd = take_fd(&parent);
    return NULL;
}
