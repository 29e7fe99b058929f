// SPDX-License-Identifier: Apache-2.0
/* merge.c — see merge.h. The layers are a guest's: every kind of entry may be there, and nothing is
 * followed. Devices but for whiteouts do not come along: overlay would show them. */
#include "host/snaps/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "host/changes/inner.h"
#include "host/tree/tree.h"

#define XATTR_NAMES 4096
#define XATTR_VALUE 65536

struct merger {
    const int *layers;
    size_t count;
    bool link;
    struct lookup from[CHANGES_MAX_LAYERS], to;
    char *value;
    uint64_t copied_bytes;
};

static bool is_kept(const char *name)
{
    /* origin and impure are overlay's memory of this very mount; opaque is set from the list */
    return strncmp(name, "trusted.overlay.", 16) != 0 && strncmp(name, "user.overlay.", 13) != 0;
}

static fallible copy_xattrs(struct merger *m, int from, int to)
{
    char names[XATTR_NAMES];
    ssize_t n = flistxattr(from, names, sizeof names);

    if (n < 0)
        return errno == EOPNOTSUPP ? NULL : err_sys("list attributes");
    for (const char *name = names; name < names + n; name += strlen(name) + 1) {
        if (!is_kept(name))
            continue;
        ssize_t len = fgetxattr(from, name, m->value, XATTR_VALUE);
        if (len < 0 || fsetxattr(to, name, m->value, (size_t)len, 0) < 0)
            return err_sys("copy attribute '%.100s'", name);
    }
    return NULL;
}

static fallible merge_like(struct merger *m, int from, int to)
{
    struct stat st;

    if (fstat(from, &st) < 0)
        return err_sys("look");
    TRY(tree_chown_like(to, "", &st));
    if (fchmod(to, st.st_mode & 07777) < 0)
        return err_sys("set the mode");
    TRY(copy_xattrs(m, from, to));
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    return futimens(to, times) < 0 ? err_sys("set the times") : NULL;
}

static fallible put_file(struct merger *m, const struct node *n, int dir, const char *name)
{
    own_fd from = -1;

    TRY(lookup_open(&m->from[n->layer], n->path, S_IFREG, &from));
    own_fd to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return err_sys("create");
    TRY(tree_copy_bytes(from, to));
    struct stat st;
    if (fstat(to, &st) == 0)
        m->copied_bytes += (uint64_t)st.st_size;
    return merge_like(m, from, to);
}

static fallible put_link(struct merger *m, const struct node *n, int dir, const char *name)
{
    char text[PATH_MAX];
    const char *last;
    struct stat st;
    int above;

    TRY(lookup_parent(&m->from[n->layer], n->path, &above, &last));
    ssize_t len = readlinkat(above, last, text, sizeof text - 1);
    if (len < 0 || fstatat(above, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("read the link");
    text[len] = '\0';
    if (symlinkat(text, dir, name) < 0)
        return err_sys("make the link");
    return tree_chown_like(dir, name, &st);
}

static fallible put_fifo(struct merger *m, const struct node *n, int dir, const char *name)
{
    const char *last;
    struct stat st;
    int above;

    TRY(lookup_parent(&m->from[n->layer], n->path, &above, &last));
    if (fstatat(above, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("look at the pipe");
    if (mkfifoat(dir, name, 0600) < 0)
        return err_sys("make the pipe");
    TRY(tree_chown_like(dir, name, &st));
    return fchmodat(dir, name, st.st_mode & 07777, 0) < 0 ? err_sys("set the pipe's mode") : NULL;
}

/* A frozen layer's entry under one more name. */
static fallible merge_share(struct merger *m, const struct node *n, int dir, const char *name)
{
    const char *last;
    int above;

    TRY(lookup_parent(&m->from[n->layer], n->path, &above, &last));
    if (linkat(above, last, dir, name, 0) < 0)
        return err_sys("share the file");
    return NULL;
}

static fallible put_dir(const struct node *n, int dir, const char *name)
{
    if (mkdirat(dir, name, 0700) < 0)
        return err_sys("make the directory");
    if (!n->opaque)
        return NULL;
    own_fd fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    const char *attribute = geteuid() == 0 ? "trusted.overlay.opaque" : "user.overlay.opaque";
    if (fd < 0 || fsetxattr(fd, attribute, "y", 1, 0) < 0)
        return err_sys("mark it as opaque");
    return NULL;
}

static fallible put_node(struct merger *m, const struct node *n)
{
    const char *name;
    int dir;

    TRY(lookup_parent(&m->to, n->path, &dir, &name));
    switch (n->kind) {
    case NODE_DIR:
        return put_dir(n, dir, name);
    case NODE_WHITEOUT:
        return mknodat(dir, name, S_IFCHR, 0) < 0 ? err_sys("make a whiteout") : NULL;
    case NODE_FILE:
        return m->link ? merge_share(m, n, dir, name) : put_file(m, n, dir, name);
    case NODE_LINK:
        return m->link ? merge_share(m, n, dir, name) : put_link(m, n, dir, name);
    case NODE_SPECIAL: /* a socket is of no use without its maker */
        if (S_ISDIR(n->mode))
            return err_new(ERR_FORBIDDEN, "the directory is closed");
        if (!S_ISFIFO(n->mode))
            return NULL;
        return m->link ? merge_share(m, n, dir, name) : put_fifo(m, n, dir, name);
    default:
        return NULL;
    }
}

/* When all is in them: modes that shut us out, and times. */
static fallible finish_dir(struct merger *m, const struct node *n)
{
    own_fd from = -1, to = -1;

    TRY(lookup_open(&m->from[n->layer], n->path, S_IFDIR, &from));
    TRY(lookup_open(&m->to, n->path, S_IFDIR, &to));
    return merge_like(m, from, to);
}

static fallible put_all(struct merger *m, const struct nodes *nodes, int into)
{
    for (size_t i = 0; i < nodes->count; i++)
        TRY_WRAP(put_node(m, &nodes->at[i]), "'%.200s'", nodes->at[i].path.p);
    for (size_t i = nodes->count; i--;) {
        if (nodes->at[i].kind == NODE_DIR)
            TRY_WRAP(finish_dir(m, &nodes->at[i]), "'%.200s'", nodes->at[i].path.p);
    }
    own_fd top = openat(m->layers[0], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    own_fd to = openat(into, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (top < 0 || to < 0)
        return err_sys("open the layer");
    return merge_like(m, top, to);
}

fallible merge_layers(const int *layers, size_t count, bool link, int into, uint64_t *copied_bytes)
{
    struct changes_source src = {.uppers = layers,
                                 .upper_count = count,
                                 .user = geteuid() != 0, /* as put_dir() writes */
                                 .deep = true};
    struct merger m = {.layers = layers, .count = count, .link = link};
    struct nodes nodes = {0};
    struct arena a;

    if (!count || count > CHANGES_MAX_LAYERS)
        return err_new(ERR_INVALID, "%zu layers to merge", count);
    m.value = malloc(XATTR_VALUE);
    if (!m.value)
        return err_no_memory();
    arena_init(&a, CHANGES_MEMORY);
    lookup_init(&m.to, into);
    for (size_t i = 0; i < count; i++)
        lookup_init_layer(&m.from[i], layers[i]);
    struct err *e = layers_read(&src, &a, &nodes);
    if (!e)
        e = put_all(&m, &nodes, into);
    if (copied_bytes)
        *copied_bytes += m.copied_bytes;
    for (size_t i = 0; i < count; i++)
        lookup_done(&m.from[i]);
    lookup_done(&m.to);
    nodes_done(&nodes);
    arena_done(&a);
    free(m.value);
    return e;
}
