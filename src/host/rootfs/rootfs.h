// SPDX-License-Identifier: Apache-2.0
/* rootfs.h — what a sandbox sees as `/`: layers to mount, by descriptor, topmost first.
 *
 * A root file system is one overlay or several: overlay does not cross mounts, so the host's / is
 * never a layer. Its /usr is: below the root's own (join.c), or, for an ordinary user, in an
 * overlay of its own on the root's "usr". Nothing else of the host's tree ever is: what is not on
 * the list is not hidden, it is not there. ARCHITECTURE.md has the list.
 *
 * The kernel takes layers only from the mount namespace they are mounted in: enter it first, then
 * open state and these. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define ROOTFS_MOUNTS_MAX 8
#define ROOTFS_LOWERS_MAX 128
#define ROOTFS_ID_LEN     48

#define ROOTFS_USER       "openhands" /* in passwd beside root, may sudo */
#define ROOTFS_USER_ID    1000

struct rootfs_mount {
    const char *where; /* below the root, "" is the root itself; the directory exists */
    const char *upper; /* names of its directories beside each other in the sandbox's own */
    const char *work;
    int lowers[ROOTFS_LOWERS_MAX]; /* O_PATH; topmost first */
    size_t lower_count;
    size_t frozen;  /* the first so many were put above them, by a snapshot */
    bool redirects; /* among its layers are redirects of ours: follow them */
};

struct rootfs {
    char id[ROOTFS_ID_LEN];                        /* for the record; see rootfs_host_prune */
    struct rootfs_mount mounts[ROOTFS_MOUNTS_MAX]; /* in the order to mount them */
    size_t mount_count;
    bool joined; /* /usr is in the root's overlay; see rootfs_split */
    int held;    /* keeps the layers from being pruned until rootfs_done */
};

void rootfs_init(struct rootfs *r); /* empty: may be ended at once */
void rootfs_done(struct rootfs *r); /* closes; what is mounted stays */
fallible rootfs_copy(const struct rootfs *r, struct rootfs *ret); /* descriptors of its own */
/* Takes fd over. Mounts and their order are the caller's to keep right. */
struct rootfs_mount *rootfs_add_mount(struct rootfs *r, const char *where, const char *upper,
                                      const char *work);
void rootfs_add_lower(struct rootfs_mount *m, int fd);

/* The machine's own system, by the allow-list. Croft adds a synthetic /etc, the package database,
 * and whiteouts over files that not every user may read. An ordinary user needs no whiteouts: there
 * the kernel refuses.
 *
 * They are stored below state/rootfs and made again when the machine changed. To look takes some 50
 * stat calls, to make them about a second. */
fallible rootfs_host_open(int state, struct rootfs *ret);
/* The same; calls on_making before layers are made, so that the wait can be announced. */
fallible rootfs_host_open_or_make(int state, void (*on_making)(void *arg), void *arg,
                                  struct rootfs *ret);
/* Sandboxes and snapshots that were made before /usr was joined have an upper layer for it: their
 * /usr is an overlay of its own. */
#define ROOTFS_UPPER_USR "upper-usr"
fallible rootfs_split(struct rootfs *r);
/* The same of another tree, for tests. */
fallible rootfs_host_open_at(int state, int host, struct rootfs *ret);
/* A file deep in /usr that lost its read permission is not seen by the look above. This looks at
 * all of them, about a second, and makes new layers if there is more to hide. Off the request path,
 * when the last time is ROOTFS_FRESH_S ago. */
#define ROOTFS_FRESH_S 600
bool rootfs_host_is_stale(int state);
fallible rootfs_host_refresh(int state);
fallible rootfs_host_refresh_at(int state, int host); /* for tests */

/* Removes layers that are not current, not held, and not noted by a sandbox: a link
 * state/box/ID/root with their id. Done whenever new ones were made. */
fallible rootfs_host_prune(int state);
/* Does it have any but the current ones to remove, now or when their last sandbox has gone? */
bool rootfs_host_has_old(int state);

/* Watches, by inotify, the paths that the look above reads, and where missing ones would appear. An
 * event means that another look may be worth it; then watch again, for replaced paths are lost.
 *
 * inotify does not report changes made on another machine, nor mounts. */
fallible rootfs_host_watch(int inotify);
