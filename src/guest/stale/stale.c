// SPDX-License-Identifier: Apache-2.0
/* stale.c — see stale.h. The places are everybody's: nothing is followed, nothing is entered
 * deeper than we make it, and no amount of it delays a start for long. */
#include "guest/stale/stale.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/rng.h"
#include "base/str.h"

#define AGE_S      3600  /* one that is being made is not held yet */
#define ENTRIES    16384 /* looked at or removed per sweep */
#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FILE_FLAGS (O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC)

struct sweep {
    uint64_t now_s;
    unsigned left; /* of ENTRIES */
};

static bool take_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void stale_hold(int fd)
{
    (void)take_lock(fd);
}

/* Calls visit for every entry until it says false; false then, or when there are too many. */
static bool stale_each(struct sweep *s, int dir,
                       bool (*visit)(struct sweep *s, int dir, const char *name))
{
    int fd = openat(dir, ".", DIR_FLAGS, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    bool all = d;

    if (!d)
        own_close(fd);
    while (all && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        all = s->left && visit(s, dir, e->d_name);
        s->left -= s->left > 0;
    }
    if (d)
        closedir(d);
    return all;
}

static bool is_free(struct sweep *s, int dir, const char *name)
{
    struct stat st;

    (void)s;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !(S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)))
        return true; /* a socket, or undo's directory of a path: never marked */
    own_fd fd = openat(dir, name, FILE_FLAGS, 0);
    return fd >= 0 && take_lock(fd);
}

static bool remove_file(struct sweep *s, int dir, const char *name)
{
    (void)s;
    return unlinkat(dir, name, 0) == 0;
}

static bool remove_entry(struct sweep *s, int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0)
        return true;
    own_fd fd = openat(dir, name, DIR_FLAGS, 0);
    return fd >= 0 && stale_each(s, fd, remove_file) && unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

static bool is_ours(const struct sweep *s, int fd, unsigned age_s)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (st.st_uid == geteuid() || geteuid() == 0) &&
           (uint64_t)st.st_mtim.tv_sec + age_s <= s->now_s;
}

static bool stale_visit(struct sweep *s, int dir, const char *name)
{
    static const struct {
        const char *prefix;
        unsigned age_s;
        size_t len; /* of the whole name; 0: any */
    } kinds[] = {{STALE_UNDO, AGE_S, 0},
                 {STALE_SHELL, AGE_S, 0},
                 {STALE_KERNEL, AGE_S, 0},
                 {STALE_UPLOAD, 0, sizeof STALE_UPLOAD - 1 + RNG_HEX_LEN}};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)) != 0 ||
            (kinds[i].len && strlen(name) != kinds[i].len))
            continue;
        own_fd fd = openat(dir, name, DIR_FLAGS, 0);
        if (fd >= 0 && is_ours(s, fd, kinds[i].age_s) && take_lock(fd) &&
            stale_each(s, fd, is_free) && stale_each(s, fd, remove_entry))
            unlinkat(dir, name, AT_REMOVEDIR);
    }
    return true;
}

void stale_sweep(const char *place, uint64_t now_s)
{
    struct sweep s = {now_s, ENTRIES};
    own_fd dir = open(place, DIR_FLAGS);

    if (dir >= 0)
        (void)stale_each(&s, dir, stale_visit);
}
