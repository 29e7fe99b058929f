// SPDX-License-Identifier: Apache-2.0
/* answer.h — the content of a result, written as in the contract: "File not found: {}". */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "guest/edit/edit.h"

/* Each {} of the form stands for the next struct str; any bytes may be in those. */
#define answer(a, r, kind, form, ...)                                                              \
    answer_form(a, r, kind, form, (const struct str[]){{NULL, 0}, ##__VA_ARGS__} + 1,              \
                sizeof((const struct str[]){{NULL, 0}, ##__VA_ARGS__}) / sizeof(struct str) - 1)
#define answer_add(b, form, ...)                                                                   \
    answer_add_form(b, form, (const struct str[]){{NULL, 0}, ##__VA_ARGS__} + 1,                   \
                    sizeof((const struct str[]){{NULL, 0}, ##__VA_ARGS__}) / sizeof(struct str) -  \
                        1)

void answer_form(struct arena *a, struct edit_result *r, enum edit_kind kind, const char *form,
                 const struct str *pieces, size_t count);
void answer_add_form(struct buf *b, const char *form, const struct str *pieces, size_t count);
void answer_buf(struct arena *a, struct edit_result *r, enum edit_kind kind, const struct buf *b);
/* EDIT_EXCEPTION with "[Errno 13] Permission denied: '/x'". */
void answer_oserror(struct arena *a, struct edit_result *r, const struct err *e, struct str path);
void answer_outside(struct arena *a, struct edit_result *r); /* of the workspace; names r->path */

/* A file the editor shows as Markdown: .docx .xlsx .pptx .pdf .mp3 .wav .m4a .flac */
bool answer_is_document(struct str path);
