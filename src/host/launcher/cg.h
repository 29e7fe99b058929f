// SPDX-License-Identifier: Apache-2.0
/* cg.h — control groups of sandboxes: cgroup v2, v1, and the hybrid of both.
 *
 * Limits go to the hierarchy that holds the controller; freezing and killing go to v2 where it is
 * mounted, else to v1's freezer. Everything here is a plain file write, so it is tested on plain
 * directories.
 *
 * A sandbox has one group per hierarchy, croft/NAME, and none below it. Each group that counts
 * memory costs 16 bytes for every file system mounted on the machine, so a second group would cost
 * with the square of the number of sandboxes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "sandbox/native/msg.h"

enum cg_controller { CG_MEMORY, CG_PIDS, CG_CPU, CG_FREEZER, CG_COUNT };

struct cg {
    int v2;           /* cgroup2: directory "croft", -1: not mounted or not ours to use */
    int v1[CG_COUNT]; /* v1: directory "croft" below each controller, -1: not there */
    bool on_v2[CG_COUNT];
    bool delegated; /* below a group this process was given, not below the machine's */
    bool plain;     /* plain files instead of a kernel's, for tests: made when missing */
    struct cg_owner {
        uint64_t device, inode;
    } owner; /* the owner of the groups: a state directory */
};

/* base is where the hierarchies are mounted, "/sys/fs/cgroup". member is the text of
 * /proc/self/cgroup for a user that may not use the machine's groups, or empty. A missing
 * controller is no error: ask cg_has(). */
void cg_open(struct cg *cg, const char *base, struct str member, bool plain);
void cg_close(struct cg *cg);
bool cg_has(const struct cg *cg, enum cg_controller c);
const char *cg_word(enum cg_controller c); /* "memory", … */
/* The mechanism that enforces it: "v2", "v1", either "delegated to you", or "none". */
const char *cg_mechanism(const struct cg *cg, enum cg_controller c);

/* Takes the name for good on this machine; *ret_taken: another state has it. */
fallible cg_claim(const struct cg *cg, const char *name, bool *ret_taken);
/* Was it claimed for another owner? Then a claim of this state outlived its group: its launcher was
 * killed between giving back the one and the other. False also when the owner was not noted. */
bool cg_is_anothers(const struct cg *cg, const char *name);
/* The v2 part, apart, because a child is born into it: gives the group's directory, or -1. */
fallible cg_make_v2(const struct cg *cg, const char *name, int *ret_dir);
fallible cg_make(const struct cg *cg, const char *name); /* the others */
/* Sets the limits that differ from `was`, which the group has now. A limit without its controller
 * is ERR_UNSUPPORTED. */
fallible cg_limit(const struct cg *cg, const char *name, const struct native_limits *was,
                  const struct native_limits *limits);
/* The limits that v2 enforces, or the others. Where v2 is mounted with nsdelegate, as systemd does,
 * no process inside a group's own namespace may write the former. */
struct native_limits cg_part(const struct cg *cg, const struct native_limits *limits, bool v2);
fallible cg_join_v1(const struct cg *cg, const char *name); /* the caller */

fallible cg_freeze(const struct cg *cg, const char *name, bool frozen, int timeout_ms);
fallible cg_kill(const struct cg *cg, const char *name); /* nothing to do on pure v1 */
/* Does any process live in it? False without control groups. */
fallible cg_populated(const struct cg *cg, const char *name, bool *ret_populated);
/* Is this process in it? True without control groups. */
fallible cg_holds(const struct cg *cg, const char *name, pid_t pid, bool *ret_inside);
/* The first `max` of its processes; none without control groups. */
fallible cg_list(const struct cg *cg, const char *name, pid_t *pids, size_t max, size_t *ret_count);
fallible cg_is_frozen(const struct cg *cg, const char *name, bool *ret_frozen);
/* Kills all that is in it and waits until it is dead. */
fallible cg_end(const struct cg *cg, const char *name, int timeout_ms);
/* Removes all that is there; what is not is fine. */
fallible cg_remove(const struct cg *cg, const char *name);

/* Read-only counter of out-of-memory kills, -1: not counted here. */
fallible cg_open_oom(const struct cg *cg, const char *name, int *ret_fd);
/* Read-only, the bytes it uses; -1: not counted here. */
fallible cg_open_memory(const struct cg *cg, const char *name, int *ret_fd);
fallible cg_read_oom(int fd, uint64_t *ret_kills);
/* How often a process could not be made in it, for its limit; 0 also when that is not counted. */
uint64_t cg_pids_denied(const struct cg *cg, const char *name);
/* No process is in it, none was ever killed in it for want of memory, and at most so many bytes are
 * still charged to it. *ret_cpu_ns is what it has counted. False also when that is not known. */
bool cg_is_bare(const struct cg *cg, const char *name, uint64_t most_bytes, uint64_t *ret_cpu_ns);
/* Its use now; 0: not counted here. */
void cg_usage(const struct cg *cg, const char *name, struct native_usage *ret_usage);
