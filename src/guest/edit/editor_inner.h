// SPDX-License-Identifier: Apache-2.0
/* editor_inner.h — what the files of the editor share.
 *
 * Steps give true when they are done and false when the result already holds the answer. */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"
#include "guest/edit/answer.h"
#include "guest/edit/editor.h"
#include "guest/edit/text.h"

/* One command on its way. */
struct job {
    const struct editor *ed;
    const struct editor_args *args;
    struct arena *a;
    struct edit_result *r;
    struct str path; /* normal; what every text names. extras.path is as given */
    struct stat st;  /* of the file as it was validated, then as it was loaded */
    struct text old;
};

/* "ERROR:\n" and the form. */
#define job_fail(j, form, ...) answer((j)->a, (j)->r, EDIT_ERROR, "ERROR:\n" form, ##__VA_ARGS__)
void job_fail_os(struct job *j, const struct err *e, const char *doing); /* "read", "write to" */
struct str job_number(struct job *j, long long n);
struct str job_repr(struct job *j, const struct json *v);

/* Size and kind of an existing file. */
bool job_validate(struct job *j);
bool job_load(struct job *j);
/* Saves text in the encoding of the old file (a new one is UTF-8), with `keep` on the undo stack if
 * it is not NULL. The answer must be ready: it stays if this succeeds. */
bool job_save(struct job *j, struct str text, const struct str *keep, bool is_new);
/* Old and new as \n texts. */
bool job_diff(struct job *j, struct str old_text, struct str new_text);

/* "Here's the result of running `cat -n` on {what}:\n…\n" */
void view_add(struct buf *b, struct str content, struct str what, size_t first_line);
void view_run(struct job *j);
void change_replace(struct job *j);
void change_insert(struct job *j);
void directory_run(struct job *j);
