// SPDX-License-Identifier: Apache-2.0
/* edit.h — shared by the file commands: how far they reach, the owner of files they make, their
 * answers. Nothing here knows HTTP or JSON; a wire layer turns a result into an observation. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct edit_space {
    struct str
        root;    /* the workspace boundary, absolute and normal; empty: any path of the sandbox */
    int root_fd; /* that directory, held open; looked at only when root is set */
    struct str cwd; /* where relative paths of read and write start */
    uid_t uid;      /* the owner of new files and directories; EDIT_NO_OWNER leaves it */
    gid_t gid;
};
#define EDIT_NO_OWNER ((uid_t)-1)

enum edit_kind {
    EDIT_OK,
    EDIT_ERROR,     /* read, write: an error observation; editor: content starts with "ERROR:\n" */
    EDIT_EXCEPTION, /* the original answers HTTP 500 "Internal server error: {content}" */
};

/* Everything points into the arena of the call or into its arguments. */
struct edit_result {
    enum edit_kind kind;
    struct str content;
    struct str path; /* extras.path */
    struct str diff; /* editor only; "" when nothing changed */
    /* For lint_start, after str_replace and insert: both texts with \n, and where in content the
     * findings belong. 0: nothing to lint. */
    struct str old_text, new_text;
    size_t lint_at;
};
