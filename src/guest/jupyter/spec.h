// SPDX-License-Identifier: Apache-2.0
/* spec.h — how a kernel is started: python's own, or one found by name in the Jupyter paths. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

struct spec {
    char **argv; /* in the arena, NULL at the end */
    char **env;
    bool python;            /* language */
    bool interrupt_message; /* by a control message instead of a signal */
};

/* name NULL: "<python> -m ipykernel_launcher -f <connection file>". */
fallible spec_find(struct arena *a, const char *name, const char *python, char *const *env,
                   const char *connection_file, struct spec *ret_spec);
