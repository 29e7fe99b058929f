// SPDX-License-Identifier: Apache-2.0
/* tls_inner.h — shared by tls.c (certificates) and tls_filter.c (bytes), included by no other. */
#pragma once

#include "out/openssl.h"

struct stream;

/* One set of certificates and rules. Shared by its maker and every connection begun with it:
 * OpenSSL calls the BIO methods until the last of these is gone. */
struct tls_ctx {
    SSL_CTX *ssl;
    BIO_METHOD *bio;
    unsigned refs;
};

struct tls_ctx *tls_ctx_ref(struct tls_ctx *ctx);
void tls_ctx_unref(struct tls_ctx *ctx);

/* tls_filter.c */
BIO_METHOD *tls_bio_method(void); /* NULL: no memory */
/* ssl is taken over, also on failure. */
fallible tls_filter_start(struct tls_ctx *ctx, SSL *ssl, struct stream *s);
