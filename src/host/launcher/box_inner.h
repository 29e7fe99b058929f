// SPDX-License-Identifier: Apache-2.0
/* box_inner.h — between the two sides of a start: box.c outside, box_child.c inside. */
#pragma once

#include "host/launcher/box.h"

/* Descriptors that go with an order, in this order; then roots, mounts, the sandbox's own. */
enum { ORDER_USERNS, ORDER_EXE, ORDER_BLOCK, ORDER_FIXED };

struct box_order {
    struct native_request req;
    uint32_t flags, slot, fd_count;
    uint32_t fd_given; /* bit i: fds[i] is among the descriptors */
    uint32_t oom_at;
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

/* The embryo's process; does not return. */
_Noreturn void box_child(const struct box_host *h, unsigned slot, int sock);
