// SPDX-License-Identifier: Apache-2.0
/* walk.c — every entry of a tree, in order.
 *
 * Only the directory being read is open: going up opens ".." and checks that it is the directory we
 * came from. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

struct level {
    struct buf names; /* each ends in a NUL */
    uint32_t *order;  /* offsets in names */
    size_t count, next;
    size_t path_len; /* of the directory itself */
    struct stat st;
};

struct walker {
    struct tree_visitor *v;
    struct level *levels;
    size_t depth, cap, names_bytes;
    struct buf path;
    int fd; /* of the deepest level */
    dev_t dev;
};

static int by_name(const void *a, const void *b, void *names)
{
    return strcmp((const char *)names + *(const uint32_t *)a,
                  (const char *)names + *(const uint32_t *)b);
}

fallible tree_read_names(int fd, size_t limit_bytes, struct buf *names, size_t *ret_count)
{
    own_fd dup = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *d = dup < 0 ? NULL : fdopendir(dup);
    size_t count = 0;

    buf_init(names, limit_bytes);
    if (!d)
        return err_sys("read a directory");
    take_fd(&dup);
    errno = 0;
    for (struct dirent *e = readdir(d); e; errno = 0, e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        buf_add(names, str_n(e->d_name, strlen(e->d_name) + 1));
        count++;
    }
    int errnum = errno;
    closedir(d);
    if (errnum || buf_failed(names)) {
        struct err *e = errnum ? err_sysno(errnum, "read a directory") : buf_check(names);
        buf_done(names);
        return e;
    }
    *ret_count = count;
    return NULL;
}

static fallible sort_names(struct level *l)
{
    l->order = mem_try((l->count + 1) * sizeof *l->order);
    if (!l->order)
        return err_no_memory();
    for (size_t i = 0, at = 0; i < l->count; i++) {
        l->order[i] = (uint32_t)at;
        at += strlen(l->names.p + at) + 1;
    }
    qsort_r(l->order, l->count, sizeof *l->order, by_name, l->names.p);
    return NULL;
}

static void level_done(struct level *l)
{
    buf_done(&l->names);
    free(l->order);
}

static struct level *walk_top(struct walker *w)
{
    return &w->levels[w->depth - 1];
}

/* Takes fd over. */
static fallible walk_push(struct walker *w, int fd)
{
    own_fd given = fd;
    struct level l = {.path_len = w->path.len};

    if (w->depth == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 16;
        struct level *more = realloc(w->levels, cap * sizeof *more);
        if (!more)
            return err_no_memory();
        w->levels = more;
        w->cap = cap;
    }
    if (fstat(given, &l.st) < 0)
        return err_sys("look at a directory");
    TRY(tree_read_names(given, TREE_NAMES_MAX - w->names_bytes, &l.names, &l.count));
    w->names_bytes += l.names.len;
    struct err *e = sort_names(&l);
    if (e) {
        level_done(&l);
        return e;
    }
    w->levels[w->depth++] = l;
    own_close(w->fd);
    w->fd = take_fd(&given);
    return NULL;
}

static void walker_done(struct walker *w)
{
    while (w->depth)
        level_done(&w->levels[--w->depth]);
    free(w->levels);
    buf_done(&w->path);
    own_close(w->fd);
}

fallible tree_open_above(int fd, const struct stat *want, int *ret_fd)
{
    struct stat st;
    own_fd up = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

    if (up < 0 || fstat(up, &st) < 0)
        return err_sys("open the directory above");
    if (st.st_dev != want->st_dev || st.st_ino != want->st_ino)
        return err_new(ERR_CONFLICT, "a directory was moved while the tree was being read");
    *ret_fd = take_fd(&up);
    return NULL;
}

static const char *last_name(const struct walker *w)
{
    const char *slash = memrchr(w->path.p, '/', w->path.len);

    return slash ? slash + 1 : w->path.p;
}

static fallible walk_show(struct walker *w, enum tree_when when, const struct stat *st, bool *skip)
{
    if (!buf_cstr(&w->path))
        return err_no_memory();
    struct tree_at at = {w->fd, last_name(w), buf_str(&w->path), st};
    return w->v->visit(w->v, when, &at, skip);
}

static fallible walk_pop(struct walker *w)
{
    bool skip = false;
    struct level l = *walk_top(w);
    own_fd up = -1;

    w->depth--;
    w->names_bytes -= l.names.len;
    level_done(&l);
    if (!w->depth)
        return NULL;
    TRY(tree_open_above(w->fd, &walk_top(w)->st, &up));
    own_close(w->fd);
    w->fd = take_fd(&up);
    TRY(walk_show(w, TREE_LEAVE, &l.st, &skip));
    w->path.len = walk_top(w)->path_len;
    return NULL;
}

static fallible walk_enter(struct walker *w, const struct stat *st)
{
    bool skip = false;
    struct stat now;

    TRY(walk_show(w, TREE_ENTER, st, &skip));
    if (skip) {
        w->path.len = walk_top(w)->path_len;
        return NULL;
    }
    own_fd fd = openat(w->fd, last_name(w), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, &now) < 0)
        return err_sys("open directory '%.200s'", w->path.p);
    if (now.st_ino != st->st_ino || now.st_dev != st->st_dev)
        return err_new(ERR_CONFLICT, "'%.200s' was replaced while the tree was being read",
                       w->path.p);
    return walk_push(w, take_fd(&fd));
}

static fallible walk_step(struct walker *w)
{
    struct level *l = walk_top(w);
    struct stat st;
    bool skip = false;

    if (l->next == l->count)
        return walk_pop(w);
    const char *name = l->names.p + l->order[l->next++];
    if (l->path_len)
        buf_add_char(&w->path, '/');
    buf_add_cstr(&w->path, name);
    TRY(buf_check(&w->path));
    if (fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT)
            return err_sys("look at '" STR_FMT "'", STR_ARG(str_first(buf_str(&w->path), 200)));
        w->path.len = l->path_len; /* gone meanwhile */
        return NULL;
    }
    bool other = w->v->one_filesystem && st.st_dev != w->dev;
    if (S_ISDIR(st.st_mode) && !other)
        return walk_enter(w, &st);
    if (!other)
        TRY(walk_show(w, TREE_LEAF, &st, &skip));
    w->path.len = l->path_len;
    return NULL;
}

fallible tree_walk(int root, struct tree_visitor *v)
{
    struct walker w = {.v = v, .fd = -1};
    own_fd fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0)
        return err_sys("open the tree");
    buf_init(&w.path, TREE_PATH_MAX);
    struct err *e = walk_push(&w, take_fd(&fd));
    if (!e)
        w.dev = w.levels[0].st.st_dev;
    while (!e && w.depth)
        e = walk_step(&w);
    walker_done(&w);
    return e;
}
