// SPDX-License-Identifier: Apache-2.0
/* drop.h — the server of a croft that root started becomes an ordinary user.
 *
 * After launcher_fork, before a stranger is heard: what parses HTTP and JSON then holds one socket
 * to the launcher and nothing that is root's. There is no way back. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct launcher_user {
    uid_t uid;
    gid_t gid;
    bool shared; /* it is `nobody`: other programs run as that user too and can reach the server's
                  * files */
};

#define LAUNCHER_OWN_USER                                                                          \
    "other programs that are 'nobody' can read its keys and reach its sandboxes: give it a user "  \
    "of its own with 'useradd --system --no-create-home croft', stop it with its sandboxes, "      \
    "'chown -hR croft: STATE/server' of its state directory, and start it again"

/* The machine's user `croft`, else `nobody`; ERR_NOT_FOUND: neither exists. before: the owner of an
 * earlier server's files, which must stay readable; -1: there are none. */
fallible launcher_find_user(uid_t before, struct launcher_user *ret_user);
uid_t launcher_user_before(int state); /* that, by the state directory */
/* No groups, no capabilities (nor a bounding set to gain any from), no set-uid programs, no core
 * and no tracing by processes of that user. Root only; ERR_INVALID for a user that is root. */
fallible launcher_drop_privileges(const struct launcher_user *user);
