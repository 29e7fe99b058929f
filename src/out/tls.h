// SPDX-License-Identifier: Apache-2.0
/* tls.h — TLS 1.2 and 1.3 on streams: for our listeners, and for calls that leave the host.
 *
 * OpenSSL starts at first use and never reads the system's openssl.cnf. A connection keeps the
 * certificates it began with; tls_server_reload changes those of the next ones. SIGPIPE is never
 * raised. Only the host links this: croft-guest knows no TLS. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct stream;

struct tls_config {
    const char *certificate; /* PEM file: the server's own, then those that signed it */
    const char *key;         /* PEM file, not encrypted */
};

struct tls_server;
fallible tls_server_new(const struct tls_config *config, struct tls_server **ret_server);
void tls_server_free(struct tls_server *server); /* its connections live on */
OWNABLE(tls_server)
/* Reads both files again. On failure nothing changes: log it and serve on. */
fallible tls_server_reload(struct tls_server *server);
/* As http_server_config.filter, with the tls_server as filter_ctx. */
fallible tls_server_filter(void *server, struct stream *s);

struct tls_client;
/* Trusts the certificates in a PEM file; NULL: those of the system. */
fallible tls_client_new(const char *ca_file, struct tls_client **ret_client);
void tls_client_free(struct tls_client *client);
OWNABLE(tls_client)
/* For a stream that has carried nothing yet. host, a name or an address, must be in the peer's
 * certificate. Otherwise the stream fails with the reason before any byte of ours is sent. */
fallible tls_client_filter(struct tls_client *client, struct stream *s, struct str host);
