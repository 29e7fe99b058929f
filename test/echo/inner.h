// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of echo/ only. */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"

struct http_server;
struct router;
struct tls_server;

struct echo {
    struct loop *loop;
    const struct echo_config *config;
    struct http_server *server;
    struct tls_server *tls; /* NULL: plain */
    struct loop_signal term, interrupt, hangup;
    struct buf scratch; /* for answers built and sent in one go */
    uint64_t start_ns;
    int dir_fd;
};

/* Uploads, server-sent events and WebSocket echo. */
void echo_add_streams(struct router *r, struct echo *e);
