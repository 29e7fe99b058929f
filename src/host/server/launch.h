// SPDX-License-Identifier: Apache-2.0
/* launch.h — the launcher of a server: one that lives already, or a new one. */
#pragma once

#include "host/launcher/launcher.h"
#include "host/server/layout.h"
#include "sandbox/backend.h"

struct settings;

struct launch {
    int sock;
    pid_t pid;     /* of a new one; 0: it lived already */
    unsigned caps; /* of native sandboxes here */
    struct sbx_lack lacks[SBX_LACKS_MAX];
    struct sbx_limits limits; /* of factor 1: what is asked for and can be enforced */
    char roots[LAUNCHER_ROOTS][NATIVE_TEXT_MAX]; /* directories it may mount, in its order */
    unsigned root_modes[LAUNCHER_ROOTS];
    size_t root_count;
};

unsigned launch_most(const struct settings *s); /* sandboxes at once */
/* Before the server gives up root, and before it opens other descriptors: the launcher inherits
 * both. */
fallible launch_open(struct launch *l, const struct layout *where, const struct settings *s);
