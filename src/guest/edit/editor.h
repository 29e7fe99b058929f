// SPDX-License-Identifier: Apache-2.0
/* editor.h — view, create, str_replace, insert and undo_edit, in the words of OHEditor 0.3.2.
 *
 * A file keeps its encoding, line ends, mode and owner. All that could fail is done before the file
 * is replaced, which is the last step: it holds the old text or the new. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "guest/edit/edit.h"

#define EDITOR_MAX_FILE_BYTES (10u << 20)
#define EDITOR_MAX_CHARS      16000 /* shown at once, in code points */

struct editor_undo {
    int fd;                              /* a private directory for the undo stacks; -1: none yet */
    void (*open)(struct editor_undo *u); /* makes it; fd stays -1, with errno, when that fails */
};

/* Everything is borrowed. */
struct editor {
    struct edit_space space;
    struct editor_undo *undo;
    struct str workdir; /* for "Maybe you meant …?"; empty: no such hint */
    /* Turns .pdf, .docx and the like into Markdown; NULL: viewing them says it cannot be done. */
    fallible (*to_markdown)(const struct editor *ed, struct str path, struct arena *a,
                            struct str *ret_text);
};

/* .p is NULL for what was null or not given. */
struct editor_args {
    struct str command, path;
    struct str file_text, old_str, new_str;
    const struct json *insert_line; /* as it came: an integer, or a string that holds one */
    const struct json *view_range;
    bool lint; /* leaves room for findings: ret_result->lint_at */
};

/* The error is for want of memory only; all else is a result. */
fallible editor_run(const struct editor *ed, const struct editor_args *args, struct arena *a,
                    struct edit_result *ret_result);
