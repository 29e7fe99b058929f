// SPDX-License-Identifier: Apache-2.0
/* account.h — a user that is missing is written into the files that make one. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/passwd.h"
#include "base/str.h"

struct account_place {
    const char *etc;   /* "/etc": passwd, group and what else of them is there; skel */
    const char *homes; /* "/home" */
};

/* With that number, or the next free one. In the root group and, where that exists, in sudo,
 * which then needs no password. The line in passwd comes last: after a crash half-way the next
 * start does it all again. */
fallible account_make(const struct account_place *place, struct str name, uid_t uid,
                      struct passwd_user *ret_user);
/* Gives a number without a line in passwd an account; its home is there. Its name is "openhands",
 * or "u" and the number where that name is taken. A rule of its own lets it sudo, so its groups
 * stay those asked for. Only passwd must exist. On failure u->name may be set. */
fallible account_of_number(const struct account_place *place, struct passwd_user *u);

/* settle.c, as root: a home for a user without one, unless the environment names it. If all files
 * are those of a sandbox (inside), also an account for a number that has none; *u is that then. */
void account_settle(struct passwd_user *u, const char *home, bool inside);
void account_settle_workspace(const struct passwd_user *u); /* /workspace is given to it */
