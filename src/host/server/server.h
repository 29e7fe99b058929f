// SPDX-License-Identifier: Apache-2.0
/* server.h — the process of `croft serve`.
 *
 * It forks the launcher, or joins one that lives. Then it gives up root, if it was root. Only then
 * does it read anything that a stranger wrote. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct settings;

struct server_config {
    const struct settings *settings;
    const char *state;  /* absolute */
    struct str api_key; /* the first key; .p NULL: that of the settings, if any */
    struct str guest;   /* croft-guest, for backend local */
    const char *const *envp;
    int out;           /* where the address is said, one line */
    int err;           /* where it says how it ended, where the log is for people */
    const char *again; /* the command that starts it again */
    /* Settings anew, at SIGHUP; good until the next time. NULL: none. */
    fallible (*reload)(void *arg, const struct settings **ret_settings);
    void *arg;
};

struct str server_address(const struct settings *s); /* server.listen */
/* Runs until SIGTERM or SIGINT. Sockets from a service manager take the place of server.listen. */
fallible server_run(const struct server_config *config);
