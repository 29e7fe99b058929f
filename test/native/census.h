// SPDX-License-Identifier: Apache-2.0
/* census.h — everything sandboxes could leave behind, counted before and after.
 *
 * Other tests use the same machine meanwhile, so groups are known by the number the kernel gave
 * them, not by their names. A namespace or a port lives by a process, a descriptor or a mount, and
 * these are counted. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct census {
    unsigned fds, mounts, children; /* of one process */
    unsigned files;                 /* in the state directory, at any depth */
};

#define CENSUS_HIERARCHIES 6

struct census_groups { /* control groups that were ours once */
    struct census_group *at;
    size_t count, room;
    ino_t since[CENSUS_HIERARCHIES]; /* the kernel counts up: what has less was there before */
};

/* What was removed is deleted by somebody else, a moment later: waits for that. */
void census_wait_deleted(const char *state);
void census_take(struct census *c, pid_t pid, const char *state);
void census_compare(const struct census *before, const struct census *after);

/* Before the first sandbox: a launcher may try a name that somebody else's group has, and what was
 * there before is nobody's of ours. */
void census_open_groups(struct census_groups *g);
/* Notes the groups of every slot that is claimed now. */
void census_note_groups(struct census_groups *g, const char *state);
/* None of them but those still claimed is left, or it turns out to be another's; forgets all. */
void census_check_groups(struct census_groups *g, const char *state);
