// SPDX-License-Identifier: Apache-2.0
/* environment.h — the environment of a sandbox's server, as strings one after the other. */
#pragma once

#include "base/buf.h"
#include "sandbox/backend.h"

#define ENVIRONMENT_BYTES (1u << 20)
#define ENVIRONMENT_MAX   4096u

/* Fills env with "NAME=value\0" …: the caller's variables that are named in kept (ended by NULL),
 * then the spec's, then its key. Whatever else the caller has, keys among them, is not for guests.
 */
fallible environment_make(struct buf *env, const struct sbx_host *host, const char *const *kept,
                          const struct sbx_spec *spec);
unsigned environment_count(const struct buf *env);
