// SPDX-License-Identifier: Apache-2.0
/* moved.c — has the directory's own side changed since the sandbox began?
 *
 * Asked twice: by the scan, and by apply before it takes something away. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/changes/inner.h"
#include "host/tree/tree.h"

static fallible since_of(const struct changes_source *src, struct timespec *ret)
{
    struct statx x;

    *ret = (struct timespec){(time_t)(src->since_ns / NS_PER_S), (long)(src->since_ns % NS_PER_S)};
    if (src->since_ns)
        return NULL;
    if (statx(src->uppers[src->upper_count - 1], "", AT_EMPTY_PATH, STATX_BTIME, &x) < 0)
        return err_sys("look at the layer");
    if (!(x.stx_mask & STATX_BTIME))
        return err_new(ERR_UNSUPPORTED, "the file system does not say when the layer was made");
    *ret = (struct timespec){x.stx_btime.tv_sec, x.stx_btime.tv_nsec};
    return NULL;
}

fallible moved_init(struct moved *m, const struct changes_source *src)
{
    *m = (struct moved){0};
    map_init(&m->touched);
    TRY(since_of(src, &m->since));
    return notes_read(src->notes, &m->notes);
}

void moved_done(struct moved *m)
{
    MAP_EACH(slot, &m->touched)
        free(slot->value);
    map_done(&m->touched);
    notes_done(&m->notes);
}

void moved_touch(struct moved *m, const struct stat *st)
{
    struct note *n = map_get(&m->touched, str_n(&st->st_ino, sizeof st->st_ino));
    bool fresh = !n;

    if (fresh)
        n = mem_new(sizeof *n);
    *n = (struct note){st->st_ino, st->st_ctim.tv_sec, st->st_ctim.tv_nsec};
    if (fresh)
        map_put(&m->touched, str_n(&n->inode, sizeof n->inode), n);
}

bool moved_is_touched(const struct moved *m, const struct stat *st)
{
    const struct note *n = map_get(&m->touched, str_n(&st->st_ino, sizeof st->st_ino));

    return n && n->s == st->st_ctim.tv_sec && n->ns == st->st_ctim.tv_nsec;
}

static bool moved_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

bool moved_is(const struct moved *m, const struct stat *st)
{
    return moved_later(st->st_ctim, m->since) && !notes_have(&m->notes, st) &&
           !moved_is_touched(m, st);
}

bool moved_is_written(const struct moved *m, const struct stat *st)
{
    return !S_ISDIR(st->st_mode) && moved_later(st->st_mtim, m->since) && moved_is(m, st);
}

fallible entry_is_mount(int dir, const char *name, bool *ret_mount)
{
    struct err *e = tree_is_mount(dir, name, ret_mount);

    if (!e || err_errno(e) != ENOENT)
        return e;
    err_free(e);
    *ret_mount = false;
    return NULL;
}

struct newer {
    struct tree_visitor v;
    const struct moved *m;
    bool found, mounted;
};

static fallible is_newer(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                         bool *skip)
{
    struct newer *n = container_of(v, struct newer, v);
    bool mounted = false;

    if (when == TREE_LEAVE)
        return NULL;
    TRY(entry_is_mount(at->dir, at->name, &mounted));
    n->mounted |= mounted;
    n->found |= n->mounted || moved_is(n->m, at->st);
    *skip = mounted;
    return NULL;
}

fallible moved_look(const struct moved *m, struct lookup *lower, struct str path,
                    const struct stat *st, bool *ret_moved, bool *ret_mounted)
{
    struct newer n = {{.visit = is_newer}, m, moved_is(m, st), false};
    own_fd fd = -1;

    TRY(lookup_mount(lower, path, &n.mounted));
    if (S_ISDIR(st->st_mode) && !n.mounted) {
        struct err *e = lookup_open(lower, path, S_IFDIR, &fd);
        if (!e)
            e = tree_walk(fd, &n.v);
        if (e && !is_closed(e))
            return e;
        n.found |= e != NULL; /* unknown: counts as moved */
        err_free(e);
    }
    *ret_mounted = n.mounted;
    *ret_moved = n.found || n.mounted;
    return NULL;
}
