// SPDX-License-Identifier: Apache-2.0
/* hull.c — directories of sandboxes that are used again.
 *
 * A directory, an upper layer and a place for overlay to work in are three inodes and three blocks,
 * made and freed in every life: on a disk that is told of freed blocks that is a tenth of a short
 * life's time. Of a sandbox whose files nobody but itself has had, box/<ID> is renamed to
 * gone/hull/<N>; who deletes (gone.c) empties it there, and we rename it to the next one's
 * box/<ID>. Before that we look for ourselves: what differs from a new one in anything we can see
 * is not used again. What we read ourselves, the record, is new each time.
 *
 * On ext4 without a journal every new inode passes by those that were freed in its group within the
 * last minute, and a hull stays in its group: so it has HULL_LIVES of them (box_host_spread()). */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"
#include "host/launcher/inner.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define HULL_LIVES 8
#define HULL_BYTES 4096 /* a directory that has ever held much is larger, and stays so */
#define HULL_NAME  16
#define OVERLAYS   "trusted.overlay."

static void name_of(uint32_t n, char out[HULL_NAME])
{
    snprintf(out, HULL_NAME, "%x", n);
}

/* --- in the child --- */

/* What overlay notes of a layer; what a guest set is found by is_new(). */
static fallible remove_notes(int dir)
{
    char names[1024];
    ssize_t n = flistxattr(dir, names, sizeof names);

    for (char *at = names; n > 0 && at < names + n; at += strlen(at) + 1)
        if (strncmp(at, OVERLAYS, sizeof OVERLAYS - 1) == 0 && fremovexattr(dir, at) < 0)
            return err_sys("remove '%s'", at);
    return NULL;
}

static fallible hull_empty(int hull, const char *name)
{
    own_fd dir = tree_open_here(hull, name);

    if (dir < 0)
        return err_sys("open '%s'", name);
    TRY(tree_empty(dir));
    return remove_notes(dir);
}

static fallible hull_hollow(int dir, const char *name)
{
    own_done(buf) names = {0};
    own_fd hull = tree_open_here(dir, name);
    size_t count = 0;

    if (hull < 0)
        return err_sys("open a directory to use again");
    box_clear_work(hull, BOX_WORK);
    TRY(hull_empty(hull, BOX_WORK));
    TRY(hull_empty(hull, BOX_UPPER));
    TRY(tree_read_names(hull, HULL_BYTES, &names, &count));
    for (const char *at = names.p; count--; at += strlen(at) + 1)
        if (strcmp(at, BOX_UPPER) != 0 && strcmp(at, BOX_WORK) != 0)
            TRY(tree_remove(hull, at));
    return NULL;
}

void launcher_hull_hollow(int dir, struct launcher_hull_ring *r)
{
    char name[HULL_NAME];

    while (r->done != __atomic_load_n(&r->put, __ATOMIC_ACQUIRE)) {
        name_of(r->done, name);
        struct err *e = hull_hollow(dir, name);
        r->good[r->done % LAUNCHER_HULLS] = !e;
        struct err *left = e ? box_delete(dir, name) : NULL;
        if (left)
            log_warn("a removed sandbox is left on the disk", KV("name", name), KV_ERR(left));
        err_free(left);
        err_free(e);
        __atomic_store_n(&r->done, r->done + 1, __ATOMIC_RELEASE);
    }
}

/* --- here --- */

/* Holds the names in `these` and nothing else; NULL ends them. */
static bool holds_only(int dir, const char *const *these)
{
    _Alignas(struct tree_dent) char page[512];
    long n = syscall(SYS_getdents64, dir, page, sizeof page);

    for (long at = 0; at < n;) {
        const struct tree_dent *d = (const struct tree_dent *)(page + at);
        bool known = strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0;
        for (const char *const *one = these; *one && !known; one++)
            known = strcmp(d->name, *one) == 0;
        if (!known)
            return false;
        at += d->len;
    }
    return n > 0 && syscall(SYS_getdents64, dir, page, sizeof page) == 0;
}

/* Of both kinds; a file system that knows none has none. */
static bool has_flags(int dir)
{
    struct fsxattr x = {.fsx_xflags = 0};
    int flags = 0;

    if (ioctl(dir, FS_IOC_GETFLAGS, &flags) == 0 && (flags & ~FS_EXTENT_FL))
        return true;
    return ioctl(dir, FS_IOC_FSGETXATTR, &x) == 0 &&
           ((x.fsx_xflags & ~(uint32_t)FS_XFLAG_HASATTR) || x.fsx_extsize || x.fsx_cowextsize ||
            x.fsx_projid);
}

/* As mkdir() makes it: owner, mode, size, attributes, flags, and what is in it. */
static bool is_new(int at, const char *name, mode_t mode, const char *const *holds, int *ret_dir)
{
    own_fd dir = tree_open_here(at, name);
    struct stat st;

    if (dir < 0 || fstat(dir, &st) < 0 || st.st_mode != (S_IFDIR | mode) || st.st_uid ||
        st.st_gid || st.st_size > HULL_BYTES)
        return false;
    ssize_t attributes = flistxattr(dir, NULL, 0);
    if (attributes > 0 || (attributes < 0 && errno != EOPNOTSUPP))
        return false;
    if (has_flags(dir) || !holds_only(dir, holds))
        return false;
    *ret_dir = take_fd(&dir);
    return true;
}

/* Its times are told inside, as those of "/": they are today's. */
static bool is_good(int dir, const char *name)
{
    static const char *const nothing[] = {NULL};
    static const char *const parts[] = {BOX_UPPER, BOX_WORK, NULL};
    own_fd hull = -1, upper = -1, work = -1;

    return is_new(dir, name, 0700, parts, &hull) &&
           is_new(hull, BOX_UPPER, 0755, nothing, &upper) &&
           is_new(hull, BOX_WORK, 0700, nothing, &work) && futimens(upper, NULL) == 0;
}

uint32_t launcher_hulls_undone(const struct launcher *l)
{
    const struct launcher_hulls *k = &l->hulls;

    return k->ring ? k->put - __atomic_load_n(&k->ring->done, __ATOMIC_ACQUIRE) : 0;
}

bool launcher_hull_put(struct launcher *l, const char *id, unsigned lives)
{
    struct launcher_hulls *k = &l->hulls;
    char name[HULL_NAME];

    if (!k->ring || l->ending || lives + 1 >= HULL_LIVES || k->put - k->taken == LAUNCHER_HULLS)
        return false;
    name_of(k->put, name);
    if (renameat(l->host.boxes, id, k->dir, name) < 0)
        return false;
    k->lives[k->put % LAUNCHER_HULLS] = (uint8_t)lives;
    __atomic_store_n(&k->ring->put, ++k->put, __ATOMIC_RELEASE);
    return true;
}

/* The next that was emptied; false: there is none. What the ring says is the child's word. */
static bool hull_next(struct launcher_hulls *k, uint32_t *ret_n)
{
    while (k->ring) {
        uint32_t done = __atomic_load_n(&k->ring->done, __ATOMIC_ACQUIRE);
        if (done == k->taken || done - k->taken > k->put - k->taken)
            return false;
        *ret_n = k->taken++;
        if (k->ring->good[*ret_n % LAUNCHER_HULLS])
            return true;
    }
    return false;
}

bool launcher_hull_take(struct launcher *l, const char *id, unsigned *ret_lives)
{
    struct launcher_hulls *k = &l->hulls;
    char name[HULL_NAME];
    uint32_t n;

    while (hull_next(k, &n)) {
        name_of(n, name);
        if (!is_good(k->dir, name)) {
            launcher_gone_put(l, k->dir, name);
            continue;
        }
        if (renameat2(k->dir, name, l->host.boxes, id, RENAME_NOREPLACE) < 0) {
            k->taken--; /* for the next: there is one of this name, most likely */
            return false;
        }
        *ret_lives = k->lives[n % LAUNCHER_HULLS] + 1u;
        return true;
    }
    return false;
}

void launcher_hulls_rest(struct launcher *l)
{
    char name[HULL_NAME];
    uint32_t n;

    while (hull_next(&l->hulls, &n)) {
        name_of(n, name);
        launcher_gone_put(l, l->hulls.dir, name);
    }
}

void launcher_hulls_open(struct launcher *l, struct launcher_hull_ring *ring)
{
    struct launcher_hulls *k = &l->hulls;

    if (!l->host.many)
        return;
    struct err *e = fd_make_dirs(l->gone.dir, STR(BOX_HULL), 0700, &k->dir);
    if (!e)
        k->ring = ring;
    err_free(e); /* then each has a new directory */
}

void launcher_hulls_close(struct launcher *l)
{
    own_close_p(&l->hulls.dir);
    l->hulls.dir = -1;
    l->hulls.ring = NULL;
}
