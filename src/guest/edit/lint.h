// SPDX-License-Identifier: Apache-2.0
/* lint.h — what an edit broke, found by the language's own tools on the loop.
 *
 * Python, C, C++ and shell are checked by a child that reads the text from its standard input; JSON
 * and TOML by our parsers. The new text is checked first and the old one only if that found
 * anything; what the old text had too is not told. A tool that is missing, slow or mad finds
 * nothing: an edit never fails for it. */
#pragma once

#include "guest/edit/edit.h"

struct lint;
struct loop;
struct proc_user;
struct spawner;

#define LINT_TIMEOUT_MS   10000 /* for each of the two runs */
#define LINT_OUTPUT_BYTES (64u << 10)
#define LINT_ISSUES_MAX   50

struct lint_args {
    struct str path;               /* says the language; nothing is read from it */
    struct str old_text, new_text; /* copied */
    const char *search_path;       /* PATH of the tools */
    const struct proc_user *user;  /* the user they run as: a compiler reads any file that is
                                    * included */
    struct spawner *spawner;
    unsigned timeout_ms; /* 0: LINT_TIMEOUT_MS */
    /* Called once, never from within lint_start; may free l. text is "\nNo linting issues found in
     * the changes.\n" or the list, and lives as long as l. */
    void (*done)(struct lint *l, struct str text, void *of);
    void *of;
};

fallible lint_start(struct loop *loop, const struct lint_args *args, struct lint **ret_lint);
void lint_free(struct lint *l); /* also while it runs: the tool is killed, done not called */
OWNABLE(lint)

/* Puts the findings where the edit left room for them (struct edit_result, lint_at). */
fallible lint_insert(struct arena *a, struct edit_result *r, struct str text);
