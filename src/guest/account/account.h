// SPDX-License-Identifier: Apache-2.0
/* account.h — a user that is missing is written into the files that make one. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "base/passwd.h"
#include "base/str.h"

struct account_place {
    const char *etc;   /* "/etc": passwd, group and what else of them is there; skel */
    const char *homes; /* "/home" */
};

/* With that number, or the next one nobody has. In the root group and, where that exists, in sudo,
 * which then needs no password. The line in passwd comes last: after a crash half-way the next
 * start does it all again. */
fallible account_make(const struct account_place *place, struct str name, uid_t uid,
                      struct passwd_user *ret_user);
/* For a number that has no line, whose home is made: in the files of which all but passwd may be
 * missing, by the name "openhands", or "u" and the number where that is somebody's. It may sudo by
 * a rule of its own, so its groups stay those that were asked for. On failure u->name may be set.
 */
fallible account_of_number(const struct account_place *place, struct passwd_user *u);
