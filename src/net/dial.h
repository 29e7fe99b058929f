// SPDX-License-Identifier: Apache-2.0
/* dial.h — a connected socket to a host, by name or number, or to a unix path.
 *
 * The addresses of a name are tried in the resolver's order; one that does not answer gets its
 * share of the time, so that the next has a chance. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct dial;
struct loop;
struct resolve_addrs;

struct dial_target {
    struct str host;
    uint16_t port;
    struct str unix_path;              /* not empty: instead of host and port */
    const struct resolve_addrs *addrs; /* not NULL: these, and nobody is asked again */
    uint32_t timeout_ms;               /* of all together */
};

/* done gets either e, to free, or fd, to close; never before this returns. The target is copied.
 * What is refused at once, such as a unix path where nobody listens, is an error of this call. */
fallible dial_start(struct loop *loop, const struct dial_target *target,
                    void (*done)(void *owner, struct err *e, int fd), void *owner,
                    struct dial **ret_dial);
void dial_cancel(struct dial *d); /* done does not come any more; NULL is fine */
