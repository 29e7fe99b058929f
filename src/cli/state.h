// SPDX-License-Identifier: Apache-2.0
/* state.h — the directory where croft keeps sandboxes, layers and images, for commands that need no
 * server. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "cli/cli.h"

/* By the settings: server.state_dir, or what XDG says, or /var/lib/croft for root. */
fallible cli_state_path(struct cli *cli, struct arena *a, struct str *ret_path);
/* Makes it when it is missing, closed to others; it must belong to us. */
fallible cli_open_state(struct cli *cli, int *ret_fd);
