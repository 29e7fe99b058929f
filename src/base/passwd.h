// SPDX-License-Identifier: Apache-2.0
/* passwd.h — users and groups, read from the files in a directory like /etc and from nowhere else.
 *
 * libc would load name services and resolvers for this, which a static program cannot. A malformed
 * line is ignored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

#define PASSWD_ETC        "/etc"
#define PASSWD_GROUPS_MAX 64

struct passwd_user {
    uid_t uid;
    gid_t gid, also;                      /* also: one more group, plus 1; 0: none */
    char name[64], home[256], shell[128]; /* a line with more in them is not well formed */
};

/* ERR_NOT_FOUND when there is none, or no file. The first line that fits counts. */
fallible passwd_by_name(const char *etc, struct str name, struct passwd_user *ret_user);
fallible passwd_by_uid(const char *etc, uid_t uid, struct passwd_user *ret_user);
/* NAME or UID, either with :GROUP, as images name their user. A group is a name or a number. After
 * one more ':' comes a further group; the first may then be empty.
 *
 * A number needs no line. It then has group 0, whose files such images let it write. */
fallible passwd_find(const char *etc, struct str text, struct passwd_user *ret_user);
/* A name or a number. */
fallible passwd_group(const char *etc, struct str group, gid_t *ret_gid);
/* `first`, `also` (as above) and every group that names the user; more than PASSWD_GROUPS_MAX is
 * ERR_LIMIT. */
fallible passwd_groups(const char *etc, struct str user, gid_t first, gid_t also,
                       gid_t ret_gids[PASSWD_GROUPS_MAX], size_t *ret_count);

/* One line of passwd; false when it is none. For the fuzzer and the writer of such lines. */
bool passwd_parse(struct str line, struct passwd_user *ret_user);
/* A line of group: its name, number and the list of members. */
bool passwd_parse_group(struct str line, struct str *ret_name, gid_t *ret_gid,
                        struct str *ret_members);
/* Is `name` one of "a,b,c"? */
bool passwd_lists(struct str members, struct str name);
