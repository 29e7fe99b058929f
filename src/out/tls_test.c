// SPDX-License-Identifier: Apache-2.0
/* tls_test.c — an HTTPS server against clients that are not ours: OpenSSL's, curl, and rude ones.
 */
#include "out/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "test/program.h"
#include "test/site.h"
#include "test/test.h"

#define HELLO STR("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n")

static void check_hello(struct site_client *c)
{
    char answer[1024];

    site_client_send(c, HELLO);
    CHECK_HAS(site_client_answer(c, answer, sizeof answer), "HTTP/1.1 200 OK\r\n");
    CHECK_HAS(answer, "\r\n\r\nhello");
}

static void client_hello(const struct site *site)
{
    struct site_client c;

    site_client_open(site, 0, &c);
    check_hello(&c);
    site_client_close(&c);
}

/* --- what must work --- */

static void client_keep_alive(const struct site *site)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    char answer[4096];

    for (size_t v = 0; v < ARRAY_LEN(versions); v++) {
        struct site_client c;
        site_client_open(site, versions[v], &c);
        CHECK_INT(SSL_version(c.ssl), versions[v]);
        for (int i = 0; i < 50; i++)
            check_hello(&c);
        site_client_send(&c, STR("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n"
                                 "GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"));
        size_t len = 0;
        int n;
        while ((n = SSL_read(c.ssl, answer + len, (int)(sizeof answer - len))) > 0)
            len += (size_t)n;
        CHECK_INT(SSL_get_error(c.ssl, n), SSL_ERROR_ZERO_RETURN); /* a goodbye, not a cut */
        struct str all = str_n(answer, len);
        CHECK_HAS(all, "connection: close");
        CHECK(str_ends(all, STR("hello")) && str_find(all, STR("helloHTTP/1.1 200")) > 0);
        site_client_close(&c);
    }
}

TEST(a_tls_connection_serves_many_requests)
{
    struct site site;

    site_open(&site, NULL);
    site_visit(&site, client_keep_alive);
    site_close(&site);
}

static void client_upload(const struct site *site)
{
    struct site_client c;
    char piece[70001], answer[1024];

    site_client_open(site, 0, &c);
    int n = snprintf(piece, sizeof piece,
                     "POST /up HTTP/1.1\r\nhost: x\r\ncontent-length: %u\r\n\r\n", SITE_BYTES);
    site_client_send(&c, str_n(piece, (size_t)n));
    for (uint64_t at = 0; at < SITE_BYTES;) {
        size_t len = SITE_BYTES - at < sizeof piece ? SITE_BYTES - at : sizeof piece;
        for (size_t i = 0; i < len; i++)
            piece[i] = (char)site_byte(at + i);
        site_client_send(&c, str_n(piece, len));
        at += len;
    }
    CHECK_HAS(site_client_answer(&c, answer, sizeof answer), "ok 20971520");
    check_hello(&c);
    site_client_close(&c);
}

TEST(twenty_megabytes_go_up_unchanged)
{
    struct site site;

    site_open(&site, NULL);
    site_visit(&site, client_upload);
    site_close(&site);
}

/* Reads until the peer ends; the body must be the whole pattern. */
static void check_down(struct site_client *c)
{
    char *p = mem_new(SITE_BYTES + 4096);
    size_t len = 0;
    int n;

    while ((n = SSL_read(c->ssl, p + len, (int)(SITE_BYTES + 4096 - len))) > 0)
        len += (size_t)n;
    CHECK_INT(SSL_get_error(c->ssl, n), SSL_ERROR_ZERO_RETURN);
    ptrdiff_t head = str_find(str_n(p, len), STR("\r\n\r\n"));
    CHECK(head > 0);
    CHECK_INT(len - (size_t)head - 4, SITE_BYTES);
    for (size_t i = 0; i < SITE_BYTES; i++)
        if ((unsigned char)p[(size_t)head + 4 + i] != site_byte(i))
            FAIL("byte %zu differs", i);
    free(p);
}

static void client_download(const struct site *site)
{
    struct site_client c;

    site_client_open(site, 0, &c);
    site_client_send(&c, STR("GET /down HTTP/1.0\r\n\r\n"));
    check_down(&c);
    site_client_close(&c);
}

TEST(twenty_megabytes_come_down_unchanged)
{
    struct site site;

    site_open(&site, NULL);
    site_visit(&site, client_download);
    site_close(&site);
}

static void client_half_closed(const struct site *site)
{
    struct site_client c;
    char piece[16384], last[5] = "";
    int n;

    site_client_open(site, 0, &c);
    site_client_send(&c, STR("GET /down HTTP/1.1\r\nhost: x\r\n\r\n"));
    CHECK_INT(SSL_shutdown(c.ssl), 0);
    CHECK(shutdown(c.fd, SHUT_WR) == 0);
    while ((n = SSL_read(c.ssl, piece, sizeof piece)) > 0)
        if (n >= 5)
            memcpy(last, piece + n - 5, 5);
    CHECK_INT(SSL_get_error(c.ssl, n), SSL_ERROR_ZERO_RETURN);
    CHECK_STR(str_n(last, 5), STR("0\r\n\r\n"));
    site_client_close(&c);
}

TEST(a_client_that_said_goodbye_still_gets_its_answer)
{
    struct site site;

    site_open(&site, NULL);
    site_visit(&site, client_half_closed);
    site_close(&site);
}

static void run(const char *const *argv, const char *must_print)
{
    own_done(buf) text;

    buf_init(&text, 1u << 20);
    int code = program_run(argv, &text);
    if (code)
        FAIL("%s: exit %d: " STR_FMT, argv[0], code, STR_ARG(buf_str(&text)));
    CHECK_HAS(buf_str(&text), must_print);
}

static bool have(const char *program)
{
    char path[64];

    snprintf(path, sizeof path, "/usr/bin/%s", program);
    return access(path, X_OK) == 0;
}

static void client_curl(const struct site *site)
{
    char url[64];

    snprintf(url, sizeof url, "https://localhost:%d/hello", site->port);
    run(ARGS("curl", "-sS", "--noproxy", "*", "--max-time", "20", "--cacert",
             site->cert.certificate, "-i", url, url),
        "helloHTTP/1.1 200 OK");
}

TEST(curl_trusts_and_gets)
{
    struct site site;

    if (!have("curl"))
        SKIP("curl is not installed");
    site_open(&site, NULL);
    site_visit(&site, client_curl);
    site_close(&site);
}

static void client_s_client(const struct site *site)
{
    char command[1024];

    snprintf(command, sizeof command,
             "printf 'GET /hello HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet "
             "-verify_return_error -CAfile %s -connect 127.0.0.1:%d",
             site->cert.certificate, site->port);
    run(ARGS("sh", "-c", command), "\r\n\r\nhello");
}

TEST(s_client_trusts_and_gets)
{
    struct site site;

    if (!have("openssl"))
        SKIP("openssl is not installed");
    site_open(&site, NULL);
    site_visit(&site, client_s_client);
    site_close(&site);
}

/* --- what must be refused, and must hurt nobody else --- */

/* All that comes until the server closes; a reset counts as closing. */
static size_t read_to_end(int fd, char *out, size_t size)
{
    size_t len = 0;
    ssize_t n = 0;

    while (len < size && (n = recv(fd, out + len, size - len, 0)) > 0)
        len += (size_t)n;
    CHECK(n == 0 || errno == ECONNRESET);
    return len;
}

static void client_plain(const struct site *site)
{
    char answer[1024];
    int fd = site_connect(site);

    CHECK_OK(fd_write_all(fd, HELLO));
    struct str got = str_n(answer, read_to_end(fd, answer, sizeof answer));
    CHECK_HAS(got, "HTTP/1.1 400 ");
    CHECK_HAS(got, "use https");
    close(fd);
    fd = site_connect(site);
    CHECK_OK(fd_write_all(fd, STR("\x16\x03\x01\xff\xff garbage that no record may hold")));
    read_to_end(fd, answer, sizeof answer);
    close(fd);
    client_hello(site);
}

TEST(plain_http_and_garbage_are_turned_away)
{
    struct site site;

    site_open(&site, NULL);
    site_visit(&site, client_plain);
    site_close(&site);
}

static void client_silent(const struct site *site)
{
    static const char half_hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    char answer[64];
    int silent = site_connect(site), slow = site_connect(site);

    for (size_t i = 0; i < sizeof half_hello - 1; i++)
        CHECK_OK(fd_write_all(slow, str_n(half_hello + i, 1)));
    CHECK_INT(read_to_end(silent, answer, sizeof answer), 0);
    CHECK_INT(read_to_end(slow, answer, sizeof answer), 0);
    client_hello(site);
}

TEST(a_client_that_never_ends_its_handshake_is_cut)
{
    struct site site;

    site_open(&site, &(struct http_limits){.head_ms = 200});
    site_visit(&site, client_silent);
    site_close(&site);
}

static void client_abrupt(const struct site *site)
{
    struct site_client c;
    int fd = site_connect(site);

    CHECK_OK(fd_write_all(fd, STR("\x16\x03\x01\x02\x00\x01\x00")));
    close(fd);
    fd = site_connect(site);
    CHECK(shutdown(fd, SHUT_WR) == 0);
    close(fd);
    static const struct str begun[] = {
        STR_INIT("POST /up HTTP/1.1\r\nhost: x\r\ncontent-length: 90000\r\n\r\nx"),
        STR_INIT("POST /whole HTTP/1.1\r\nhost: x\r\ncontent-length: 90000\r\n\r\nx"),
        STR_INIT("GET /down HTTP/1.1\r\nhost: x\r\n\r\n"),
    };
    for (size_t i = 0; i < ARRAY_LEN(begun); i++) {
        site_client_open(site, 0, &c);
        site_client_send(&c, begun[i]);
        struct linger reset = {1, 0};
        CHECK(setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
        close(c.fd);
    }
    client_hello(site);
}

TEST(connections_that_break_anywhere_are_forgotten)
{
    struct site site;

    site_open(&site, NULL);
    site_visit(&site, client_abrupt);
    site_wait_empty(&site);
    site_close(&site);
}

static void client_old(const struct site *site)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    int fd = site_connect(site);

    SSL_CTX_set_cipher_list(ctx, "ALL:@SECLEVEL=0");
    SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(ctx, TLS1_1_VERSION);
    SSL *ssl = SSL_new(ctx);
    CHECK(SSL_set_fd(ssl, fd) == 1);
    CHECK_INT(SSL_connect(ssl), -1);
    CHECK_INT(ERR_GET_REASON(ERR_peek_error()), SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
    client_hello(site);
}

TEST(tls_1_1_is_refused)
{
    struct site site;

    site_open(&site, NULL);
    site_visit(&site, client_old);
    site_close(&site);
}

/* --- certificates --- */

static void check_name(struct site_client *c, const char *name)
{
    char got[64] = "";
    X509 *x = SSL_get1_peer_certificate(c->ssl);

    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, got, sizeof got);
    CHECK_STR(got, name);
    X509_free(x);
}

static void client_first(const struct site *site)
{
    struct site_client c;

    site_client_open(site, 0, &c);
    check_name(&c, "first");
    site_client_close(&c);
}

static void client_second(const struct site *site)
{
    struct site_client c;

    site_client_open(site, 0, &c);
    check_name(&c, "second");
    site_client_close(&c);
}

TEST(reload_changes_certificates_or_nothing)
{
    struct site site;
    struct test_cert second;

    site_open(&site, NULL);
    site_visit(&site, client_first);
    test_cert_make("second", &second);
    CHECK(rename(second.certificate, site.cert.certificate) == 0);
    CHECK_ERR(tls_server_reload(site.tls), ERR_INVALID, "does not belong to certificate");
    CHECK(rename(second.key, site.cert.key) == 0);
    CHECK_OK(tls_server_reload(site.tls));
    site_visit(&site, client_second);
    CHECK(unlink(site.cert.key) == 0);
    CHECK_ERR(tls_server_reload(site.tls), ERR_NOT_FOUND, "reload TLS: key '");
    site_visit(&site, client_second);
    site_close(&site);
}

TEST(unusable_files_are_named_with_a_remedy)
{
    struct test_cert a, b;
    struct tls_server *server;
    char path[300];

    test_cert_make("a", &a);
    test_cert_make("b", &b);
    CHECK_ERR(tls_server_new(&(struct tls_config){a.certificate, b.key}, &server), ERR_INVALID,
              "does not belong to certificate");
    CHECK_ERR(tls_server_new(&(struct tls_config){"/none.pem", a.key}, &server), ERR_NOT_FOUND,
              "certificate '/none.pem'");
    CHECK_ERR(tls_server_new(&(struct tls_config){a.key, a.key}, &server), ERR_INVALID,
              "no start line: is it PEM");
    CHECK_ERR(tls_server_new(&(struct tls_config){a.certificate, a.certificate}, &server),
              ERR_INVALID, "is it a PEM private key?");
    snprintf(path, sizeof path, "%s/locked.key", test_dir());
    test_cert_encrypt_key(&a, path);
    CHECK_ERR(tls_server_new(&(struct tls_config){a.certificate, path}, &server), ERR_INVALID,
              "store it without a password");
}

/* --- faults --- */

/* Answers each byte on the pipe with one request, however that ends, and says whether it went well.
 */
static void visit_on_demand(const struct site *site, int orders, int results)
{
    char byte, answer[1024];

    while (read(orders, &byte, 1) == 1) {
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        SSL *ssl = SSL_new(ctx);
        int fd = site_connect(site), n = 0;
        SSL_set_fd(ssl, fd);
        if (SSL_connect(ssl) == 1 && SSL_write(ssl, HELLO.p, (int)HELLO.len) > 0)
            n = SSL_read(ssl, answer, sizeof answer);
        byte = n > 0 && str_ends(str_n(answer, (size_t)n), STR("hello")) ? 'y' : 'n';
        SSL_shutdown(ssl);
        SSL_free(ssl);
        SSL_CTX_free(ctx);
        close(fd);
        CHECK(write(results, &byte, 1) == 1);
    }
    _exit(0);
}

/* One request with the n-th call failing; 0: none. */
static char visit_with_fault(struct site *site, int orders, int results, unsigned n)
{
    char byte = '?';

    CHECK(write(orders, "1", 1) == 1);
    fault_at(n);
    while (poll(&(struct pollfd){results, POLLIN, 0}, 1, 0) == 0)
        CHECK_OK(loop_turn(site->loop, 1));
    bool fired = fault_fired();
    fault_at(0);
    CHECK(read(results, &byte, 1) == 1);
    site_wait_empty(site);
    return fired || n == 0 ? byte : '.';
}

TEST_LIMIT(a_fault_ends_one_request_only, 120)
{
    struct site site;
    int orders[2], results[2];
    unsigned spoilt = 0, n = 1;

    site_open(&site, &(struct http_limits){.head_ms = 500, .idle_ms = 500});
    CHECK(pipe2(orders, O_CLOEXEC) == 0 && pipe2(results, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(orders[1]);
        visit_on_demand(&site, orders[0], results[1]);
    }
    close(orders[0]);
    close(results[1]);
    CHECK(visit_with_fault(&site, orders[1], results[0], 0) == 'y');
    unsigned fds = test_open_fds();
    for (char how; (how = visit_with_fault(&site, orders[1], results[0], n)) != '.'; n++) {
        spoilt += how == 'n';
        if (visit_with_fault(&site, orders[1], results[0], 0) != 'y')
            FAIL("after a fault in call %u the server is ill", n);
        CHECK_INT(test_open_fds(), fds);
    }
    CHECK(n > 8 && spoilt > 3); /* the handshake alone has so many calls */
    close(orders[1]);
    close(results[0]);
    CHECK(waitpid(pid, NULL, 0) == pid);
    site_close(&site);
}
