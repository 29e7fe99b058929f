// SPDX-License-Identifier: Apache-2.0
/* events_follow.h — croft events follow: what happens at a server, as it happens. */
#pragma once

#include "cli/cli.h"

struct events_follow {
    struct str since; /* .p NULL: now */
    struct str kind;  /* .p NULL: all */
    bool json;
};
/* Refuses wrong flags. */
fallible events_follow_check(const struct events_follow *how);
int events_follow(struct cli *cli, const struct events_follow *how);
