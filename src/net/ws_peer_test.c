// SPDX-License-Identifier: Apache-2.0
/* ws_peer_test.c — see ws_peer.h. */
#include "net/ws_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/ws_handshake.h"
#include "test/test.h"

#define TOLD_MAX   (4u << 20)
#define TEST_KEY   "dGhlIHNhbXBsZSBub25jZQ=="
#define PATIENCE_S 110 /* below the time limit of a test, which does not say for what */

/* --- the server's side --- */

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct ws_rig *r = ws_owner(ws);
    struct ws_event ev = {kind == WS_TEXT ? WS_EV_TEXT : WS_EV_BINARY, 0, data};

    if (!r->quiet && r->told.len < TOLD_MAX / 2)
        ws_case_print(&r->told, &ev);
    if (!r->silent)
        ws_send(ws, kind, data);
    if (r->pause_each)
        ws_pause(ws);
}

static void on_close(struct ws *ws, int code, struct str reason)
{
    struct ws_rig *r = ws_owner(ws);
    struct ws_event ev = {WS_EV_CLOSE, code, reason};

    if (!r->quiet)
        ws_case_print(&r->told, &ev);
    r->closed++;
    if (r->ws == ws)
        r->ws = NULL;
}

static const struct ws_events echo_events = {.on_message = on_message, .on_close = on_close};

static fallible handle_echo(struct http_req *req)
{
    struct ws_rig *r = req->owner;

    TRY(ws_accept(req, &r->config, &echo_events, r, &r->ws));
    r->opened++;
    return NULL;
}

static const struct route routes[] = {
    {.method = "GET", .pattern = "/echo", .handle = handle_echo},
    {.method = "POST", .pattern = "/echo", .handle = handle_echo},
};

void ws_rig_init(struct ws_rig *r)
{
    *r = (struct ws_rig){.opened = 0};
    buf_init(&r->told, TOLD_MAX);
    CHECK_OK(loop_new(&clock_system, &r->loop));
    CHECK_OK(net_new(r->loop, &r->net));
    r->router = router_new(&(struct router_config){0});
    router_add(r->router, routes, ARRAY_LEN(routes), r);
    struct http_server_config config = {.router = r->router};
    CHECK_OK(http_server_new(r->net, &config, &r->server));
}

fallible ws_rig_connect(struct ws_rig *r, struct str url, const struct ws_config *config,
                        const struct ws_events *events, void *owner, struct ws **ret_ws)
{
    static const struct stream_events none = {0};
    struct sockaddr_storage addr;
    struct stream *s;
    struct url u;
    socklen_t len;
    int fd;

    CHECK_OK(url_parse(url, &u));
    if (str_eq(u.scheme, STR("unix")))
        CHECK_OK(addr_unix(u.host, &addr, &len));
    else
        CHECK(addr_numeric(u.host, u.port, &addr, &len));
    TRY(connect_start(&addr, len, &fd));
    TRY(stream_new(r->net, fd, &none, NULL, &s));
    return ws_connect(s, url, STR("X-Extra: 1\r\n"), config, events, owner, ret_ws);
}

void ws_rig_listen(struct ws_rig *r)
{
    char address[200];
    int fd;

    snprintf(address, sizeof address, "unix:%s/ws.sock", test_dir());
    CHECK_OK(listen_open(str_of(address), &fd));
    CHECK_OK(http_server_listen(r->server, fd));
    snprintf(r->url, sizeof r->url, "%s:/echo", address);
}

void ws_rig_done(struct ws_rig *r)
{
    ws_abort(r->ws);
    http_server_free(r->server);
    for (int i = 0; i < 3; i++)
        CHECK_OK(loop_turn(r->loop, 0)); /* what was closed is freed after a turn */
    router_free(r->router);
    loop_free(r->loop);
    net_free(r->net);
    buf_done(&r->told);
}

void ws_rig_until(struct ws_rig *r, bool (*done)(void *ctx), void *ctx)
{
    uint64_t end_ns = clock_mono_ns(&clock_system) + PATIENCE_S * NS_PER_S;

    while (!done(ctx)) {
        if (clock_mono_ns(&clock_system) > end_ns)
            FAIL("waited for nothing; the server was told '" STR_FMT "'",
                 STR_ARG(buf_str(&r->told)));
        CHECK_OK(loop_turn(r->loop, 2));
    }
}

/* --- the raw peer --- */

static void peer_init(struct ws_peer *p, struct ws_rig *r, enum ws_role role, int fd)
{
    *p = (struct ws_peer){.rig = r, .role = role, .fd = fd};
    struct ws_deflate_terms terms = {
        .on = true, .send_bits = 15, .receive_bits = 15, .receive_forgets = true};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    ws_reader_init(&p->reader, role, 32u << 20, &terms);
    buf_init(&p->head, 1u << 20);
    buf_init(&p->told, TOLD_MAX);
}

void ws_peer_dial(struct ws_peer *p, struct ws_rig *r, const char *extra, struct str more)
{
    own_done(buf) request;
    int pair[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    peer_init(p, r, WS_CLIENT, pair[0]);
    CHECK_OK(http_server_serve(r->server, pair[1]));
    buf_init(&request, 32u << 20);
    buf_addf(&request,
             "GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " TEST_KEY "\r\n%s\r\n",
             extra);
    buf_add(&request, more);
    ws_peer_send(p, buf_str(&request));
}

void ws_peer_serve(struct ws_peer *p, struct ws_rig *r, int fd)
{
    peer_init(p, r, WS_SERVER, fd);
}

void ws_peer_answer(struct ws_peer *p, const char *extra)
{
    struct str head = buf_str(&p->head), name = STR("Sec-WebSocket-Key: ");
    char accept[WS_ACCEPT_LEN];
    own_done(buf) answer;
    ptrdiff_t at = str_find(head, name);

    CHECK(at > 0);
    ws_accept_for(str_first(str_from(head, (size_t)at + name.len), WS_KEY_LEN), accept);
    buf_init(&answer, 4096);
    buf_addf(&answer,
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Accept: %.*s\r\n%s\r\n",
             WS_ACCEPT_LEN, accept, extra);
    ws_peer_send(p, buf_str(&answer));
}

void ws_peer_send(struct ws_peer *p, struct str bytes)
{
    while (bytes.len) {
        ssize_t n = send(p->fd, bytes.p, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            return; /* it hung up on us; what it said can still be read */
        if (n < 0) {
            CHECK_OK(loop_turn(p->rig->loop, 1));
            ws_peer_poll(p);
        } else {
            bytes = str_from(bytes, (size_t)n);
        }
    }
}

static void take_frames(struct ws_peer *p, struct str in)
{
    for (;;) {
        struct ws_event ev = ws_reader_next(&p->reader, &in);
        if (ev.kind == WS_EV_NONE)
            return;
        if (ev.kind == WS_EV_CLOSE)
            ev.data = STR("");
        ws_case_print(&p->told, &ev);
    }
}

static void take_bytes(struct ws_peer *p, struct str in)
{
    if (p->have_head) {
        take_frames(p, in);
        return;
    }
    buf_add(&p->head, in);
    ptrdiff_t end = str_find(buf_str(&p->head), STR("\r\n\r\n"));
    if (end < 0)
        return;
    p->have_head = true;
    take_frames(p, str_from(buf_str(&p->head), (size_t)end + 4));
    p->head.len = (size_t)end + 4;
}

void ws_peer_poll(struct ws_peer *p)
{
    char part[65536];
    ssize_t n;

    while ((n = recv(p->fd, part, sizeof part, MSG_DONTWAIT)) > 0)
        take_bytes(p, str_n(part, (size_t)n));
    if (n == 0 || errno == ECONNRESET)
        p->eof = true;
}

bool ws_peer_has_head(void *peer)
{
    struct ws_peer *p = peer;

    ws_peer_poll(p);
    return p->have_head || p->eof;
}

bool ws_peer_at_eof(void *peer)
{
    struct ws_peer *p = peer;

    ws_peer_poll(p);
    return p->eof;
}

void ws_peer_done(struct ws_peer *p)
{
    own_close(p->fd);
    ws_reader_done(&p->reader);
    buf_done(&p->head);
    buf_done(&p->told);
}
