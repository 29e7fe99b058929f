// SPDX-License-Identifier: Apache-2.0
/* seat.h — a clone by a process with thousands of descriptors that copies only a few of them.
 *
 * The child shares our table and leaves it first of all, with what is below the seat and with the
 * seat, where its own descriptor is put before. A copy of all would cost each sandbox time to make,
 * to close, and a table of that size for life. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct seat {
    int fd;         /* -1: none */
    int filler;     /* sits there when nobody does; borrowed */
    uint32_t *left; /* shared with the child */
    int waits;      /* pidfd of who sits there and was not seen leaving, borrowed; -1: nobody */
};

/* above: the highest descriptor that every child needs; borrowed. */
fallible seat_open(struct seat *s, int above);
void seat_close(struct seat *s);
/* Before the clone with CLONE_FILES: takes the seat, once the one before has left. Then pidfd is
 * the child's, or -1 if there is none. */
fallible seat_put(struct seat *s, int fd);
void seat_given(struct seat *s, int pidfd);
/* In the child: gives its descriptor, -1 when it could not leave and must end. */
int seat_leave(const struct seat *s);
/* Waits until the child has left, or is dead, and takes its descriptor off the seat: before
 * anybody waits for the other end of it, and before its pidfd is closed. */
void seat_clear(struct seat *s);
