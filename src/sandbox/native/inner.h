// SPDX-License-Identifier: Apache-2.0
/* inner.h — between the files of the native driver. */
#pragma once

#include "sandbox/backend.h"
#include "sandbox/native/msg.h"

struct native_driver {
    struct sbx_driver base;
    struct loop_io io;
    struct list asked; /* calls that wait for their answer */
    uint64_t last_tag;
};

/* One request to the launcher, which answers in its own time and order. fds: what came with the
 * answer, closed afterwards unless taken; r is NULL when there is no launcher any more. */
struct native_call {
    struct list link; /* among asked */
    uint64_t tag;
    void (*fn)(struct native_call *c, const struct native_reply *r, int *fds, struct err *e);
};

fallible native_calls_start(struct native_driver *d, struct loop *loop, int launcher);
/* Fills in what every request has. On failure fn is not called. */
fallible native_call(struct native_driver *d, struct native_call *c, struct native_request *req,
                     const int *fds, size_t count,
                     void (*fn)(struct native_call *c, const struct native_reply *r, int *fds,
                                struct err *e));

fallible native_snapshot_list(struct sbx_question *q);
fallible native_snapshot_remove(struct sbx_question *q);
