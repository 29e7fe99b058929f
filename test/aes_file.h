// SPDX-License-Identifier: Apache-2.0
/* aes_file.h — read, write and edit through /execute_action, written as rows. The observation must
 * be, to the byte, what the row makes. {} in a text is the path of the file. */
#pragma once

#include "test/aes.h"

struct file_step {
    const char *row;  /* for messages */
    const char *does; /* "read", "write", "view" (a read through the editor), or an edit command */
    const char *name; /* a file of the workspace */
    const char *path; /* instead: as it is given */
    const char *put;  /* the file's content before */
    const char *text; /* content of a write, file_text of create */
    const char *old_str, *new_str;
    const char *line;   /* insert_line, JSON */
    const char *range;  /* view_range, JSON */
    const char *window; /* start and end of read and write: "1,2" */
    const char *want;   /* the content, or "~a part of it" */
    const char *diff;   /* of an edit; NULL: none */
    const char *seen;   /* extras.path, when it is not the one given */
    const char *after;  /* the file's content then */
    bool error;         /* an error observation */
};

/* content of the answer */
struct str aes_file(struct aes *a, const struct file_step *step);
void aes_file_rows(struct aes *a, const struct file_step *steps, size_t count);
