// SPDX-License-Identifier: Apache-2.0
/* history.c — the undo stack of the editor. It is found by listing files, so no index can disagree
 * with them. */
#include "guest/edit/history.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/own.h"

#define NAME_SIZE (2 * SHA256_LEN + 1)

struct numbers {
    uint64_t lowest, highest;
    size_t count;
};

static void dir_name(struct str path, char out[NAME_SIZE])
{
    uint8_t hash[SHA256_LEN];

    sha256(path, hash);
    hash_hex(hash, sizeof hash, out);
}

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}
#define own_dirp __attribute__((cleanup(closedir_p))) DIR *

static fallible history_list(int dir, DIR **ret_list)
{
    own_fd fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d)
        return err_sys("list the edit history");
    take_fd(&fd);
    *ret_list = d;
    return NULL;
}

static fallible find_numbers(int dir, struct numbers *ret_numbers)
{
    struct numbers n = {UINT64_MAX, 0, 0};
    own_dirp d = NULL;
    uint64_t value;

    TRY(history_list(dir, &d));
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!str_to_u64(str_of(e->d_name), &value))
            continue;
        n.lowest = value < n.lowest ? value : n.lowest;
        n.highest = value > n.highest ? value : n.highest;
        n.count++;
    }
    *ret_numbers = n;
    return NULL;
}

static fallible open_path(int dir, struct str path, int *ret_fd)
{
    char name[NAME_SIZE];

    dir_name(path, name);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return err_sys("open the edit history");
    *ret_fd = fd;
    return NULL;
}

static void remove_path(int dir, const char *name)
{
    own_fd fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    own_dirp d = NULL;

    if (fd < 0)
        return;
    struct err *e = history_list(fd, &d);
    for (struct dirent *f; d && (f = readdir(d));)
        unlinkat(fd, f->d_name, 0); /* fails for "." and "..", which is as well */
    err_free(e);
    unlinkat(dir, name, AT_REMOVEDIR);
}

/* Forgets the path that was not edited for longest, if there are too many of them. */
static fallible forget_oldest(int dir)
{
    char oldest[NAME_SIZE] = "";
    struct timespec when = {0, 0};
    size_t count = 0;
    own_dirp d = NULL;
    struct stat st;

    TRY(history_list(dir, &d));
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strlen(e->d_name) != NAME_SIZE - 1 || fstatat(dir, e->d_name, &st, 0) < 0)
            continue;
        bool older = st.st_mtim.tv_sec < when.tv_sec ||
                     (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec < when.tv_nsec);
        if (count++ == 0 || older) {
            when = st.st_mtim;
            memcpy(oldest, e->d_name, NAME_SIZE);
        }
    }
    if (count > HISTORY_PATHS)
        remove_path(dir, oldest);
    return NULL;
}

static void number_name(uint64_t number, char out[24])
{
    snprintf(out, 24, "%020" PRIu64, number);
}

static fallible write_entry(int fd, uint64_t number, struct str data)
{
    char name[24];

    number_name(number, name);
    own_fd file = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return err_sys("add to the edit history");
    struct err *e = fd_write_all(file, data);
    if (e)
        unlinkat(fd, name, 0);
    return e;
}

fallible history_push(int dir, struct str path, struct str data)
{
    char name[NAME_SIZE];
    own_fd fd = -1;
    struct numbers n;

    dir_name(path, name);
    bool is_new = mkdirat(dir, name, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return err_sys("add to the edit history");
    TRY(open_path(dir, path, &fd));
    TRY(find_numbers(fd, &n));
    TRY(write_entry(fd, n.count ? n.highest + 1 : 0, data));
    if (n.count >= HISTORY_PER_PATH) {
        number_name(n.lowest, name);
        unlinkat(fd, name, 0); /* one too many until the next push is no harm */
    }
    if (is_new)
        err_free(forget_oldest(dir));
    return NULL;
}

fallible history_last(int dir, struct str path, struct buf *into, bool *ret_found)
{
    char name[24];
    own_fd fd = -1;
    struct numbers n = {0};

    *ret_found = false;
    struct err *e = open_path(dir, path, &fd);
    if (e && err_errno(e) == ENOENT) {
        err_free(e);
        return NULL;
    }
    TRY(e);
    TRY(find_numbers(fd, &n));
    if (n.count == 0)
        return NULL;
    number_name(n.highest, name);
    own_fd file = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (file < 0)
        return err_sys("read the edit history");
    TRY(fd_read_all(file, into));
    *ret_found = true;
    return NULL;
}

fallible history_drop(int dir, struct str path)
{
    char name[24];
    own_fd fd = -1;
    struct numbers n;

    TRY(open_path(dir, path, &fd));
    TRY(find_numbers(fd, &n));
    if (n.count == 0)
        return NULL;
    number_name(n.highest, name);
    if (unlinkat(fd, name, 0) < 0)
        return err_sys("drop from the edit history");
    return NULL;
}
