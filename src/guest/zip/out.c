// SPDX-License-Identifier: Apache-2.0
/* out.c — the writer: pulled, never pushes. A file's sizes are known only after it was read, so
 * they follow its data. The index waits in memory, or, when long, in a nameless file. */
#include "guest/zip/out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "guest/zip/crc.h"
#include "guest/zip/format.h"

#define INDEX_IN_MEMORY (256u << 10)
#define SMALL_MOST      (ZIP_MAX32 - (ZIP_MAX32 >> 8))
#define FILE_FLAGS      (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static struct zip_out *out_new(const struct zip_out_config *config)
{
    struct zip_out *z = mem_try(sizeof *z);

    if (!z)
        return NULL;
    if (config)
        z->config = *config;
    z->fd = z->index_fd = -1;
    z->fold = zip_crc_can_fold();
    buf_init(&z->head, (size_t)4 * ZIP_WALK_PATH_MAX);
    buf_init(&z->index, INDEX_IN_MEMORY + (size_t)2 * ZIP_WALK_PATH_MAX);
    buf_init(&z->entry.name, ZIP_WALK_PATH_MAX + 1);
    return z;
}

void zip_out_free(struct zip_out *z)
{
    if (!z)
        return;
    zip_walk_free(z->walk);
    own_close(z->fd);
    own_close(z->index_fd);
    buf_done(&z->head);
    buf_done(&z->index);
    buf_done(&z->entry.name);
    free(z);
}

/* --- entries --- */

static fallible begin_entry(struct zip_out *z, struct str name, const struct stat *st)
{
    struct zip_out_entry *e = &z->entry;
    struct buf keep = e->name;

    *e = (struct zip_out_entry){.name = keep, .mode = st->st_mode, .mtime_s = st->st_mtim.tv_sec};
    buf_reset(&e->name);
    buf_add(&e->name, name);
    if (S_ISDIR(st->st_mode))
        buf_add_char(&e->name, '/');
    return buf_check(&e->name);
}

/* An entry whose content is at hand: a directory, a link, an empty file. */
static fallible put_whole(struct zip_out *z, struct str content)
{
    struct zip_out_entry *e = &z->entry;

    e->size_bytes = e->packed_bytes = content.len;
    e->crc = zip_crc(0, content.p, content.len, z->fold);
    zip_out_put_local(z);
    buf_add(&z->head, content);
    z->made += content.len;
    zip_out_put_central(z);
    return buf_check(&z->head);
}

/* Files of /proc and /sys do not tell their size before they are read. In a tree they are packed as
 * they say: there are thousands, and some never end. */
static bool has_hidden_bytes(const struct zip_out *z, int fd)
{
    char byte;

    return !z->walk && pread(fd, &byte, 1, 0) == 1;
}

/* Takes the file over. Its size as of now is the most that is read, so the width of the sizes
 * can be chosen before. */
static fallible put_file(struct zip_out *z, int fd, struct str name)
{
    own_fd file = fd;
    struct stat st;

    if (fstat(file, &st) < 0)
        return err_sys("stat '" STR_FMT "'", STR_ARG(name));
    if (!S_ISREG(st.st_mode))
        return NULL;
    TRY(begin_entry(z, name, &st));
    if (st.st_size == 0 && has_hidden_bytes(z, file))
        st.st_size = SMALL_MOST;
    if (st.st_size == 0)
        return put_whole(z, STR(""));
    struct zip_out_entry *e = &z->entry;
    e->data_after = true;
    e->large = (uint64_t)st.st_size > SMALL_MOST;
    zip_out_put_local(z);
    z->fd = take_fd(&file);
    z->left = (uint64_t)st.st_size;
    z->state = ZIP_OUT_DATA;
    return NULL;
}

static bool is_gone(int errnum)
{
    return errnum == ENOENT || errnum == ELOOP || errnum == ENOTDIR || errnum == ENXIO;
}

static fallible put_regular(struct zip_out *z, const struct zip_walk_entry *w)
{
    int fd = openat(w->dir, w->name, FILE_FLAGS | O_NOFOLLOW, 0);

    if (fd < 0 && is_gone(errno))
        return NULL;
    if (fd < 0)
        return err_sys("open '" STR_FMT "'", STR_ARG(w->path));
    return put_file(z, fd, w->path);
}

static fallible follow_bounded(struct zip_out *z, const struct zip_walk_entry *w)
{
    own_done(buf) path;
    int fd = -1;

    buf_init(&path, (size_t)2 * ZIP_WALK_PATH_MAX);
    buf_add(&path, z->config.boundary_path);
    if (path.len)
        buf_add_char(&path, '/');
    buf_add(&path, w->path);
    TRY(buf_check(&path));
    struct err *e = fd_open_beneath(z->config.boundary, buf_str(&path), FILE_FLAGS, 0, &fd);
    if (e && (is_gone(err_errno(e)) || err_errno(e) == EXDEV)) {
        err_free(e);
        return NULL;
    }
    TRY(e);
    return put_file(z, fd, w->path);
}

static fallible put_followed(struct zip_out *z, const struct zip_walk_entry *w)
{
    struct stat st;

    if (z->config.bounded)
        return follow_bounded(z, w);
    if (fstatat(w->dir, w->name, &st, 0) < 0 || !S_ISREG(st.st_mode))
        return NULL; /* not opened: to open a device can do things */
    int fd = openat(w->dir, w->name, FILE_FLAGS, 0);
    if (fd < 0 && is_gone(errno))
        return NULL;
    if (fd < 0)
        return err_sys("open '" STR_FMT "'", STR_ARG(w->path));
    return put_file(z, fd, w->path);
}

static fallible put_link(struct zip_out *z, const struct zip_walk_entry *w)
{
    char text[PATH_MAX];
    ssize_t n = readlinkat(w->dir, w->name, text, sizeof text);

    if (n < 0 && (is_gone(errno) || errno == EINVAL))
        return NULL;
    if (n < 0)
        return err_sys("read link '" STR_FMT "'", STR_ARG(w->path));
    TRY(begin_entry(z, w->path, &w->st));
    return put_whole(z, str_n(text, (size_t)n));
}

static fallible put_next(struct zip_out *z)
{
    struct zip_walk_entry w;
    bool more = false, exact = z->config.exact;

    if (z->walk)
        TRY(zip_walk_next(z->walk, &w, &more));
    if (!more) {
        z->index_start = z->made;
        z->state = ZIP_OUT_INDEX;
        return NULL;
    }
    if (exact && w.path.len > ZIP_PATH_MAX) {
        zip_walk_pass(z->walk); /* named by whoever reads the archive, if nobody here does */
        if (z->config.left_out) {
            z->config.left_out(z->config.arg, w.path);
            return NULL;
        }
    }
    if (S_ISREG(w.st.st_mode))
        return put_regular(z, &w);
    if (S_ISLNK(w.st.st_mode))
        return exact ? put_link(z, &w) : put_followed(z, &w);
    if (!exact)
        return NULL;
    if (!S_ISDIR(w.st.st_mode) && z->config.left_out) {
        z->config.left_out(z->config.arg, w.path);
        return NULL;
    }
    TRY(begin_entry(z, w.path, &w.st));
    return put_whole(z, STR(""));
}

/* --- data --- */

static fallible end_file(struct zip_out *z)
{
    own_close(take_fd(&z->fd));
    z->state = ZIP_OUT_NEXT;
    zip_out_put_after(z);
    zip_out_put_central(z);
    return NULL;
}

/* 0: the file's end, which may have come nearer while it was read. */
static fallible read_file(struct zip_out *z, void *p, size_t size, size_t *ret_len)
{
    struct zip_out_entry *e = &z->entry;
    ssize_t n = 0;

    if (z->left) {
        do
            n = read(z->fd, p, size < z->left ? size : (size_t)z->left);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            return err_sys("read '" STR_FMT "'", STR_ARG(buf_str(&e->name)));
    }
    z->left = n ? z->left - (uint64_t)n : 0;
    e->crc = zip_crc(e->crc, p, (size_t)n, z->fold);
    e->size_bytes += (uint64_t)n;
    *ret_len = (size_t)n;
    return NULL;
}

static fallible next_stored(struct zip_out *z, char *p, size_t size, size_t *ret_len)
{
    TRY(read_file(z, p, size < (1u << 30) ? size : (1u << 30), ret_len));
    z->entry.packed_bytes += *ret_len;
    return *ret_len ? NULL : end_file(z);
}

/* --- the index --- */

static fallible spill_index(struct zip_out *z)
{
    const char *dir = z->config.temp_dir ? z->config.temp_dir : "/tmp";

    if (z->index_fd < 0)
        z->index_fd = open(dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (z->index_fd < 0)
        return err_sys("a file in '%s' for the archive's index", dir);
    TRY_WRAP(fd_write_all(z->index_fd, buf_str(&z->index)), "the archive's index in '%s'", dir);
    z->index_bytes += z->index.len;
    buf_reset(&z->index);
    return NULL;
}

static fallible next_index(struct zip_out *z, char *p, size_t size, size_t *ret_len)
{
    *ret_len = 0;
    if (z->index_at < z->index_bytes) {
        uint64_t left = z->index_bytes - z->index_at;
        ssize_t n = pread(z->index_fd, p, left < size ? (size_t)left : size, (off_t)z->index_at);
        if (n <= 0)
            return n ? err_sys("read the archive's index")
                     : err_new(ERR_IO, "the archive's index was cut");
        z->index_at += (uint64_t)n;
        *ret_len = (size_t)n;
        return NULL;
    }
    if (z->index.len) {
        *ret_len = z->index.len < size ? z->index.len : size;
        memcpy(p, z->index.p, *ret_len);
        buf_consume(&z->index, *ret_len);
        return NULL;
    }
    z->state = ZIP_OUT_END;
    return NULL;
}

/* --- pulling --- */

static fallible next_bytes(struct zip_out *z, char *p, size_t size, size_t *ret_len)
{
    *ret_len = 0;
    switch (z->state) {
    case ZIP_OUT_NEXT:
        if (z->index.len > INDEX_IN_MEMORY)
            TRY(spill_index(z));
        return put_next(z);
    case ZIP_OUT_DATA:
        TRY(next_stored(z, p, size, ret_len));
        z->made += *ret_len;
        return NULL;
    case ZIP_OUT_INDEX:
        TRY(next_index(z, p, size, ret_len));
        z->made += *ret_len;
        return NULL;
    case ZIP_OUT_END:
        zip_out_put_end(z);
        z->state = ZIP_OUT_DONE;
        return NULL;
    case ZIP_OUT_DONE:
        return NULL;
    }
    return NULL;
}

fallible zip_out_next(struct zip_out *z, void *p, size_t size, size_t *ret_len)
{
    size_t len = 0;

    while (len < size) {
        size_t n = z->head.len - z->head_at;
        if (n) {
            n = n < size - len ? n : size - len;
            memcpy((char *)p + len, z->head.p + z->head_at, n);
            z->head_at += n;
            len += n;
            continue;
        }
        buf_reset(&z->head);
        z->head_at = 0;
        if (z->state == ZIP_OUT_DONE)
            break;
        TRY(next_bytes(z, (char *)p + len, size - len, &n));
        TRY(buf_check(&z->head));
        TRY(buf_check(&z->index));
        len += n;
    }
    *ret_len = len;
    return NULL;
}

fallible zip_out_tree(int dir, const struct zip_out_config *config, struct zip_out **ret_out)
{
    own_fd fd = dir;
    own(zip_out) z = out_new(config);
    struct stat st;

    if (!z)
        return err_no_memory();
    if (z->config.exact && !z->config.no_top && fstat(fd, &st) == 0) {
        TRY(begin_entry(z, STR("."), &st));
        TRY(put_whole(z, STR("")));
    }
    TRY(zip_walk_new(take_fd(&fd), &z->walk));
    *ret_out = take(&z);
    return NULL;
}

fallible zip_out_file(int fd, struct str name, const struct zip_out_config *config,
                      struct zip_out **ret_out)
{
    own_fd file = fd;
    own(zip_out) z = out_new(config);
    struct stat st;

    if (fstat(file, &st) < 0)
        return err_sys("stat '" STR_FMT "'", STR_ARG(name));
    if (!S_ISREG(st.st_mode))
        return err_new(ERR_INVALID, "'" STR_FMT "' is not a regular file", STR_ARG(name));
    if (!z)
        return err_no_memory();
    TRY(put_file(z, take_fd(&file), name));
    *ret_out = take(&z);
    return NULL;
}
