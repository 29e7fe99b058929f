// SPDX-License-Identifier: Apache-2.0
/* space.h — paths and files within reach of the file commands.
 *
 * With a boundary every path is opened beneath its root and whatever leads out fails with EXDEV,
 * which space_is_outside() recognises. A path that holds NUL fails with ERR_INVALID and no errno.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "guest/edit/edit.h"

/* As pathlib prints it: no doubled or trailing '/', no "."; ".." stays; "" is ".". */
struct str space_normal(struct arena *a, struct str path);
/* base/path, or path alone when it is absolute; normal. */
struct str space_join(struct arena *a, struct str base, struct str path);
struct str space_parent(struct str path); /* os.path.dirname of a normal path */
struct str space_suffix(struct str path); /* ".png", or "" */

/* O_CLOEXEC, O_NOCTTY and O_NONBLOCK are added, so neither a FIFO nor a terminal holds us up. */
fallible space_open(const struct edit_space *s, struct str path, int flags, int *ret_fd);
fallible space_stat(const struct edit_space *s, struct str path, struct stat *ret_st);
bool space_is_outside(const struct err *e);

/* The whole of a regular file: a directory is EISDIR, anything else EINVAL, more than the limit of
 * the buffer ERR_TOO_LARGE. */
fallible space_load(const struct edit_space *s, struct str path, struct buf *into,
                    struct stat *ret_st);

struct space_save {
    struct str path, data;
    const struct stat
        *old;            /* as loaded, ESTALE if another file is there by now; NULL: a new file */
    struct str old_data; /* put back if data can only be written in place and that fails */
    mode_t mode;         /* of a new file */
};
/* Writes old or new content, never a mixture. An old file keeps mode, owner and group; links are
 * followed, not replaced.
 *
 * *ret_owner_err, the caller's to free, is set if a new file could not be given its owner and mode.
 * ret_owner_err may be NULL. */
fallible space_save(const struct edit_space *s, const struct space_save *save,
                    struct err **ret_owner_err);
/* Makes the directories missing above path, owned by the space's user. */
fallible space_make_parents(const struct edit_space *s, struct str path, struct str *ret_failed);
