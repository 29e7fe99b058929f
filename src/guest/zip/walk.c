// SPDX-License-Identifier: Apache-2.0
/* walk.c — see walk.h. */
#include "guest/zip/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

#define OPEN_LEVELS 32u /* directories kept open above the deepest */

struct level {
    DIR *dir; /* NULL: closed for now */
    long at;  /* where to go on when it is opened again */
    dev_t dev;
    ino_t ino;
    size_t path_len; /* of the directory's own path, with its slash */
};

struct zip_walk {
    struct level *levels;
    size_t depth, cap;
    struct buf path;
    bool enter; /* the entry given last is a directory: go in */
};

#define ENTER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

static fallible walk_push(struct zip_walk *w, int fd)
{
    own_fd dir = fd;
    struct stat st;

    if (w->depth == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 16;
        struct level *p = realloc(w->levels, cap * sizeof *p);
        if (!p)
            return err_no_memory();
        w->levels = p;
        w->cap = cap;
    }
    if (fstat(dir, &st) < 0)
        return err_sys("stat directory '" STR_FMT "'", STR_ARG(buf_str(&w->path)));
    DIR *d = fdopendir(dir);
    if (!d)
        return err_sys("open directory '" STR_FMT "'", STR_ARG(buf_str(&w->path)));
    take_fd(&dir);
    if (w->depth >= OPEN_LEVELS) {
        struct level *far = &w->levels[w->depth - OPEN_LEVELS];
        if (far->dir) {
            far->at = telldir(far->dir);
            closedir(far->dir);
            far->dir = NULL;
        }
    }
    w->levels[w->depth++] = (struct level){d, 0, st.st_dev, st.st_ino, w->path.len};
    return NULL;
}

/* The level above was closed: back through "..". */
static fallible walk_reopen(struct zip_walk *w, struct level *above, int below)
{
    struct stat st;
    own_fd fd = openat(below, "..", ENTER_FLAGS, 0);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys("go back to a directory above '" STR_FMT "'", STR_ARG(buf_str(&w->path)));
    if (st.st_dev != above->dev || st.st_ino != above->ino)
        return err_new(ERR_CONFLICT, "a directory above '" STR_FMT "' was moved meanwhile",
                       STR_ARG(buf_str(&w->path)));
    above->dir = fdopendir(fd);
    if (!above->dir)
        return err_sys("open a directory above '" STR_FMT "'", STR_ARG(buf_str(&w->path)));
    take_fd(&fd);
    seekdir(above->dir, above->at);
    return NULL;
}

static fallible walk_pop(struct zip_walk *w)
{
    struct level *top = &w->levels[w->depth - 1];
    struct err *e = NULL;

    if (w->depth > 1 && !top[-1].dir)
        e = walk_reopen(w, top - 1, dirfd(top->dir));
    closedir(top->dir);
    w->depth--;
    return e;
}

fallible zip_walk_new(int dir, struct zip_walk **ret_walk)
{
    own_fd fd = dir;
    own(zip_walk) w = mem_try(sizeof *w);

    if (!w)
        return err_no_memory();
    buf_init(&w->path, ZIP_WALK_PATH_MAX);
    TRY(walk_push(w, take_fd(&fd)));
    *ret_walk = take(&w);
    return NULL;
}

void zip_walk_free(struct zip_walk *w)
{
    if (!w)
        return;
    while (w->depth) {
        struct level *top = &w->levels[--w->depth];
        if (top->dir)
            closedir(top->dir);
    }
    free(w->levels);
    buf_done(&w->path);
    free(w);
}

/* Goes into the directory given last; one that has gone, or is a link now, is passed over. */
static fallible walk_enter(struct zip_walk *w)
{
    struct level *top = &w->levels[w->depth - 1];

    w->enter = false;
    if (!buf_cstr(&w->path))
        return err_no_memory();
    int fd = openat(dirfd(top->dir), w->path.p + top->path_len, ENTER_FLAGS, 0);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return NULL;
    if (fd < 0)
        return err_sys("open directory '" STR_FMT "'", STR_ARG(buf_str(&w->path)));
    buf_add_char(&w->path, '/');
    struct err *e = buf_check(&w->path);
    if (e) {
        own_close(fd);
        return e;
    }
    return walk_push(w, fd);
}

void zip_walk_pass(struct zip_walk *w)
{
    w->enter = false;
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

fallible zip_walk_next(struct zip_walk *w, struct zip_walk_entry *ret_entry, bool *ret_more)
{
    if (w->enter)
        TRY(walk_enter(w));
    while (w->depth) {
        struct level *top = &w->levels[w->depth - 1];
        w->path.len = top->path_len;
        errno = 0;
        const struct dirent *d = readdir(top->dir);
        if (!d && errno)
            return err_sys("read directory '" STR_FMT "'", STR_ARG(buf_str(&w->path)));
        if (!d) {
            TRY(walk_pop(w));
            continue;
        }
        if (is_dots(d->d_name))
            continue;
        buf_add_cstr(&w->path, d->d_name);
        TRY(buf_check(&w->path));
        if (!buf_cstr(&w->path))
            return err_no_memory();
        const char *name = w->path.p + top->path_len;
        if (fstatat(dirfd(top->dir), name, &ret_entry->st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT)
                continue;
            return err_sys("stat '" STR_FMT "'", STR_ARG(buf_str(&w->path)));
        }
        ret_entry->path = buf_str(&w->path);
        ret_entry->name = name;
        ret_entry->dir = dirfd(top->dir);
        w->enter = S_ISDIR(ret_entry->st.st_mode);
        *ret_more = true;
        return NULL;
    }
    *ret_more = false;
    return NULL;
}
