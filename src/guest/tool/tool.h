// SPDX-License-Identifier: Apache-2.0
/* tool.h — a program run once, to its end: its input given, its output gathered, its time limited.
 *
 * At its end everything it started is killed, whatever still holds its pipe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct loop;
struct proc_user;
struct spawner;
struct tool;

#define TOOL_LIMIT_MS     30000
#define TOOL_OUTPUT_BYTES (1u << 20)

struct tool_result { /* borrowed, during the callback */
    struct str output;
    bool cut;       /* there was more than output_bytes: the rest was read and forgotten */
    bool timed_out; /* it was killed */
    int exit_code;  /* 128 + n for signal n */
};

struct tool_config {         /* zero: the default; borrowed for the call */
    const char *const *argv; /* argv[0] is looked for in PATH of env */
    const char *const *env;
    const char *cwd;              /* "/" */
    const struct proc_user *user; /* as we are */
    struct spawner *spawner;      /* fork here */
    struct str input;             /* nothing */
    uint64_t limit_ms;            /* TOOL_LIMIT_MS */
    size_t output_bytes;          /* TOOL_OUTPUT_BYTES */
    bool with_errors;             /* descriptor 2 is output too, otherwise dropped */
    /* Once, never from within tool_run; the tool is gone after it. */
    void (*done)(void *arg, const struct tool_result *r);
    void *arg;
};

/* ERR_NOT_FOUND when there is no such program. ret_tool is good until done, or tool_stop. */
fallible tool_run(struct loop *loop, const struct tool_config *config, struct tool **ret_tool);
void tool_stop(struct tool *t); /* killed, and done is not called; NULL is fine */
