// SPDX-License-Identifier: Apache-2.0
/* server_hook_test.c — what a proxy needs of a server: listeners of its own, requests past the
 * router, and answers that are somebody else's. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/listen.h"
#include "net/server.h"
#include "test/test.h"
#include "test/web.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: far.example\r\n\r\n"

static fallible say_tag(struct http_req *req)
{
    struct str text = arena_printf(&req->arena, "tag %llu", (unsigned long long)req->tag);

    http_reply(req, 200, STR("text/plain"), text);
    return NULL;
}

static fallible say_foreign(struct http_req *req)
{
    http_reply_interim(req, STR("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"));
    http_reply_foreign(req, STR("Quite Fine"));
    http_reply_header(req, STR("server"), STR("theirs"));
    http_reply_begin(req, 200, STR(""), 2);
    http_reply_interim(req, STR("HTTP/1.1 103 Early Hints\r\n\r\n")); /* too late */
    http_reply_write(req, STR("ok"));
    http_reply_end(req);
    return NULL;
}

static fallible be_busy(struct http_req *req)
{
    (void)req;
    return err_new(ERR_BUSY, "not now");
}

static fallible be_full(struct http_req *req)
{
    http_reply_err(req, err_new(ERR_LIMIT, "one too many"));
    return NULL;
}

static fallible be_busy_long(struct http_req *req)
{
    (void)req;
    return err_again(err_new(ERR_BUSY, "not now"), 30);
}

static fallible refuse_all(void *ctx, struct http_req *req)
{
    (void)ctx;
    (void)req;
    return err_new(ERR_UNAUTHORIZED, "no");
}

static fallible intercept(void *ctx, struct http_req *req, const struct route **ret_route)
{
    (void)ctx;
    static const struct route ours = {.handle = say_tag, .flags = ROUTE_STREAM};

    if (str_eq(req->path, STR("/bad")))
        return err_new(ERR_CONFLICT, "refused by the hook");
    if (str_eq(req->path, STR("/ours")))
        *ret_route = &ours;
    return NULL;
}

static const struct route routes[] = {
    {"GET", "/tag", say_tag, 0, 0},       {"GET", "/foreign", say_foreign, 0, 0},
    {"GET", "/busy", be_busy, 0, 0},      {"GET", "/full", be_full, 0, 0},
    {"GET", "/long", be_busy_long, 0, 0},
};

static void dial_port(int listener, struct web_client *c)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK_INT(getsockname(listener, (struct sockaddr *)&a, &len), 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&a, len), 0);
    web_client_init(c, fd, 4096);
}

TEST(requests_carry_the_tag_of_their_listener_which_closes_alone)
{
    struct http_listener *ls[2];
    struct web_client c[2];
    struct web w;
    int fds[2];

    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(listen_open(STR("127.0.0.1:0"), &fds[i]));
        CHECK_OK(http_server_listen_as(w.server, fds[i], 70 + (unsigned)i, &ls[i]));
        dial_port(fds[i], &c[i]);
        CHECK(web_send(&w, &c[i], STR(GET("/tag"))));
    }
    CHECK_STR(web_take(&w, &c[0]).body, "tag 70");
    CHECK_STR(web_take(&w, &c[1]).body, "tag 71");
    unsigned open = test_open_fds();
    http_server_unlisten(ls[0]);
    CHECK_INT(test_open_fds(), open - 1);
    CHECK(web_send(&w, &c[0], STR(GET("/tag")))); /* its connections stay */
    CHECK_STR(web_take(&w, &c[0]).body, "tag 70");
    web_close_client(&c[1]);
    dial_port(fds[1], &c[1]);
    CHECK(web_send(&w, &c[1], STR(GET("/tag"))));
    CHECK_STR(web_take(&w, &c[1]).body, "tag 71");
    for (int i = 0; i < 2; i++)
        web_close_client(&c[i]);
    web_close(&w);
}

TEST(of_many_full_listeners_the_longest_waiting_gets_the_free_place)
{
    struct http_server_config sc = {.limits = {.connections = 1}};
    struct http_listener *ls[3];
    struct web_client first, c[3];
    struct web w;
    int fds[3];

    web_open(&w, WEB_ROUTES(routes), NULL, &sc);
    web_connect(&w, &first, 4096);
    CHECK(web_send(&w, &first, STR("GET /tag HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n")));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(listen_open(STR("127.0.0.1:0"), &fds[i]));
        CHECK_OK(http_server_listen_as(w.server, fds[i], (unsigned)i + 1, &ls[i]));
        dial_port(fds[i], &c[i]);
        CHECK(web_send(&w, &c[i], STR(GET("/tag"))));
        web_turns(&w, 3);
    }
    web_close_client(&first);
    for (int i = 0; i < 3; i++) {
        char want[20];
        snprintf(want, sizeof want, "tag %d", i + 1);
        CHECK_STR(web_take(&w, &c[i]).body, want);
        CHECK_INT(http_server_connections(w.server), 1);
        web_close_client(&c[i]);
    }
    web_close(&w);
}

TEST(an_intercepted_request_goes_past_router_names_and_auth)
{
    struct router_config rc = {.auth = refuse_all};
    struct http_server_config sc = {.intercept = intercept, .local_names = true};
    struct web w;

    web_open(&w, WEB_ROUTES(routes), &rc, &sc);
    CHECK_STR(web_ask(&w, STR(GET("/ours"))).body, "tag 0");
    CHECK_INT(web_ask(&w, STR(GET("/tag"))).status, 403);
    CHECK_INT(web_ask(&w, STR("GET /tag HTTP/1.1\r\nHost: localhost\r\n\r\n")).status, 401);
    CHECK_HAS(web_ask(&w, STR(GET("/bad"))).body, "refused by the hook");
    web_close(&w);
}

static fallible say_much(struct http_req *req)
{
    static char much[100000];

    memset(much, 'm', sizeof much);
    http_reply_begin(req, 200, STR(""), HTTP_LENGTH_UNKNOWN);
    for (int i = 0; i < 40; i++) {
        much[0] = (char)('a' + i % 26);
        http_reply_pass(req, str_n(much, sizeof much));
    }
    http_reply_end(req);
    return NULL;
}

/* Small and large pieces, more of them than the socket takes: what is sent at once passes nothing
 * that was queued before. */
TEST(large_pieces_leave_at_once_and_in_order)
{
    static const struct route much = {"GET", "/much", say_much, 0, 0};
    struct web_client c;
    struct web w;

    web_open(&w, &much, 1, NULL, NULL);
    web_connect(&w, &c, 8u << 20);
    CHECK(web_send(&w, &c, STR(GET("/much"))));
    struct web_answer a = web_take(&w, &c);
    CHECK_INT(a.body.len, 40 * 100000);
    for (size_t i = 0; i < a.body.len; i++)
        CHECK(a.body.p[i] == (i % 100000 ? 'm' : (char)('a' + i / 100000 % 26)));
    web_close_client(&c);
    web_close(&w);
}

TEST(a_foreign_answer_has_neither_date_nor_server_of_ours)
{
    struct http_server_config sc = {.server_name = "croft"};
    struct web_client c;
    struct web w;

    web_open(&w, WEB_ROUTES(routes), NULL, &sc);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(GET("/foreign"))));
    web_read(&w, &c);
    CHECK_STR(str_n(c.p, c.len), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                                 "HTTP/1.1 200 Quite Fine\r\ncontent-length: 2\r\n"
                                 "server: theirs\r\n\r\nok");
    web_close_client(&c);
    web_close(&w);
}

TEST(who_is_told_to_come_back_is_told_when)
{
    static const struct {
        const char *request, *head; /* NULL: nothing of the kind */
        int status;
    } all[] = {
        {GET("/busy"), "\r\nretry-after: 1\r\n", 503},
        {GET("/full"), "\r\nretry-after: 1\r\n", 429},
        {GET("/long"), "\r\nretry-after: 30\r\n", 503},
        {GET("/none"), NULL, 404},
    };
    struct web w;

    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct web_answer a = web_ask(&w, str_of(all[i].request));
        ptrdiff_t at = str_find(a.head, STR("retry-after: "));
        CHECK_INT(a.status, all[i].status);
        if (all[i].head)
            CHECK_HAS(a.head, str_of(all[i].head));
        CHECK(all[i].head ? str_find(str_from(a.head, (size_t)at + 1), STR("retry-after: ")) < 0
                          : at < 0);
    }
    web_close(&w);
}
