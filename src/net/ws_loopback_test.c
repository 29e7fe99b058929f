// SPDX-License-Identifier: Apache-2.0
/* ws_loopback_test.c — our client against our server, and what happens to both when any call in
 * their life fails. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "net/ws.h"
#include "net/ws_peer.h"
#include "test/test.h"

#define SIZES_MAX (4u << 20)

struct client {
    struct ws_rig *rig;
    struct ws *ws; /* NULL: closed */
    struct buf sent, got;
    size_t bytes;
    unsigned messages;
    bool open;
    int code;
    char why[200];
};

static void on_open(struct ws *ws)
{
    struct client *c = ws_owner(ws);

    c->open = true;
}

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct client *c = ws_owner(ws);

    CHECK(kind == WS_TEXT || kind == WS_BINARY);
    buf_reset(&c->got);
    buf_add(&c->got, data);
    c->bytes += data.len;
    c->messages++;
}

static void on_close(struct ws *ws, int code, struct str reason)
{
    struct client *c = ws_owner(ws);

    c->ws = NULL;
    c->code = code;
    snprintf(c->why, sizeof c->why, STR_FMT, STR_ARG(reason));
}

static const struct ws_events client_events = {
    .on_open = on_open, .on_message = on_message, .on_close = on_close};

static void client_init(struct client *c, struct ws_rig *r)
{
    *c = (struct client){.rig = r};
    buf_init(&c->sent, SIZES_MAX);
    buf_init(&c->got, SIZES_MAX);
}

static void client_done(struct client *c)
{
    ws_abort(c->ws);
    buf_done(&c->sent);
    buf_done(&c->got);
}

static fallible client_connect(struct client *c, const struct ws_config *config)
{
    return ws_rig_connect(c->rig, str_of(c->rig->url), config, &client_events, c, &c->ws);
}

static bool is_open(void *ctx)
{
    struct client *c = ctx;

    return c->open || !c->ws;
}

static bool is_gone(void *ctx)
{
    return !((struct client *)ctx)->ws;
}

static bool has_one(void *ctx)
{
    struct client *c = ctx;

    return c->messages > 0 || !c->ws;
}

static void exchange(struct client *c, enum ws_kind kind)
{
    c->messages = 0;
    ws_send(c->ws, kind, buf_str(&c->sent));
    ws_rig_until(c->rig, has_one, c);
    CHECK_INT(c->messages, 1);
    CHECK(str_eq(buf_str(&c->got), buf_str(&c->sent)));
}

/* JSON-like text at an even seed, noise at an odd one. */
static void make_message(struct client *c, size_t size, unsigned seed)
{
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, seed);

    buf_reset(&c->sent);
    while (c->sent.len < size) {
        char noise[64];
        rng->fill(rng, noise, sizeof noise);
        if (seed % 2)
            buf_add_mem(&c->sent, noise, sizeof noise);
        else
            buf_addf(&c->sent, "{\"id\": %u, \"action\": \"run\", \"text\": \"line %d\"},",
                     (unsigned)c->sent.len, noise[0]);
    }
    c->sent.len = size;
}

static void check_loopback(bool no_deflate)
{
    static const size_t sizes[] = {0,    1,     125,   126,      255,     256,
                                   4096, 65535, 65536, 1u << 20, 3u << 20};
    struct ws_rig r;
    struct client c;
    struct ws_config config = {.no_deflate = no_deflate};

    ws_rig_init(&r);
    ws_rig_listen(&r);
    r.config.queue_bytes = 8u << 20;
    client_init(&c, &r);
    CHECK_OK(client_connect(&c, &config));
    ws_rig_until(&r, is_open, &c);
    CHECK(c.open);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (unsigned seed = 0; seed < 2; seed++) {
            make_message(&c, sizes[i], seed);
            exchange(&c, seed % 2 ? WS_BINARY : WS_TEXT);
        }
    ws_close(c.ws, WS_NORMAL, STR("done"));
    ws_rig_until(&r, is_gone, &c);
    CHECK_INT(c.code, WS_NORMAL);
    CHECK(str_ends(buf_str(&r.told), STR("|C1000:done")));
    client_done(&c);
    ws_rig_done(&r);
}

TEST(ws_loopback_echoes_every_size_compressed)
{
    check_loopback(false);
}

TEST(ws_loopback_echoes_every_size_plain)
{
    check_loopback(true);
}

TEST(ws_connect_goes_over_tcp)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    struct ws_rig r;
    char url[300];
    int fd;

    ws_rig_init(&r);
    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_OK(listen_name(fd, false, url, sizeof url));
    const char *port = strrchr(url, ':') + 1;
    CHECK_OK(http_server_listen(r.server, fd));
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct client c;
        client_init(&c, &r);
        snprintf(r.url, sizeof r.url, "ws://%s:%.8s/echo?x=1", hosts[i], port);
        CHECK_OK(client_connect(&c, NULL));
        ws_rig_until(&r, is_open, &c);
        make_message(&c, 1000, 0);
        exchange(&c, WS_TEXT);
        client_done(&c);
    }
    ws_rig_done(&r);
}

static void check_refused(struct ws_rig *r, const char *url, const char *headers,
                          enum err_code code, const char *part)
{
    static const struct stream_events none = {0};
    struct stream *s;
    struct ws *ws;
    int pair[2];
    char byte;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK_OK(stream_new(r->net, pair[0], &none, NULL, &s));
    CHECK_ERR(ws_connect(s, str_of(url), str_of(headers), NULL, &client_events, NULL, &ws), code,
              part);
    CHECK_INT(read(pair[1], &byte, 1), 0); /* the connection is closed, unused */
    close(pair[1]);
}

TEST(ws_connect_tells_why_it_failed)
{
    struct ws_rig r;
    struct client c;

    ws_rig_init(&r);
    client_init(&c, &r);
    check_refused(&r, "http://127.0.0.1/", "", ERR_UNSUPPORTED, "not http:");
    check_refused(&r, "ws://me:secret@127.0.0.1/", "", ERR_INVALID, "credentials");
    check_refused(&r, "ws://127.0.0.1/", "Evil: a\nb: c\r\n", ERR_INVALID, "CRLF");
    ws_rig_listen(&r);
    size_t n = strlen(r.url);
    snprintf(r.url + n, sizeof r.url - n, "/not/there");
    CHECK_OK(client_connect(&c, NULL));
    ws_rig_until(&r, is_gone, &c);
    CHECK_INT(c.code, WS_ABNORMAL);
    CHECK_STR(c.why, "open WebSocket: the server answered 404");
    client_done(&c);
    ws_rig_done(&r);
}

TEST(ws_connect_may_be_closed_or_aborted_at_any_time)
{
    struct ws_rig r;

    ws_rig_init(&r);
    ws_rig_listen(&r);
    for (int turns = 0; turns < 6; turns++)
        for (int abort_it = 0; abort_it < 2; abort_it++) {
            struct client c;
            client_init(&c, &r);
            CHECK_OK(client_connect(&c, NULL));
            for (int i = 0; i < turns; i++)
                CHECK_OK(loop_turn(r.loop, 0));
            if (abort_it) {
                ws_abort(take(&c.ws));
            } else {
                ws_close(c.ws, WS_GOING_AWAY, STR(""));
                ws_rig_until(&r, is_gone, &c);
            }
            client_done(&c);
            for (int i = 0; i < 4; i++)
                CHECK_OK(loop_turn(r.loop, 0));
        }
    ws_rig_done(&r);
}

TEST(ws_sub_protocol_is_agreed)
{
    struct ws_rig r;
    struct client c;
    struct ws_config config = {.protocol = "croft.v1"};

    ws_rig_init(&r);
    ws_rig_listen(&r);
    client_init(&c, &r);
    r.config.protocol = "croft.v1";
    CHECK_OK(client_connect(&c, &config));
    ws_rig_until(&r, is_open, &c);
    CHECK(c.open);
    client_done(&c);
    ws_rig_done(&r);
}

/* --- faults --- */

/* One whole life: connect, a message each way (compressed), a ping, a close. Gives whether every
 * step worked. */
static bool live_once(struct ws_rig *r, struct client *c)
{
    struct err *e = client_connect(c, NULL);

    if (e) {
        err_free(e);
        return false;
    }
    ws_rig_until(r, is_open, c);
    make_message(c, 3000, 0);
    if (c->ws) {
        ws_send(c->ws, WS_TEXT, buf_str(&c->sent));
        ws_rig_until(r, has_one, c);
    }
    bool echoed = c->messages == 1;
    if (c->ws)
        ws_close(c->ws, WS_NORMAL, STR(""));
    ws_rig_until(r, is_gone, c);
    return echoed && c->code == WS_NORMAL;
}

static bool nobody_left(void *ctx)
{
    struct ws_rig *r = ctx;

    return r->closed == r->opened && http_server_connections(r->server) == 0;
}

TEST_LIMIT(ws_any_failing_call_ends_that_connection_only, 300)
{
    struct ws_rig r;
    unsigned n = 0, fired = 1;

    ws_rig_init(&r);
    ws_rig_listen(&r);
    r.config.close_ms = 200;
    while (fired) {
        struct client c, again;
        client_init(&c, &r);
        client_init(&again, &r);
        buf_reserve(&c.sent, 8192); /* the test's own memory shall not be what fails */
        buf_reserve(&c.got, 8192);
        buf_reserve(&r.told, 1u << 20);
        fault_at(++n);
        live_once(&r, &c);
        fired = fault_fired();
        fault_at(0);
        ws_rig_until(&r, nobody_left, &r);
        buf_reset(&r.told);
        if (!live_once(&r, &again))
            FAIL("after call %u failed nothing works: %s", n, again.why);
        ws_rig_until(&r, nobody_left, &r);
        client_done(&c);
        client_done(&again);
    }
    CHECK(n > 30);
    ws_rig_done(&r);
}

TEST(ws_leaves_no_descriptor_and_no_memory_behind)
{
    struct ws_rig r;

    ws_rig_init(&r);
    ws_rig_listen(&r);
    unsigned before = test_open_fds();
    for (int i = 0; i < 50; i++) {
        struct client c;
        client_init(&c, &r);
        CHECK(live_once(&r, &c));
        client_done(&c);
    }
    ws_rig_until(&r, nobody_left, &r);
    for (int i = 0; i < 5; i++)
        CHECK_OK(loop_turn(r.loop, 1));
    CHECK_INT(test_open_fds(), before);
    ws_rig_done(&r);
}
