// SPDX-License-Identifier: Apache-2.0
/* copy.c — the bytes of one file into another; holes stay holes, or a guest's empty terabyte
 * would fill the disk. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "host/tree/tree.h"

#define PIECE (256u << 10)

/* For file systems that do not copy in the kernel. */
static fallible copy_by_hand(int from, int to, off_t end)
{
    own_free char *piece = mem_try(PIECE);
    off_t at = lseek(from, 0, SEEK_CUR);

    if (!piece)
        return err_no_memory();
    while (at < end) {
        size_t want = end - at < (off_t)PIECE ? (size_t)(end - at) : PIECE;
        ssize_t n = read(from, piece, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys("read");
        if (n == 0)
            return NULL; /* cut short meanwhile */
        TRY(fd_write_all(to, str_n(piece, (size_t)n)));
        at += n;
    }
    return NULL;
}

/* Both descriptors stand at the start of the bytes to copy. */
static fallible copy_until(int from, int to, off_t end)
{
    for (off_t at = lseek(from, 0, SEEK_CUR); at < end;) {
        ssize_t n = copy_file_range(from, NULL, to, NULL, (size_t)(end - at), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS))
            return copy_by_hand(from, to, end);
        if (n < 0)
            return err_sys("copy");
        if (n == 0)
            return NULL;
        at += n;
    }
    return NULL;
}

fallible tree_copy_bytes(int from, int to)
{
    struct stat st;

    if (ioctl(to, FICLONE, from) == 0)
        return NULL;
    if (fstat(from, &st) < 0)
        return err_sys("look at a file");
    for (off_t at = 0; at < st.st_size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
        if (hole < 0) { /* holes are not told apart here */
            data = at;
            hole = st.st_size;
        }
        if (lseek(from, data, SEEK_SET) < 0 || lseek(to, data, SEEK_SET) < 0)
            return err_sys("seek");
        TRY(copy_until(from, to, hole));
        at = hole;
    }
    if (ftruncate(to, st.st_size) < 0)
        return err_sys("set the size");
    return NULL;
}

fallible tree_chown_like(int dir, const char *name, const struct stat *like)
{
    if (fchownat(dir, name, like->st_uid, like->st_gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0 ||
        (geteuid() != 0 && (errno == EPERM || errno == EINVAL)))
        return NULL;
    return err_sys("set the owner");
}
