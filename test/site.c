// SPDX-License-Identifier: Apache-2.0
/* site.c — see site.h. */
#include "test/site.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/router.h"
#include "net/ws.h"
#include "test/test.h"
#include "test/wire.h"

#define PIECE 50000u /* does not divide a record */

struct transfer {
    uint64_t at;
    bool wrong;
};

unsigned char site_byte(uint64_t at)
{
    return (unsigned char)((uint32_t)(at * 2654435761u) >> 24);
}

/* --- handlers --- */

static void on_site_gone(struct http_req *req)
{
    http_reply_abort(req);
}

static fallible handle_hello(struct http_req *req)
{
    http_reply(req, 200, STR("text/plain"), STR("hello"));
    return NULL;
}

static fallible on_up_body(struct http_req *req, struct str piece)
{
    struct transfer *t = req->user;

    for (size_t i = 0; i < piece.len; i++)
        t->wrong |= (unsigned char)piece.p[i] != site_byte(t->at + i);
    t->at += piece.len;
    if (piece.len == 0)
        http_reply(req, 200, STR("text/plain"),
                   arena_printf(&req->arena, "%s %llu", t->wrong ? "wrong" : "ok",
                                (unsigned long long)t->at));
    return NULL;
}

static fallible handle_up(struct http_req *req)
{
    req->user = arena_new(&req->arena, struct transfer);
    req->on_body = on_up_body;
    req->on_gone = on_site_gone;
    return arena_check(&req->arena);
}

static void on_down_drain(struct http_req *req)
{
    struct transfer *t = req->user;
    char piece[PIECE];

    while (t->at < SITE_BYTES && http_reply_pending(req) < STREAM_HIGH) {
        size_t n = SITE_BYTES - t->at < PIECE ? SITE_BYTES - t->at : PIECE;
        for (size_t i = 0; i < n; i++)
            piece[i] = (char)site_byte(t->at + i);
        http_reply_write(req, str_n(piece, n));
        t->at += n;
    }
    if (t->at < SITE_BYTES)
        return;
    req->on_drain = NULL;
    http_reply_end(req);
}

static fallible handle_down(struct http_req *req)
{
    req->user = arena_new(&req->arena, struct transfer);
    TRY(arena_check(&req->arena));
    req->on_drain = on_down_drain;
    req->on_gone = on_site_gone;
    http_reply_begin(req, 200, STR("text/plain"), HTTP_LENGTH_UNKNOWN);
    on_down_drain(req);
    return NULL;
}

static void on_cut_drain(struct http_req *req)
{
    http_reply_abort(req);
}

static fallible handle_cut(struct http_req *req)
{
    static const char half[STREAM_HIGH];

    http_reply_begin(req, 200, STR("text/plain"), 2 * sizeof half);
    req->on_drain = on_cut_drain;
    req->on_gone = on_site_gone;
    http_reply_write(req, str_n(half, sizeof half));
    return NULL;
}

static void on_ws_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    ws_send(ws, kind, data);
}

static void on_ws_close(struct ws *ws, int code, struct str reason)
{
    (void)ws;
    (void)code;
    (void)reason;
}

static fallible handle_ws(struct http_req *req)
{
    static const struct ws_events events = {.on_message = on_ws_message, .on_close = on_ws_close};
    struct ws *ws;

    TRY(ws_accept(req, NULL, &events, NULL, &ws));
    ws_send(ws, WS_TEXT, STR("welcome")); /* in one record with the 101 */
    return NULL;
}

static const struct route routes[] = {
    {"GET", "/hello", handle_hello, .flags = ROUTE_OPEN},
    {"POST", "/up", handle_up, .flags = ROUTE_OPEN | ROUTE_STREAM},
    {"POST", "/whole", handle_hello, .flags = ROUTE_OPEN},
    {"GET", "/down", handle_down, .flags = ROUTE_OPEN},
    {"GET", "/cut", handle_cut, .flags = ROUTE_OPEN},
    {"GET", "/ws", handle_ws, .flags = ROUTE_OPEN},
};

/* --- the server --- */

void site_open(struct site *site, const struct http_limits *limits)
{
    struct sockaddr_in addr = {0};
    socklen_t len = sizeof addr;
    int fd;

    *site = (struct site){0};
    test_cert_make("first", &site->cert);
    CHECK_OK(loop_new(&clock_system, &site->loop));
    CHECK_OK(net_new(site->loop, &site->net));
    site->router = router_new(NULL);
    router_add(site->router, routes, ARRAY_LEN(routes), site);
    CHECK_OK(
        tls_server_new(&(struct tls_config){site->cert.certificate, site->cert.key}, &site->tls));
    struct http_server_config config = {
        .router = site->router, .filter = tls_server_filter, .filter_ctx = site->tls};
    if (limits)
        config.limits = *limits;
    CHECK_OK(http_server_new(site->net, &config, &site->server));
    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK(getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
    site->port = ntohs(addr.sin_port);
    CHECK_OK(http_server_listen(site->server, fd));
}

void site_wait_empty(struct site *site)
{
    while (http_server_connections(site->server))
        CHECK_OK(loop_turn(site->loop, 1000));
}

void site_close(struct site *site)
{
    site_wait_empty(site);
    http_server_free(site->server);
    tls_server_free(site->tls);
    router_free(site->router);
    CHECK_OK(loop_turn(site->loop, 0));
    loop_free(site->loop);
    net_free(site->net);
}

static void on_client_end(struct loop_child *c)
{
    (void)c; /* its code says enough */
}

void site_visit(struct site *site, void (*client)(const struct site *site))
{
    struct loop_child child = {0};

    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        client(site);
        fflush(stdout);
        _exit(0);
    }
    CHECK_OK(loop_child_start(site->loop, &child, pid, -1, on_client_end));
    while (!child.code)
        CHECK_OK(loop_turn(site->loop, 1000));
    if (child.code != CLD_EXITED || child.status != 0)
        FAIL("the client failed: code %d, status %d", child.code, child.status);
}

/* --- clients --- */

int site_connect(const struct site *site)
{
    return wire_connect(&(struct wire){.port = (uint16_t)site->port});
}

void site_client_open(const struct site *site, int version, struct site_client *c)
{
    c->ctx = SSL_CTX_new(TLS_client_method());
    CHECK(SSL_CTX_load_verify_file(c->ctx, site->cert.certificate) == 1);
    SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
    if (version) {
        SSL_CTX_set_min_proto_version(c->ctx, version);
        SSL_CTX_set_max_proto_version(c->ctx, version);
    }
    c->fd = site_connect(site);
    c->ssl = SSL_new(c->ctx);
    CHECK(c->ssl && SSL_set_fd(c->ssl, c->fd) == 1);
    CHECK_INT(SSL_connect(c->ssl), 1);
}

void site_client_close(struct site_client *c)
{
    SSL_shutdown(c->ssl);
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    close(c->fd);
}

void site_client_send(struct site_client *c, struct str data)
{
    CHECK_INT(SSL_write(c->ssl, data.p, (int)data.len), data.len);
}

const char *site_client_answer(struct site_client *c, char *out, size_t size)
{
    size_t len = 0, body = 0, want = 0;

    while (!body || len - body < want) {
        int n = SSL_read(c->ssl, out + len, (int)(size - len - 1));
        if (n <= 0)
            FAIL("the answer ends after %zu bytes", len);
        len += (size_t)n;
        out[len] = '\0';
        const char *end = strstr(out, "\r\n\r\n"), *length = strstr(out, "content-length: ");
        if (!body && end) {
            body = (size_t)(end - out) + 4;
            want = length ? (size_t)atol(length + 16) : 0;
        }
    }
    return out;
}
