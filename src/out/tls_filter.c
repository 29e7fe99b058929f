// SPDX-License-Identifier: Apache-2.0
/* tls_filter.c — a stream's bytes through OpenSSL. The socket is reached by a BIO of our own: the
 * one OpenSSL has writes with write(2), which raises SIGPIPE. Handshakes happen inside the first
 * reads and writes. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/stream.h"
#include "out/tls_inner.h"

#define READ_BUFFER (32u << 10) /* two records; exists only while one is incomplete */

struct tls_conn {
    SSL *ssl;
    struct tls_ctx *ctx;
    unsigned long reason; /* OpenSSL's word for what broke it */
    int fd;               /* borrowed for a call */
    int io_errno;         /* of the socket, for OpenSSL may overwrite errno */
    bool eof, broken;
};

/* --- the socket, as OpenSSL sees it --- */

static int bio_result(BIO *bio, struct tls_conn *t, ssize_t n, int retry_flag)
{
    BIO_clear_retry_flags(bio);
    if (n >= 0)
        return (int)n;
    t->io_errno = errno;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        BIO_set_flags(bio, retry_flag | BIO_FLAGS_SHOULD_RETRY);
    return -1;
}

static int bio_read(BIO *bio, char *p, int n)
{
    struct tls_conn *t = BIO_get_data(bio);
    ssize_t got = recv(t->fd, p, (size_t)n, MSG_DONTWAIT);

    t->eof |= got == 0;
    return bio_result(bio, t, got, BIO_FLAGS_READ);
}

static int bio_write(BIO *bio, const char *p, int n)
{
    struct tls_conn *t = BIO_get_data(bio);

    return bio_result(bio, t, send(t->fd, p, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT),
                      BIO_FLAGS_WRITE);
}

static long bio_ctrl(BIO *bio, int cmd, long number, void *p)
{
    const struct tls_conn *t = BIO_get_data(bio);

    (void)number;
    (void)p;
    if (cmd == BIO_CTRL_EOF)
        return t && t->eof;
    return cmd == BIO_CTRL_FLUSH;
}

BIO_METHOD *tls_bio_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "stream");

    if (!m)
        return NULL;
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_ctrl(m, bio_ctrl);
    return m;
}

/* --- the filter --- */

/* Browsers and scripts that mistook the port are told so in their own language. */
static void answer_plain_http(struct tls_conn *t)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n"
                               "content-type: text/plain\r\n\r\n"
                               "this port speaks TLS: use https\n";

    send(t->fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t wait_for(uint32_t events, uint32_t *ret_want)
{
    *ret_want = events;
    errno = EAGAIN;
    return -1;
}

static ssize_t tls_broken(struct tls_conn *t, int errnum)
{
    if (errnum == EPROTO)
        t->reason = ERR_peek_error();
    if (ERR_GET_LIB(t->reason) == ERR_LIB_SSL && ERR_GET_REASON(t->reason) == SSL_R_HTTP_REQUEST)
        answer_plain_http(t);
    t->broken = true;
    ERR_clear_error(); /* the queue is the thread's, not ours */
    errno = errnum;
    return -1;
}

/* Explains a call that gave no byte. 0: the peer closed properly. */
static ssize_t tls_explain(struct tls_conn *t, int result, uint32_t *ret_want)
{
    switch (SSL_get_error(t->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return wait_for(EPOLLIN, ret_want);
    case SSL_ERROR_WANT_WRITE:
        return wait_for(EPOLLOUT, ret_want);
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        return tls_broken(t, t->eof || !t->io_errno ? ECONNRESET : t->io_errno);
    default: /* an end without goodbye may be an attacker's cut: not an EOF */
        return tls_broken(t, t->eof ? ECONNRESET : EPROTO);
    }
}

static void tls_enter(struct tls_conn *t, int fd)
{
    t->fd = fd;
    t->io_errno = 0;
    ERR_clear_error();
}

static ssize_t tls_read(void *state, int fd, void *p, size_t n, uint32_t *ret_want)
{
    struct tls_conn *t = state;
    size_t got = 0;

    if (t->broken) {
        errno = t->reason ? EPROTO : ECONNRESET;
        return -1;
    }
    tls_enter(t, fd);
    int result = SSL_read_ex(t->ssl, p, n, &got);
    if (result != 1)
        return tls_explain(t, result, ret_want);
    /* Read several records in one call, but only after the handshake: a write takes part in that,
     * and must not leave data in here that no read will ask for. */
    SSL_set_read_ahead(t->ssl, 1);
    return (ssize_t)got;
}

static ssize_t tls_write(void *state, int fd, const void *p, size_t n, uint32_t *ret_want)
{
    struct tls_conn *t = state;
    size_t taken = 0;

    if (t->broken) {
        errno = t->reason ? EPROTO : EPIPE;
        return -1;
    }
    tls_enter(t, fd);
    int result = SSL_write_ex(t->ssl, p, n, &taken);
    if (result == 1)
        return (ssize_t)taken;
    ssize_t why = tls_explain(t, result, ret_want);
    return why == 0 ? tls_broken(t, EPIPE) : why;
}

static int tls_shutdown(void *state, int fd, uint32_t *ret_want)
{
    struct tls_conn *t = state;

    if (t->broken || !SSL_is_init_finished(t->ssl))
        return 0;
    tls_enter(t, fd);
    int result = SSL_shutdown(t->ssl);
    return result < 0 ? (int)tls_explain(t, result, ret_want) : 0;
}

static fallible tls_why(void *state)
{
    struct tls_conn *t = state;
    const char *reason = ERR_reason_error_string(t->reason);
    long verified = SSL_get_verify_result(t->ssl);

    if (verified != X509_V_OK)
        return err_new(ERR_UPSTREAM, "TLS: the peer's certificate is not trusted: %s",
                       X509_verify_cert_error_string(verified));
    return err_new(ERR_UPSTREAM, "TLS: %s", reason ? reason : "protocol error");
}

static void tls_free(void *state)
{
    struct tls_conn *t = state;

    SSL_free(t->ssl);
    tls_ctx_unref(t->ctx);
    free(t);
}

static const struct stream_filter filter = {
    .read = tls_read,
    .write = tls_write,
    .shutdown = tls_shutdown,
    .why = tls_why,
    .free = tls_free,
};

fallible tls_filter_start(struct tls_ctx *ctx, SSL *ssl, struct stream *s)
{
    struct tls_conn *t = mem_try(sizeof *t);
    BIO *bio = t ? BIO_new(ctx->bio) : NULL;

    if (!bio) {
        free(t);
        SSL_free(ssl);
        ERR_clear_error();
        return err_no_memory();
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_default_read_buffer_len(ssl, READ_BUFFER);
    t->ssl = ssl;
    t->ctx = tls_ctx_ref(ctx);
    stream_set_filter(s, &filter, t);
    return NULL;
}
