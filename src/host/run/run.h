// SPDX-License-Identifier: Apache-2.0
/* run.h — one command in one sandbox, here and now, no server needed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "sandbox/native/msg.h"

#define RUN_WORKSPACE "/workspace"

struct image;
struct snap;

struct run_mount {
    const char *source; /* on the host */
    const char *target; /* absolute, inside */
    enum native_mount_mode mode;
};

struct run_spec {
    const char *state; /* directory croft keeps sandboxes in */
    const char *id;
    const char *root; /* a directory that becomes the root; NULL: the machine's own system */
    const struct image *image;  /* the same from the store; NULL: none */
    const struct snap *from;    /* what mounts[0], an overlay, stands on; NULL: its source alone */
    const char *whole;          /* the snapshot of a whole sandbox to go on from; NULL: none */
    const char *workdir, *user; /* NULL: /workspace or /; root */
    const struct run_mount *mounts;
    size_t mount_count;
    struct native_limits limits;    /* demanded: an error where they cannot be had */
    struct native_limits otherwise; /* for those that are 0, where they can be had */
    const char *const *argv;        /* the command */
    const char *const *env;         /* exactly this */
    int in, out, err;
    struct str require; /* layers that must be there, "a,b" */
    bool tty;           /* a terminal of its own; ours is put in raw mode meanwhile */
    bool no_new_privs;
    bool keep; /* keep what changed in overlay mounts */
    bool last; /* this process ends next: what can be left to its end, or to another, is */
    void (*on_making)(void *arg); /* layers of the machine's system are made now, in seconds */
    void *arg;
};

struct run_result {
    int exit_code;               /* 128+n when a signal ended it */
    uint64_t oom_kills;          /* out-of-memory kills meanwhile */
    uint64_t pids_denied;        /* processes and threads that were one too many */
    bool disk_full;              /* at the end, where its disk space is limited */
    struct native_limits limits; /* in force; 0: none */
    uint64_t start_ns, run_ns;
    enum native_disk disk; /* what limited its disk space */
    bool unlimited;        /* the default limits cannot be enforced here */
    bool unread;           /* told to end while the terminal is not read */
    bool kept;             /* an overlay mount has changes, kept in the sandbox's directory */
};

/* An error means that the command did not run. When it returns, nothing of the command is alive. */
fallible run_sandbox(const struct run_spec *spec, struct run_result *ret_result);
