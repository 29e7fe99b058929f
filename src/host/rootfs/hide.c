// SPDX-License-Identifier: Apache-2.0
/* hide.c — a layer of whiteouts over a host directory.
 *
 * The root of a sandbox owns the idmapped layers, so permission bits do not stop it. Files that not
 * every user of the host may read must be hidden. Any user may make a whiteout (0:0). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "host/rootfs/inner.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define NAMES_BYTES (4u << 20)

struct hider {
    struct tree_visitor v;
    int host, layer;
};

static bool for_everybody(mode_t mode)
{
    if (S_ISDIR(mode))
        return (mode & 05) == 05;
    return S_ISLNK(mode) || (S_ISREG(mode) && (mode & S_IROTH));
}

static fallible hide_like(int host, int layer, const char *path)
{
    struct stat st;
    own_fd fd = openat(layer, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

    if (fd < 0 || fstatat(host, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("look at '%s'", path);
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    if ((geteuid() == 0 && fchown(fd, st.st_uid, st.st_gid) < 0) ||
        fchmod(fd, st.st_mode & 01777) < 0 || futimens(fd, times) < 0)
        return err_sys("make a copy of directory '%s'", path);
    return NULL;
}

static fallible hide_one(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                         bool *skip)
{
    const struct hider *h = container_of(v, struct hider, v);
    const char *slash = memrchr(at->path.p, '/', at->path.len);
    struct str above = slash ? str_first(at->path, (size_t)(slash - at->path.p)) : STR(".");
    own_fd dir = -1;

    if (when == TREE_LEAVE || for_everybody(at->st->st_mode))
        return NULL;
    *skip = true;
    TRY(fd_make_dirs(h->layer, above, 0755, &dir));
    if (mknodat(dir, at->name, S_IFCHR, 0) < 0)
        return err_sys("hide '%s'", at->path.p);
    return NULL;
}

/* A merged directory has the owner, mode and times of its topmost layer. */
static fallible finish_one(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                           bool *skip)
{
    const struct hider *h = container_of(v, struct hider, v);

    (void)skip;
    return when == TREE_LEAVE ? hide_like(h->host, h->layer, at->path.p) : NULL;
}

fallible hide_build(int host_dir, int layer)
{
    struct hider h = {{.visit = hide_one, .one_filesystem = true}, host_dir, layer};

    TRY(tree_walk(host_dir, &h.v));
    h.v.visit = finish_one;
    TRY(tree_walk(layer, &h.v));
    return hide_like(host_dir, layer, ".");
}

fallible hide_lift(int host_dir, int layer, int above)
{
    own_done(buf) names = {0};
    size_t count = 0;
    struct stat st;

    TRY(tree_read_names(layer, NAMES_BYTES, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        if (fstatat(layer, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            (S_ISCHR(st.st_mode) && renameat(layer, name, above, name) < 0))
            return err_sys("hide '%s'", name);
    }
    TRY(hide_like(host_dir, layer, "."));
    return hide_like(host_dir, above, ".");
}

struct digester {
    struct tree_visitor v;
    struct sha256 hash;
};

static fallible digest_one(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                           bool *skip)
{
    struct digester *d = container_of(v, struct digester, v);
    uint32_t look[4] = {when, at->st->st_mode, at->st->st_uid, at->st->st_gid};

    (void)skip;
    sha256_add(&d->hash, look, sizeof look);
    sha256_add(&d->hash, at->path.p, at->path.len + 1);
    return NULL;
}

static fallible hide_digest(int layer, uint8_t out[SHA256_LEN])
{
    struct digester d = {{.visit = digest_one}};

    sha256_init(&d.hash);
    TRY(tree_walk(layer, &d.v));
    sha256_done(&d.hash, out);
    return NULL;
}

fallible hide_compare(int layer, int other, bool *ret_same)
{
    uint8_t a[SHA256_LEN], b[SHA256_LEN];

    TRY(hide_digest(layer, a));
    TRY(hide_digest(other, b));
    *ret_same = memcmp(a, b, sizeof a) == 0;
    return NULL;
}
