// SPDX-License-Identifier: Apache-2.0
/* echo.h — a server that does a little of everything the net folder can, for wire tests and
 * benches: JSON echo, upload and download, streamed bodies, server-sent events, WebSocket echo. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct loop;

struct echo_config {
    struct str listen;            /* address, see net/listen.h */
    struct str dir;               /* uploads go here, downloads come from here; .p NULL: neither */
    struct str key;               /* X-API-Key that every route but /alive wants; .p NULL: none */
    struct str tls_cert, tls_key; /* PEM files; .p NULL: plain */
};

/* Serves until SIGTERM or SIGINT; prints its URL on standard output when it listens. With TLS,
 * SIGHUP reads the certificate and its key again. */
fallible echo_run(struct loop *loop, const struct echo_config *config);
