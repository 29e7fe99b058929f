// SPDX-License-Identifier: Apache-2.0
/* launch.h — the launcher of a server: the one that lives, or a new one. */
#pragma once

#include "host/launcher/launcher.h"
#include "host/server/layout.h"
#include "sandbox/backend.h"

struct settings;

struct launch {
    int sock;
    pid_t pid;     /* of one we forked; 0: it was there */
    unsigned caps; /* of native sandboxes here */
    struct sbx_lack lacks[SBX_LACKS_MAX];
    struct sbx_limits limits; /* of factor 1: what is asked for and can be enforced */
    char roots[LAUNCHER_ROOTS][NATIVE_TEXT_MAX]; /* directories it may mount, in its order */
    unsigned root_modes[LAUNCHER_ROOTS];
    size_t root_count;
};

unsigned launch_most(const struct settings *s); /* sandboxes at once */
/* As who we are, before privileges go and before any other descriptor is opened: the launcher
 * inherits what is open. */
fallible launch_open(struct launch *l, const struct layout *where, const struct settings *s);
