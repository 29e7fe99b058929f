// SPDX-License-Identifier: Apache-2.0
/* notes.c — which changes of the directory are our own. Applying some changes must not make
 * conflicts of the others, nor of what the sandbox does next.
 *
 * A note is an inode number and the time of its change. A file that no other program changed has
 * both. Without a note there is a conflict too many, never one too few. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "host/changes/inner.h"

#define NOTES_MAX ((size_t)4 * CHANGES_MAX) /* then they begin anew */

static int by_all(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct note));
}

fallible notes_read(int fd, struct notes *ret)
{
    off_t end = fd > 0 ? lseek(fd, 0, SEEK_END) : 0;
    size_t size = end > 0 ? (size_t)end : 0, len = 0;

    *ret = (struct notes){0};
    size -= size % sizeof(struct note); /* one that death cut short */
    if (!size || size / sizeof(struct note) > NOTES_MAX)
        return NULL;
    own_free char *bytes = mem_try(size);
    if (!bytes)
        return err_no_memory();
    while (len < size) {
        ssize_t n = pread(fd, bytes + len, size - len, (off_t)len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? err_sys("read the notes of what was applied") : NULL;
        len += (size_t)n;
    }
    ret->count = size / sizeof(struct note);
    ret->at = (struct note *)(void *)bytes;
    bytes = NULL;
    qsort(ret->at, ret->count, sizeof *ret->at, by_all);
    return NULL;
}

void notes_done(struct notes *n)
{
    free(n->at);
    *n = (struct notes){0};
}

static struct note note_of(const struct stat *st)
{
    return st ? (struct note){st->st_ino, st->st_ctim.tv_sec, st->st_ctim.tv_nsec}
              : (struct note){0};
}

static bool notes_have_path(const struct notes *n, struct note key)
{
    return n->count && bsearch(&key, n->at, n->count, sizeof key, by_all);
}

bool notes_have(const struct notes *n, const struct stat *st)
{
    return notes_have_path(n, note_of(st));
}

bool notes_have_removed(const struct notes *n)
{
    return notes_have_path(n, note_of(NULL));
}

static struct note origin_note(struct str origin)
{
    static const uint64_t seed[2] = {0};

    return (struct note){map_hash(seed, origin.p, origin.len), -1, -1};
}

bool notes_have_origin(const struct notes *n, struct str origin)
{
    return notes_have_path(n, origin_note(origin));
}

void notes_add_origin(struct buf *to, struct str origin)
{
    struct note note = origin_note(origin);

    buf_add(to, str_n(&note, sizeof note));
}

void notes_add(struct buf *to, const struct stat *st)
{
    struct note note = note_of(st);

    buf_add(to, str_n(&note, sizeof note));
}

void notes_write(int fd, const struct buf *from)
{
    off_t end = fd > 0 ? lseek(fd, 0, SEEK_END) : -1;

    if (end < 0 || buf_failed(from))
        return;
    bool full = (size_t)end / sizeof(struct note) >= NOTES_MAX;
    off_t whole = full ? 0 : end - end % (off_t)sizeof(struct note); /* one may be cut short */
    if (whole != end && ftruncate(fd, whole) < 0)
        return;
    err_free(fd_write_all(fd, buf_str(from))); /* a conflict too many */
}
