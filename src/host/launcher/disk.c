// SPDX-License-Identifier: Apache-2.0
/* disk.c — see disk.h. The loop device's own part is disk_loop.c, project quotas disk_project.c. */
#include "host/launcher/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "host/launcher/disk_inner.h"
#include "host/launcher/ids.h"
#include "host/launcher/mounts.h"
#include "host/kernel/sys.h"

#define FULL_BYTES (64u << 10) /* with less left, something did not fit */

#define REMEDY                                                                                     \
    "give the state directory a file system with project quotas (ext4 made with -O project,quota " \
    "and mounted with prjquota, or xfs with prjquota), or croft loop devices (/dev/loop-control) " \
    "and mkfs.ext4 (package e2fsprogs)"

/* A quarter stays for what its processes need. */
static bool fits_memory(const struct box_host *h, const struct native_limits *l)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t memory = l->memory_bytes ? l->memory_bytes : machine;

    return l->disk_bytes <= memory / 4 * 3 && (l->memory_bytes || !cg_has(&h->cg, CG_MEMORY));
}

static fallible make_tmpfs(uint64_t bytes, int *ret_mount)
{
    char size[40], inodes[40];
    const char *options[] = {"mode=700", size, inodes, NULL};

    /* A file costs the kernel about a kilobyte that the size does not count. */
    snprintf(size, sizeof size, "size=%" PRIu64, bytes);
    snprintf(inodes, sizeof inodes, "nr_inodes=%" PRIu64, bytes / 4096 + 1024);
    return mounts_new("tmpfs", options, MOUNT_ATTR_NODEV, ret_mount);
}

static fallible disk_shift(int mount, int userns)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns};

    return sys_mount_setattr(mount, &attr) < 0 ? err_sys("shift the ids of its disk") : NULL;
}

/* Root's is shifted into a range of ids, which Linux does from 6.3 on; an ordinary user's overlay
 * keeps notes in attributes that tmpfs has from 6.6 on. */
static bool has_tmpfs(const struct box_host *h)
{
    struct ids_holder holder = {0};
    const struct ids_range range = {.uid = ids_base(0), .gid = ids_base(0), .count = IDS_COUNT};
    own_fd ns = -1, fs = -1, file = -1;

    if (h->user) {
        file = memfd_create("tmpfs", MFD_CLOEXEC);
        return file >= 0 && fsetxattr(file, "user.croft", "y", 1, 0) == 0;
    }
    struct err *e = ids_make_userns(&holder, &range, &ns);
    if (!e)
        e = make_tmpfs(1u << 20, &fs);
    if (!e)
        e = disk_shift(fs, ns);
    ids_reap(&holder);
    bool has = !e;
    err_free(e); /* whatever it is, it would stop a start */
    return has;
}

enum native_disk disk_mechanism(const struct box_host *h, bool lasts)
{
    if (!h->user && disk_has_projects(h->dir))
        return NATIVE_DISK_PROJECT;
    if (!lasts && has_tmpfs(h))
        return NATIVE_DISK_TMPFS;
    return !h->user && !disk_lacks_loop() ? NATIVE_DISK_LOOP : NATIVE_DISK_NONE;
}

const char *disk_describe(const struct box_host *h)
{
    if (disk_mechanism(h, true) == NATIVE_DISK_PROJECT)
        return "project quotas";
    if (disk_mechanism(h, true) == NATIVE_DISK_LOOP)
        return has_tmpfs(h) ? "loop (an ext4 image for each), or tmpfs for croft run"
                            : "loop (an ext4 image for each)";
    return has_tmpfs(h) ? "tmpfs, for croft run alone" : "none";
}

/* --- choosing --- */

static bool has_files(int box, const char *name)
{
    struct stat st;

    return box >= 0 && fstatat(box, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

enum native_disk disk_of(int box)
{
    return has_files(box, DISK_IMAGE)  ? NATIVE_DISK_LOOP
           : has_files(box, DISK_NOTE) ? NATIVE_DISK_PROJECT
                                       : NATIVE_DISK_NONE;
}

/* A restart: whatever holds its files must hold them again. */
static fallible choose_again(const struct native_limits *l, int box, enum native_disk *ret_disk)
{
    struct stat st;

    *ret_disk = disk_of(box);
    if (*ret_disk == NATIVE_DISK_LOOP && l->disk_bytes &&
        (fstatat(box, DISK_IMAGE, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
         (uint64_t)st.st_size != disk_image_bytes(l->disk_bytes)))
        return err_new(ERR_CONFLICT,
                       "its disk was made with another limit: ask for the same, or for none");
    if (*ret_disk == NATIVE_DISK_NONE && l->disk_bytes)
        return err_new(ERR_CONFLICT, "it was started without a disk limit, and has files that none "
                                     "would count: fork it instead");
    return NULL;
}

static fallible disk_missing(const struct box_host *h)
{
    if (h->user)
        return err_new(ERR_UNSUPPORTED,
                       "a disk limit for files that stay needs root: without it croft has tmpfs "
                       "alone, for croft run, on Linux 6.6 or later");
    return err_new(ERR_UNSUPPORTED, "a disk limit cannot be had here: %s; " REMEDY,
                   disk_lacks_loop());
}

fallible disk_choose(const struct box_host *h, const struct native_limits *l, bool lasts, int box,
                     enum native_disk *ret_disk)
{
    if (box >= 0)
        return choose_again(l, box, ret_disk);
    *ret_disk = NATIVE_DISK_NONE;
    if (!l->disk_bytes)
        return NULL;
    enum native_disk by = disk_mechanism(h, lasts);
    if (by == NATIVE_DISK_TMPFS && !fits_memory(h, l)) {
        by = disk_mechanism(h, true);
        if (by == NATIVE_DISK_NONE && h->user)
            return err_new(ERR_UNSUPPORTED,
                           "a disk limit of %" PRIu64 " bytes is more than three quarters of the "
                           "memory it would be taken from; ask for less, or run croft as root",
                           l->disk_bytes);
    }
    if (by == NATIVE_DISK_NONE)
        return disk_missing(h);
    uint64_t least = by == NATIVE_DISK_LOOP ? DISK_LEAST_LOOP : DISK_LEAST;
    if (l->disk_bytes < least)
        return err_new(ERR_INVALID,
                       "a disk limit of %" PRIu64 " bytes is too small, at least %" PRIu64,
                       l->disk_bytes, least);
    *ret_disk = by;
    return NULL;
}

/* --- at a start --- */

fallible disk_open(const struct box_host *h, enum native_disk disk, int box, uint64_t bytes,
                   int userns, int *ret_mount)
{
    own_fd mount = -1;

    *ret_mount = -1;
    if (disk == NATIVE_DISK_NONE)
        return NULL;
    if (disk == NATIVE_DISK_PROJECT)
        return disk_project_make(h, box, bytes);
    if (disk == NATIVE_DISK_TMPFS)
        TRY(make_tmpfs(bytes, &mount));
    else
        TRY(disk_loop_open(h->dir, box, bytes, &mount));
    if (userns >= 0)
        TRY(disk_shift(mount, userns));
    *ret_mount = take_fd(&mount);
    return NULL;
}

bool disk_is_full(int parent, const char *layer)
{
    struct statvfs room;
    own_fd fd = openat(parent, layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && fstatvfs(fd, &room) == 0 &&
           (room.f_bavail * room.f_frsize < FULL_BYTES || (room.f_files && !room.f_ffree));
}
