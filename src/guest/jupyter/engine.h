// SPDX-License-Identifier: Apache-2.0
/* engine.h — what runs cells for a kernel: ipykernel, another kernel, or plain Python.
 *
 * One cell at a time; the kernel above keeps the queue. After on_gone the engine does nothing more
 * and must be freed. Freeing is allowed in every callback. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

struct net;
struct proc_user;
struct spawner;
struct rng;

struct engine_events {
    void (*on_ready)(void *owner); /* the first cell may come */
    void (*on_text)(void *owner, struct str text);
    void (*on_png)(void *owner, struct str base64);
    void (*on_cell_done)(void *owner);
    /* It died or never came up; why is the callee's to free. ERR_UNSUPPORTED: python has no
     * ipykernel. */
    void (*on_gone)(void *owner, struct err *why);
};

struct engine_config {
    struct net *net;
    struct rng *rng;
    const char *python; /* a path */
    const char *kernel; /* name of a kernel spec; NULL: the ipykernel of python */
    char *const *env;
    const char *cwd;
    const char *run_dir; /* a private directory for sockets is made in it */
    const struct proc_user *user;
    struct spawner *spawner;
    uint32_t start_ms;
    const struct engine_events *events;
    void *owner;
};

struct engine;
struct engine_ops {
    fallible (*execute)(struct engine *e, struct str code);
    void (*interrupt)(struct engine *e);
    void (*free)(struct engine *e);
};
struct engine { /* first member of each kind */
    const struct engine_ops *ops;
    bool python; /* it understands Python: working directory, skills */
    bool magics;
    bool begun; /* the cell that was sent has started: it must not be run again elsewhere */
};

fallible engine_start_jupyter(const struct engine_config *config, struct engine **ret_engine);
/* Without ipykernel: exec, the value of a last expression, tracebacks, interrupts; no magics, no
 * shell escapes, no display data. */
fallible engine_start_plain(const struct engine_config *config, struct engine **ret_engine);

static inline void engine_free(struct engine *e)
{
    if (e)
        e->ops->free(e);
}
OWNABLE(engine)
