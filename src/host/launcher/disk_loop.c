// SPDX-License-Identifier: Apache-2.0
/* disk_loop.c — an ext4 image for each sandbox, sparse, through a loop device that frees itself.
 *
 * Making a file system takes a program and tens of milliseconds, so an empty one of each size in
 * use is kept in state/disk and copied, a few hundred kilobytes. The loop device holds the very
 * open file that we locked: an image that is still mounted somewhere cannot be mounted again,
 * which would destroy it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/rng.h"
#include "host/launcher/disk_inner.h"
#include "host/launcher/mounts.h"
#include "host/kernel/sys.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define CONTROL       "/dev/loop-control"
#define TEMPLATES_MAX 8 /* sizes kept; a server could ask for ever new ones */
#define TRIES         64

static const char *const makers[] = {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"};

static const char *find_maker(void)
{
    for (size_t i = 0; i < ARRAY_LEN(makers); i++)
        if (access(makers[i], X_OK) == 0)
            return makers[i];
    return NULL;
}

const char *disk_lacks_loop(void)
{
    if (access(CONTROL, R_OK | W_OK) < 0)
        return "there is no " CONTROL;
    return find_maker() ? NULL : "there is no mkfs.ext4";
}

/* Inodes take a sixtieth, the kernel keeps up to a fiftieth for itself (16 MiB at most), a journal
 * of 4 MiB. */
uint64_t disk_image_bytes(uint64_t bytes)
{
    uint64_t kept = bytes / 50 < 16u << 20 ? bytes / 50 : 16u << 20;

    return (bytes + bytes / 60 + kept + (6u << 20)) / 4096 * 4096;
}

/* --- empty file systems, by size --- */

static fallible run_maker(const char *path)
{
    static const char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
    const char *argv[] = {
        find_maker(), "-q", "-F",     "-m0", "-b4096",
        "-i16384",    "-J", "size=4", "-E",  "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
        path,         NULL};
    posix_spawn_file_actions_t io;
    int status = 0;
    pid_t pid;

    if (!argv[0])
        return err_new(ERR_UNSUPPORTED, "there is no mkfs.ext4; install e2fsprogs");
    posix_spawn_file_actions_init(&io);
    for (int fd = 0; fd <= 2; fd++)
        posix_spawn_file_actions_addopen(&io, fd, "/dev/null", O_RDWR, 0);
    int r = posix_spawn(&pid, argv[0], &io, NULL, (char *const *)argv, (char *const *)env);
    posix_spawn_file_actions_destroy(&io);
    if (r)
        return err_sysno(r, "run '%s'", argv[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status)
        return err_new(ERR_INTERNAL, "'%s' failed with status %d", argv[0], status);
    return NULL;
}

/* Without a name until it is whole. */
static fallible make_template(int dir, const char *name, uint64_t bytes)
{
    char temp[sizeof ".new-" + RNG_HEX_LEN] = ".new-", path[48];

    rng_hex(rng_system(), temp + strlen(temp));
    own_fd fd = openat(dir, temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        return err_sys("make an image");
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    struct err *e = run_maker(path);
    if (!e && renameat(dir, temp, dir, name) < 0)
        e = err_sys("name an image");
    if (e)
        unlinkat(dir, temp, 0);
    return e;
}

/* Any of them may go: the next sandbox that needs it makes it again. */
static fallible forget_templates(int dir)
{
    own_done(buf) names = {0};
    size_t count = 0, seen = 0;

    TRY(tree_read_names(dir, 1u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1)
        if (strncmp(name, "ext4-", 5) == 0 && ++seen >= TEMPLATES_MAX)
            unlinkat(dir, name, 0);
    return NULL;
}

static fallible open_template(int state, uint64_t bytes, int *ret_fd)
{
    char name[40];
    own_fd dir = -1;

    TRY(fd_make_dirs(state, STR("disk"), 0700, &dir));
    snprintf(name, sizeof name, "ext4-%" PRIu64, bytes);
    *ret_fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (*ret_fd >= 0)
        return NULL;
    TRY(forget_templates(dir));
    TRY(make_template(dir, name, bytes));
    *ret_fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return *ret_fd < 0 ? err_sys("open an image") : NULL;
}

/* --- one sandbox's --- */

static fallible make_image(int state, int box, uint64_t bytes, int *ret_fd)
{
    own_fd template = -1;

    TRY(open_template(state, disk_image_bytes(bytes), &template));
    own_fd fd = openat(box, DISK_IMAGE ".new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys("make its image");
    TRY(tree_copy_bytes(template, fd));
    if (renameat(box, DISK_IMAGE ".new", box, DISK_IMAGE) < 0)
        return err_sys("name its image");
    *ret_fd = take_fd(&fd);
    return NULL;
}

/* The one of a life before: the kernel unmounts it as the last process ends, before we hear. */
static fallible open_image(int box, int *ret_fd)
{
    own_fd fd = openat(box, DISK_IMAGE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return err_sys("open its image");
    *ret_fd = take_fd(&fd);
    return NULL;
}

static fallible loop_image_attach(int image, int *ret_loop, char out_path[32])
{
    own_fd control = open(CONTROL, O_RDWR | O_CLOEXEC);

    if (control < 0)
        return err_sys("open '" CONTROL "'");
    for (unsigned i = 0; i < TRIES; i++) {
        struct loop_config config = {.fd = (uint32_t)image,
                                     .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
        int n = ioctl(control, LOOP_CTL_GET_FREE);
        if (n < 0)
            return err_sys("find a free loop device");
        snprintf(out_path, 32, "/dev/loop%d", n);
        own_fd loop = open(out_path, O_RDWR | O_CLOEXEC);
        if (loop < 0)
            return err_sys("open '%s'", out_path);
        if (ioctl(loop, LOOP_CONFIGURE, &config) == 0) {
            *ret_loop = take_fd(&loop);
            return NULL;
        }
        if (errno != EBUSY) /* another launcher was faster */
            return err_sys("give '%s' its image", out_path);
    }
    return err_new(ERR_BUSY, "no loop device stays free");
}

/* Which device has it? Only we give out loop devices of this file, and it is mounted. */
static fallible find_loop(const struct stat *image, int *ret_loop, char out_path[32])
{
    own_done(buf) names = {0};
    own_fd blocks = open("/sys/block", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t count = 0;

    if (blocks < 0)
        return err_sys("open '/sys/block'");
    TRY(tree_read_names(blocks, 1u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        struct loop_info64 info;
        if (strncmp(name, "loop", 4) != 0 || strlen(name) > 16)
            continue;
        snprintf(out_path, 32, "/dev/%s", name);
        own_fd loop = open(out_path, O_RDONLY | O_CLOEXEC);
        if (loop < 0 || ioctl(loop, LOOP_GET_STATUS64, &info) < 0 ||
            info.lo_device != image->st_dev || info.lo_inode != image->st_ino)
            continue;
        *ret_loop = take_fd(&loop);
        return NULL;
    }
    return err_new(ERR_NOT_FOUND, "no loop device has its image");
}

/* A device that is mounted has one file system: this is another way into the same. */
fallible disk_look(int box, int *ret_mount)
{
    char source[40] = "source=";
    const char *options[] = {source, NULL};
    own_fd loop = -1;
    struct stat st;

    if (fstatat(box, DISK_IMAGE, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("look at its image");
    TRY(find_loop(&st, &loop, source + strlen(source)));
    return err_wrap(mounts_new("ext4", options, MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY, ret_mount),
                    "its image");
}

fallible disk_loop_open(int state, int box, uint64_t bytes, int *ret_mount)
{
    own_fd image = -1, loop = -1;
    char source[40] = "source=";
    const char *options[] = {source, "noinit_itable", NULL};
    struct stat st;

    bool there = fstatat(box, DISK_IMAGE, &st, AT_SYMLINK_NOFOLLOW) == 0;
    TRY(there ? open_image(box, &image) : make_image(state, box, bytes, &image));
    if (flock(image, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? err_new(ERR_BUSY, "its disk is still in use: try again")
                                    : err_sys("lock its disk");
    TRY(loop_image_attach(image, &loop, source + strlen(source)));
    return err_wrap(mounts_new("ext4", options, MOUNT_ATTR_NODEV, ret_mount), "its image");
}
