// SPDX-License-Identifier: Apache-2.0
/* site.h — an HTTPS server in this process and clients in children, for the tests of tls. */
#pragma once

#include <openssl/ssl.h>

#include "net/server.h"
#include "out/tls.h"
#include "test/cert.h"

/* GET /hello: "hello". POST /up: "ok N" when the N bytes are the pattern. POST /whole: "hello". GET
 * /down: SITE_BYTES of the pattern, chunked, or until close for HTTP/1.0. GET /cut: half of what it
 * promises. GET /ws: a WebSocket that says "welcome", then echoes. */
#define SITE_BYTES (20u << 20)

struct site {
    struct loop *loop;
    struct net *net;
    struct router *router;
    struct http_server *server;
    struct tls_server *tls;
    struct test_cert cert;
    int port;
};

void site_open(struct site *site, const struct http_limits *limits);
void site_close(struct site *site); /* when its last connection is gone */
/* Runs client in a child and the server here until the child ends, which must be well. */
void site_visit(struct site *site, void (*client)(const struct site *site));
/* Turns the loop until no client is connected. */
void site_wait_empty(struct site *site);

/* --- in the child; a failed CHECK ends it --- */
int site_connect(const struct site *site); /* blocking TCP, with a receive deadline */
struct site_client {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
};
/* version: TLS1_2_VERSION …, 0: any. Verifies the certificate. */
void site_client_open(const struct site *site, int version, struct site_client *c);
void site_client_close(struct site_client *c); /* with close_notify */
void site_client_send(struct site_client *c, struct str data);
/* One whole answer with content-length, head and body, terminated. */
const char *site_client_answer(struct site_client *c, char *out, size_t size);
unsigned char site_byte(uint64_t at); /* of the pattern */
