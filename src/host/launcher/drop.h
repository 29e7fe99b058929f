// SPDX-License-Identifier: Apache-2.0
/* drop.h — the server of a croft that root started becomes an ordinary user.
 *
 * After launcher_fork, before a stranger is heard: what parses HTTP and JSON then holds one socket
 * to the launcher and nothing that is root's. There is no way back. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

struct launcher_user {
    uid_t uid;
    gid_t gid;
};

/* The machine's user `croft`, else `nobody`; ERR_NOT_FOUND when it has neither. */
fallible launcher_find_user(struct launcher_user *ret_user);
/* No groups, no capabilities (nor a bounding set to gain any from), no set-uid programs, no core
 * and no tracing by processes of that user. Root only; ERR_INVALID for a user that is root. */
fallible launcher_drop_privileges(const struct launcher_user *user);
