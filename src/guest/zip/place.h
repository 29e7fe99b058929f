// SPDX-License-Identifier: Apache-2.0
/* place.h — finished files to their places: directories made on the way, owners set. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct place_owner {
    uid_t uid; /* -1: as it comes */
    gid_t gid;
};

fallible place_own(int fd, struct place_owner owner);
/* Makes every missing directory of path beneath dir, for owner, and opens the last one; "" is dir
 * itself. Links are followed as far as they stay beneath. */
fallible place_dirs(int dir, struct str path, struct place_owner owner, int *ret_fd);
/* Whether place_dirs would do it, as things are now; *ret_fd is -1 when the directory is missing
 * and nothing is in its way. */
fallible place_find(int dir, struct str path, int *ret_fd);
/* And place_file, for a name in a directory that is there. */
fallible place_may(int dir, const char *name);
/* Moves a file, replacing what has the name, but no directory. On another disk it is copied, and
 * then replaced all the same at once. */
fallible place_file(int from_dir, const char *from, int to_dir, const char *to);
