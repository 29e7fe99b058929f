// SPDX-License-Identifier: Apache-2.0
/* stamp.c — has the machine changed since the layers were made?
 *
 * Installing a package touches dpkg's status and the directories of its files, so the times of a
 * few dozen paths stand for the rest. A changed permission deep inside /usr is not seen: for that
 * there is rootfs_host_refresh. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "host/rootfs/inner.h"
#include "host/rootfs/rootfs.h"
#include "host/subids/subids.h"

#define FORMAT 3 /* of the layers: count up when they are made differently */

static const char *const watched[] = {
    ".",
    "usr",
    "usr/bin",
    "usr/bin/dircolors",
    "usr/sbin",
    "usr/lib",
    "usr/lib32",
    "usr/lib64",
    "usr/libexec",
    "usr/share",
    "usr/include",
    "usr/src",
    "usr/lib/python3/dist-packages",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/share/ca-certificates",
    "usr/local",
    "usr/local/bin",
    "usr/local/sbin",
    "usr/local/etc",
    "usr/local/lib",
    "usr/local/share",
    "usr/local/share/ca-certificates",
    "usr/local/src",
    "usr/etc",
    "bin",
    "sbin",
    "lib",
    "lib64",
    "etc",
    "etc/passwd",
    "etc/group",
    "etc/nsswitch.conf",
    "etc/ld.so.cache",
    "etc/ld.so.conf.d",
    "etc/alternatives",
    "etc/ssl",
    "etc/ssl/certs",
    "etc/ssl/openssl.cnf",
    "etc/ca-certificates.conf",
    "etc/apt",
    "etc/apt/sources.list",
    "etc/apt/sources.list.d",
    "etc/apt/apt.conf.d",
    "etc/profile",
    "etc/profile.d",
    "etc/bash.bashrc",
    "etc/localtime",
    "etc/timezone",
    "etc/pam.d",
    "etc/login.defs",
    "etc/locale.gen",
    "etc/skel",
    "var/lib/dpkg/status",
    "var/lib/dpkg/info",
    "var/lib/apt/lists",
    "var/lib/apt/extended_states",
};

static void stamp_add(struct sha256 *h, const struct stat *st, bool times)
{
    const struct {
        uint64_t ino, dev, mode, changed_s, changed_ns;
    } look = {st->st_ino, st->st_dev, st->st_mode, times ? (uint64_t)st->st_ctim.tv_sec : 0,
              times ? (uint64_t)st->st_ctim.tv_nsec : 0};

    sha256_add(h, &look, sizeof look);
}

/* Files at the top of /usr are copies where it is joined to the root's layer; see join.c. */
static fallible add_files(struct sha256 *h, int host)
{
    own_fd usr = openat(host, "usr", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    DIR *d = usr < 0 ? NULL : fdopendir(usr);
    struct stat st;

    if (!d)
        return usr < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
                   ? NULL
                   : err_sys("read '/usr'");
    take_fd(&usr);
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_type != DT_DIR && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISDIR(st.st_mode))
            stamp_add(h, &st, true);
    closedir(d);
    return NULL;
}

fallible stamp_take(int host, char out[STAMP_LEN + 1])
{
    struct sha256 h;
    uint8_t digest[SHA256_LEN];
    struct subids ids;
    struct {
        uint64_t format, user;
        uint32_t uid, gid, count;
    } who;

    subids_find(&ids);
    memset(&who, 0, sizeof who); /* what lies between, too */
    who.format = FORMAT;
    who.user = geteuid();
    who.count = ids.count;
    who.uid = ids.count ? ids.uid : 0;
    who.gid = ids.count ? ids.gid : 0;
    sha256_init(&h);
    sha256_add(&h, &who, sizeof who);
    for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
        struct stat st = {0};
        if (fstatat(host, watched[i], &st, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT &&
            errno != ENOTDIR && errno != EACCES)
            return err_sys("look at '/%s'", watched[i]);
        stamp_add(&h, &st,
                  i != 0); /* of / only which one it is: its times change with every mount point */
    }
    if (geteuid() == 0)
        TRY(add_files(&h, host));
    sha256_done(&h, digest);
    hash_hex(digest, STAMP_LEN / 2, out);
    return NULL;
}

/* A missing path is watched where it would appear: in the nearest directory that exists. */
static bool stamp_watch(int inotify, char *path)
{
    for (char *end;; *end = '\0') {
        if (inotify_add_watch(inotify, path,
                              IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVE |
                                  IN_DELETE_SELF | IN_MOVE_SELF) >= 0)
            return true;
        end = strrchr(path, '/');
        if (end == path || errno != ENOENT)
            return false;
    }
}

/* A file that is replaced is seen by its directory, which is watched too. */
fallible rootfs_host_watch(int inotify)
{
    char path[128];
    bool any = false;

    for (size_t i = 1; i < ARRAY_LEN(watched); i++) {
        snprintf(path, sizeof path, "/%s", watched[i]);
        any |= stamp_watch(inotify, path);
    }
    return any ? NULL : err_sys("watch the host's system");
}
