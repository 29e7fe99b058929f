// SPDX-License-Identifier: Apache-2.0
/* tls.c — certificates, keys and the rules of a connection; tls_filter.c moves the bytes. */
#include "out/tls.h"

#include <arpa/inet.h>

#include "base/mem.h"
#include "out/tls_inner.h"

#define HOST_MAX 255

/* TLS 1.2 with forward secrecy and authenticated encryption only; 1.3 has nothing else. */
static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

struct tls_server {
    struct tls_ctx *ctx;
    char *certificate, *key; /* paths, for reload */
};

struct tls_client {
    struct tls_ctx *ctx;
};

/* --- contexts --- */

struct tls_ctx *tls_ctx_ref(struct tls_ctx *ctx)
{
    ctx->refs++;
    return ctx;
}

void tls_ctx_unref(struct tls_ctx *ctx)
{
    if (!ctx || --ctx->refs)
        return;
    SSL_CTX_free(ctx->ssl);
    BIO_meth_free(ctx->bio);
    free(ctx);
}

static void tls_ctx_free(struct tls_ctx *ctx)
{
    tls_ctx_unref(ctx);
}
OWNABLE(tls_ctx)

/* Without it OpenSSL would ask for a password on the terminal. */
static int refuse_password(char *out, int size, int writing, void *asked)
{
    (void)out;
    (void)size;
    (void)writing;
    *(bool *)asked = true;
    return -1;
}

/* NULL: no memory, or an OpenSSL that does not start. */
static struct tls_ctx *tls_ctx_new(const SSL_METHOD *method)
{
    own(tls_ctx) ctx = mem_try(sizeof *ctx);

    if (!ctx)
        return NULL;
    ctx->refs = 1;
    ctx->bio = tls_bio_method();
    ctx->ssl = SSL_CTX_new(method);
    if (!ctx->bio || !ctx->ssl || !SSL_CTX_set_min_proto_version(ctx->ssl, TLS1_2_VERSION) ||
        !SSL_CTX_set_cipher_list(ctx->ssl, ciphers)) {
        ERR_clear_error();
        return NULL;
    }
    SSL_CTX_set_options(ctx->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ctx->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                   SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ctx->ssl, SSL_SESS_CACHE_OFF); /* tickets need no memory */
    return take(&ctx);
}

/* The image's openssl.cnf may name modules to load or weaken what is set here: it is not read. */
static fallible init_openssl(void)
{
    TRY(openssl_load());
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
    return NULL;
}

static fallible no_openssl(void)
{
    return err_new(ERR_NO_MEMORY, "OpenSSL does not start: out of memory");
}

/* --- files --- */

/* The first error OpenSSL noted, told about a file; hint says what else may be wrong. */
static fallible file_error(const char *what, const char *path, const char *hint)
{
    unsigned long first = ERR_peek_error();
    const char *reason = ERR_reason_error_string(first);
    bool system = ERR_SYSTEM_ERROR(first);

    ERR_clear_error();
    if (system)
        return err_sysno(ERR_GET_REASON(first), "%s '%s'", what, path);
    return err_new(ERR_INVALID, "%s '%s': %s: %s", what, path, reason ? reason : "unusable", hint);
}

static fallible load_key(const char *path, bool *asked, EVP_PKEY **ret_key)
{
    BIO *file = BIO_new_file(path, "r");

    if (!file)
        return file_error("key", path, "is it readable?");
    EVP_PKEY *key = PEM_read_bio_PrivateKey(file, NULL, refuse_password, asked);
    BIO_free(file);
    if (key) {
        *ret_key = key;
        return NULL;
    }
    if (!*asked)
        return file_error("key", path, "is it a PEM private key?");
    ERR_clear_error();
    return err_new(ERR_INVALID, "key '%s' is encrypted: store it without a password", path);
}

static fallible use_files(SSL_CTX *ssl, const char *certificate, const char *path)
{
    bool asked = false;
    EVP_PKEY *key = NULL;

    ERR_clear_error();
    SSL_CTX_set_default_passwd_cb(ssl, refuse_password);
    SSL_CTX_set_default_passwd_cb_userdata(ssl, &asked);
    int loaded = SSL_CTX_use_certificate_chain_file(ssl, certificate);
    SSL_CTX_set_default_passwd_cb_userdata(ssl, NULL);
    if (loaded != 1)
        return file_error("certificate", certificate, "is it PEM, the server's own first?");
    TRY(load_key(path, &asked, &key));
    bool fits = X509_check_private_key(SSL_CTX_get0_certificate(ssl), key) == 1;
    bool used = fits && SSL_CTX_use_PrivateKey(ssl, key) == 1;
    EVP_PKEY_free(key);
    ERR_clear_error();
    if (!fits)
        return err_new(ERR_INVALID, "key '%s' does not belong to certificate '%s'", path,
                       certificate);
    if (!used)
        return err_new(ERR_INVALID, "key '%s' cannot be used", path);
    return NULL;
}

static fallible server_ctx(const struct tls_server *server, struct tls_ctx **ret_ctx)
{
    TRY(init_openssl());
    own(tls_ctx) ctx = tls_ctx_new(TLS_server_method());
    if (!ctx)
        return no_openssl();
    TRY(use_files(ctx->ssl, server->certificate, server->key));
    *ret_ctx = take(&ctx);
    return NULL;
}

/* --- servers --- */

fallible tls_server_new(const struct tls_config *config, struct tls_server **ret_server)
{
    own(tls_server) server = mem_new(sizeof *server);

    server->certificate = mem_dup_cstr(config->certificate);
    server->key = mem_dup_cstr(config->key);
    TRY(server_ctx(server, &server->ctx));
    *ret_server = take(&server);
    return NULL;
}

void tls_server_free(struct tls_server *server)
{
    if (!server)
        return;
    tls_ctx_unref(server->ctx);
    free(server->certificate);
    free(server->key);
    free(server);
}

fallible tls_server_reload(struct tls_server *server)
{
    struct tls_ctx *fresh = NULL;

    TRY_WRAP(server_ctx(server, &fresh), "reload TLS");
    tls_ctx_unref(server->ctx);
    server->ctx = fresh;
    return NULL;
}

fallible tls_server_filter(void *ctx, struct stream *s)
{
    struct tls_server *server = ctx;
    SSL *ssl = SSL_new(server->ctx->ssl);

    if (!ssl) {
        ERR_clear_error();
        return err_no_memory();
    }
    SSL_set_accept_state(ssl);
    return tls_filter_start(server->ctx, ssl, s);
}

/* --- clients --- */

fallible tls_client_new(const char *ca_file, struct tls_client **ret_client)
{
    own(tls_client) client = mem_new(sizeof *client);

    TRY(init_openssl());
    client->ctx = tls_ctx_new(TLS_client_method());
    if (!client->ctx)
        return no_openssl();
    SSL_CTX *ssl = client->ctx->ssl;
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    ERR_clear_error();
    if (ca_file && SSL_CTX_load_verify_file(ssl, ca_file) != 1)
        return file_error("trusted certificates", ca_file, "is it PEM?");
    if (!ca_file && SSL_CTX_set_default_verify_paths(ssl) != 1)
        return file_error("trusted certificates", "system", "install ca-certificates");
    *ret_client = take(&client);
    return NULL;
}

void tls_client_free(struct tls_client *client)
{
    if (!client)
        return;
    tls_ctx_unref(client->ctx);
    free(client);
}

/* An address is looked for among the certificate's addresses and is no SNI. */
static bool expect_host(SSL *ssl, const char *host)
{
    struct in6_addr scratch;

    if (inet_pton(AF_INET, host, &scratch) == 1 || inet_pton(AF_INET6, host, &scratch) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

fallible tls_client_filter(struct tls_client *client, struct stream *s, struct str host)
{
    char name[HOST_MAX + 1];

    if (host.len == 0 || host.len > HOST_MAX || memchr(host.p, '\0', host.len))
        return err_new(ERR_INVALID, "host '" STR_FMT "' must have 1 to %d bytes",
                       STR_ARG(str_first(host, 80)), HOST_MAX);
    memcpy(name, host.p, host.len);
    name[host.len] = '\0';
    SSL *ssl = SSL_new(client->ctx->ssl);
    if (!ssl || !expect_host(ssl, name)) {
        SSL_free(ssl);
        ERR_clear_error();
        return err_no_memory();
    }
    SSL_set_connect_state(ssl);
    return tls_filter_start(client->ctx, ssl, s);
}
