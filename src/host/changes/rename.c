// SPDX-License-Identifier: Apache-2.0
/* rename.c — an added file that has the bytes of a deleted one is that file under a new name.
 *
 * Only for people that read the list: to apply a rename is an add and a delete. Files inside
 * deleted directories count too, though the list shows the directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "host/changes/inner.h"
#include "host/tree/tree.h"

struct gone { /* a deleted file */
    struct str path;
    uint64_t size;
    struct timespec changed;
    size_t change; /* its entry, or NONE when it went with its directory */
    bool hashed, used;
    uint8_t digest[SHA256_LEN];
};
#define NONE ((size_t)-1)

struct finder {
    struct tree_visitor v;
    struct changes *c;
    struct lookup lower;
    struct gone *gone;
    size_t count, cap;
    struct str dir; /* the deleted directory being walked */
    uint64_t left_bytes;
};

static fallible add_gone(struct finder *f, struct gone gone)
{
    if (f->count == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 64;
        struct gone *more = realloc(f->gone, cap * sizeof *more);
        if (!more)
            return err_no_memory();
        f->gone = more;
        f->cap = cap;
    }
    f->gone[f->count++] = gone;
    return NULL;
}

static fallible walk_one(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                         bool *skip)
{
    struct finder *f = container_of(v, struct finder, v);

    if (when != TREE_LEAF || !S_ISREG(at->st->st_mode) || at->st->st_size == 0)
        return NULL;
    *skip = f->count >= CHANGES_MAX;
    if (*skip)
        return NULL;
    struct str path =
        arena_printf(&f->c->arena, STR_FMT "/" STR_FMT, STR_ARG(f->dir), STR_ARG(at->path));
    if (!path.p)
        return arena_check(&f->c->arena);
    return add_gone(f, (struct gone){.path = path,
                                     .size = (uint64_t)at->st->st_size,
                                     .changed = at->st->st_ctim,
                                     .change = NONE});
}

/* A file that cannot be read is not recognised, and that is no error. */
static fallible unless_closed(struct err *e)
{
    if (!e || !is_closed(e))
        return e;
    err_free(e);
    return NULL;
}

static fallible rename_collect(struct finder *f)
{
    for (size_t i = 0; i < f->c->count; i++) {
        const struct change *c = &f->c->list[i];
        own_fd fd = -1;
        if (c->kind != CHANGE_DELETED || c->mounted)
            continue;
        if (S_ISREG(c->old_mode) && c->old_size)
            TRY(add_gone(f, (struct gone){.path = c->path,
                                          .size = c->old_size,
                                          .changed = c->old_changed,
                                          .change = i}));
        if (!S_ISDIR(c->old_mode))
            continue;
        TRY(unless_closed(lookup_open(&f->lower, c->path, S_IFDIR, &fd)));
        f->dir = c->path;
        if (fd >= 0)
            TRY(unless_closed(tree_walk(fd, &f->v)));
    }
    return NULL;
}

static fallible hash_file(struct finder *f, int fd, uint64_t size, uint8_t out[SHA256_LEN])
{
    char piece[16384];
    struct sha256 h;

    f->left_bytes -= size;
    sha256_init(&h);
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys("read");
        if (n == 0)
            break;
        sha256_add(&h, piece, (size_t)n);
    }
    sha256_done(&h, out);
    return NULL;
}

static fallible hash_gone(struct finder *f, struct gone *g)
{
    own_fd fd = -1;

    if (g->hashed || g->size > f->left_bytes)
        return NULL;
    TRY(unless_closed(lookup_open(&f->lower, g->path, S_IFREG, &fd)));
    if (fd < 0)
        return NULL;
    TRY(hash_file(f, fd, g->size, g->digest));
    g->hashed = true;
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = ((const struct gone *)a)->size, y = ((const struct gone *)b)->size;

    return x < y ? -1 : x > y;
}

static size_t first_of_size(const struct finder *f, uint64_t size)
{
    size_t low = 0, high = f->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (f->gone[mid].size < size)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

#define SAME_SIZE_MAX 64 /* of one size are compared: a rename is a courtesy */

static fallible rename_match(struct finder *f, struct lookup *upper, struct change *c)
{
    uint8_t digest[SHA256_LEN];
    size_t at = first_of_size(f, c->size), end = at + SAME_SIZE_MAX;
    own_fd fd = -1;

    if (at == f->count || f->gone[at].size != c->size || c->size > f->left_bytes)
        return NULL;
    TRY(lookup_open(upper, c->path, S_IFREG, &fd));
    TRY(hash_file(f, fd, c->size, digest));
    for (; at < f->count && at < end && f->gone[at].size == c->size; at++) {
        struct gone *g = &f->gone[at];
        if (g->used)
            continue;
        TRY(hash_gone(f, g));
        if (!g->hashed || memcmp(g->digest, digest, sizeof digest) != 0)
            continue;
        g->used = true;
        c->kind = CHANGE_RENAMED;
        c->from = g->path;
        c->old_changed = g->changed;
        c->conflict = g->change != NONE && f->c->list[g->change].conflict;
        return NULL;
    }
    return NULL;
}

/* Entries of files that were found under a new name go. */
static void drop_used(struct finder *f)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->count; i++) {
        if (f->gone[i].used && f->gone[i].change != NONE)
            f->c->list[f->gone[i].change].path.len = 0;
    }
    for (size_t i = 0; i < f->c->count; i++) {
        if (f->c->list[i].path.len)
            f->c->list[kept++] = f->c->list[i];
    }
    f->c->count = kept;
}

static fallible rename_find(struct finder *f, const struct changes_source *src)
{
    TRY(rename_collect(f));
    if (!f->count)
        return NULL;
    qsort(f->gone, f->count, sizeof *f->gone, by_size);
    for (size_t i = 0; i < f->c->count; i++) {
        struct change *c = &f->c->list[i];
        if (c->kind != CHANGE_ADDED || c->mounted || !S_ISREG(c->mode) || !c->size)
            continue;
        struct lookup upper;
        lookup_init_layer(&upper, src->uppers[c->layer]);
        struct err *e = rename_match(f, &upper, c);
        lookup_done(&upper);
        TRY(unless_closed(e));
    }
    drop_used(f);
    return NULL;
}

fallible renames_find(const struct changes_source *src, struct changes *c)
{
    struct finder f = {.v.visit = walk_one, .c = c, .left_bytes = CHANGES_HASH_BYTES};

    lookup_init(&f.lower, src->lower);
    struct err *e = rename_find(&f, src);
    lookup_done(&f.lower);
    free(f.gone);
    return e;
}
