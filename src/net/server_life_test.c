// SPDX-License-Identifier: Apache-2.0
/* server_life_test.c — connections that come, stay, wait and go: deadlines, limits, answers after
 * the peer has gone, draining, and the end of the server. */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/server.h"
#include "net/stream.h"
#include "test/test.h"
#include "test/web.h"

#define REQ(method, path) method " " path " HTTP/1.1\r\nHost: a\r\n"
#define GET(path)         REQ("GET", path) "\r\n"

static struct app {
    struct http_req *held[4];
    int held_count, gone, hangups, drained;
    struct stream *taken;
    bool abort_others;
} app;

static fallible hello(struct http_req *req)
{
    http_reply(req, 200, STR("text/plain"), STR("hello"));
    return NULL;
}

static void on_held_gone(struct http_req *req)
{
    app.gone++;
    if (app.abort_others)
        for (int i = 0; i < app.held_count; i++)
            if (app.held[i] && app.held[i] != req) {
                struct http_req *other = take(&app.held[i]);
                other->on_gone = NULL;
                http_reply_abort(other);
            }
    for (int i = 0; app.abort_others && i < app.held_count; i++)
        if (app.held[i] == req) {
            app.held[i] = NULL;
            http_reply_abort(req);
        }
}

static void on_held_hangup(struct http_req *req)
{
    (void)req;
    app.hangups++;
}

static fallible hold(struct http_req *req)
{
    app.held[app.held_count++] = req;
    req->on_gone = on_held_gone;
    req->on_hangup = on_held_hangup;
    return NULL;
}

static void answer_held(int i)
{
    http_reply(take(&app.held[i]), 200, STR("text/plain"), STR("late"));
}

static size_t on_taken_data(struct stream *s, struct str data)
{
    stream_write(s, STR("<"));
    stream_write(s, data);
    stream_write(s, STR(">"));
    return data.len;
}

static void on_taken_error(struct stream *s, struct err *why)
{
    err_free(why);
    stream_close(s);
    app.taken = NULL;
}

static const struct stream_events taken_events = {
    .on_data = on_taken_data,
    .on_error = on_taken_error,
};

static fallible takes(struct http_req *req)
{
    app.taken = http_take_stream(req);
    stream_set_events(app.taken, &taken_events, NULL);
    stream_write(app.taken, STR("yours\n"));
    return NULL;
}

static fallible big(struct http_req *req)
{
    size_t n = 3u << 20;
    char *p = arena_alloc(&req->arena, n);

    CHECK(p != NULL);
    memset(p, 'b', n);
    http_reply(req, 200, STR("text/plain"), str_n(p, n));
    return NULL;
}

static const struct route routes[] = {
    {"GET", "/hello", hello, 0, 0},
    {"GET", "/hold", hold, 0, 0},
    {"GET", "/take", takes, 0, 0},
    {"GET", "/big", big, 0, 0},
};

static void open_web(struct web *w, struct http_limits limits)
{
    struct http_server_config sc = {.limits = limits};

    web_open(w, WEB_ROUTES(routes), NULL, &sc);
}

/* --- deadlines --- */

TEST(a_head_that_takes_too_long_is_answered_408_however_it_drips)
{
    struct web w;
    struct web_client c;

    open_web(&w, (struct http_limits){.head_ms = 100});
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR("G")));
    for (int i = 0; i < 9; i++) {
        web_pass(&w, 10);
        CHECK(web_send(&w, &c, STR("E")));
        web_read(&w, &c);
        CHECK_INT(c.len, 0);
    }
    web_pass(&w, 20);
    struct web_answer a = web_take(&w, &c);
    CHECK_INT(a.status, 408);
    CHECK(!a.keep_alive);
    web_close_client(&c);
    web_turns(&w, 3);
    CHECK_INT(http_server_connections(w.server), 0);
    web_close(&w);
}

TEST(an_idle_connection_is_closed_without_a_word)
{
    struct web w;
    struct web_client c;

    open_web(&w, (struct http_limits){.idle_ms = 100, .head_ms = 50});
    web_connect(&w, &c, 4096);
    web_pass(&w, 99);
    CHECK(web_send(&w, &c, STR(GET("/hello"))));
    CHECK_STR(web_take(&w, &c).body, "hello");
    web_pass(&w, 99);
    web_read(&w, &c);
    CHECK(!c.eof);
    web_pass(&w, 1);
    web_read(&w, &c);
    CHECK(c.eof);
    CHECK_INT(c.len, 0);
    web_close_client(&c);
    web_close(&w);
}

TEST(a_handler_may_take_its_time)
{
    struct web w;
    struct web_client c;

    open_web(&w, (struct http_limits){.idle_ms = 100, .head_ms = 50, .body_idle_ms = 100});
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(GET("/hold") GET("/hello"))));
    web_pass(&w, 3600000);
    answer_held(0);
    CHECK_STR(web_take(&w, &c).body, "late");
    CHECK_STR(web_take(&w, &c).body, "hello");
    CHECK_INT(app.gone, 0);
    web_close_client(&c);
    web_close(&w);
}

static struct counted {
    int answers, last_status;
    uint64_t last_ns;
} counted;

static void on_counted_answer(void *ctx, const struct http_req *req, int status, uint64_t ns)
{
    (void)ctx;
    CHECK_STR(req->head.method, "GET");
    counted = (struct counted){counted.answers + 1, status, ns};
}

TEST(who_counts_is_told_of_every_answer_when_it_is_complete)
{
    struct http_server_config sc = {.on_answer = on_counted_answer};
    struct web w;
    struct web_client c;

    web_open(&w, WEB_ROUTES(routes), NULL, &sc);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(GET("/hold"))));
    web_pass(&w, 30);
    CHECK_INT(counted.answers, 0);
    answer_held(0);
    CHECK_STR(web_take(&w, &c).body, "late");
    CHECK_INT(counted.answers, 1);
    CHECK_INT(counted.last_ns, 30000000);
    CHECK(web_send(&w, &c, STR(GET("/nowhere"))));
    CHECK_INT(web_take(&w, &c).status, 404);
    CHECK_INT(counted.answers, 2);
    CHECK_INT(counted.last_status, 404);
    web_close_client(&c);
    web_close(&w);
}

TEST(the_deadline_of_a_head_ends_with_it)
{
    struct web w;
    struct web_client c;

    open_web(&w, (struct http_limits){.head_ms = 50});
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR("GET /hold HTTP/1.1\r\n")));
    CHECK(web_send(&w, &c, STR("Host: a\r\n\r\n")));
    web_pass(&w, 5000);
    web_read(&w, &c);
    CHECK_INT(c.len, 0);
    answer_held(0);
    CHECK_STR(web_take(&w, &c).body, "late");
    web_close_client(&c);
    web_close(&w);
}

/* The answer does not fit the socket and nobody reads: there is an end to that, too. */
TEST(a_connection_that_is_only_being_sent_has_a_deadline)
{
    struct web w;
    struct web_client c;

    open_web(&w, (struct http_limits){.idle_ms = 100, .body_idle_ms = 100});
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(REQ("GET", "/big") "Connection: close\r\n\r\n")));
    web_turns(&w, 5);
    CHECK_INT(http_server_connections(w.server), 1);
    web_pass(&w, 20000);
    CHECK_INT(http_server_connections(w.server), 0);
    web_close_client(&c);
    web_close(&w);
}

/* --- peers that go --- */

TEST(a_half_closed_peer_still_gets_its_answer)
{
    struct web w;
    struct web_client c;

    open_web(&w, (struct http_limits){0});
    for (int later = 0; later < 2; later++) {
        web_connect(&w, &c, 4u << 20);
        CHECK(web_send(&w, &c, later ? STR(GET("/hold") GET("/big")) : STR(GET("/big"))));
        CHECK_INT(shutdown(c.fd, SHUT_WR), 0);
        web_turns(&w, 3);
        if (later) {
            CHECK_INT(app.hangups, 1);
            CHECK_INT(app.gone, 0);
            answer_held(0);
            CHECK_STR(web_take(&w, &c).body, "late");
        }
        CHECK_INT(web_take(&w, &c).body.len, 3u << 20);
        web_read(&w, &c);
        CHECK(c.eof); /* and no longer: nothing more can come */
        web_close_client(&c);
        web_turns(&w, 3);
        CHECK_INT(http_server_connections(w.server), 0);
    }
    web_close(&w);
}

TEST(a_cut_is_seen_before_it_is_told)
{
    struct web w;
    struct web_client c;

    open_web(&w, (struct http_limits){0});
    for (int half = 0; half < 2; half++) {
        app.held_count = 0;
        web_connect(&w, &c, 4096);
        CHECK(web_send(&w, &c, STR(GET("/hold"))));
        web_turns(&w, 3);
        CHECK(!http_req_is_cut(app.held[0]));
        if (half)
            CHECK_INT(shutdown(c.fd, SHUT_WR), 0);
        else
            web_close_client(&c);
        CHECK_INT(app.hangups + app.gone, half);
        CHECK(http_req_is_cut(app.held[0]));
        web_turns(&w, 3);
        CHECK_INT(app.hangups + app.gone, half + 1);
        answer_held(0);
        if (half)
            web_close_client(&c);
        web_turns(&w, 4);
    }
    CHECK_INT(http_server_connections(w.server), 0);
    web_close(&w);
}

TEST(an_answer_to_a_peer_that_has_gone_goes_nowhere)
{
    struct web w;
    struct web_client c;

    open_web(&w, (struct http_limits){0});
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(GET("/hold"))));
    web_close_client(&c);
    web_turns(&w, 4);
    CHECK_INT(app.hangups + app.gone, 1);
    answer_held(0);
    web_turns(&w, 4);
    CHECK_INT(http_server_connections(w.server), 0);
    CHECK_STR(web_ask(&w, STR(GET("/hello"))).body, "hello");
    web_close(&w);
}

/* The server's end of a client's connection, among all that this process has. */
static int other_end(int fd)
{
    struct sockaddr_in ours, theirs;
    socklen_t len = sizeof ours;

    CHECK_INT(getsockname(fd, (struct sockaddr *)&ours, &len), 0);
    for (int i = 0; i < 1024; i++) {
        len = sizeof theirs;
        if (getpeername(i, (struct sockaddr *)&theirs, &len) == 0 && theirs.sin_family == AF_INET &&
            theirs.sin_port == ours.sin_port)
            return i;
    }
    FAIL("nobody accepted it");
}

static int option_of(int fd, int level, int name)
{
    socklen_t len = sizeof(int);
    int value = -1;

    CHECK_INT(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

TEST(a_silent_client_is_looked_for_in_case_it_vanished)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    struct web_client c;
    struct web w;
    int fd;

    open_web(&w, (struct http_limits){0});
    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_INT(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    CHECK_OK(http_server_listen(w.server, fd));
    CHECK_OK(connect_start(&addr, len, &fd));
    web_client_init(&c, fd, 4096);
    web_turns(&w, 4);
    CHECK(web_send(&w, &c, STR(GET("/hold"))));
    web_turns(&w, 4);
    CHECK_INT(app.held_count, 1);
    CHECK_INT(option_of(other_end(c.fd), SOL_SOCKET, SO_KEEPALIVE), 1);
    CHECK_INT(option_of(other_end(c.fd), IPPROTO_TCP, TCP_KEEPIDLE), 60);
    answer_held(0);
    CHECK_STR(web_take(&w, &c).body, "late");
    web_close_client(&c);
    web_close(&w);
}

/* --- taken away --- */

TEST(a_taken_stream_carries_on_with_what_was_sent_already)
{
    struct web w;
    struct web_client c;

    open_web(&w, (struct http_limits){.idle_ms = 100});
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR(GET("/take") "early")));
    web_read(&w, &c);
    CHECK_STR(str_n(c.p, c.len), "yours\n<early>");
    CHECK_INT(http_server_connections(w.server), 0);
    web_pass(&w, 100000);
    c.len = 0;
    CHECK(web_send(&w, &c, STR("more")));
    web_read(&w, &c);
    CHECK_STR(str_n(c.p, c.len), "<more>");
    web_close_client(&c);
    web_turns(&w, 4);
    CHECK(app.taken == NULL);
    web_close(&w);
}

/* --- the end --- */

static void on_drained(void *ctx)
{
    (void)ctx;
    app.drained++;
}

TEST(draining_closes_the_idle_and_finishes_the_busy)
{
    struct web w;
    struct web_client idle, busy, slow;

    open_web(&w, (struct http_limits){0});
    const char *path = web_serve_unix(&w);
    web_dial(&w, &idle, path);
    web_dial(&w, &busy, path);
    web_connect(&w, &slow, 4u << 20);
    CHECK(web_send(&w, &busy, STR(GET("/hold") GET("/hello"))));
    CHECK(web_send(&w, &slow, STR(GET("/big"))));
    web_turns(&w, 3);
    http_server_drain(w.server, on_drained, NULL);
    web_read(&w, &idle);
    CHECK(idle.eof);
    web_close_client(&idle);
    web_turns(&w, 3);
    CHECK_INT(access(path, F_OK), -1);
    CHECK_INT(app.drained, 0);
    answer_held(0);
    struct web_answer a = web_take(&w, &busy);
    CHECK_STR(a.body, "late");
    CHECK(!a.keep_alive);
    web_read(&w, &busy);
    CHECK(busy.eof);
    CHECK_INT(busy.len, 0); /* the second request is not begun */
    web_close_client(&busy);
    web_turns(&w, 3);
    CHECK_INT(app.drained, 0); /* the slow one still has bytes to come */
    CHECK_INT(web_take(&w, &slow).body.len, 3u << 20);
    web_close_client(&slow);
    web_turns(&w, 4);
    CHECK_INT(app.drained, 1);
    web_close(&w);
}

TEST(draining_with_nobody_there_is_done_after_the_turn)
{
    struct web w;

    open_web(&w, (struct http_limits){0});
    http_server_drain(w.server, on_drained, NULL);
    CHECK_INT(app.drained, 0);
    web_turns(&w, 1);
    CHECK_INT(app.drained, 1);
    web_close(&w);
}

TEST(a_server_freed_with_requests_outstanding_takes_their_answers_later)
{
    struct web w;
    struct web_client c[2];

    open_web(&w, (struct http_limits){0});
    for (int i = 0; i < 2; i++) {
        web_connect(&w, &c[i], 4096);
        CHECK(web_send(&w, &c[i], STR(GET("/hold"))));
    }
    http_server_free(take(&w.server));
    CHECK_INT(app.gone, 2);
    web_turns(&w, 2);
    answer_held(0);
    http_reply_begin(app.held[1], 200, STR(""), HTTP_LENGTH_UNKNOWN);
    http_reply_write(app.held[1], STR("x"));
    http_reply_end(app.held[1]);
    for (int i = 0; i < 2; i++) {
        web_read(&w, &c[i]);
        CHECK(c[i].eof);
        web_close_client(&c[i]);
    }
    web_close(&w);
}

TEST(on_gone_of_one_request_may_end_another_while_the_server_is_freed)
{
    struct web w;
    struct web_client c[3];

    open_web(&w, (struct http_limits){0});
    for (int i = 0; i < 3; i++) {
        web_connect(&w, &c[i], 4096);
        CHECK(web_send(&w, &c[i], STR(GET("/hold"))));
    }
    app.abort_others = true;
    http_server_free(take(&w.server));
    CHECK_INT(app.gone, 1);
    for (int i = 0; i < 3; i++)
        web_close_client(&c[i]);
    web_close(&w);
}

TEST(what_is_being_sent_when_all_is_freed_leaks_nothing)
{
    unsigned fds = test_open_fds();
    struct web w;
    struct web_client c, d;

    open_web(&w, (struct http_limits){0});
    web_connect(&w, &c, 4096);
    web_connect(&w, &d, 4096);
    CHECK(web_send(&w, &c, STR(REQ("GET", "/big") "Connection: close\r\n\r\n")));
    CHECK(web_send(&w, &d, STR(REQ("GET", "/hello") "Connection: close\r\n\r\n")));
    web_close(&w); /* no turn in between */
    web_close_client(&c);
    web_close_client(&d);
    CHECK_INT(test_open_fds(), fds);
}

TEST(a_server_that_is_freed_sends_what_was_queued)
{
    struct web w;
    struct web_client c;

    open_web(&w, (struct http_limits){0});
    web_connect(&w, &c, 4u << 20);
    CHECK(web_send(&w, &c, STR(REQ("GET", "/big") "Connection: close\r\n\r\n")));
    http_server_free(take(&w.server));
    CHECK_INT(web_take(&w, &c).body.len, 3u << 20);
    web_close_client(&c);
    web_close(&w);
}
