// SPDX-License-Identifier: Apache-2.0
/* log.c — how the write-ahead log comes to be on disk: a file system of SQLite's whose logs sync
 * what was written and nothing else, where that is enough.
 *
 * ext4 without a journal writes a file's inode at each fdatasync, for its time of change alone: one
 * more write, and one more wait, before a row is acknowledged. What replaces bytes that are on disk
 * needs none of it: their pages are written, and then the disk's own cache, by a sync of a
 * directory that nobody changes. Everywhere else, and of what grows, it is SQLite's own sync. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/store/inner.h"

#define PAGE    4096
#define PARENTS 64
#define WRITE_AND_WAIT                                                                             \
    (SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER)

struct log_file {
    sqlite3_file base;
    struct store_vfs *vfs;
    const char *path; /* SQLite's, as long as the file is open */
    int fd, top;      /* of store_log_place() */
    bool tried;
    sqlite3_int64 kept;     /* so many bytes have had their places since a sync of all */
    sqlite3_int64 from, to; /* written since the last sync */
};

static sqlite3_file *real_of(sqlite3_file *f)
{
    return (sqlite3_file *)((struct log_file *)f + 1);
}

/* --- where it is --- */

static bool has_no_journal(const struct stat *st)
{
    char path[128], name[512] = "";
    own_done(buf) text;

    buf_init(&text, 256);
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(st->st_dev), minor(st->st_dev));
    ssize_t n = readlink(path, name, sizeof name - 1);
    const char *last = n > 0 ? strrchr(name, '/') : NULL;
    if (!last || strlen(last) > 64)
        return false;
    snprintf(path, sizeof path, "/sys/fs/ext4%s/journal_task", last);
    own(err) e = fd_read_file(path, &text);
    return !e && str_eq(str_trim(buf_str(&text)), STR("<none>"));
}

/* The highest directory of the same file system that we may read: the root of a mount, mostly. What
 * lies near the log would have its inode in the same block. */
static int open_top(const char *path, dev_t dev)
{
    char dir[4096];
    struct stat st;
    const char *slash = strrchr(path, '/');
    int n = slash ? snprintf(dir, sizeof dir, "%.*s", (int)(slash - path) + 1, path) : -1;
    own_fd at = n > 0 && n < (int)sizeof dir ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    own_fd top = -1;

    for (int i = 0; i < PARENTS && at >= 0 && fstat(at, &st) == 0 && st.st_dev == dev; i++) {
        own_fd found = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (found >= 0) {
            own_close_p(&top);
            top = take_fd(&found);
        }
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(take_fd(&at));
        at = up;
    }
    return take_fd(&top);
}

bool store_log_place(const char *path, int *ret_fd, int *ret_top)
{
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct statfs fs;
    struct stat st;

    if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != EXT4_SUPER_MAGIC || fstat(fd, &st) < 0 ||
        !has_no_journal(&st))
        return false;
    own_fd top = open_top(path, st.st_dev);
    if (top < 0)
        return false;
    *ret_fd = take_fd(&fd);
    *ret_top = take_fd(&top);
    return true;
}

/* --- the sync --- */

/* Somebody else may have cut it short meanwhile: then what we wrote made it grow. */
static bool log_replaces(const struct log_file *l)
{
    struct stat st;

    return l->fd >= 0 && l->to && l->to <= l->kept && !l->vfs->whole && fstat(l->fd, &st) == 0 &&
           st.st_size >= l->kept;
}

static int sync_all(struct log_file *l, int flags)
{
    sqlite3_file *real = real_of(&l->base);
    struct stat st;

    int rc = real->pMethods->xSync(real, flags);

    l->kept = 0;
    if (rc != SQLITE_OK)
        return rc;
    if (!l->tried)
        store_log_place(l->path, &l->fd, &l->top);
    l->tried = true;
    if (l->fd >= 0 && fstat(l->fd, &st) == 0)
        l->kept = st.st_size;
    l->from = l->to = 0;
    return SQLITE_OK;
}

static int sync_written(struct log_file *l)
{
    off_t from = l->from / PAGE * PAGE, len = l->to - from;

    if (sync_file_range(l->fd, from, len, WRITE_AND_WAIT) < 0 || fdatasync(l->top) < 0)
        return SQLITE_IOERR_FSYNC;
    l->vfs->ranges++;
    l->from = l->to = 0;
    return SQLITE_OK;
}

static int log_sync(sqlite3_file *f, int flags)
{
    struct log_file *l = (struct log_file *)f;
    uint64_t begun = clock_mono_ns(l->vfs->clock);
    int rc = log_replaces(l) ? sync_written(l) : sync_all(l, flags);

    l->vfs->sync_ns += clock_mono_ns(l->vfs->clock) - begun;
    return rc;
}

static int log_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    struct log_file *l = (struct log_file *)f;
    sqlite3_file *real = real_of(f);

    l->from = !l->to || at < l->from ? at : l->from;
    l->to = at + n > l->to ? at + n : l->to;
    return real->pMethods->xWrite(real, p, n, at);
}

static int log_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    sqlite3_file *real = real_of(f);

    ((struct log_file *)f)->kept = 0; /* until all is synced again */
    return real->pMethods->xTruncate(real, size);
}

/* --- the rest is SQLite's --- */

static int log_close(sqlite3_file *f)
{
    struct log_file *l = (struct log_file *)f;
    sqlite3_file *real = real_of(f);

    own_close_p(&l->fd);
    own_close_p(&l->top);
    return real->pMethods->xClose(real);
}

static int log_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}

static int log_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), size);
}

static int log_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int log_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int log_reserved(sqlite3_file *f, int *out)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}

static int log_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int log_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int log_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read,
    .xWrite = log_write,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_size,
    .xLock = log_lock,
    .xUnlock = log_unlock,
    .xCheckReservedLock = log_reserved,
    .xFileControl = log_control,
    .xSectorSize = log_sector,
    .xDeviceCharacteristics = log_traits,
};

/* Other files than logs are opened as they always are, in their place. */
static int vfs_open(sqlite3_vfs *base, sqlite3_filename name, sqlite3_file *f, int flags, int *out)
{
    struct store_vfs *v = container_of(base, struct store_vfs, base);

    if (!(flags & SQLITE_OPEN_WAL))
        return v->real->xOpen(v->real, name, f, flags, out);
    struct log_file *l = (struct log_file *)f;
    *l = (struct log_file){.vfs = v, .path = name, .fd = -1, .top = -1};
    int rc = v->real->xOpen(v->real, name, real_of(f), flags, out);
    l->base.pMethods = rc == SQLITE_OK ? &methods : NULL;
    return rc;
}

bool store_vfs_open(struct store_vfs *v)
{
    v->real = sqlite3_vfs_find(NULL);
    if (!v->real)
        return false;
    snprintf(v->name, sizeof v->name, "croft-%p", (void *)v); /* each store has its own */
    v->base = *v->real;
    v->base.pNext = NULL;
    v->base.zName = v->name;
    v->base.xOpen = vfs_open;
    v->base.szOsFile += (int)sizeof(struct log_file);
    return sqlite3_vfs_register(&v->base, 0) == SQLITE_OK;
}

void store_vfs_close(struct store_vfs *v)
{
    if (v->real)
        sqlite3_vfs_unregister(&v->base);
    v->real = NULL;
}
