// SPDX-License-Identifier: Apache-2.0
/* which.c — which directory a layer lies over, and what was applied to it. Paths change hands: what
 * a sandbox did to one directory must not be done to another that has its name now.
 *
 * A directory is its inode number and the moment it was made. The device counts only where a file
 * system does not know that moment: its number may be another one after a restart. An overlay tells
 * the moment of the copy that it made of a directory, or of what it is a copy of: there the number
 * is all. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "host/overlay/overlay.h"

#define WHICH   128
#define BY_USER "user "

static void name_of(unsigned n, char kind, char out[16])
{
    snprintf(out, 16, "m%u%c", n, kind);
}

static fallible which_describe(int dir, char out[WHICH])
{
    struct statx x;

    if (statx(dir, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &x) < 0)
        return err_sys("look at the directory");
    if (x.stx_mask & STATX_BTIME)
        snprintf(out, WHICH, "%llu made %lld.%09u", (unsigned long long)x.stx_ino,
                 (long long)x.stx_btime.tv_sec, x.stx_btime.tv_nsec);
    else
        snprintf(out, WHICH, "%llu on %u:%u", (unsigned long long)x.stx_ino, x.stx_dev_major,
                 x.stx_dev_minor);
    return NULL;
}

fallible overlay_note_text(int box, unsigned n, const char *which)
{
    char name[16];

    name_of(n, 'i', name);
    if (symlinkat(which, box, name) < 0 && errno != EEXIST)
        return err_sys("note the directory");
    return NULL;
}

fallible overlay_note_which(int box, unsigned n, int source, bool user)
{
    char text[WHICH], note[WHICH + sizeof BY_USER];

    TRY(which_describe(source, text));
    snprintf(note, sizeof note, "%s%s", user ? BY_USER : "", text);
    return overlay_note_text(box, n, note);
}

/* .len 0: not noted */
static fallible read_which(int box, unsigned n, char text[WHICH + sizeof BY_USER], struct str *ret)
{
    char name[16];

    name_of(n, 'i', name);
    ssize_t len = readlinkat(box, name, text, WHICH + sizeof BY_USER);
    if (len < 0 && errno != ENOENT)
        return err_sys("read which directory it was");
    *ret = str_n(text, len < 0 ? 0 : (size_t)len);
    return NULL;
}

bool overlay_by_user(int box, unsigned n)
{
    char text[WHICH + sizeof BY_USER];
    struct str was = {0};

    err_free(read_which(box, n, text, &was)); /* as if there was none */
    return was.len ? str_starts(was, STR(BY_USER)) : geteuid() != 0;
}

static bool is_same(int source, struct str was, struct str now)
{
    struct statfs fs;
    struct str a = was, b = now, number[2];

    if (str_eq(was, now))
        return true;
    if (fstatfs(source, &fs) < 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC)
        return false;
    return str_cut(&a, ' ', &number[0]) && str_cut(&b, ' ', &number[1]) &&
           str_eq(number[0], number[1]);
}

fallible overlay_is_other(struct str was, int source, bool *ret_other)
{
    char now[WHICH];

    *ret_other = false;
    if (!was.len)
        return NULL;
    TRY(which_describe(source, now));
    if (str_starts(was, STR(BY_USER)))
        was = str_from(was, strlen(BY_USER));
    *ret_other = !is_same(source, was, str_of(now));
    return NULL;
}

fallible overlay_look_which(int box, unsigned n, int source, bool *ret_other)
{
    char text[WHICH + sizeof BY_USER];
    struct str was;

    TRY(read_which(box, n, text, &was));
    return overlay_is_other(was, source, ret_other);
}

fallible overlay_refuse_other(void)
{
    return err_new(ERR_CONFLICT, OVERLAY_OTHER ": put the one the sandbox worked on back in its "
                                               "place, or use --force to change this one");
}

void overlay_forget_which(int box, unsigned n)
{
    char name[16];

    name_of(n, 'i', name);
    unlinkat(box, name, 0); /* not there: not noted */
    name_of(n, 'a', name);
    unlinkat(box, name, 0);
}

/* The directory's time is when the sandbox was made: that stays. */
int overlay_open_notes(int box, unsigned n, bool create)
{
    int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;
    char name[16];

    name_of(n, 'a', name);
    int fd = openat(box, name, flags, 0);
    if (fd >= 0 || !create || fstat(box, &st) < 0)
        return fd;
    fd = openat(box, name, flags | O_CREAT, 0600);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st.st_mtim};
    if (fd >= 0)
        futimens(box, times); /* else it seems to be the last one */
    return fd;
}
