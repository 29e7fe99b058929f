// SPDX-License-Identifier: Apache-2.0
/* zmtp_peer.h — one ZMTP connection over a unix socket, on the loop.
 *
 * The socket may not exist yet: a kernel binds its sockets one after the other, so the peer keeps
 * trying until its start deadline. After on_error the peer is of no use and must be freed. */
#pragma once

#include "guest/jupyter/zmtp.h"

struct net;
struct zmtp_peer;

struct zmtp_peer_events {
    void (*on_ready)(struct zmtp_peer *p);
    void (*on_message)(struct zmtp_peer *p, const struct zmtp_message *m);
    void (*on_error)(struct zmtp_peer *p, struct err *why); /* why is the callee's to free */
};

fallible zmtp_peer_new(struct net *net, const char *path, enum zmtp_role role, uint32_t start_ms,
                       const struct zmtp_peer_events *events, void *owner,
                       struct zmtp_peer **ret_peer);
void zmtp_peer_free(struct zmtp_peer *p); /* from any callback; NULL is fine */
OWNABLE(zmtp_peer)

void *zmtp_peer_owner(const struct zmtp_peer *p);
bool zmtp_peer_ready(const struct zmtp_peer *p);
/* One message. Before on_ready, or over 64 MB, it is refused. */
fallible zmtp_peer_send(struct zmtp_peer *p, const struct str *parts, unsigned count);
