// SPDX-License-Identifier: Apache-2.0
/* hooks.h — a runtime from outside: what its sandbox and the proxy tell it, its use, its key, its
 * description. */
#pragma once

#include "host/runtime/inner.h"

/* --- hooks.c --- */
fallible runtime_set_addresses(struct runtime *r); /* where the proxy finds it */
void runtime_on_gone(void *arg, struct sbx *s);
void runtime_set_hooks(struct runtime *r); /* what the proxy asks of it */

/* --- session_key.c --- */
void runtime_rotate_key(struct runtime *r); /* if its resume is to */
void runtime_set_keys(struct runtime *r);   /* what the proxy makes of them */

/* --- probe.c --- */
/* Whether a command that is run as given listens; told as ready when it does. */
void probe_start(struct runtime *r);
void probe_look(struct runtime *r); /* once more, if it did not so far */
void probe_stop(struct runtime *r);

/* It runs a command as given, and that does not listen on its port. */
static inline bool runtime_is_silent(const struct runtime *r)
{
    return r->published && !r->probe.listens && !runtime_is_far(r) &&
           r->status.now == RUNTIME_RUNNING;
}

/* --- idle.c --- */
void idle_watch(struct runtime *r); /* after each change of its status */
void idle_stop(struct runtime *r);

/* --- describe.c --- */
struct str runtime_url(const struct runtime *r, struct arena *a);
