// SPDX-License-Identifier: Apache-2.0
/* server_test.c — requests and answers over one connection; bodies, deadlines, faults and the end
 * of things are in files of their own. */
#include "net/server.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "test/test.h"
#include "test/web.h"

#define REQ(method, path) method " " path " HTTP/1.1\r\nHost: a\r\n"
#define GET(path)         REQ("GET", path) "\r\n"

static fallible hello(struct http_req *req)
{
    http_reply(req, 200, STR("text/plain"), STR("hello"));
    return NULL;
}

static fallible echo(struct http_req *req)
{
    http_reply(req, 200, STR("text/plain"), req->body);
    return NULL;
}

static fallible json(struct http_req *req)
{
    struct json *body;

    TRY(http_req_json(req, &body));
    http_reply_json(req, 201, STR("{}"));
    return NULL;
}

static fallible chunks(struct http_req *req)
{
    http_reply_begin(req, 200, STR("text/plain"), HTTP_LENGTH_UNKNOWN);
    http_reply_write(req, STR("one "));
    http_reply_write(req, STR(""));
    http_reply_write(req, STR("two"));
    http_reply_end(req);
    return NULL;
}

static fallible counted(struct http_req *req)
{
    http_reply_begin(req, 200, STR("text/plain"), 7);
    http_reply_write(req, STR("one two"));
    http_reply_end(req);
    return NULL;
}

static fallible miscounted(struct http_req *req)
{
    http_reply_begin(req, 200, STR("text/plain"), 9);
    http_reply_write(req, STR("one two"));
    http_reply_end(req);
    return NULL;
}

static fallible nothing(struct http_req *req)
{
    http_reply(req, 204, STR("text/plain"), STR("must not be seen"));
    return NULL;
}

static fallible fails(struct http_req *req)
{
    (void)req;
    return err_new(ERR_CONFLICT, "no \"luck\"\r\nX: y");
}

static fallible breaks(struct http_req *req)
{
    http_reply_begin(req, 200, STR("text/plain"), HTTP_LENGTH_UNKNOWN);
    http_reply_write(req, STR("half"));
    return err_new(ERR_IO, "the disk is gone");
}

static fallible injects(struct http_req *req)
{
    http_reply_header(req, STR("x-good"), STR("1"));
    http_reply_header(req, STR("x-bad"), STR("1\r\nset-cookie: a=b"));
    http_reply_header(req, STR("x bad\r\nname"), STR("1"));
    http_reply(req, 200, STR("text/plain\r\nx-evil: 1"), STR("ok"));
    return NULL;
}

static fallible what(struct http_req *req)
{
    struct str q = http_req_query(req, "q"), peer = http_req_peer(req);

    http_reply(req, 200, STR("text/plain"),
               arena_printf(&req->arena, STR_FMT "|" STR_FMT "|" STR_FMT "|%s|" STR_FMT,
                            STR_ARG(req->path), STR_ARG(req->query), STR_ARG(q),
                            q.p ? "there" : "absent", STR_ARG(peer)));
    return NULL;
}

static fallible big(struct http_req *req)
{
    size_t n = 1u << 20;
    char *p = arena_alloc(&req->arena, n);

    CHECK(p != NULL);
    memset(p, 'b', n);
    http_reply(req, 200, STR("text/plain"), str_n(p, n));
    return NULL;
}

static fallible huge(struct http_req *req)
{
    size_t n = 40u << 20;
    char *p = arena_zalloc(&req->arena, n);

    CHECK(p != NULL);
    http_reply(req, 200, STR("text/plain"), str_n(p, n));
    return NULL;
}

static const struct route routes[] = {
    {"GET", "/hello", hello, 0, 0},
    {"POST", "/hello", hello, 0, 0},
    {"POST", "/echo", echo, 0, 10},
    {"POST", "/json", json, 0, 0},
    {"GET", "/chunks", chunks, 0, 0},
    {"GET", "/counted", counted, 0, 0},
    {"GET", "/nothing", nothing, 0, 0},
    {"GET", "/fails", fails, 0, 0},
    {"GET", "/miscounted", miscounted, 0, 0},
    {"GET", "/breaks", breaks, 0, 0},
    {"GET", "/injects", injects, 0, 0},
    {"GET", "/what/{x...}", what, 0, 0},
    {"GET", "/", what, 0, 0},
    {"GET", "/big", big, 0, 0},
    {"GET", "/huge", huge, 0, 0},
};

static void open_web(struct web *w)
{
    web_open(w, WEB_ROUTES(routes), NULL, NULL);
}

TEST(an_answer_has_its_head_date_and_length)
{
    struct web w;

    open_web(&w);
    struct web_answer a = web_ask(&w, STR(GET("/hello")));
    CHECK_STR(a.head, "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:16:40 GMT\r\n"
                      "content-type: text/plain\r\ncontent-length: 5\r\n\r\n");
    CHECK_STR(a.body, "hello");
    web_close(&w);
}

TEST(one_connection_serves_many_requests)
{
    struct web w;
    struct web_client c;

    open_web(&w);
    web_connect(&w, &c, 4096);
    for (int i = 0; i < 100; i++) {
        CHECK(web_send(&w, &c, STR(GET("/hello"))));
        CHECK_STR(web_take(&w, &c).body, "hello");
    }
    CHECK_INT(http_server_connections(w.server), 1);
    web_close_client(&c);
    web_turns(&w, 3);
    CHECK_INT(http_server_connections(w.server), 0);
    web_close(&w);
}

TEST(pipelined_requests_are_answered_in_order)
{
    struct web w;
    struct web_client c;

    open_web(&w);
    web_connect(&w, &c, 1u << 16);
    CHECK(web_send(&w, &c,
                   STR(GET("/hello") REQ("POST", "/echo") "Content-Length: 3\r\n\r\nabc"
                                                          "\r\n" GET("/chunks") GET("/none")
                                                              GET("/counted"))));
    CHECK_STR(web_take(&w, &c).body, "hello");
    CHECK_STR(web_take(&w, &c).body, "abc");
    CHECK_STR(web_take(&w, &c).body, "one two");
    CHECK_INT(web_take(&w, &c).status, 404);
    CHECK_STR(web_take(&w, &c).body, "one two");
    CHECK_INT(c.len, 0);
    web_close_client(&c);
    web_close(&w);
}

TEST(a_request_may_come_byte_by_byte)
{
    struct web w;
    struct web_client c;
    struct str all =
        STR("\r\n" REQ("POST", "/echo") "Transfer-Encoding: chunked\r\n\r\n"
                                        "2\r\nab\r\n1;x=y\r\nc\r\n0\r\nT: v\r\n\r\n" GET("/hello"));

    open_web(&w);
    web_connect(&w, &c, 4096);
    for (size_t i = 0; i < all.len; i++)
        CHECK(web_send(&w, &c, str_n(all.p + i, 1)));
    CHECK_STR(web_take(&w, &c).body, "abc");
    CHECK_STR(web_take(&w, &c).body, "hello");
    web_close_client(&c);
    web_close(&w);
}

/* Many large answers on one connection: reading stops while they pile up. */
TEST(a_client_that_pipelines_and_reads_slowly_loses_nothing)
{
    struct web w;
    struct web_client c;

    open_web(&w);
    web_connect(&w, &c, 4u << 20);
    for (int i = 0; i < 60; i++)
        CHECK(web_send(&w, &c, STR(GET("/big"))));
    for (int i = 0; i < 60; i++) {
        struct web_answer a = web_take(&w, &c);
        CHECK_INT(a.status, 200);
        CHECK_INT(a.body.len, 1u << 20);
    }
    CHECK(web_send(&w, &c, STR(GET("/hello"))));
    CHECK_STR(web_take(&w, &c).body, "hello");
    web_close_client(&c);
    web_close(&w);
}

TEST(an_answer_may_be_larger_than_the_queue_of_a_slow_peer)
{
    struct web w;
    struct web_client c;

    open_web(&w);
    web_connect(&w, &c, 100u << 20);
    CHECK(web_send(&w, &c, STR(GET("/huge") GET("/huge"))));
    for (int i = 0; i < 2; i++)
        CHECK_INT(web_take(&w, &c).body.len, 40u << 20);
    web_close_client(&c);
    web_close(&w);
}

static void check_end(struct web *w, struct web_client *c)
{
    web_read(w, c);
    CHECK(c->eof);
    CHECK_INT(c->len, 0);
    web_close_client(c);
    web_turns(w, 3);
    CHECK_INT(http_server_connections(w->server), 0);
}

TEST(http_1_0_closes_unless_asked_to_stay)
{
    struct web w;
    struct web_client c;

    open_web(&w);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR("GET /chunks HTTP/1.0\r\n\r\n")));
    web_read(&w, &c);
    CHECK_HAS(str_n(c.p, c.len), "connection: close\r\n\r\none two");
    CHECK(c.eof && str_find(str_n(c.p, c.len), STR("chunked")) < 0);
    c.len = 0;
    check_end(&w, &c);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")));
    CHECK_HAS(web_take(&w, &c).head, "connection: keep-alive\r\n");
    CHECK(web_send(&w, &c, STR("GET /hello HTTP/1.0\r\n\r\n")));
    CHECK_HAS(web_take(&w, &c).head, "connection: close\r\n");
    check_end(&w, &c);
    web_close(&w);
}

TEST(connection_close_is_kept)
{
    struct web w;
    struct web_client c;

    open_web(&w);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(REQ("GET", "/hello") "Connection: close\r\n\r\n" GET("/hello"))));
    CHECK_HAS(web_take(&w, &c).head, "connection: close\r\n");
    check_end(&w, &c);
    web_close(&w);
}

TEST(head_has_the_head_of_get_and_no_body)
{
    static const char *const paths[] = {"/hello", "/chunks", "/counted"};
    static const char *const wants[] = {"content-length: 5\r\n\r\n",
                                        "transfer-encoding: chunked\r\n\r\n",
                                        "content-length: 7\r\n\r\n"};
    struct web w;
    struct web_client c;
    char req[100];

    open_web(&w);
    web_connect(&w, &c, 4096);
    for (int i = 0; i < 3; i++) {
        snprintf(req, sizeof req, "HEAD %s HTTP/1.1\r\nHost: a\r\n\r\n", paths[i]);
        CHECK(web_send(&w, &c, str_of(req)));
        web_read(&w, &c);
        CHECK(str_ends(str_n(c.p, c.len), str_of(wants[i])));
        c.len = 0;
    }
    CHECK(web_send(&w, &c, STR(GET("/hello"))));
    CHECK_STR(web_take(&w, &c).body, "hello");
    web_close_client(&c);
    web_close(&w);
}

TEST(no_content_has_no_body_and_no_length)
{
    struct web w;

    open_web(&w);
    struct web_answer a = web_ask(&w, STR(GET("/nothing")));
    CHECK_INT(a.status, 204);
    CHECK_INT(a.body.len, 0);
    CHECK(str_find(a.head, STR("content-length")) < 0);
    web_close(&w);
}

static const struct {
    struct str request;
    const char *part; /* of the whole answer's head or body */
    int status;
    bool keep_alive;
} refusals[] = {
    {STR_INIT(GET("/none")), "{\"detail\":\"Not Found\"}", 404, true},
    {STR_INIT(REQ("PUT", "/hello") "\r\n"), "allow: POST, GET, HEAD\r\n", 405, true},
    {STR_INIT(REQ("POST", "/echo") "Content-Length: 11\r\n\r\n12345678901"), "10", 413, true},
    {STR_INIT(REQ("POST", "/echo") "Transfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n"), "10",
     413, false},
    {STR_INIT(REQ("POST", "/json") "Content-Length: 2\r\n\r\n{]"), "not JSON", 422, true},
    {STR_INIT(REQ("POST", "/json") "Content-Length: 0\r\n\r\n"), "not JSON", 422, true},
    {STR_INIT(GET("/fails")), "no \\\"luck\\\"\\r\\nX: y", 409, true},
    {STR_INIT("GET /hello\r\n\r\n"), "request line", 400, false},
    {STR_INIT("GET /hello HTTP/1.1\r\n\r\n"), "no Host", 400, false},
    {STR_INIT("GET /hello HTTP/3.0\r\nHost: a\r\n\r\n"), "HTTP/1.1", 505, false},
    {STR_INIT("GET /hello HTTP/1.1\nHost: a\n\n"), "LF without CR", 400, false},
    {STR_INIT(REQ("POST", "/echo") "Expect: magic\r\nContent-Length: 1\r\n\r\n"), "100-", 417,
     false},
    {STR_INIT(REQ("POST", "/echo") "Transfer-Encoding: gzip\r\n\r\n"), "chunked", 501, false},
    {STR_INIT(REQ("POST", "/echo") "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"), "bad chunk", 400,
     false},
    {STR_INIT(GET("/what/%zz")), "", 400, true},
    {STR_INIT(GET("/what/a%00b")), "", 400, true},
};

TEST(refusals_have_their_status_and_say_why)
{
    struct web w;

    open_web(&w);
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        struct web_answer a = web_ask(&w, refusals[i].request);
        CHECK_INT(a.status, refusals[i].status);
        if (str_find(a.head, str_of(refusals[i].part)) < 0)
            CHECK_HAS(a.body, refusals[i].part);
        CHECK_INT(a.keep_alive, refusals[i].keep_alive);
        CHECK_HAS(a.head, "content-type: application/json\r\n");
    }
    CHECK_INT(http_server_connections(w.server), 0);
    web_close(&w);
}

TEST(a_head_that_is_too_large_is_refused_with_431)
{
    struct web w;
    struct web_client c;

    open_web(&w);
    web_connect(&w, &c, 4096);
    web_send(&w, &c, STR("GET /hello HTTP/1.1\r\nHost: a\r\nX: "));
    for (int i = 0; i < 80; i++) {
        char kilobyte[1024];
        memset(kilobyte, 'x', sizeof kilobyte);
        web_send(&w, &c, str_n(kilobyte, sizeof kilobyte));
    }
    CHECK_INT(web_take(&w, &c).status, 431);
    check_end(&w, &c);
    web_close(&w);
}

TEST(an_answer_that_breaks_in_the_middle_cuts_the_connection)
{
    struct web w;
    struct web_client c;

    open_web(&w);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(GET("/breaks"))));
    web_read(&w, &c);
    CHECK(c.eof || c.errnum);
    CHECK(str_find(str_n(c.p, c.len), STR("0\r\n\r\n")) < 0); /* not taken for whole */
    web_close_client(&c);
    web_turns(&w, 3);
    CHECK_INT(http_server_connections(w.server), 0);
    web_close(&w);
}

TEST(an_answer_shorter_than_its_head_says_cuts_the_connection)
{
    struct web w;
    struct web_client c;

    open_web(&w);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(GET("/miscounted") GET("/hello"))));
    web_read(&w, &c);
    CHECK(c.eof || c.errnum);
    CHECK(str_find(str_n(c.p, c.len), STR("hello")) < 0); /* not read as the missing two bytes */
    web_close_client(&c);
    web_close(&w);
}

TEST(options_of_the_whole_server_are_answered)
{
    struct web w;

    open_web(&w);
    struct web_answer a = web_ask(&w, STR(REQ("OPTIONS", "*") "\r\n"));
    CHECK_INT(a.status, 204);
    CHECK_HAS(a.head, "allow: ");
    web_close(&w);
}

TEST(headers_that_would_break_the_head_are_dropped)
{
    struct web w;

    open_web(&w);
    struct web_answer a = web_ask(&w, STR(GET("/injects")));
    CHECK_HAS(a.head, "x-good: 1\r\n");
    CHECK_HAS(a.head, "content-type: application/octet-stream\r\n");
    CHECK(str_find(a.head, STR("cookie")) < 0 && str_find(a.head, STR("bad")) < 0);
    CHECK(str_find(a.head, STR("evil")) < 0);
    web_close(&w);
}

TEST(targets_are_split_into_path_and_query)
{
    static const char *const cases[][2] = {
        {"/what/a?q=1", "/what/a|q=1|1|there|unix"},
        {"/what/a?q=%20+x&q=2", "/what/a|q=%20+x&q=2|  x|there|unix"},
        {"/what/a?", "/what/a|||absent|unix"},
        {"/what/a?q=?", "/what/a|q=?|?|there|unix"},
        {"http://h/what/b?q=1", "/what/b|q=1|1|there|unix"},
        {"http://h", "/|||absent|unix"},
        {"http://h?q=/what/c", "/|q=/what/c|/what/c|there|unix"},
        {"/what/http://h/", "/what/http://h/|||absent|unix"},
    };
    struct web w;
    char req[200];

    open_web(&w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(req, sizeof req, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", cases[i][0]);
        CHECK_STR(web_ask(&w, str_of(req)).body, cases[i][1]);
    }
    CHECK_INT(web_ask(&w, STR("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")).status, 204);
    CHECK_INT(web_ask(&w, STR("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n")).status, 404);
    web_close(&w);
}

static fallible write_letter(struct http_req *req)
{
    struct jw *w = http_reply_writer(req);

    JW_OBJECT(w, NULL)
        jw_str(w, "letter", STR("x"));
    if (str_eq(req->query, STR("fail")))
        return err_new(ERR_NOT_FOUND, "no letter");
    http_reply_written(req, 201);
    return NULL;
}

TEST(an_answer_is_what_was_written_of_it_or_the_error_that_stopped_it)
{
    static const struct route letters[] = {{"GET", "/letter", write_letter}};
    struct web w;

    web_open(&w, WEB_ROUTES(letters), NULL, NULL);
    struct web_answer a = web_ask(&w, STR("GET /letter HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_INT(a.status, 201);
    CHECK_HAS(a.head, "content-type: application/json\r\n");
    CHECK_STR(a.body, "{\"letter\":\"x\"}");
    a = web_ask(&w, STR("GET /letter?fail HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_INT(a.status, 404);
    CHECK_STR(a.body, "{\"detail\":\"no letter\"}");
    web_close(&w);
}

TEST(the_access_log_has_a_line_for_each_request)
{
    struct http_server_config sc = {.access_log = true, .server_name = "croft"};
    struct web w;
    char text[2000];
    int fds[2];

    CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
    log_setup(fds[1], LOG_INFO, LOG_JSON);
    web_open(&w, WEB_ROUTES(routes), NULL, &sc);
    CHECK_HAS(web_ask(&w, STR(GET("/hello?secret=1"))).head, "server: croft\r\n");
    web_ask(&w, STR("GARBAGE\r\n\r\n"));
    ssize_t n = read(fds[0], text, sizeof text);
    CHECK(n > 0);
    CHECK_HAS(str_n(text, (size_t)n), "\"method\":\"GET\",\"path\":\"/hello\",\"status\":200,"
                                      "\"bytes\":5,");
    CHECK_HAS(str_n(text, (size_t)n), "\"status\":400");
    web_close(&w);
    close(fds[0]);
    close(fds[1]);
}

TEST(the_second_answer_takes_no_memory)
{
    struct web w;
    struct web_client c;

    open_web(&w);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(GET("/hello"))));
    CHECK_STR(web_take(&w, &c).body, "hello");
    fault_at(UINT32_MAX);
    CHECK(web_send(&w, &c, STR(GET("/hello"))));
    web_read(&w, &c);
    CHECK_INT(fault_calls(), 2); /* one recv, one send */
    fault_at(0);
    web_close_client(&c);
    web_close(&w);
}
