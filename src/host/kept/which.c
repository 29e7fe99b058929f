// SPDX-License-Identifier: Apache-2.0
/* which.c — which directory a layer lies over. Paths change hands: what a sandbox did to one
 * directory must not be done to another that has its name now.
 *
 * A directory is its inode number and the moment it was made. The device counts only where a file
 * system does not know that moment: its number may be another one after a restart. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/kept/kept.h"

#define WHICH 128

static void name_of(unsigned n, char out[16])
{
    snprintf(out, 16, "m%ui", n);
}

static fallible describe(int dir, char out[WHICH])
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

fallible kept_note_which(int box, unsigned n, int source)
{
    char name[16], text[WHICH];

    name_of(n, name);
    TRY(describe(source, text));
    if (symlinkat(text, box, name) < 0 && errno != EEXIST)
        return err_sys("note the directory");
    return NULL;
}

fallible kept_check_which(int box, unsigned n, int source)
{
    char name[16], now[WHICH], was[WHICH + 1];

    name_of(n, name);
    ssize_t len = readlinkat(box, name, was, WHICH);
    if (len < 0)
        return errno == ENOENT ? NULL : err_sys("read which directory it was");
    was[len] = '\0';
    TRY(describe(source, now));
    if (strcmp(was, now) == 0)
        return NULL;
    return err_new(ERR_CONFLICT, "another directory has its name now: put the one the sandbox "
                                 "worked on back in its place");
}

void kept_forget_which(int box, unsigned n)
{
    char name[16];

    name_of(n, name);
    unlinkat(box, name, 0); /* not there: not noted */
}
