// SPDX-License-Identifier: Apache-2.0
/* document.h — the editor's commands for actions; documents (.pdf, .docx …) are shown as Markdown.
 *
 * The sandbox's own Python reads those, in a process of its own, as the user of commands. */
#pragma once

#include "base/err.h"

struct act;
struct edit_result;
struct editor;
struct editor_args;

#define DOCUMENT_LIMIT_MS 60000

/* done is called once, from inside for all but documents, unless an error is returned. */
fallible document_run(struct act *act, const struct editor *ed, const struct editor_args *args,
                      void (*done)(struct act *act, const struct edit_result *r));
