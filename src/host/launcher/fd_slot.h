// SPDX-License-Identifier: Apache-2.0
/* fd_slot.h — a clone by a process with thousands of descriptors that copies only a few of them.
 *
 * The child shares the table and leaves it first of all. It takes along what is below the slot, and
 * the slot, where its own descriptor was put before. A copy of all would cost each sandbox time to
 * make and to close, and a table of that size for life. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct fd_slot {
    int fd;         /* -1: none */
    int filler;     /* what the slot holds when no child has it; borrowed */
    uint32_t *left; /* shared with the child */
    int waits; /* pidfd of the child that has it and was not seen leaving, borrowed; -1: none */
};

/* above: the highest descriptor that every child needs; borrowed. */
fallible fd_slot_open(struct fd_slot *s, int above);
void fd_slot_close(struct fd_slot *s);
/* Before the clone with CLONE_FILES: takes the slot, once the one before has left. Then pidfd is
 * the child's, or -1 if there is none. */
fallible fd_slot_put(struct fd_slot *s, int fd);
void fd_slot_given(struct fd_slot *s, int pidfd);
/* In the child: gives its descriptor, -1 when it could not leave and must end. */
int fd_slot_leave(const struct fd_slot *s);
/* Waits until the child has left, or is dead, and takes its descriptor off the slot. Call it before
 * a wait for that descriptor's other end, and before the child's pidfd is closed. */
void fd_slot_clear(struct fd_slot *s);
