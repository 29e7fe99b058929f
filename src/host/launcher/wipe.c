// SPDX-License-Identifier: Apache-2.0
/* wipe.c — see wipe.h. Depth costs no stack and no descriptors: a directory that is not empty is
 * first moved up to where we work, so every one is handled at one level. */
#include "host/launcher/wipe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Empties one level: files go, directories that are not empty move beside it as ".wipe-N". */
static fallible empty_level(int parent, int dir, unsigned *count)
{
    int copy = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    struct err *e = NULL;

    if (!d) {
        own_close_p(&copy);
        return err_sys("list a directory");
    }
    for (struct dirent *at; !e && (at = readdir(d));) {
        char to[32];
        if (is_dots(at->d_name) || unlinkat(dir, at->d_name, 0) == 0 || errno == ENOENT)
            continue;
        if (unlinkat(dir, at->d_name, AT_REMOVEDIR) == 0)
            continue;
        snprintf(to, sizeof to, ".wipe-%d-%u", (int)getpid(), (*count)++);
        if (renameat(dir, at->d_name, parent, to) < 0)
            e = err_sys("move '%s' out of the way", at->d_name);
    }
    closedir(d);
    return e;
}

static fallible wipe_level(int parent, const char *name, unsigned *count)
{
    own_fd dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0 && errno == ENOENT)
        return NULL;
    if (dir < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
        dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open '%s'", name);
    fchmod(dir, 0700); /* so that an ordinary user can remove what is inside; root needs it not */
    TRY(empty_level(parent, dir, count));
    if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_sys("remove '%s'", name);
    return NULL;
}

fallible wipe(int parent, const char *name)
{
    unsigned made = 0, done = 0;

    TRY(wipe_level(parent, name, &made));
    for (; done < made; done++) {
        char moved[32];
        snprintf(moved, sizeof moved, ".wipe-%d-%u", (int)getpid(), done);
        TRY(wipe_level(parent, moved, &made));
    }
    return NULL;
}
