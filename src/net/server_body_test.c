// SPDX-License-Identifier: Apache-2.0
/* server_body_test.c — uploads and downloads in pieces: pauses, limits, early answers. */
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/listen.h"
#include "net/server.h"
#include "test/test.h"
#include "test/web.h"

#define REQ(method, path) method " " path " HTTP/1.1\r\nHost: a\r\n"
#define GET(path)         REQ("GET", path) "\r\n"

static struct app { /* what handlers saw, in this test's own process */
    struct http_req *req;
    uint64_t bytes, left;
    int ends, gone, drains, pauses;
    size_t max_pending;
    bool pause_always;
} app;

static void on_up_gone(struct http_req *req)
{
    app.gone++;
    app.req = NULL;
    http_reply(req, 200, STR(""), STR("")); /* still required, goes nowhere */
}

static fallible on_up_body(struct http_req *req, struct str piece)
{
    app.bytes += piece.len;
    if (!piece.len) {
        app.ends++;
        app.req = NULL;
        http_reply(req, 200, STR("text/plain"),
                   arena_printf(&req->arena, "%llu", (unsigned long long)app.bytes));
        return NULL;
    }
    if (app.pause_always) {
        app.pauses++;
        http_body_pause(req);
    }
    return NULL;
}

static fallible up(struct http_req *req)
{
    app.bytes = 0;
    app.req = req;
    req->on_body = on_up_body;
    req->on_gone = on_up_gone;
    return NULL;
}

static fallible early(struct http_req *req)
{
    http_reply(req, 403, STR("text/plain"), STR("no"));
    return NULL;
}

static fallible on_sour_body(struct http_req *req, struct str piece)
{
    (void)req;
    return piece.len ? err_new(ERR_UNPROCESSABLE, "sour") : NULL;
}

static fallible sour(struct http_req *req)
{
    req->on_body = on_sour_body;
    return NULL;
}

static fallible on_late_body(struct http_req *req, struct str piece)
{
    (void)piece;
    return req->user ? err_new(ERR_IO, "failed in mid-answer") : NULL;
}

static fallible begins(struct http_req *req)
{
    http_reply_begin(req, 200, STR("text/plain"), HTTP_LENGTH_UNKNOWN);
    req->user = req;
    req->on_body = on_late_body;
    return NULL;
}

static fallible talks(struct http_req *req)
{
    http_reply_begin(req, 200, STR("text/plain"), HTTP_LENGTH_UNKNOWN);
    req->on_body = on_late_body;
    req->on_gone = on_up_gone;
    return NULL;
}

static void on_down_drain(struct http_req *req)
{
    static const char zeros[64 << 10];

    app.drains++;
    while (app.left && http_reply_pending(req) < STREAM_HIGH) {
        size_t n = app.left < sizeof zeros ? (size_t)app.left : sizeof zeros;
        http_reply_write(req, str_n(zeros, n));
        app.left -= n;
        if (http_reply_pending(req) > app.max_pending)
            app.max_pending = http_reply_pending(req);
    }
    if (!app.left)
        http_reply_end(req);
}

static void on_down_gone(struct http_req *req)
{
    app.gone++;
    http_reply_abort(req);
}

static fallible down(struct http_req *req)
{
    app.left = 200u << 20;
    http_reply_begin(req, 200, STR(""), app.left);
    req->on_drain = on_down_drain;
    req->on_gone = on_down_gone;
    on_down_drain(req);
    return NULL;
}

/* More room than is used, as for a file that shrinks; the length is in the path: 0 for unknown. */
static fallible in_place(struct http_req *req)
{
    bool counted = str_eq(http_req_param(req, "kind"), STR("counted"));

    http_reply_begin(req, 200, STR(""), counted ? 11 : HTTP_LENGTH_UNKNOWN);
    for (int i = 0; i < 2; i++) {
        char *at = http_reply_reserve(req, 1000);
        CHECK(!at == str_eq(req->head.method, STR("HEAD")));
        if (at)
            memcpy(at, i ? " there" : "hello", 6);
        http_reply_commit(req, 0); /* nothing, and no end of the answer */
        if (at)
            http_reply_commit(req, i ? 6 : 5);
    }
    http_reply_end(req);
    return NULL;
}

static fallible whole(struct http_req *req)
{
    http_reply(req, 200, STR("text/plain"), arena_printf(&req->arena, "%zu", req->body.len));
    return NULL;
}

static const struct route routes[] = {
    {"POST", "/up", up, ROUTE_STREAM, 0},
    {"POST", "/few", up, ROUTE_STREAM, 10},
    {"POST", "/early", early, ROUTE_STREAM, 0},
    {"POST", "/sour", sour, ROUTE_STREAM, 0},
    {"POST", "/begins", begins, ROUTE_STREAM, 0},
    {"GET", "/down", down, 0, 0},
    {"GET", "/in_place/{kind}", in_place, 0, 0},
    {"POST", "/talks", talks, ROUTE_STREAM, 0},
    {"POST", "/whole", whole, 0, 0},
    {"POST", "/small", whole, 0, 10},
};

static void open_web(struct web *w, struct web_client *c)
{
    web_open(w, WEB_ROUTES(routes), NULL, NULL);
    web_connect(w, c, 1u << 20);
}

static void close_web(struct web *w, struct web_client *c)
{
    web_close_client(c);
    web_turns(w, 3);
    CHECK_INT(http_server_connections(w->server), 0);
    web_close(w);
}

static void send_filler(struct web *w, struct web_client *c, size_t n)
{
    static char filler[64 << 10];

    for (; n; n -= n < sizeof filler ? n : sizeof filler)
        if (!web_send(w, c, str_n(filler, n < sizeof filler ? n : sizeof filler)))
            return;
}

TEST(uploads_come_in_pieces_with_an_end)
{
    struct web w;
    struct web_client c;

    open_web(&w, &c);
    CHECK(web_send(&w, &c, STR(REQ("POST", "/up") "Content-Length: 300000\r\n\r\n")));
    send_filler(&w, &c, 300000);
    CHECK_STR(web_take(&w, &c).body, "300000");
    CHECK(web_send(&w, &c,
                   STR(REQ("POST", "/up") "Transfer-Encoding: chunked\r\n\r\n"
                                          "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")));
    CHECK_STR(web_take(&w, &c).body, "7");
    CHECK(web_send(&w, &c, STR(REQ("POST", "/up") "\r\n"))); /* no body: its end comes at once */
    CHECK_STR(web_take(&w, &c).body, "0");
    CHECK_INT(app.ends, 3);
    CHECK_INT(app.gone, 0);
    close_web(&w, &c);
}

TEST(an_expected_continue_is_sent_and_the_connection_stays)
{
    struct web w;
    struct web_client c;

    open_web(&w, &c);
    CHECK(web_send(&w, &c,
                   STR(REQ("POST", "/whole") "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")));
    web_read(&w, &c);
    CHECK_STR(str_n(c.p, c.len), "HTTP/1.1 100 Continue\r\n\r\n");
    c.len = 0;
    CHECK(web_send(&w, &c, STR("abc")));
    struct web_answer a = web_take(&w, &c);
    CHECK_STR(a.body, "3");
    CHECK(a.keep_alive);
    close_web(&w, &c);
}

/* The client may or may not send the body now; what follows could be read either way. */
TEST(a_refusal_instead_of_continue_closes_the_connection)
{
    struct web w;
    struct web_client c;

    open_web(&w, &c);
    CHECK(
        web_send(&w, &c,
                 STR(REQ("POST", "/small") "Expect: 100-continue\r\nContent-Length: 50\r\n\r\n" GET(
                     "/down"))));
    struct web_answer a = web_take(&w, &c);
    CHECK_INT(a.status, 413);
    CHECK(!a.keep_alive);
    web_read(&w, &c);
    CHECK(c.eof);
    CHECK_INT(c.len, 0);
    close_web(&w, &c);
}

TEST(a_paused_upload_holds_the_peer_back)
{
    struct web w;
    struct web_client c;
    static char filler[64 << 10];
    size_t sent = 0;

    open_web(&w, &c);
    app.pause_always = true;
    CHECK(web_send(&w, &c, STR(REQ("POST", "/up") "Content-Length: 50000000\r\n\r\n")));
    for (int i = 0; i < 200; i++) {
        long n =
            syscall(SYS_sendto, c.fd, filler, sizeof filler, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
        sent += n > 0 ? (size_t)n : 0;
        web_turns(&w, 1);
    }
    CHECK(sent < 2u << 20); /* socket buffers, not ours */
    CHECK(app.bytes <= 64u << 10);
    CHECK_INT(app.pauses, 1);
    uint64_t before = app.bytes;
    http_body_resume(app.req);
    web_turns(&w, 3);
    CHECK(app.bytes > before);
    CHECK_INT(app.pauses, 2);
    web_close_client(&c);
    web_turns(&w, 3);
    CHECK_INT(app.gone, 0); /* there is more to read */
    app.pause_always = false;
    http_body_resume(app.req);
    close_web(&w, &c);
    CHECK_INT(app.gone, 1);
}

TEST(the_end_of_a_body_waits_until_the_pause_is_over)
{
    struct web w;
    struct web_client c;

    open_web(&w, &c);
    app.pause_always = true;
    CHECK(web_send(&w, &c, STR(REQ("POST", "/up") "Content-Length: 3\r\n\r\nabc")));
    web_turns(&w, 5);
    CHECK_INT(app.bytes, 3);
    CHECK_INT(app.ends, 0);
    http_body_resume(app.req);
    CHECK_INT(app.ends, 0); /* not from inside the call */
    CHECK_STR(web_take(&w, &c).body, "3");
    CHECK_INT(app.ends, 1);
    close_web(&w, &c);
}

TEST(a_pause_of_ours_is_not_the_peers_delay)
{
    struct http_server_config sc = {.limits = {.body_idle_ms = 100}};
    struct web w;
    struct web_client c;

    web_open(&w, WEB_ROUTES(routes), NULL, &sc);
    web_connect(&w, &c, 4096);
    app.pause_always = true;
    CHECK(web_send(&w, &c, STR(REQ("POST", "/up") "Content-Length: 6\r\n\r\nabc")));
    web_pass(&w, 5000);
    CHECK(app.req != NULL);
    app.pause_always = false;
    http_body_resume(app.req);
    CHECK(web_send(&w, &c, STR("def")));
    CHECK_STR(web_take(&w, &c).body, "6");
    close_web(&w, &c);
}

TEST(a_body_that_stalls_is_answered_408_and_its_handler_told)
{
    struct http_server_config sc = {.limits = {.body_idle_ms = 100}};
    struct web w;
    struct web_client c;

    web_open(&w, WEB_ROUTES(routes), NULL, &sc);
    for (int stream = 0; stream < 2; stream++) {
        web_connect(&w, &c, 4096);
        CHECK(web_send(&w, &c,
                       stream ? STR(REQ("POST", "/up") "Content-Length: 6\r\n\r\nabc")
                              : STR(REQ("POST", "/whole") "Content-Length: 6\r\n\r\nabc")));
        web_pass(&w, 99);
        web_read(&w, &c);
        CHECK_INT(c.len, 0);
        web_pass(&w, 1);
        struct web_answer a = web_take(&w, &c);
        CHECK_INT(a.status, 408);
        CHECK(!a.keep_alive);
        CHECK_INT(app.gone, stream);
        web_close_client(&c);
        web_turns(&w, 3);
    }
    CHECK_INT(http_server_connections(w.server), 0);
    web_close(&w);
}

TEST(a_body_that_stalls_under_a_begun_answer_ends_too)
{
    struct http_server_config sc = {.limits = {.body_idle_ms = 100}};
    struct web w;
    struct web_client c;

    web_open(&w, WEB_ROUTES(routes), NULL, &sc);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(REQ("POST", "/talks") "Content-Length: 6\r\n\r\nabc")));
    web_pass(&w, 99);
    CHECK_INT(app.gone, 0);
    web_pass(&w, 1);
    CHECK_INT(app.gone, 1);
    web_read(&w, &c);
    CHECK(c.eof || c.errnum);
    close_web(&w, &c);
}

TEST(a_streamed_body_that_breaks_tells_both_sides)
{
    static const struct {
        struct str bytes;
        int status;
    } rows[] = {
        {STR_INIT(REQ("POST", "/up") "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz"), 400},
        {STR_INIT(REQ("POST", "/few") "Transfer-Encoding: chunked\r\n\r\nff\r\n01234567890"), 413},
    };
    struct web w;
    struct web_client c;

    open_web(&w, &c);
    web_close_client(&c);
    for (int i = 0; i < 2; i++) {
        web_connect(&w, &c, 4096);
        CHECK(web_send(&w, &c, rows[i].bytes));
        struct web_answer a = web_take(&w, &c);
        CHECK_INT(a.status, rows[i].status);
        CHECK(!a.keep_alive);
        CHECK_INT(app.gone, i + 1);
        web_close_client(&c);
    }
    CHECK_INT(app.ends, 0);
    web_turns(&w, 3);
    web_close(&w);
}

TEST(a_peer_that_breaks_off_leaves_nothing_behind)
{
    static const char *const paths[] = {"/up", "/whole", "/early"};
    struct web w;
    struct web_client c;
    char req[100];

    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    for (int i = 0; i < 3; i++) {
        web_connect(&w, &c, 4096);
        snprintf(req, sizeof req, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nabc",
                 paths[i]);
        CHECK(web_send(&w, &c, str_of(req)));
        web_close_client(&c);
        web_turns(&w, 4);
    }
    CHECK_INT(app.gone, 1);
    CHECK_INT(http_server_connections(w.server), 0);
    web_close(&w);
}

TEST(a_body_that_a_peer_ends_too_early_is_answered)
{
    static const char *const paths[] = {"/up", "/whole"};
    struct web w;
    struct web_client c;
    char req[100];

    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    for (int i = 0; i < 2; i++) {
        web_connect(&w, &c, 4096);
        snprintf(req, sizeof req, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nabc",
                 paths[i]);
        CHECK(web_send(&w, &c, str_of(req)));
        CHECK_INT(shutdown(c.fd, SHUT_WR), 0);
        struct web_answer a = web_take(&w, &c);
        CHECK_INT(a.status, 400);
        CHECK_HAS(a.body, "the body ends too early");
        CHECK(!a.keep_alive);
        web_close_client(&c);
        web_turns(&w, 4);
    }
    CHECK_INT(app.gone, 1); /* who took it piece by piece */
    CHECK_INT(app.ends, 0);
    CHECK_INT(http_server_connections(w.server), 0);
    web_close(&w);
}

TEST(an_error_from_on_body_is_answered_or_cuts_the_answer)
{
    struct web w;
    struct web_client c;

    open_web(&w, &c);
    CHECK(web_send(&w, &c, STR(REQ("POST", "/sour") "Content-Length: 3\r\n\r\nabc")));
    CHECK_INT(web_take(&w, &c).status, 422);
    web_close_client(&c);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(REQ("POST", "/begins") "Content-Length: 3\r\n\r\nabc")));
    web_read(&w, &c);
    CHECK(c.eof || c.errnum);
    CHECK(str_find(str_n(c.p, c.len), STR("0\r\n\r\n")) < 0);
    close_web(&w, &c);
}

TEST(a_small_body_nobody_wanted_is_skipped_and_the_connection_goes_on)
{
    struct web w;
    struct web_client c;

    open_web(&w, &c);
    CHECK(web_send(&w, &c, STR(REQ("POST", "/early") "Content-Length: 100000\r\n\r\n")));
    CHECK_INT(web_take(&w, &c).status, 403);
    send_filler(&w, &c, 100000);
    CHECK(web_send(&w, &c,
                   STR(REQ("POST", "/none") "Transfer-Encoding: chunked\r\n\r\n"
                                            "3\r\nabc\r\n0\r\nX: y\r\n\r\n")));
    CHECK_INT(web_take(&w, &c).status, 404);
    CHECK(web_send(&w, &c, STR(REQ("POST", "/whole") "Content-Length: 1\r\n\r\nx")));
    CHECK_STR(web_take(&w, &c).body, "1");
    close_web(&w, &c);
}

TEST(a_body_without_end_that_nobody_wanted_is_not_read_for_ever)
{
    struct web w;
    struct web_client c;
    int chunks = 0;

    open_web(&w, &c);
    CHECK(web_send(&w, &c, STR(REQ("POST", "/early") "Transfer-Encoding: chunked\r\n\r\n")));
    CHECK_INT(web_take(&w, &c).status, 403);
    while (chunks < 100000 && !c.eof &&
           web_send(&w, &c, STR("1;an-extension-that-makes-it-long-and-counts-too\r\nx\r\n"))) {
        web_read_some(&c, 100);
        chunks++;
    }
    CHECK(chunks < 10000);
    close_web(&w, &c);
}

/* Over TCP, where closing with unread input sends a reset that eats the answer. */
TEST(a_large_body_nobody_wanted_ends_the_connection_but_not_the_answer)
{
    struct web w;
    struct web_client c;
    struct sockaddr_in addr = {0};
    socklen_t len = sizeof addr;
    int fd;

    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_INT(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    CHECK_OK(http_server_listen(w.server, fd));
    web_client_init(&c, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), 4096);
    CHECK_INT(connect(c.fd, (struct sockaddr *)&addr, sizeof addr), 0);
    web_send(&w, &c, STR(REQ("POST", "/early") "Content-Length: 900000\r\n\r\n"));
    send_filler(&w, &c, 900000); /* all of it, before reading a byte */
    CHECK_INT(web_take(&w, &c).status, 403);
    web_read(&w, &c);
    CHECK(c.eof);
    CHECK_INT(c.errnum, 0);
    close_web(&w, &c);
}

TEST(a_piece_may_be_made_where_it_is_sent_from)
{
    struct web w;
    struct web_client c;

    open_web(&w, &c);
    for (int i = 0; i < 2; i++) { /* on one connection: the framing must hold */
        CHECK(web_send(&w, &c, STR(GET("/in_place/counted"))));
        CHECK_STR(web_take(&w, &c).body, "hello there");
        CHECK(web_send(&w, &c, STR(REQ("HEAD", "/in_place/chunked") "\r\n")));
        CHECK(web_read(&w, &c) > 0);
        c.len = 0;
        CHECK(web_send(&w, &c, STR(GET("/in_place/chunked"))));
        CHECK(web_read(&w, &c) > 0);
        CHECK_HAS(str_n(c.p, c.len),
                  "\r\n\r\n00000005\r\nhello\r\n00000006\r\n there\r\n0\r\n\r\n");
        CHECK_STR(web_take(&w, &c).body, "hello there");
    }
    close_web(&w, &c);
}

static size_t in_use(void)
{
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

TEST_LIMIT(a_long_download_to_a_slow_reader_takes_little_memory, 120)
{
    struct web w;
    struct web_client c;
    uint64_t got = 0;
    size_t most = 0;

    open_web(&w, &c);
    size_t before = in_use();
    CHECK(web_send(&w, &c, STR(GET("/down"))));
    while (got < 200u << 20) {
        web_turns(&w, 1);
        size_t n = web_read_some(&c, 100000);
        got += n;
        c.len = 0;
        size_t now = in_use();
        if (now > before && now - before > most)
            most = now - before;
        CHECK(!c.eof && !c.errnum);
    }
    CHECK(most < 1u << 20);
    CHECK(app.max_pending <= STREAM_HIGH + (64u << 10));
    CHECK(app.drains > 100);
    CHECK_INT(app.gone, 0);
    close_web(&w, &c);
}

TEST(a_reader_that_stops_is_given_up_and_one_that_reads_is_not)
{
    struct http_server_config sc = {.limits = {.body_idle_ms = 100}};
    struct web w;
    struct web_client c;

    web_open(&w, WEB_ROUTES(routes), NULL, &sc);
    web_connect(&w, &c, 1u << 20);
    CHECK(web_send(&w, &c, STR(GET("/down"))));
    for (int i = 0; i < 20; i++) { /* slow but alive */
        web_pass(&w, 60);
        CHECK(web_read_some(&c, 300000) > 0);
        web_turns(&w, 2);
        c.len = 0;
    }
    CHECK_INT(app.gone, 0);
    web_pass(&w, 300);
    CHECK_INT(app.gone, 1);
    close_web(&w, &c);
}
