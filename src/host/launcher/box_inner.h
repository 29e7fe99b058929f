// SPDX-License-Identifier: Apache-2.0
/* box_inner.h — between the two sides of a start: box.c outside, box_child.c inside. */
#pragma once

#include "base/fd.h"
#include "host/launcher/box.h"

/* Descriptors that go with an order, in this order; then roots, mounts, the sandbox's own. */
enum { ORDER_USERNS, ORDER_EXE, ORDER_BLOCK, ORDER_FIXED };

/* Everything that travels with an order, owned until it is sent. */
struct box_cargo {
    int fds[FD_PASS_MAX];
    size_t count;
    size_t lent; /* the first so many are not ours to close */
};
void box_cargo_done(struct box_cargo *c);
/* Adds its root file systems, then its mounts. dir: box/<ID>; machine_id: for the first of the
 * root's. Sets home and disk, on failure too. */
fallible box_build(struct box_host *h, const struct box_spec *spec, struct box *box, int userns,
                   int dir, const char *machine_id, struct box_cargo *c);

struct box_order {
    struct native_request req;
    uint32_t flags, slot, fd_count;
    uint32_t fd_given; /* bit i: fds[i] is among the descriptors */
    uint32_t oom_at;
    struct native_limits was; /* what its groups are limited to already */
    uint16_t tty_rows, tty_cols;
    uint32_t prefix_count;
    char prefix[BOX_PREFIX]; /* strings, each ended by NUL */
    uint32_t root_count;
    char where[BOX_ROOTS][NATIVE_PATH_MAX]; /* of root 1 and on */
};

enum { REPORT_ERROR = 1, REPORT_TTY };

struct box_report {
    uint32_t kind, code, errnum;
    char text[NATIVE_TEXT_MAX];
};

/* The spare's process; does not return. */
_Noreturn void box_child(const struct box_host *h, struct box_spare *e, int sock);

/* Groups and claim of a slot that no sandbox has. */
void box_forget_slot(struct box_host *h, unsigned slot);

/* --- box_bare.c --- */

fallible box_bare_open(struct box_host *h);
