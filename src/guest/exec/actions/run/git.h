// SPDX-License-Identifier: Apache-2.0
/* git.h — the two scripts a client of the git panel runs, done here with the real git:
 *
 *   python3 /openhands/code/openhands/runtime/utils/git_changes.py
 *   python3 /openhands/code/openhands/runtime/utils/git_diff.py "FILE"
 *
 * They print one line of JSON, as Python writes it. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct exec;
struct tool;

#define GIT_FILE_BYTES  (1u << 20) /* of a file that is shown */
#define GIT_PRINT_BYTES (32u << 20)
#define GIT_LIMIT_MS    60000

struct git_ask {
    struct str cwd;  /* of a "cd … &&" before it; empty: none */
    struct str file; /* .p NULL: the changes are asked for */
};
/* False: an ordinary command. */
bool git_parse(struct str command, struct git_ask *ret_ask);

struct git_job {
    struct arena *arena; /* what is printed lives here */
    bool diff;
    struct tool *tool; /* while it runs */
    void (*done)(struct git_job *job, int exit_code, struct str printed);
};
/* arena and done are set; done is called once, never from inside. */
fallible git_start(struct git_job *job, struct exec *e, const struct git_ask *ask, struct str cwd);

/* Git's output, as the scripts print it; false: it is not to be shown, and printed says why. */
fallible git_print_changes(struct arena *a, struct str records, struct str *ret_printed);
bool git_print_diff(struct arena *a, struct str texts, struct str *ret_printed);
