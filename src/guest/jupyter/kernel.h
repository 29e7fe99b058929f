// SPDX-License-Identifier: Apache-2.0
/* kernel.h — Python cells: one kernel, started by the first cell, one cell at a time.
 *
 * A kernel that dies is replaced at the next cell, which says so in its output. Where Python has no
 * ipykernel, a plain kernel takes its place and says what it lacks.
 *
 * Every cell is answered by its deadline, which includes its wait and the kernel's start. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct kernel;
struct kernel_job;
struct net;
struct proc_user;
struct rng;
struct spawner;

struct kernel_config { /* all strings are copied */
    struct net *net;
    struct rng *rng;
    const char *python;           /* a name in PATH or a path; NULL: "python3" */
    const char *spec;             /* another kernel, by its name; NULL: python's ipykernel */
    char *const *env;             /* of the process; USER, LOGNAME and HOME follow user */
    const char *run_dir;          /* for a private directory with its sockets; NULL: "/tmp" */
    const struct proc_user *user; /* NULL: as we are */
    struct spawner *spawner;      /* NULL: fork here */
    size_t output_bytes;          /* of a cell's text; 0: 4 MB */
    uint32_t start_ms;            /* 0: 60 s */
    bool skills;                  /* open_file and its friends are there from the first cell */
    bool plain;                   /* do not even look for ipykernel */
};

struct kernel_result {
    const struct err *failed; /* no kernel could be started; nothing else is set then */
    struct str content;
    const struct str *images; /* data URLs */
    unsigned image_count;
    bool timed_out, died;
};

struct kernel_cell {
    struct str code;
    struct str cwd;     /* of the shell: the kernel follows when it changed */
    double timeout_s;   /* 0: none */
    bool include_extra; /* the two lines about directory and interpreter */
    void (*on_text)(void *owner, struct str text); /* as it comes, colours included; may be NULL */
    void (*done)(void *owner, const struct kernel_result *result);
    void *owner;
};

fallible kernel_new(const struct kernel_config *config, struct kernel **ret_kernel);
void kernel_free(struct kernel *k); /* ends the process; nothing is called any more */
OWNABLE(kernel)

/* It has started, or is about to: there may be something to lose. */
bool kernel_is_used(const struct kernel *k);
/* Is there a Python, and the kernel that was named? Starts nothing. */
fallible kernel_probe(struct kernel *k);
/* Queued behind earlier cells; the cell is copied. done never comes before this returns. */
fallible kernel_run(struct kernel *k, const struct kernel_cell *cell, struct kernel_job **ret_job);
/* done does not come any more; a cell that runs is interrupted. */
void kernel_cancel(struct kernel_job *job);
