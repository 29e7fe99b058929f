// SPDX-License-Identifier: Apache-2.0
/* each.c — every file of a tree, in no order and by no path: nothing that lies in it ends the walk.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define AGAIN 8 /* times from the start, while others move directories */

fallible tree_descent_init(struct tree_descent *d, int fd)
{
    *d = (struct tree_descent){.fd = fd, .piece = mem_try(TREE_PIECE)};
    return d->piece ? NULL : err_no_memory();
}

void tree_descent_done(struct tree_descent *d)
{
    own_close_p(&d->fd);
    free(d->piece);
    free(d->above);
}

fallible tree_descend(struct tree_descent *d, int fd, off_t next)
{
    if (d->depth == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 16;
        struct tree_step *more = realloc(d->above, cap * sizeof *more);
        if (!more) {
            own_close(fd);
            return err_no_memory();
        }
        d->above = more;
        d->cap = cap;
    }
    if (fstat(d->fd, &d->above[d->depth].st) < 0) {
        own_close(fd);
        return err_sys("look at a directory");
    }
    d->above[d->depth++].next = next;
    own_close(d->fd);
    d->fd = fd;
    return NULL;
}

fallible tree_ascend(struct tree_descent *d, off_t *ret_next)
{
    int up;

    TRY(tree_open_above(d->fd, &d->above[d->depth - 1].st, &up));
    own_close(d->fd);
    d->fd = up;
    *ret_next = d->above[--d->depth].next;
    return NULL;
}

struct each {
    struct tree_descent d;
    tree_look look;
    void *arg;
    struct err *first; /* of what could not be looked at */
};

static void each_note(struct each *w, struct err *e)
{
    if (w->first)
        err_free(e);
    else
        w->first = e;
}

/* *ret_in: it is a directory, and we are in it. */
static fallible look_at(struct each *w, const struct tree_dent *e, bool *ret_in)
{
    bool maybe = e->type == DT_DIR || e->type == DT_UNKNOWN;
    int fd = maybe ? tree_open_here(w->d.fd, e->name) : -1;

    *ret_in = fd >= 0;
    if (fd >= 0)
        return tree_descend(&w->d, fd, e->off);
    if (maybe && errno != ENOTDIR && errno != ELOOP) {
        if (errno != ENOENT && errno != EXDEV) /* gone; mounted by others */
            each_note(w, err_sys("open directory '%.200s'", e->name));
        return NULL;
    }
    each_note(w, w->look(w->arg, w->d.fd, e->name));
    return NULL;
}

/* The names from here on, until a directory. */
static fallible look_on(struct each *w, bool *ret_in)
{
    *ret_in = false;
    for (;;) {
        long n = syscall(SYS_getdents64, w->d.fd, w->d.piece, TREE_PIECE);
        if (n < 0)
            each_note(w, err_sys("read a directory"));
        if (n <= 0)
            return NULL;
        for (long at = 0; at < n;) {
            const struct tree_dent *e = (const struct tree_dent *)(void *)(w->d.piece + at);
            at += e->len;
            if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
                continue;
            TRY(look_at(w, e, ret_in));
            if (*ret_in)
                return NULL;
        }
    }
}

static fallible each_walk(struct each *w)
{
    for (;;) {
        bool in;
        off_t next;
        TRY(look_on(w, &in));
        if (in)
            continue;
        if (!w->d.depth)
            return NULL;
        TRY(tree_ascend(&w->d, &next));
        if (lseek(w->d.fd, next, SEEK_SET) < 0)
            return err_sys("go on in a directory");
    }
}

fallible tree_each(int root, tree_look look, void *arg)
{
    struct each w = {.look = look, .arg = arg};
    struct err *e = NULL;

    for (unsigned i = 0; i < AGAIN; i++) {
        err_free(e);
        int fd = tree_open_here(root, ".");
        if (fd < 0) {
            each_note(&w, err_sys("open the directory"));
            return w.first;
        }
        e = tree_descent_init(&w.d, fd);
        if (!e)
            e = each_walk(&w);
        tree_descent_done(&w.d);
        if (!e || err_code(e) != ERR_CONFLICT) /* another process moved the directory we were in */
            break;
    }
    if (!e)
        return w.first;
    err_free(w.first);
    return e;
}
