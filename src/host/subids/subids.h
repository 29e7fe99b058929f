// SPDX-License-Identifier: Apache-2.0
/* subids.h — the ids that /etc/subuid and /etc/subgid give an ordinary user, mapped by newuidmap.
 *
 * Root inside is the user, so files that root makes in the user's directories belong to the user.
 * Users 1 and up are the user's further ids.
 *
 * All sandboxes of a user have the same ids. The user may not shift the ids of a layer, so those on
 * disk must be those of every sandbox above it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

#define SUBIDS_LEAST 1000u  /* `openhands` is user 1000 */
#define SUBIDS_MOST  65535u /* with root a whole 64 Ki */

struct subids {
    uint32_t uid, gid;               /* of user 1 and group 1 inside, here */
    uint32_t count;                  /* 0: none */
    const char *uid_tool, *gid_tool; /* absolute; NULL once we are inside */
    char says[160];                  /* which they are, or why there are none */
};

#define SUBIDS_REMEDY                                                                              \
    "run croft as root; or install newuidmap (Debian: uidmap) and have root give you ids that "    \
    "nobody has: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 YOU"

/* Gives none for root, which needs none. */
void subids_find(struct subids *ret_ids);

/* The id here of an id inside: the same for root, the only one for a user without a range. */
uint32_t subids_uid(const struct subids *s, uint32_t inside);
uint32_t subids_gid(const struct subids *s, uint32_t inside);

/* Enters a user namespace, in which this process keeps its ids and may do everything with them and
 * its range, and a mount namespace. A second call enters only the latter. Without a range there is
 * one id.
 *
 * Descriptors opened before cannot be used for mounts after. No thread may run. */
fallible subids_enter(const struct subids *s);
/* The range can be given away by this very process. */
bool subids_entered(const struct subids *s);

/* Lines for a map of a sandbox: root is us. */
#define SUBIDS_LINES 80
void subids_lines(const struct subids *s, bool groups, char out[SUBIDS_LINES]);

/* parse.c: the longest range of name, or of the number id, in the text of such a file, that does
 * not hold the id itself. False: none. */
bool subids_parse(struct str text, struct str name, uint32_t id, uint32_t *ret_first,
                  uint32_t *ret_count);
/* Does a user namespace with this uid_map have all of these? */
bool subids_has(struct str map, uint32_t first, uint32_t count);
