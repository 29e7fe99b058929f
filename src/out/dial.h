// SPDX-License-Identifier: Apache-2.0
/* dial.h — connections to other programs: to a host, by name or number, or to a unix path, plain or
 * with TLS.
 *
 * The addresses of a name are tried in the resolver's order. Each gets a share of the time, so that
 * after a silent one the next has a chance. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct dial;
struct net;
struct resolve_addrs;
struct stream;
struct tls_client;

struct dialer { /* what the connections of a program share; zero it first */
    struct net *net;
    const char *ca_file;    /* PEM, the certificates that TLS trusts; NULL: those of the system */
    struct tls_client *tls; /* loaded for the first connection with TLS */
};
/* Loads OpenSSL and reads the certificates now: for a program that is to say at its start what is
 * wrong with them. */
fallible dialer_load_tls(struct dialer *dialer);
void dialer_done(struct dialer *dialer); /* its connections live on */

struct dial_target {
    struct str host;
    uint16_t port;
    struct str unix_path;              /* not empty: connect there instead of to host and port */
    const struct resolve_addrs *addrs; /* not NULL: connect to these, without a resolver */
    bool tls;                          /* host must be in the peer's certificate */
    uint32_t timeout_ms;               /* of all addresses together */
};

/* done gets either e, to free, or s, to close, whose events it sets; never before this returns. The
 * target is copied. An immediate refusal, such as a unix path without a server, is an error of this
 * call.
 *
 * With TLS, done comes before the handshake; s fails if that does. */
fallible dial_start(struct dialer *dialer, const struct dial_target *target,
                    void (*done)(void *owner, struct err *e, struct stream *s), void *owner,
                    struct dial **ret_dial);
void dial_cancel(struct dial *d); /* done does not come any more; NULL is fine */
