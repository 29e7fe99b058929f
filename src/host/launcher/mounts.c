// SPDX-License-Identifier: Apache-2.0
/* mounts.c — see mounts.h. */
#include "host/launcher/mounts.h"

#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"
#include "host/kernel/sys.h"

#define OPTIONS_MAX 4096 /* of mount(), with the NUL */

/* --- copies --- */

fallible mounts_clone(int dir, int userns, bool read_only, int *ret_mount)
{
    /* The kernel clones all of an ordinary user's mounts or none, so that none shows what lies
     * below. */
    unsigned all = userns >= 0 || geteuid() == 0 ? 0 : AT_RECURSIVE;
    own_fd mount = sys_open_tree(dir, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | all);
    struct mount_attr attr = {.attr_set = (userns >= 0 ? MOUNT_ATTR_IDMAP : 0) |
                                          (read_only ? MOUNT_ATTR_RDONLY : 0),
                              .attr_clr = userns >= 0 ? MOUNT_ATTR_NODIRATIME : 0,
                              .userns_fd = userns >= 0 ? (uint64_t)userns : 0};

    if (mount < 0)
        return sys_not_of_disk(err_sys("copy a mount"));
    if (attr.attr_set && sys_mount_setattr(mount, &attr) < 0)
        return err_sys("%s", userns >= 0 ? "shift the ids of a mount" : "make a mount read-only");
    *ret_mount = take_fd(&mount);
    return NULL;
}

/* --- new file systems --- */

/* The kernel tells why in the context's log, "e overlay: …" per line. */
static fallible fs_err(int fs, const char *what)
{
    char why[256];
    int saved = errno;
    ssize_t n = read(fs, why, sizeof why - 1);
    struct str line = str_trim(str_n(why, n > 0 ? (size_t)n : 0));

    if (line.len > 2 && line.p[1] == ' ')
        line = str_from(line, 2);
    if (!line.len)
        return err_sysno(saved, "%s", what);
    return err_sysno(saved, "%s (" STR_FMT ")", what, STR_ARG(line));
}

static fallible fs_create(int fs, unsigned attr, const char *what, int *ret_mount)
{
    if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return fs_err(fs, what);
    *ret_mount = sys_fsmount(fs, attr);
    return *ret_mount < 0 ? fs_err(fs, what) : NULL;
}

static fallible fs_option(int fs, const char *option)
{
    const char *equals = strchr(option, '=');
    char key[32];
    size_t n = equals ? (size_t)(equals - option) : strlen(option);

    if (n >= sizeof key)
        return err_new(ERR_INTERNAL, "mount option '%s' is too long", option);
    memcpy(key, option, n);
    key[n] = '\0';
    int r = equals ? sys_fsconfig(fs, FSCONFIG_SET_STRING, key, equals + 1, 0)
                   : sys_fsconfig(fs, FSCONFIG_SET_FLAG, key, NULL, 0);
    return r < 0 ? fs_err(fs, option) : NULL;
}

fallible mounts_new(const char *type, const char *const *options, unsigned attr, int *ret_mount)
{
    own_fd fs = sys_fsopen(type);

    if (fs < 0)
        return err_sys("open a file system of type %s", type);
    for (; *options; options++)
        TRY_WRAP(fs_option(fs, *options), "set up %s", type);
    return fs_create(fs, attr, type, ret_mount);
}

/* --- overlays of older kernels --- */

fallible mounts_lend(int mount, const char *at)
{
    return sys_move_mount(mount, AT_FDCWD, at) < 0 ? err_sys("attach a layer at '%s'", at) : NULL;
}

void mounts_take_back(const char *at)
{
    /* It is there, and no other process uses it; what can fail at all is worth a second try. */
    if (umount2(at, MNT_DETACH) < 0)
        (void)umount2(at, MNT_DETACH);
}

/* mount() takes a page of options, enough for 128 layers; fsconfig() no more than 255 bytes. */
static fallible overlay_by_path(const struct mounts_overlay *o, int *ret_mount)
{
    own_done(buf) text;

    buf_init(&text, OPTIONS_MAX);
    for (size_t i = 0; i < o->lower_count; i++)
        buf_addf(&text, "%s/proc/self/fd/%d", i ? ":" : "lowerdir=", o->lowers[i]);
    if (o->upper >= 0)
        buf_addf(&text, ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d%s", o->upper, o->work,
                 o->throw_away ? ",volatile" : "");
    buf_add(&text, o->user        ? STR(",userxattr")
                   : o->redirects ? STR(",redirect_dir=follow,metacopy=off")
                                  : STR(",redirect_dir=off,metacopy=off"));
    buf_add(&text, str_n("", 1));
    if (buf_failed(&text))
        return err_new(ERR_LIMIT, "%zu layers are more than this kernel takes", o->lower_count);
    if (mount("overlay", o->at, "overlay",
              MS_NODEV | MS_NODIRATIME | (o->no_set_id ? MS_NOSUID : 0), text.p) < 0)
        return err_sys("mount the overlay");
    *ret_mount = sys_open_tree(AT_FDCWD, o->at, OPEN_TREE_CLONE);
    struct err *e = *ret_mount < 0 ? err_sys("copy the overlay's mount") : NULL;
    mounts_take_back(o->at);
    return e;
}

bool mounts_by_path(int dir)
{
    own_fd fs = sys_fsopen("overlay");

    return fs >= 0 && sys_fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, dir) < 0 &&
           (errno == EOPNOTSUPP || errno == EINVAL);
}

fallible mounts_overlay(const struct mounts_overlay *o, int *ret_mount)
{
    if (o->at)
        return overlay_by_path(o, ret_mount);
    own_fd fs = sys_fsopen("overlay");
    if (fs < 0)
        return err_sys("open an overlay");
    for (size_t i = 0; i < o->lower_count; i++)
        if (sys_fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, o->lowers[i]) < 0)
            return fs_err(fs, "add a layer to the overlay");
    if (o->upper >= 0 && (sys_fsconfig(fs, FSCONFIG_SET_FD, "upperdir", NULL, o->upper) < 0 ||
                          sys_fsconfig(fs, FSCONFIG_SET_FD, "workdir", NULL, o->work) < 0))
        return fs_err(fs, "give the overlay its upper layer");
    if (o->throw_away && o->upper >= 0)
        TRY(fs_option(fs, "volatile"));
    /* No new redirects and no metadata-only copies, whatever the machine's default: host/changes
     * reads the layers, and these would hide bytes. userxattr implies it. */
    const char *const plain[] = {o->redirects ? "redirect_dir=follow" : "redirect_dir=off",
                                 "metacopy=off"};
    for (size_t i = 0; !o->user && i < ARRAY_LEN(plain); i++)
        TRY(fs_option(fs, plain[i]));
    if (o->user)
        TRY(fs_option(fs, "userxattr"));
    return fs_create(
        fs, MOUNT_ATTR_NODEV | MOUNT_ATTR_NODIRATIME | (o->no_set_id ? MOUNT_ATTR_NOSUID : 0),
        "mount the overlay", ret_mount);
}

/* --- in memory --- */

static const struct {
    const char *name;
    unsigned major, minor;
} nodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
             {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

static const struct {
    const char *name, *to;
} links[] = {{"ptmx", "pts/ptmx"},
             {"fd", "/proc/self/fd"},
             {"stdin", "/proc/self/fd/0"},
             {"stdout", "/proc/self/fd/1"},
             {"stderr", "/proc/self/fd/2"}};

static fallible make_nodes(int dir)
{
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        if (mknodat(dir, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) <
            0)
            return err_sys("make /dev/%s", nodes[i].name);
    return NULL;
}

static fallible fill_dev(int dir)
{
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (symlinkat(links[i].to, dir, links[i].name) < 0)
            return err_sys("make /dev/%s", links[i].name);
    if (mkdirat(dir, "pts", 0755) < 0 || mkdirat(dir, "shm", 0755) < 0)
        return err_sys("make directories in /dev");
    return NULL;
}

static fallible fill_memory(int fs, bool user)
{
    if (mkdirat(fs, "dev", 0755) < 0 || mkdirat(fs, "shm", 01777) < 0)
        return err_sys("make directories in memory");
    own_fd dev = openat(fs, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dev < 0)
        return err_sys("open /dev in memory");
    TRY(fill_dev(dev));
    return user ? NULL : make_nodes(dev);
}

static int mounts_borrow(const char *path)
{
    return sys_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE);
}

static fallible mounts_part(int fs, const char *name, uint64_t attr_set, int *ret_mount)
{
    struct mount_attr attr = {.attr_set = attr_set};
    own_fd mount = sys_open_tree(fs, name, OPEN_TREE_CLONE);

    if (mount < 0 || (attr_set && sys_mount_setattr(mount, &attr) < 0))
        return err_sys("take '%s' out of memory", name);
    *ret_mount = take_fd(&mount);
    return NULL;
}

fallible mounts_memory(const char *at, bool user, struct mounts_memory *ret_memory)
{
    /* The owner is told by its options: root as seen inside, not the range's. */
    const char *const options[] = {"mode=755", "size=64m", user ? NULL : "uid=0", "gid=0", NULL};
    const uint64_t sealed = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC;
    own_fd fs = -1, dev = -1, shm = -1, null = -1;

    TRY(mounts_new("tmpfs", options, MOUNT_ATTR_NOSUID, &fs));
    mode_t before = umask(0);
    struct err *e = fill_memory(fs, user);
    umask(before);
    TRY(e);
    if (sys_move_mount(fs, AT_FDCWD, at) < 0) /* only what is mounted can be taken apart */
        return err_sys("mount memory at '%s'", at);
    TRY(mounts_part(fs, "dev", user ? MOUNT_ATTR_NOEXEC : sealed, &dev));
    TRY(mounts_part(fs, "shm", MOUNT_ATTR_NODEV, &shm));
    if (!user)
        TRY(mounts_part(fs, "dev/null", sealed, &null));
    else if ((null = mounts_borrow("/dev/null")) < 0)
        return err_sys("borrow '/dev/null'");
    TRY(mounts_part(fs, "dev/pts", sealed | MOUNT_ATTR_NODEV, &ret_memory->none));
    ret_memory->dev = take_fd(&dev);
    ret_memory->shm = take_fd(&shm);
    ret_memory->null = take_fd(&null);
    return NULL;
}

/* --- putting them in place --- */

static int open_plain(int root, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};

    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* Makes the missing parts of path one by one. */
static fallible make_path(int root, const char *path, bool file)
{
    own_fd at = fcntl(root, F_DUPFD_CLOEXEC, 0);
    struct str rest = str_of(path), part;

    if (at < 0)
        return err_sys("copy a descriptor");
    for (bool more = true; more;) {
        char name[256];
        more = str_cut(&rest, '/', &part);
        if (!part.len || part.len >= sizeof name)
            return err_new(ERR_INVALID, "a part of '%s' is empty or too long", path);
        memcpy(name, part.p, part.len);
        name[part.len] = '\0';
        if (!more && file) {
            own_fd made = openat(at, name, O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
            return made < 0 ? err_sys("make '/%s'", path) : NULL;
        }
        if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
            return err_sys("make '/%s'", path);
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return err_sys("'/%s' in the root file system is no plain directory", path);
        own_close(at);
        at = next;
    }
    return NULL;
}

fallible mounts_user_dev(int dev, int root)
{
    struct mount_attr sealed = {.attr_set = MOUNT_ATTR_RDONLY};

    TRY(mounts_attach(dev, root, "dev", false));
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/%s", nodes[i].name);
        own_fd node = mounts_borrow(path);
        if (node < 0)
            return err_sys("borrow '%s'", path);
        TRY(mounts_attach(node, root, path + 1, true));
    }
    return sys_mount_setattr(dev, &sealed) < 0 ? err_sys("seal /dev") : NULL;
}

fallible mounts_attach(int mount, int root, const char *path, bool file)
{
    own_fd at = open_plain(root, path);

    if (at < 0 && errno == ENOENT) {
        TRY(make_path(root, path, file));
        at = open_plain(root, path);
    }
    if (at < 0)
        return err_sys("'/%s' in the root file system cannot be mounted on", path);
    if (sys_move_mount(mount, at, "") < 0)
        return sys_not_of_disk(err_sys("mount '/%s'", path));
    return NULL;
}
