// SPDX-License-Identifier: Apache-2.0
/* resolve_dns.h — names to addresses without libc: the hosts file, then the servers of resolv.conf,
 * on the loop, by UDP. For croft-guest, which has no threads and no room for a resolver; the search
 * list and ndots are honoured, other options are not. */
#pragma once

#include "net/resolve.h"

struct resolve_dns;

struct resolve_dns_config {
    const char *hosts, *servers; /* files; one that cannot be read is empty */
    uint16_t port;               /* of the servers */
    uint32_t wait_ms;            /* for each server, each of two times */
};
extern const struct resolve_dns_config resolve_dns_system;

/* As resolve_start. The config lives as long as this. */
fallible resolve_dns_start(struct loop *loop, const struct resolve_dns_config *config,
                           struct str host, uint16_t port,
                           void (*done)(void *owner, struct err *e,
                                        const struct resolve_addrs *addrs),
                           void *owner, struct resolve_dns **ret_resolve);
void resolve_dns_cancel(struct resolve_dns *r); /* done does not come any more */

/* --- messages; for the fuzzer too --- */
#define DNS_QUERY_MAX 300u
enum { DNS_A = 1, DNS_AAAA = 28 };
/* 0: no such name can be. */
size_t dns_query(struct str host, uint16_t id, uint16_t type, unsigned char out[DNS_QUERY_MAX]);
enum dns_answer { DNS_FOREIGN, DNS_FAILED, DNS_ANSWERED };
/* The answer to a query: adds its addresses, which may be none. DNS_FOREIGN: to another one. */
enum dns_answer dns_read(struct str answer, struct str query, uint16_t port,
                         struct resolve_addrs *into);
