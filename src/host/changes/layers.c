// SPDX-License-Identifier: Apache-2.0
/* layers.c — the upper layers of an overlay as one list of entries.
 *
 * A whiteout is a 0:0 device or, in layers made without privilege, an empty file with an attribute.
 * An opaque directory hides the entries that layers below have of it.
 *
 * The process that mounted decides which family of attributes the kernel used, and only that one
 * counts. The guest may write the other: user.overlay under root's mounts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/changes/inner.h"
#include "host/tree/tree.h"

struct reader {
    struct tree_visitor v;
    struct arena *a;
    struct nodes *into;
    uint8_t layer;
    bool user, deep;
};

void nodes_done(struct nodes *n)
{
    free(n->at);
    *n = (struct nodes){0};
}

static fallible nodes_add(struct nodes *n, const struct node *node)
{
    if (n->count == CHANGES_MAX)
        return err_new(ERR_TOO_LARGE, "more than %u entries changed", CHANGES_MAX);
    if (n->count == n->cap) {
        size_t cap = n->cap ? 2 * n->cap : 64;
        struct node *more = realloc(n->at, cap * sizeof *more);
        if (!more)
            return err_no_memory();
        n->at = more;
        n->cap = cap;
    }
    n->at[n->count++] = *node;
    return NULL;
}

int path_cmp(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;

    for (size_t i = 0; i < n; i++) {
        if (a.p[i] == b.p[i])
            continue;
        unsigned x = a.p[i] == '/' ? 0 : (unsigned char)a.p[i];
        unsigned y = b.p[i] == '/' ? 0 : (unsigned char)b.p[i];
        return x < y ? -1 : 1;
    }
    return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
}

bool path_beneath(struct str path, struct str dir)
{
    return path.len > dir.len && path.p[dir.len] == '/' && str_starts(path, dir);
}

/* The first byte of an attribute of overlay's, '\0' when there is none. */
static char overlay_xattr(int fd, bool user, const char *what)
{
    char name[64], value[8];

    strcpy(name, user ? "user.overlay." : "trusted.overlay.");
    strcat(name, what);
    ssize_t n = fgetxattr(fd, name, value, sizeof value);
    if (n > 0)
        return value[0];
    return n == 0 || errno == ERANGE ? '?' : '\0';
}

#define MODE_NOTE "user.croft.mode"

/* Whether it can be read and gone into as it is. */
static int open_plain(const struct tree_at *at)
{
    own_fd fd = openat(at->dir, at->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct stat st;

    return fd >= 0 && fstatat(fd, ".", &st, 0) == 0 ? take_fd(&fd) : -1;
}

/* A directory that was closed to us is open from now on, and its mode noted. The note counts as
 * long as the mode is the one we gave it. */
static int open_layer_dir(const struct tree_at *at, struct node *node)
{
    char text[8] = "";
    mode_t mode = at->st->st_mode, noted;
    bool root = geteuid() == 0;
    int fd = open_plain(at);

    if (fd < 0 && errno == EACCES && !root && (mode & 0500) != 0500) {
        fd = open_closed(at->dir, at->name, at->st);
        snprintf(text, sizeof text, "%03o", mode & 0777);
        if (fd >= 0)
            fsetxattr(fd, MODE_NOTE, text, 3, 0); /* else it is 7xx from now on */
        return fd;
    }
    if (fd < 0 || root || fgetxattr(fd, MODE_NOTE, text, 7) <= 0)
        return fd;
    noted = strtoul(text, NULL, 8) & 0777;
    if ((mode & 0777) == (noted | 0700))
        node->mode = (mode & ~(mode_t)0777) | noted;
    else
        fremovexattr(fd, MODE_NOTE); /* the guest changed it since */
    return fd;
}

static fallible look_at_dir(const struct reader *r, const struct tree_at *at, struct node *node)
{
    own_fd fd = open_layer_dir(at, node);

    if (fd < 0)
        return err_sys("open '%.200s'", at->path.p);
    if (overlay_xattr(fd, r->user, "redirect"))
        return err_new(ERR_UNSUPPORTED, "directory '%.200s' is a redirect of overlay's",
                       at->path.p);
    node->opaque = overlay_xattr(fd, r->user, "opaque") == 'y';
    return NULL;
}

static fallible look_at_file(const struct reader *r, const struct tree_at *at, struct node *node)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    own_fd fd = openat(at->dir, at->name, flags, 0);

    if (fd < 0 && errno == EACCES)
        return NULL; /* closed by the guest: neither a whiteout nor half a file is */
    if (fd < 0)
        return err_sys("open '%.200s'", at->path.p);
    if (overlay_xattr(fd, r->user, "metacopy"))
        return err_new(ERR_UNSUPPORTED, "'%.200s' has its bytes in another layer", at->path.p);
    if (at->st->st_size == 0 && overlay_xattr(fd, r->user, "whiteout"))
        node->kind = NODE_WHITEOUT;
    return NULL;
}

/* One that cannot be gone into is an odd thing among others. */
static fallible enter_dir(const struct reader *r, const struct tree_at *at, struct node *node,
                          bool *skip)
{
    *skip = !r->deep && at->path.len > PATH_LEN_MAX;
    node->kind = *skip ? NODE_DEEP : NODE_DIR;
    if (*skip)
        return NULL;
    struct err *e = look_at_dir(r, at, node);
    *skip = e && is_closed(e);
    if (!*skip)
        return e;
    err_free(e);
    node->kind = NODE_SPECIAL;
    return NULL;
}

static fallible read_one(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                         bool *skip)
{
    struct reader *r = container_of(v, struct reader, v);
    const struct stat *st = at->st;
    struct node node = {.mode = st->st_mode, .layer = r->layer};

    if (when == TREE_LEAVE)
        return NULL;
    node.path = arena_copy(r->a, at->path);
    if (!node.path.p)
        return arena_check(r->a);
    switch (type_of(st->st_mode)) {
    case S_IFDIR:
        TRY(enter_dir(r, at, &node, skip));
        break;
    case S_IFREG:
        node.kind = NODE_FILE;
        node.inode = st->st_nlink > 1 ? st->st_ino : 0;
        node.size = (uint64_t)st->st_size;
        if (st->st_blocks == 0) /* only then can it be more than it seems */
            TRY(look_at_file(r, at, &node));
        break;
    case S_IFLNK:
        node.kind = NODE_LINK;
        break;
    default:
        node.kind = S_ISCHR(st->st_mode) && st->st_rdev == 0 ? NODE_WHITEOUT : NODE_SPECIAL;
    }
    return nodes_add(r->into, &node);
}

static fallible read_layer(const struct changes_source *src, size_t layer, struct arena *a,
                           struct nodes *ret)
{
    struct reader r = {{.visit = read_one}, a, ret, (uint8_t)layer, src->user, src->deep};

    return tree_walk(src->uppers[layer], &r.v);
}

/* Merges two lists; entries of the upper one win. */
static fallible layers_merge(const struct nodes *above, const struct nodes *below,
                             struct nodes *ret)
{
    size_t i = 0, k = 0;

    while (i < above->count || k < below->count) {
        int order = i == above->count   ? 1
                    : k == below->count ? -1
                                        : path_cmp(above->at[i].path, below->at[k].path);
        if (order > 0) {
            TRY(nodes_add(ret, &below->at[k++]));
            continue;
        }
        struct node n = above->at[i++];
        if (order == 0) { /* what was no directory hid what is below it: that stays hidden */
            const struct node *old = &below->at[k++];
            n.opaque = n.kind == NODE_DIR && (n.opaque || old->kind != NODE_DIR || old->opaque);
        }
        bool hides = n.kind != NODE_DIR || above->at[i - 1].opaque;
        TRY(nodes_add(ret, &n));
        while (hides && k < below->count && path_beneath(below->at[k].path, n.path))
            k++;
    }
    return NULL;
}

fallible layers_read(const struct changes_source *src, struct arena *a, struct nodes *ret)
{
    struct nodes all = {0};
    struct err *e = NULL;

    for (size_t i = src->upper_count; !e && i--;) {
        struct nodes one = {0}, both = {0};
        e = read_layer(src, i, a, &one);
        if (!e)
            e = layers_merge(&one, &all, &both);
        nodes_done(&one);
        nodes_done(&all);
        all = both;
    }
    if (e)
        nodes_done(&all);
    else
        *ret = all;
    return e;
}
