// SPDX-License-Identifier: Apache-2.0
/* base.c — the layer of the root itself: empty places, links into /usr, /etc, the package database.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/rootfs/inner.h"
#include "host/rootfs/rootfs.h"
#include "host/subids/subids.h"
#include "host/tree/tree.h"

const char *const host_dirs[HOST_DIRS] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"};

struct place {
    const char *path;
    mode_t mode;
    uid_t owner; /* and group */
};

static const struct place places[] = {
    {"boot", 0755},
    {"dev", 0755},
    {"etc", 0755},
    {"home", 0755},
    {"home/" ROOTFS_USER, 0755, ROOTFS_USER_ID},
    {"media", 0755},
    {"mnt", 0755},
    {"opt", 0755},
    {"proc", 0555},
    {"root", 0700},
    {"run", 0755},
    {"srv", 0755},
    {"sys", 0555},
    {"tmp", 01777},
    {"var", 0755},
    {"var/backups", 0755},
    {"var/cache", 0755},
    {"var/cache/apt", 0755},
    {"var/cache/apt/archives", 0755},
    {"var/cache/apt/archives/partial", 0700},
    {"var/lib", 0755},
    {"var/lib/apt", 0755},
    {"var/lib/apt/lists", 0755},
    {"var/lib/apt/lists/partial", 0700},
    {"var/lib/apt/periodic", 0755},
    {"var/lib/dpkg", 0755},
    {"var/lib/dpkg/updates", 0755},
    {"var/lib/misc", 0755},
    {"var/local", 0755},
    {"var/log", 0755},
    {"var/log/apt", 0755},
    {"var/mail", 0755},
    {"var/opt", 0755},
    {"var/spool", 0755},
    {"var/tmp", 01777},
    {"workspace", 0755, ROOTFS_USER_ID},
};

/* The package database, and what maintainer scripts keep beside it. */
static const char *const taken[] = {
    "var/cache/debconf", "var/lib/dpkg",      "var/lib/apt/extended_states", "var/lib/pam",
    "var/lib/python",    "var/lib/sgml-base", "var/lib/shells.state",        "var/lib/ucf",
    "var/lib/xml-core",  "var/lib/rpm",
};

static const char *const without[] = {
    "var/lib/dpkg/lock",          "var/lib/dpkg/lock-frontend",      "var/lib/dpkg/triggers/Lock",
    "var/lib/dpkg/updates",       "var/lib/apt/lists/lock",          "var/lib/apt/lists/partial",
    "var/lib/apt/lists/auxfiles", "var/cache/debconf/passwords.dat", NULL,
};

static fallible make_links(int host, int layer)
{
    char text[PATH_MAX];

    for (size_t i = 0; i < HOST_DIRS; i++) {
        ssize_t n = readlinkat(host, host_dirs[i], text, sizeof text - 1);
        if (n < 0 && errno == ENOENT)
            continue;
        if (n < 0 && errno == EINVAL) { /* a directory: the place it is mounted on */
            TRY(take_dir(layer, host_dirs[i], 0755, 0, 0));
            continue;
        }
        if (n < 0)
            return err_sys("look at '/%s'", host_dirs[i]);
        text[n] = '\0';
        if (symlinkat(text, layer, host_dirs[i]) < 0)
            return err_sys("make the link '%s'", host_dirs[i]);
    }
    if (symlinkat("/run", layer, "var/run") < 0 || symlinkat("/run/lock", layer, "var/lock") < 0)
        return err_sys("make the links of /var");
    return NULL;
}

/* Lists of packages can be had again with `apt update`: too many of them are left out. */
static fallible take_lists(int host, int layer)
{
    struct take_limits left = {512u << 20, 1u << 30, 20000};
    struct take t = {host, layer, without, &left};
    struct err *e = take_path(&t, "var/lib/apt/lists");

    if (!e || err_code(e) != ERR_TOO_LARGE)
        return e;
    err_free(e);
    return tree_remove(layer, "var/lib/apt/lists");
}

fallible base_build(int host, int layer)
{
    struct take_limits left = {256u << 20, 1u << 30, 200000};
    struct take t = {host, layer, without, &left};
    struct subids ids;

    subids_find(&ids);
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        TRY(take_path(&t, taken[i]));
    TRY(take_lists(host, layer));
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        TRY(take_dir(layer, places[i].path, places[i].mode, subids_uid(&ids, places[i].owner),
                     subids_gid(&ids, places[i].owner)));
    own_fd etc = openat(layer, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (etc < 0)
        return err_sys("open the new /etc");
    TRY(etc_build(host, etc));
    TRY(make_links(host, layer));
    TRY(home_fill(host, layer, "home/" ROOTFS_USER, subids_uid(&ids, ROOTFS_USER_ID),
                  subids_gid(&ids, ROOTFS_USER_ID)));
    TRY(home_fill(host, layer, "root", subids_uid(&ids, 0), subids_gid(&ids, 0)));
    if (fchmod(layer, 0755) < 0)
        return err_sys("set the mode of the root");
    return NULL;
}
