// SPDX-License-Identifier: Apache-2.0
/* start.h — what a start and a claim of a sandbox have in common, and the end of each. */
#pragma once

#include "host/launcher/box.h"

struct launcher;
struct launcher_box;
struct launcher_fds;

struct launcher_begun { /* taken over, on failure too */
    struct box_spare spare;
    unsigned flags;     /* of its box_spec */
    uint64_t tag;       /* of the request */
    int ready, control; /* our ends */
    bool made;          /* its directory is new */
    struct launcher_box
        *old; /* its life before; NULL: none. Then the new one is not in the list yet */
};
/* The answer comes when it has been exec'd, or cannot be. */
void launcher_start_watch(struct launcher *l, struct launcher_box *b,
                          const struct launcher_begun *begun);
/* Waits for it, for up to BOX_WAIT_MS, before a request for a sandbox that is starting. b may be
 * gone then. */
void launcher_start_settle(struct launcher_box *b);
void launcher_settle_all(struct launcher *l);

/* --- claim.c --- */

/* Limits, mounts, network: what the policy forbids. Fills in the limits that were not asked for. */
fallible launcher_apply_policy(const struct launcher *l, struct native_request *r);
fallible launcher_check_block(const struct launcher_fds *in, size_t block, bool log);
fallible launcher_open_sources(const struct launcher *l, const struct native_request *r,
                               int sources[NATIVE_MOUNTS]);
fallible launcher_claim(struct launcher *l, struct launcher_box *b, const struct native_request *r,
                        struct launcher_fds *in, struct native_reply *reply, bool *ret_later);
