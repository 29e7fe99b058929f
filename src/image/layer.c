// SPDX-License-Identifier: Apache-2.0
/* layer.c — see layer.h. Directories get their mode and time at the end: until then they must be
 * open to us. */
#include "image/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "image/tar.h"

#define PIECE     (128u << 10)
#define IDS_MAX   65536 /* a sandbox has so many */
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct dir_end {
    struct dir_end *before;
    int64_t mtime_s;
    unsigned mode;
    bool gone; /* a later entry took its place */
    char path[];
};

struct layer {
    int root;
    bool owners;
    const struct layer_limits *limits;
    struct layer_sink *sink;
    struct layer_result result;
    struct tar tar;
    char *piece;
    struct buf above; /* path of the directory that is open */
    int dir;
    struct dir_end *ends; /* the last one first */
    struct map ends_by_path;
};

/* --- where an entry goes --- */

static int open_step(int at, const char *name, bool make)
{
    int fd = openat(at, name, DIR_FLAGS, 0);

    if (fd >= 0 || errno != ENOENT || !make)
        return fd;
    if (mkdirat(at, name, 0755) < 0)
        return -1;
    return openat(at, name, DIR_FLAGS, 0);
}

static fallible open_dir(struct layer *l, struct str path, bool make, int *ret_fd)
{
    own_fd fd = openat(l->root, ".", DIR_FLAGS, 0);
    struct str rest = path, name;

    while (fd >= 0 && (str_cut(&rest, '/', &name) || name.len)) {
        char text[NAME_MAX + 1];
        memcpy(text, name.p, name.len); /* tar.c has checked its length */
        text[name.len] = '\0';
        int next = open_step(fd, text, make);
        own_close(fd);
        fd = next;
    }
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return err_new(ERR_INVALID, "'" STR_FMT "' goes through something that is no directory",
                       STR_ARG(path));
    if (fd < 0)
        return err_sys("open '" STR_FMT "'", STR_ARG(path));
    *ret_fd = take_fd(&fd);
    return NULL;
}

static struct str above_of(const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');

    *ret_name = slash ? slash + 1 : path;
    return slash ? str_n(path, (size_t)(slash - path)) : STR("");
}

/* The directory of path, kept open: entries come by directory. */
static fallible layer_enter(struct layer *l, const char *path, int *ret_dir, const char **ret_name)
{
    struct str above = above_of(path, ret_name);

    if (l->dir < 0 || !str_eq(buf_str(&l->above), above)) {
        own_close(l->dir);
        l->dir = -1;
        buf_reset(&l->above);
        buf_add(&l->above, above);
        TRY(buf_check(&l->above));
        TRY(open_dir(l, above, true, &l->dir));
    }
    *ret_dir = l->dir;
    return NULL;
}

/* --- what was there before --- */

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

/* Gives whether it hid what the layers below have. A directory goes only when nothing is in it:
 * files are never lost by a name they did not have. */
static fallible clear_spot(struct layer *l, int dir, const char *name, const char *path,
                           bool *ret_hid)
{
    struct stat st;

    *ret_hid = false;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : err_sys("look at what is there");
    *ret_hid = is_whiteout(&st);
    if (unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0) {
        if (errno == ENOTEMPTY || errno == EEXIST)
            return err_new(ERR_CONFLICT, "before it there is a directory of this name with files "
                                         "in it; make the archive without one of the two");
        return err_sys("replace what is there");
    }
    struct dir_end *end = S_ISDIR(st.st_mode) ? map_get(&l->ends_by_path, str_of(path)) : NULL;
    if (end)
        end->gone = true;
    return NULL;
}

/* --- what it gets --- */

static fallible check_owner(const struct layer *l, const struct tar_entry *e)
{
    if (l->owners && (e->uid >= IDS_MAX || e->gid >= IDS_MAX))
        return err_new(ERR_INVALID, "owner %llu:%llu is beyond the %d ids of a sandbox",
                       (unsigned long long)e->uid, (unsigned long long)e->gid, IDS_MAX);
    return NULL;
}

static fallible give_owner(const struct layer *l, int dir, const char *name,
                           const struct tar_entry *e)
{
    if (l->owners &&
        fchownat(dir, name, (uid_t)e->uid, (gid_t)e->gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
        return err_sys("set the owner");
    return NULL;
}

/* File capabilities, and what users keep; nothing that means something to overlay or the host. */
static bool is_wanted(const struct layer *l, struct str name)
{
    if (str_eq(name, STR("security.capability")))
        return l->owners;
    return str_starts(name, STR("user.")) && !str_starts(name, STR("user.overlay."));
}

static fallible give_xattrs(const struct layer *l, int fd, const struct tar_entry *e)
{
    for (size_t i = 0; i < e->xattr_count; i++) {
        const struct tar_xattr *x = &e->xattrs[i];
        char name[256];
        if (!is_wanted(l, x->name))
            continue;
        memcpy(name, x->name.p, x->name.len); /* at most 255, says tar_pax.c */
        name[x->name.len] = '\0';
        if (fsetxattr(fd, name, x->value.p, x->value.len, 0) < 0 && errno != EOPNOTSUPP)
            return err_sys("set attribute '%s'", name);
    }
    return NULL;
}

static fallible layer_finish(const struct layer *l, int fd, const struct tar_entry *e)
{
    struct timespec times[2] = {{e->mtime_s, 0}, {e->mtime_s, 0}};

    TRY(give_owner(l, fd, "", e));
    if (fchmod(fd, e->mode) < 0) /* after the owner: chown takes set-id bits away */
        return err_sys("set the mode");
    TRY(give_xattrs(l, fd, e));
    if (futimens(fd, times) < 0)
        return err_sys("set the time");
    return NULL;
}

/* --- each kind --- */

static fallible put_file(struct layer *l, int dir, const char *name, const struct tar_entry *e)
{
    static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    own_fd fd = openat(dir, name, flags, 0600);
    bool hid;

    if (fd < 0 && errno == EEXIST) {
        TRY(clear_spot(l, dir, name, e->path, &hid));
        fd = openat(dir, name, flags, 0600);
    }
    if (fd < 0)
        return err_sys("create");
    for (;;) {
        size_t n;
        TRY(tar_read(&l->tar, l->piece, PIECE, &n));
        if (!n)
            break;
        TRY(fd_write_all(fd, str_n(l->piece, n)));
    }
    return layer_finish(l, fd, e);
}

static fallible put_link(struct layer *l, int dir, const char *name, const struct tar_entry *e)
{
    struct timespec times[2] = {{e->mtime_s, 0}, {e->mtime_s, 0}};
    bool hid;

    TRY(clear_spot(l, dir, name, e->path, &hid));
    if (symlinkat(e->target, dir, name) < 0)
        return err_sys("make the link");
    TRY(give_owner(l, dir, name, e));
    if (utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("set the time");
    return NULL;
}

static fallible put_hard_link(struct layer *l, int dir, const char *name, const struct tar_entry *e)
{
    const char *last;
    struct str above = above_of(e->target, &last);
    struct stat st, here;
    own_fd from = -1;
    bool hid;

    TRY_WRAP(open_dir(l, above, false, &from), "link to '%s'", e->target);
    if (fstatat(from, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("link to '%s', which this layer does not have", e->target);
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return err_new(ERR_INVALID, "hard link to '%s', which is no file", e->target);
    if (fstatat(dir, name, &here, AT_SYMLINK_NOFOLLOW) == 0 && here.st_ino == st.st_ino)
        return NULL; /* the same file, maybe by the same name: it must not be removed first */
    TRY(clear_spot(l, dir, name, e->path, &hid));
    if (linkat(from, last, dir, name, 0) < 0)
        return err_sys("link to '%s'", e->target);
    return NULL;
}

/* The later of two entries counts, in the place of the first: before those above it. */
static fallible remember_dir(struct layer *l, const struct tar_entry *e)
{
    struct dir_end *end = map_get(&l->ends_by_path, str_of(e->path));
    size_t n = strlen(e->path);

    if (!end) {
        end = malloc(sizeof *end + n + 1);
        if (!end)
            return err_no_memory();
        memcpy(end->path, e->path, n + 1);
        end->before = l->ends;
        l->ends = end;
        map_put(&l->ends_by_path, str_n(end->path, n), end);
    }
    end->mode = e->mode;
    end->mtime_s = e->mtime_s;
    end->gone = false;
    return NULL;
}

/* A link or file where a directory is to be goes; one on the way there ends the import. */
static fallible make_way(struct layer *l, const struct tar_entry *e, bool *ret_hid)
{
    const char *name;
    struct stat st;
    int dir;

    TRY(layer_enter(l, e->path, &dir, &name));
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return NULL;
    return clear_spot(l, dir, name, e->path, ret_hid);
}

static fallible put_dir(struct layer *l, const struct tar_entry *e)
{
    own_fd fd = -1;
    bool hid = false;
    struct err *bad = open_dir(l, str_of(e->path), true, &fd); /* again is the same directory */

    if (bad && err_code(bad) != ERR_INVALID)
        return bad;
    if (bad) {
        err_free(bad);
        TRY(make_way(l, e, &hid));
        TRY(open_dir(l, str_of(e->path), true, &fd));
    }
    TRY(give_owner(l, fd, "", e));
    TRY(give_xattrs(l, fd, e));
    if (hid)
        TRY(l->sink->opaque(l->sink, str_of(e->path)));
    return remember_dir(l, e);
}

/* It is about the layers below: what this one has of that name stays, whichever came first. */
static fallible put_whiteout(struct layer *l, const char *path, int dir, const char *hidden)
{
    struct stat st;
    const char *name;
    struct str above = above_of(path, &name);

    if (strcmp(hidden, ".wh..opq") == 0)
        return l->sink->opaque(l->sink, above);
    if (strncmp(hidden, ".wh.", 4) == 0)
        return NULL; /* private to the storage driver that wrote it */
    if (!hidden[0] || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
        return err_new(ERR_INVALID, "a whiteout of nothing");
    if (mknodat(dir, hidden, S_IFCHR, 0) == 0)
        return NULL;
    if (errno != EEXIST || fstatat(dir, hidden, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("hide '%s'", hidden);
    if (!S_ISDIR(st.st_mode))
        return NULL;
    char at[PATH_MAX + NAME_MAX + 2]; /* layer_enter() bounds the one, tar.c the other */
    int n = snprintf(at, sizeof at, STR_FMT "%s%s", STR_ARG(above), above.len ? "/" : "", hidden);
    return l->sink->opaque(l->sink, str_n(at, (size_t)n));
}

static fallible put_entry(struct layer *l, const struct tar_entry *e)
{
    const char *name;
    int dir;

    TRY(check_owner(l, e));
    if (e->type == TAR_DIR)
        return put_dir(l, e);
    if (!e->path[0])
        return err_new(ERR_INVALID, "the root of the archive is no directory");
    TRY(layer_enter(l, e->path, &dir, &name));
    if (strncmp(name, ".wh.", 4) == 0)
        return put_whiteout(l, e->path, dir, name + 4);
    switch (e->type) {
    case TAR_FILE:
        return put_file(l, dir, name, e);
    case TAR_LINK:
        return put_link(l, dir, name, e);
    case TAR_HARD_LINK:
        return put_hard_link(l, dir, name, e);
    default:
        l->result.left_out++;
        return NULL;
    }
}

static fallible end_dirs(struct layer *l)
{
    for (const struct dir_end *d = l->ends; d; d = d->before) {
        struct timespec times[2] = {{d->mtime_s, 0}, {d->mtime_s, 0}};
        own_fd fd = -1;
        if (d->gone)
            continue;
        TRY(open_dir(l, str_of(d->path), false, &fd));
        if (fchmod(fd, d->mode) < 0 || futimens(fd, times) < 0)
            return err_sys("set mode and time of '%s'", d->path);
    }
    return NULL;
}

static fallible unpack_all(struct layer *l)
{
    const struct tar_entry *e;

    for (;;) {
        TRY(tar_next(&l->tar, &e));
        if (!e)
            return end_dirs(l);
        if (++l->result.entries > l->limits->entries)
            return err_new(ERR_TOO_LARGE, "more than %llu entries",
                           (unsigned long long)l->limits->entries);
        TRY_WRAP(put_entry(l, e), "'%.200s'", e->path);
    }
}

static void layer_done(struct layer *l)
{
    map_done(&l->ends_by_path);
    for (struct dir_end *d = l->ends, *before; d; d = before) {
        before = d->before;
        free(d);
    }
    free(l->piece);
    own_close(l->dir);
    buf_done(&l->above);
    tar_done(&l->tar);
}

fallible layer_unpack(struct source *from, int dir, bool owners, const struct layer_limits *limits,
                      struct layer_sink *sink, struct layer_result *ret)
{
    struct layer l = {.root = dir, .owners = owners, .limits = limits, .sink = sink, .dir = -1};
    struct source_hash hash;
    own(decoder) decoder = NULL;

    TRY(decoder_new(from, &decoder));
    source_hash_init(&hash, decoder_source(decoder), limits->bytes);
    tar_init(&l.tar, &hash.source);
    buf_init(&l.above, PATH_MAX);
    map_init(&l.ends_by_path);
    l.piece = mem_try(PIECE);
    struct err *e = l.piece ? unpack_all(&l) : err_no_memory();
    if (!e)
        e = source_hash_end(&hash, l.result.diff_id);
    l.result.bytes = hash.bytes;
    layer_done(&l);
    if (!e)
        *ret = l.result;
    return e;
}
