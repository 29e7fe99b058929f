// SPDX-License-Identifier: Apache-2.0
/* in_unpack.c — files are unpacked into staging under the numbers of their entries, checked, and
 * get their names only when all of them are whole and nothing that is there already is in the way.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "guest/zip/crc.h"
#include "guest/zip/format.h"
#include "guest/zip/in.h"

#define STEP_BYTES (1u << 20)
#define STEP_FILES 64

static const char *number_name(size_t i, char text[24])
{
    snprintf(text, 24, "%zu", i);
    return text;
}

static bool is_dir(const struct zip_in_entry *e)
{
    return e->hash & 1;
}

void zip_in_free(struct zip_in *z)
{
    char name[24];

    if (!z)
        return;
    size_t left = z->phase == ZIP_IN_UNPACK ? z->at + 1
                  : z->phase < ZIP_IN_PLACE ? z->entry_count
                                            : z->entry_count - z->at;
    for (size_t i = 0; i < left && i < z->entry_count; i++)
        if (!is_dir(&z->entries[i]))
            unlinkat(z->config.staging, number_name(i, name), 0); /* nothing else to be done */
    own_close(z->out);
    own_close(z->parent);
    free(z->inflate);
    buf_done(&z->path);
    buf_done(&z->parent_path);
    free(z->window);
    free(z->in_buf);
    free(z->entries);
    free(z);
}

/* --- unpacking --- */

/* Both records must name the same file: what a scanner saw is what is written. */
static fallible find_data(struct zip_in *z, const struct zip_in_entry *e, uint64_t next)
{
    const char *p = "";
    own_done(buf) name;

    buf_init(&name, ZIP_MAX16);
    buf_add(&name, z->now.name);
    TRY(buf_check(&name));
    TRY(zip_in_window(z, e->offset, ZIP_LOCAL_SIZE, &p));
    if (zip_get32(p) != (uint32_t)ZIP_SIG_LOCAL)
        return err_new(ERR_CORRUPT, "its data cannot be found");
    size_t name_len = zip_get16(p + 26), extra_len = zip_get16(p + 28);
    uint16_t method = zip_get16(p + 8);
    TRY(zip_in_window(z, e->offset + ZIP_LOCAL_SIZE, name_len, &p));
    if (!str_eq(str_n(p, name_len), buf_str(&name)) || method != z->now.method)
        return err_new(ERR_CORRUPT, "its two records differ");
    z->data_at = e->offset + ZIP_LOCAL_SIZE + name_len + extra_len;
    z->data_end = z->data_at + z->now.packed_bytes;
    if (z->data_at > next || z->now.packed_bytes > next - z->data_at)
        return err_new(ERR_CORRUPT, "its data runs into the next entry");
    return NULL;
}

static fallible begin_inflate(struct zip_in *z)
{
    z->ended = false;
    z->in = STR("");
    if (z->now.method == ZIP_STORED)
        return NULL;
    if (!z->inflate)
        z->inflate = mem_try(sizeof *z->inflate);
    if (!z->inflate)
        return err_no_memory();
    inflate_init(z->inflate);
    return NULL;
}

static mode_t mode_of(const struct zip_in_record *r)
{
    mode_t mode = r->attributes >> 16;

    if (r->made_by != ZIP_MADE_BY_UNIX || !(mode & 0777) || (mode & S_IFMT & ~S_IFREG))
        return 0644;
    return (mode & 0777) | 0600;
}

static fallible set_exact(int fd, const struct zip_in_record *r)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = r->mtime_s}};

    if (fchmod(fd, r->attributes >> 16 & 0777) < 0 ||
        (r->mtime_s && syscall(SYS_utimensat, fd, NULL, times, 0) < 0)) /* libc's is 400 bytes */
        return err_sys("set permissions and time");
    return NULL;
}

/* The unpacked bytes are the link's text; symlinkat refuses one that is too long. */
static fallible make_link(struct zip_in *z)
{
    int dir = z->config.staging;
    char name[24];

    number_name(z->at, name);
    memset(z->in_buf, 0, ZIP_UNPACK_BUF);
    if (pread(z->out, z->in_buf, ZIP_UNPACK_BUF - 1, 0) < 0 || unlinkat(dir, name, 0) < 0 ||
        symlinkat(z->in_buf, dir, name) < 0 ||
        fchownat(dir, name, z->config.uid, z->config.gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("make the link");
    return NULL;
}

static fallible begin_file(struct zip_in *z, const struct zip_in_entry *e, uint64_t next)
{
    char name[24];

    TRY(find_data(z, e, next));
    TRY(begin_inflate(z));
    z->now.name = STR("");
    z->written = 0;
    z->crc = 0;
    z->out = openat(z->config.staging, number_name(z->at, name),
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_of(&z->now));
    if (z->out < 0)
        return err_sys("create");
    return place_own(z->out, (struct place_owner){z->config.uid, z->config.gid});
}

static fallible write_out(struct zip_in *z, const void *p, size_t n)
{
    if (n > z->now.size_bytes - z->written)
        return err_new(ERR_CORRUPT, "it is larger than the index says");
    z->crc = zip_crc(z->crc, p, n, z->fold);
    z->written += n;
    return fd_write_all(z->out, str_n(p, n));
}

/* 0: no more of the entry's data. */
static fallible read_data(struct zip_in *z, void *p, size_t *ret_len)
{
    uint64_t left = z->data_end - z->data_at;
    size_t want = left < ZIP_UNPACK_BUF ? (size_t)left : ZIP_UNPACK_BUF;
    ssize_t n;

    do
        n = want ? pread(z->fd, p, want, (off_t)z->data_at) : 0;
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys("read the archive");
    if (want && n == 0)
        return err_new(ERR_CORRUPT, "the archive is cut off");
    z->data_at += (uint64_t)n;
    *ret_len = (size_t)n;
    return NULL;
}

static fallible unpack_stored(struct zip_in *z)
{
    size_t n = 0;

    TRY(read_data(z, z->in_buf, &n));
    z->ended = n == 0;
    return write_out(z, z->in_buf, n);
}

static fallible unpack_deflated(struct zip_in *z)
{
    struct str out;

    if (!z->in.len) {
        size_t n = 0;
        TRY(read_data(z, z->in_buf, &n));
        z->in = str_n(z->in_buf, n);
    }
    bool last = z->data_at == z->data_end;
    enum inflated how = inflate_next(z->inflate, &z->in, last, &out);
    if (how == INFLATE_CORRUPT)
        return err_new(ERR_CORRUPT, "its data is damaged");
    z->ended = how == INFLATE_END;
    return write_out(z, out.p, out.len);
}

static fallible end_file(struct zip_in *z)
{
    if (z->written != z->now.size_bytes)
        return err_new(ERR_CORRUPT, "it is smaller than the index says");
    if (z->crc != z->now.crc)
        return err_new(ERR_CORRUPT, "its checksum is wrong");
    if (z->config.exact)
        TRY(zip_in_type(&z->now) == S_IFLNK ? make_link(z) : set_exact(z->out, &z->now));
    own_close(take_fd(&z->out));
    return NULL;
}

/* Up to *budget bytes of one entry; goes on to the next when it is whole. */
static fallible unpack_some(struct zip_in *z, int64_t *budget)
{
    const struct zip_in_entry *e = &z->entries[z->at];

    if (z->out < 0) {
        uint64_t next = z->at + 1 < z->entry_count ? e[1].offset : z->index_at;
        TRY(begin_file(z, e, next));
    }
    while (*budget > 0 && !z->ended) {
        uint64_t before = z->written;
        TRY(z->now.method == ZIP_STORED ? unpack_stored(z) : unpack_deflated(z));
        *budget -= (int64_t)(z->written - before) + 64;
    }
    if (!z->ended)
        return NULL;
    TRY(end_file(z));
    z->at++;
    return NULL;
}

static fallible unpack_step(struct zip_in *z)
{
    int64_t budget = STEP_BYTES;
    enum zip_in_name kind;

    for (; budget > 0 && z->at < z->entry_count; budget -= STEP_BYTES / STEP_FILES) {
        if (is_dir(&z->entries[z->at])) {
            z->at++;
            continue;
        }
        if (z->out < 0) {
            TRY(zip_in_read_record(z, z->entries[z->at].at, &z->now));
            TRY(zip_in_read_path(z, &z->now, &kind));
        }
        TRY_WRAP(unpack_some(z, &budget), "unpack '" STR_FMT "'", STR_ARG(buf_str(&z->path)));
    }
    if (z->at < z->entry_count)
        return NULL;
    z->phase = z->config.dir < 0 ? ZIP_IN_PLACE : ZIP_IN_CHECK; /* is there something already? */
    z->at = 0;
    return NULL;
}

/* --- giving names --- */

/* The entry's path, and its last name, terminated; what is said of it in z->now. */
static fallible read_place(struct zip_in *z, const struct zip_in_entry *e, struct str *ret_above,
                           const char **ret_name)
{
    enum zip_in_name kind;

    TRY(zip_in_read_record(z, e->at, &z->now));
    TRY(zip_in_read_path(z, &z->now, &kind));
    if (kind == ZIP_NAME_UNSAFE || (kind == ZIP_NAME_NOTHING && !is_dir(e)))
        return err_new(ERR_CORRUPT, "the archive changed while it was unpacked");
    if (!buf_cstr(&z->path))
        return err_no_memory();
    struct str path = buf_str(&z->path);
    size_t slash = path.len;
    while (slash && path.p[slash - 1] != '/')
        slash--;
    *ret_above = str_first(path, slash ? slash - 1 : 0);
    *ret_name = path.p + slash;
    return NULL;
}

static fallible note_parent(struct zip_in *z, struct str path)
{
    own_close(take_fd(&z->parent));
    buf_reset(&z->parent_path);
    buf_add(&z->parent_path, path);
    return buf_check(&z->parent_path);
}

/* Does all checks of place_entry without placing. */
static fallible check_entry(struct zip_in *z)
{
    const struct zip_in_entry *e = &z->entries[z->at];
    struct str above;
    const char *name;

    TRY(read_place(z, e, &above, &name));
    if (is_dir(e))
        above = buf_str(&z->path);
    if (!z->at || !str_eq(above, buf_str(&z->parent_path))) {
        TRY(note_parent(z, above));
        TRY(place_find(z->config.dir, above, &z->parent));
    }
    return is_dir(e) || z->parent < 0 ? NULL : place_may(z->parent, name);
}

static fallible open_parent(struct zip_in *z, struct str path)
{
    if (z->parent >= 0 && str_eq(path, buf_str(&z->parent_path)))
        return NULL;
    TRY(note_parent(z, path));
    return place_dirs(z->config.dir, path, (struct place_owner){z->config.uid, z->config.gid},
                      &z->parent);
}

static fallible place_entry(struct zip_in *z)
{
    size_t i = z->entry_count - 1 - z->at;
    bool dir = is_dir(&z->entries[i]);
    struct str above;
    const char *name;
    char number[24];

    TRY(read_place(z, &z->entries[i], &above, &name));
    TRY(open_parent(z, dir ? buf_str(&z->path) : above));
    if (!dir)
        return place_file(z->config.staging, number_name(i, number), z->parent, name);
    return z->config.exact ? set_exact(z->parent, &z->now) : NULL;
}

static fallible each_step(struct zip_in *z, fallible (*handle)(struct zip_in *z))
{
    for (int i = 0; i < STEP_FILES && z->at < z->entry_count; i++, z->at++)
        TRY_WRAP(handle(z), "'" STR_FMT "'", STR_ARG(buf_str(&z->path)));
    if (z->at < z->entry_count)
        return NULL;
    if (++z->phase == ZIP_IN_DONE)
        return NULL;
    z->at = 0;
    return note_parent(z, STR(""));
}

fallible zip_in_step(struct zip_in *z, bool *ret_done)
{
    if (z->phase == ZIP_IN_UNPACK)
        TRY(unpack_step(z));
    else if (z->phase != ZIP_IN_DONE)
        TRY(each_step(z, z->phase == ZIP_IN_CHECK ? check_entry : place_entry));
    *ret_done = z->phase == ZIP_IN_DONE;
    return NULL;
}

bool zip_in_placing(const struct zip_in *z)
{
    return z->phase == ZIP_IN_PLACE;
}

void zip_in_set_dir(struct zip_in *z, int dir)
{
    z->config.dir = dir;
}
