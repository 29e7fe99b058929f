// SPDX-License-Identifier: Apache-2.0
/* resolve.h — names to addresses by getaddrinfo, off the loop. Numbers and "localhost" need no
 * resolver: see addr_numeric in net/listen.h. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/str.h"

struct loop;
struct resolve;

#define RESOLVE_MAX 8 /* addresses of one name that are tried */

struct resolve_addrs {
    size_t count;
    struct {
        struct sockaddr_storage addr;
        socklen_t len;
    } at[RESOLVE_MAX];
};

/* done gets either e, to free, or addrs, at least one; never before this returns. Refused with
 * ERR_UNSUPPORTED in a process that may not have threads. */
fallible resolve_start(struct loop *loop, struct str host, uint16_t port,
                       void (*done)(void *owner, struct err *e, const struct resolve_addrs *addrs),
                       void *owner, struct resolve **ret_resolve);
/* done does not come any more; the thread ends when the resolver lets it. */
void resolve_cancel(struct resolve *r);
