// SPDX-License-Identifier: Apache-2.0
/* client_server_test.c — our client against our server: large bodies both ways, in little memory.
 */
#include <stdio.h>

#include "net/router.h"
#include "net/server.h"
#include "out/client.h"
#include "out/dial.h"
#include "test/test.h"

#define TOTAL (50u << 20)
#define PIECE (48u << 10)

struct pair {
    struct loop *loop;
    struct net *net;
    struct dialer dialer;
    struct router *router;
    struct http_server *server;
    struct http_client *client;
    struct http_call *call;
    char url[300];
    size_t sent, got, most_call, most_reply;
    bool done, abort_server;
    int status;
    struct err *error;
};

/* Byte i of the body, cheap to make and to check at any offset. */
static char byte_at(size_t i)
{
    return (char)(i * 131 + (i >> 12));
}

static void on_echo_drain(struct http_req *req)
{
    http_body_resume(req);
}

static void on_echo_gone(struct http_req *req)
{
    http_reply_end(req); /* an answer is due all the same */
}

static fallible on_echo_body(struct http_req *req, struct str piece)
{
    struct pair *p = req->owner;

    if (piece.len == 0) {
        http_reply_end(req);
        return NULL;
    }
    if (p->abort_server && p->got > (1u << 20)) {
        http_reply_abort(req);
        return NULL;
    }
    http_reply_write(req, piece);
    size_t pending = http_reply_pending(req);
    if (pending > p->most_reply)
        p->most_reply = pending;
    if (pending >= STREAM_HIGH)
        http_body_pause(req);
    return NULL;
}

static fallible handle_echo(struct http_req *req)
{
    req->on_body = on_echo_body;
    req->on_drain = on_echo_drain;
    req->on_gone = on_echo_gone;
    http_reply_begin(req, 200, STR("application/octet-stream"), HTTP_LENGTH_UNKNOWN);
    return NULL;
}

static fallible handle_hello(struct http_req *req)
{
    http_reply(req, 200, STR("text/plain"), STR("hello"));
    return NULL;
}

static void produce(struct http_call *call)
{
    struct pair *p = http_call_owner(call);
    char piece[PIECE];

    while (p->sent < TOTAL && http_call_pending(call) < STREAM_HIGH) {
        size_t n = TOTAL - p->sent < PIECE ? TOTAL - p->sent : PIECE;
        for (size_t i = 0; i < n; i++)
            piece[i] = byte_at(p->sent + i);
        http_call_write(call, str_n(piece, n));
        p->sent += n;
        if (http_call_pending(call) > p->most_call)
            p->most_call = http_call_pending(call);
    }
    if (p->sent == TOTAL)
        http_call_write_end(call);
}

static void on_head(struct http_call *call, const struct http_head *head)
{
    struct pair *p = http_call_owner(call);

    p->status = head->status;
}

static void on_body(struct http_call *call, struct str piece)
{
    struct pair *p = http_call_owner(call);

    for (size_t i = 0; i < piece.len; i++)
        if (piece.p[i] != byte_at(p->got + i))
            FAIL("byte %zu differs", p->got + i);
    p->got += piece.len;
}

static void on_text(struct http_call *call, struct str piece)
{
    struct pair *p = http_call_owner(call);

    p->got += piece.len;
}

static void on_done(struct http_call *call, struct err *e)
{
    struct pair *p = http_call_owner(call);

    p->done = true;
    p->error = e;
}

static void pair_init(struct pair *p, const char *address)
{
    static const struct route routes[] = {
        {.method = "POST",
         .pattern = "/echo",
         .handle = handle_echo,
         .flags = ROUTE_STREAM,
         .body_bytes = SIZE_MAX},
        {.method = "GET", .pattern = "/hello", .handle = handle_hello},
    };
    int fd;

    *p = (struct pair){0};
    CHECK_OK(loop_new(&clock_system, &p->loop));
    CHECK_OK(net_new(p->loop, &p->net));
    p->dialer.net = p->net;
    p->router = router_new(&(struct router_config){0});
    router_add(p->router, routes, ARRAY_LEN(routes), p);
    struct http_server_config config = {.router = p->router};
    CHECK_OK(http_server_new(p->net, &config, &p->server));
    CHECK_OK(listen_open(str_of(address), &fd));
    CHECK_OK(listen_name(fd, false, p->url, sizeof p->url));
    CHECK_OK(http_server_listen(p->server, fd));
    CHECK_OK(http_client_new(&p->dialer, NULL, &p->client));
}

static void pair_done(struct pair *p)
{
    http_client_free(p->client);
    http_server_free(p->server);
    CHECK_OK(loop_turn(p->loop, 0)); /* streams are freed before their net */
    router_free(p->router);
    net_free(p->net);
    loop_free(p->loop);
}

static void start(struct pair *p, const struct http_call_events *events,
                  const struct http_call_spec *spec, const char *target)
{
    struct http_call_spec copy = *spec;
    char url[400];

    snprintf(url, sizeof url, "%s%s%s", p->url, p->url[0] == 'u' ? ":" : "", target);
    copy.url = str_of(url);
    p->sent = p->got = 0;
    p->done = false;
    CHECK_OK(http_call_start(p->client, &copy, events, p, &p->call));
}

static void wait_done(struct pair *p)
{
    while (!p->done)
        CHECK_OK(loop_turn(p->loop, 5000));
}

static void echo(const char *address, uint64_t length)
{
    static const struct http_call_events events = {
        .on_head = on_head, .on_body = on_body, .on_drain = produce, .on_done = on_done};
    struct http_call_spec spec = {
        .method = STR("POST"), .stream_body = true, .body_length = length};
    struct pair p;

    pair_init(&p, address);
    start(&p, &events, &spec, "/echo");
    produce(p.call);
    wait_done(&p);
    CHECK_OK(p.error);
    CHECK_INT(p.status, 200);
    CHECK_INT(p.got, TOTAL);
    CHECK(p.most_call < STREAM_HIGH + 2 * PIECE);
    CHECK(p.most_reply < STREAM_HIGH + 4 * STREAM_READ_SIZE);
    start(&p, &(struct http_call_events){.on_body = on_text, .on_done = on_done},
          &(struct http_call_spec){.method = STR("GET")}, "/hello");
    wait_done(&p);
    CHECK_OK(p.error);
    CHECK_INT(p.got, 5);
    CHECK_INT(http_server_connections(p.server), 1);
    pair_done(&p);
}

TEST(fifty_megabytes_are_echoed_over_tcp_in_little_memory)
{
    echo("127.0.0.1:0", 0);
}

TEST(fifty_megabytes_are_echoed_over_a_unix_socket_in_little_memory)
{
    char address[300];

    snprintf(address, sizeof address, "unix:%s/s.sock", test_dir());
    echo(address, TOTAL);
}

TEST(an_answer_the_server_gives_up_on_is_an_error_of_the_call)
{
    static const struct http_call_events events = {
        .on_body = on_body, .on_drain = produce, .on_done = on_done};
    struct pair p;

    pair_init(&p, "127.0.0.1:0");
    p.abort_server = true;
    start(&p, &events, &(struct http_call_spec){.method = STR("POST"), .stream_body = true},
          "/echo");
    produce(p.call);
    wait_done(&p);
    CHECK_ERR(p.error, ERR_UPSTREAM, "POST http://127.0.0.1:");
    pair_done(&p);
}

static void produce_none(struct http_call *call)
{
    (void)call;
}

TEST(a_client_that_goes_away_leaves_the_server_working)
{
    static const struct http_call_events events = {
        .on_body = on_text, .on_drain = produce_none, .on_done = on_done};
    struct pair p;

    pair_init(&p, "127.0.0.1:0");
    for (unsigned i = 0; i < 20; i++) {
        start(&p, &events, &(struct http_call_spec){.method = STR("POST"), .stream_body = true},
              "/echo");
        produce(p.call);
        for (unsigned turn = 0; turn < i; turn++)
            CHECK_OK(loop_turn(p.loop, 0));
        http_call_cancel(p.call);
    }
    start(&p, &events, &(struct http_call_spec){.method = STR("GET")}, "/hello");
    wait_done(&p);
    CHECK_OK(p.error);
    CHECK_INT(p.got, 5);
    pair_done(&p);
}
