// SPDX-License-Identifier: Apache-2.0
/* layout.h — the directories of a server, below its state directory.
 *
 *   STATE          0711 when root started it: the server, which is not root, passes through
 *   STATE/server   the server's own, 0700: rows (croft.db), lock, api.sock; build: contexts of
 *                  builds, which sandboxes may mount for reading
 *   STATE/sock     root's: where sandboxes and the launcher listen; the sockets are the server's
 *
 * All else in STATE is the launcher's, 0700. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "host/launcher/drop.h"

struct layout {
    char state[4096], own[4200], sockets[4200], rows[4300], api[4300], builds[4300], outputs[4300];
    int builds_dir; /* O_PATH */
    int lock;       /* held while the server lives: one server for one state directory */
    bool separate;  /* root started it, so the server becomes `user` */
    struct launcher_user user;
};

/* Makes what is missing. Before the server gives up root. ERR_BUSY: another server uses it. */
fallible layout_open(struct layout *l, const char *state);
void layout_close(struct layout *l);
