// SPDX-License-Identifier: Apache-2.0
/* lint_inner.h — what a language's checker is, and what it found. */
#pragma once

#include <stdbool.h>

#include "guest/edit/lint.h"

struct lint_issue {
    size_t line, column; /* from 1 */
    struct str message;  /* in the arena */
};

struct lint_issues {
    struct lint_issue list[LINT_ISSUES_MAX];
    size_t count;
};

#define LINT_ARGV_MAX 8

struct lint_checker {
    const char *argv[LINT_ARGV_MAX]; /* NULL-terminated; the text is its standard input */
    bool is_python;                  /* the last argument is lint.py */
    /* One line of output; false: no issue. */
    bool (*read_line)(struct arena *a, struct str line, struct lint_issue *ret_issue);
    /* Instead of a tool. */
    void (*check)(struct arena *a, struct str text, struct lint_issues *into);
};

/* NULL: no checker for this language. */
const struct lint_checker *lint_checker_of(struct str path);
/* The command line, any script unpacked into the arena. */
fallible lint_fill_argv(const struct lint_checker *c, struct arena *a,
                        const char *ret_argv[LINT_ARGV_MAX]);
void lint_read_output(const struct lint_checker *c, struct arena *a, struct str output,
                      struct lint_issues *into);
/* Drops what the old text had at the line it came from. */
fallible lint_drop_old(struct arena *a, struct str old_text, struct str new_text,
                       const struct lint_issues *old_issues, struct lint_issues *issues);
struct str lint_format(struct arena *a, const struct lint_issues *issues);
