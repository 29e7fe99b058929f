// SPDX-License-Identifier: Apache-2.0
/* proxy_kit.c — see proxy_kit.h. */
#include "test/proxy_kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/listen.h"
#include "test/test.h"

static fallible main_intercept(void *kit, struct http_req *req, const struct route **ret_route)
{
    struct pkit *k = kit;

    return proxy_intercept(k->proxy, req, ret_route);
}

/* --- the sandbox's server --- */

/* The head as it came, then the body. */
static fallible tell(struct http_req *req)
{
    struct buf b;

    buf_init(&b, 1u << 20);
    buf_addf(&b, STR_FMT " " STR_FMT "\n", STR_ARG(req->head.method), STR_ARG(req->head.target));
    for (size_t i = 0; i < req->head.header_count; i++)
        buf_addf(&b, STR_FMT ": " STR_FMT "\n", STR_ARG(req->head.headers[i].name),
                 STR_ARG(req->head.headers[i].value));
    buf_add_char(&b, '\n');
    buf_add(&b, req->body);
    http_reply(req, 200, STR("text/plain"), buf_str(&b));
    buf_done(&b);
    return NULL;
}

static void on_held_gone(struct http_req *req)
{
    struct pkit *k = req->owner;

    k->gone++;
    for (unsigned i = 0; i < k->held_count; i++)
        if (k->held[i] == req)
            k->held[i] = NULL;
    http_reply_abort(req);
}

static void on_held_hangup(struct http_req *req)
{
    struct pkit *k = req->owner;

    k->hangups++;
}

static fallible hold(struct http_req *req)
{
    struct pkit *k = req->owner;

    k->held[k->held_count++] = req;
    req->on_gone = on_held_gone;
    req->on_hangup = on_held_hangup;
    return NULL;
}

void pkit_answer_held(struct pkit *k, unsigned i)
{
    http_reply(take(&k->held[i]), 200, STR("text/plain"), STR("late"));
}

static fallible on_take_body(struct http_req *req, struct str piece)
{
    struct pkit *k = req->owner;

    k->taken_bytes += piece.len;
    if (!piece.len)
        http_reply(req, 200, STR("text/plain"),
                   arena_printf(&req->arena, "%llu", (unsigned long long)k->taken_bytes));
    return NULL;
}

static void on_take_gone(struct http_req *req)
{
    struct pkit *k = req->owner;

    k->gone++;
    http_reply_abort(req);
}

static fallible take_in(struct http_req *req)
{
    struct pkit *k = req->owner;

    k->taken_bytes = 0;
    req->on_body = on_take_body;
    req->on_gone = on_take_gone;
    if (k->slow) {
        k->slow_req = req;
        http_body_pause(req);
    }
    return NULL;
}

static void pour(struct http_req *req)
{
    char block[16384];

    memset(block, 'x', sizeof block);
    while (req->user && http_reply_pending(req) < STREAM_HIGH) {
        size_t n = (uintptr_t)req->user < sizeof block ? (uintptr_t)req->user : sizeof block;
        req->user = (char *)req->user - n;
        http_reply_write(req, str_n(block, n));
    }
    if (!req->user)
        http_reply_end(req);
}

static void on_pour_gone(struct http_req *req)
{
    http_reply_abort(req);
}

/* ?N bytes, chunked */
static fallible give(struct http_req *req)
{
    uint64_t n = 0;

    CHECK(str_to_u64(req->query, &n));
    req->user = (void *)(uintptr_t)n;
    req->on_drain = pour;
    req->on_gone = on_pour_gone;
    bool counted = str_eq(req->path, STR("/give"));
    http_reply_begin(req, 200, STR("application/octet-stream"), counted ? n : HTTP_LENGTH_UNKNOWN);
    pour(req);
    return NULL;
}

static const struct route routes[] = {
    {"GET", "/hold", hold, 0, 0},
    {"POST", "/hold", hold, 0, 0},
    {"POST", "/take", take_in, ROUTE_STREAM, 0},
    {"GET", "/give", give, 0, 0},
    {"GET", "/stream", give, 0, 0},
    {"GET", "/{path...}", tell, 0, 0},
    {"POST", "/{path...}", tell, 0, 0},
    {"DELETE", "/{path...}", tell, 0, 0},
};

static void open_inside(struct pkit *k)
{
    struct http_server_config sc = {0};
    int fd;

    k->router = router_new(NULL);
    router_add(k->router, WEB_ROUTES(routes), k);
    sc.router = k->router;
    CHECK_OK(http_server_new(k->web.net, &sc, &k->inside));
    CHECK_OK(listen_open(str_of(k->path), &fd));
    CHECK_OK(http_server_listen(k->inside, fd));
}

void pkit_open(struct pkit *k, const struct proxy_config *config, const struct raw_script *scripts,
               size_t count)
{
    struct http_server_config sc = {.ctx = k, .intercept = main_intercept};
    struct proxy_config pc = config ? *config : (struct proxy_config){0};

    *k = (struct pkit){0};
    web_open(&k->web, NULL, 0, NULL, &sc);
    snprintf(k->path, sizeof k->path, "unix:%s/in.sock", test_dir());
    if (scripts)
        raw_start(&k->raw, k->web.loop, k->path, scripts, count);
    else
        open_inside(k);
    pc.dialer = &k->web.dialer;
    CHECK_OK(proxy_new(&pc, &k->proxy));
    k->t.id = PKIT_ID;
    k->t.state = PROXY_OPEN;
    snprintf(k->t.address.unix_path, sizeof k->t.address.unix_path, "%s", k->path + 5);
    k->t.inner = k->t.address;
    CHECK_OK(proxy_add(k->proxy, &k->t, 0));
}

void pkit_close(struct pkit *k)
{
    proxy_free(k->proxy);
    if (k->inside)
        http_server_free(k->inside);
    else
        raw_stop(&k->raw);
    web_close(&k->web);
    router_free(k->router);
}

void pkit_dial(struct pkit *k, uint16_t port, struct web_client *c, size_t cap_bytes)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    int one = 1;
    (void)k;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* the clock stands: no delays */
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    web_client_init(c, fd, cap_bytes);
}

struct web_answer pkit_take(struct pkit *k, struct web_client *c)
{
    web_turns(&k->web, PKIT_TURNS);
    return web_take(&k->web, c);
}

struct web_answer pkit_ask(struct pkit *k, struct str request)
{
    struct web_client c;

    pkit_dial(k, k->t.port, &c, 1u << 20);
    CHECK(web_send(&k->web, &c, request));
    struct web_answer a = pkit_take(k, &c);
    web_close_client(&c);
    web_turns(&k->web, 3);
    return a;
}
