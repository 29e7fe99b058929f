// SPDX-License-Identifier: Apache-2.0
/* body_test.c — bodies both ways in bounded memory, framing made anew, and what a client sees when
 * the connection inside breaks. */
#include <malloc.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/proxy/proxy.h"
#include "test/proxy_kit.h"
#include "test/test.h"

#define ID        "X-Request-ID: i\r\n"
#define HOST      "Host: 127.0.0.1\r\n"
#define GET(path) STR("GET " path " HTTP/1.1\r\n" HOST "\r\n")
#define POST(h)   STR("POST /take HTTP/1.1\r\n" HOST h "\r\n")
#define MB        (1u << 20)

static char block[MB];

/* --- framing --- */

TEST(a_chunked_body_goes_in_chunked_and_without_trailers)
{
    static const struct raw_script script = {
        .answers = {STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n"
                             "3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nX: y\r\n\r\n")},
        .until = "0\r\n\r\n"};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, &script, 1);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, POST("Transfer-Encoding: chunked\r\n") /* and its pieces: */));
    CHECK(web_send(&k.web, &c, STR("5;a=b\r\nhello\r\n")));
    CHECK(web_send(&k.web, &c, STR("1\r\n!\r\n0\r\nX-Trailer: 1\r\n\r\n")));
    web_turns(&k.web, PKIT_TURNS);
    web_read(&k.web, &c);
    CHECK_HAS(str_n(c.p, c.len), "transfer-encoding: chunked\r\n");
    CHECK_HAS(str_n(c.p, c.len), "\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    CHECK_HAS(buf_str(&k.raw.seen), "\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n");
    CHECK(str_find(buf_str(&k.raw.seen), STR("X-Trailer")) < 0);
    web_close_client(&c);
    pkit_close(&k);
}

TEST(answers_without_a_body_have_none)
{
    static const struct raw_script script = {
        .answers = {STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"),
                    STR_INIT("HTTP/1.1 204 No\r\n\r\n"),
                    STR_INIT("HTTP/1.1 304 Same\r\nETag: a\r\n\r\n"),
                    STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")}};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, &script, 1);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, STR("HEAD / HTTP/1.1\r\n" HOST ID "\r\n")));
    web_turns(&k.web, PKIT_TURNS);
    web_read(&k.web, &c);
    CHECK_STR(str_n(c.p, c.len),
              "HTTP/1.1 200 OK\r\ncontent-length: 12345\r\nx-request-id: i\r\n\r\n");
    c.len = 0;
    for (int i = 0; i < 3; i++)
        CHECK(web_send(&k.web, &c, STR("GET / HTTP/1.1\r\n" HOST ID "\r\n")));
    web_turns(&k.web, PKIT_TURNS);
    web_read(&k.web, &c);
    CHECK_STR(str_n(c.p, c.len), "HTTP/1.1 204 No\r\nx-request-id: i\r\n\r\n"
                                 "HTTP/1.1 304 Same\r\nx-request-id: i\r\nETag: a\r\n\r\n"
                                 "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-request-id: i\r\n\r\n");
    CHECK_INT(k.raw.accepted, 1);
    web_close_client(&c);
    pkit_close(&k);
}

TEST(an_answer_until_close_is_chunked_or_until_close)
{
    static const struct raw_script script = {.answers = {STR_INIT("HTTP/1.0 200 OK\r\n\r\nhello")},
                                             .end = RAW_CLOSE};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, &script, 1);
    struct web_answer a = pkit_ask(&k, GET("/"));
    CHECK_HAS(a.head, "transfer-encoding: chunked");
    CHECK_STR(a.body, "hello");
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, STR("GET / HTTP/1.0\r\n" ID "\r\n")));
    web_turns(&k.web, PKIT_TURNS);
    web_read(&k.web, &c);
    CHECK(c.eof);
    CHECK_STR(str_n(c.p, c.len),
              "HTTP/1.1 200 OK\r\nconnection: close\r\nx-request-id: i\r\n\r\nhello");
    CHECK_HAS(buf_str(&k.raw.seen), "GET / HTTP/1.1\r\nHost: localhost\r\n");
    web_close_client(&c);
    pkit_close(&k);
}

TEST(a_body_is_sent_when_the_sandbox_says_continue)
{
    static const struct raw_script scripts[] = {
        {.answers = {STR_INIT("HTTP/1.1 100 Continue\r\n\r\n"),
                     STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")},
         .until = "\n"},
        {.answers = {STR_INIT("HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno")}},
    };
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, scripts, 2);
    pkit_dial(&k, k.t.port, &c, 4096);
    struct str head = POST("Expect: 100-continue\r\nContent-Length: 5\r\n");
    CHECK(web_send(&k.web, &c, head));
    web_turns(&k.web, PKIT_TURNS);
    web_read(&k.web, &c);
    CHECK_STR(str_n(c.p, c.len), "HTTP/1.1 100 Continue\r\n\r\n");
    c.len = 0;
    CHECK(web_send(&k.web, &c, STR("body\n")));
    CHECK_STR(pkit_take(&k, &c).body, "ok");
    raw_close_conns(&k.raw);
    web_turns(&k.web, PKIT_TURNS);
    CHECK(web_send(&k.web, &c, head));
    struct web_answer a = pkit_take(&k, &c); /* and never a 100 */
    CHECK_INT(a.status, 413);
    CHECK_STR(a.body, "no");
    web_close_client(&c);
    pkit_close(&k);
}

TEST(a_paused_sandbox_refuses_before_the_body_is_sent)
{
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, POST("Expect: 100-continue\r\nContent-Length: 5\r\n")));
    struct web_answer a = pkit_take(&k, &c);
    CHECK_INT(a.status, 503);
    CHECK_HAS(a.head, "retry-after: 1\r\n");
    web_close_client(&c);
    pkit_close(&k);
}

/* --- large ones --- */

/* Sends a body of so many MB that nobody inside takes: sockets and queues are all that fills. */
static size_t send_until_stuck(struct pkit *k, struct web_client *c)
{
    size_t sent = 0;

    for (int idle = 0; idle < 20; idle++) {
        ssize_t n = send(c->fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle;
        web_turns(&k->web, 1);
    }
    return sent;
}

TEST(an_upload_waits_for_the_sandbox_in_bounded_memory)
{
    const size_t all = 100u << 20;
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    k.slow = true;
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, POST("Content-Length: 104857600\r\n")));
    size_t before = mallinfo2().uordblks;
    size_t sent = send_until_stuck(&k, &c);
    CHECK(sent < all / 2);
    CHECK(mallinfo2().uordblks < before + 2 * MB);
    web_pass(&k.web, 3600000); /* nobody is slow but the sandbox: nothing times out */
    http_body_resume(k.slow_req);
    for (; sent < all; sent += MB)
        CHECK(web_send(&k.web, &c, str_n(block, all - sent < MB ? all - sent : MB)));
    for (int i = 0; i < 10000 && k.taken_bytes < all; i++)
        web_turns(&k.web, 1);
    CHECK_INT(k.taken_bytes, all);
    CHECK_STR(pkit_take(&k, &c).body, "104857600");
    web_close_client(&c);
    pkit_close(&k);
}

static void check_download(struct pkit *k, struct str request)
{
    const size_t all = 50u << 20;
    struct web_client c;
    size_t got = 0;

    pkit_dial(k, k->t.port, &c, 2 * MB);
    CHECK(web_send(&k->web, &c, request));
    size_t before = mallinfo2().uordblks;
    web_turns(&k->web, 200); /* nobody reads */
    CHECK(mallinfo2().uordblks < before + 3 * MB);
    for (int idle = 0; idle < 50; idle++) {
        size_t n = web_read_some(&c, 2 * MB);
        got += n;
        c.len = 0;
        idle = n ? 0 : idle;
        web_turns(&k->web, 1);
    }
    CHECK(got > all && got < all + MB);
    CHECK(!c.eof);
    CHECK(web_send(&k->web, &c, GET("/next")));
    CHECK_INT(pkit_take(k, &c).status, 200);
    web_close_client(&c);
    web_turns(&k->web, 5);
    CHECK_INT(k->t.open, 0);
}

TEST(a_download_waits_for_the_client_in_bounded_memory)
{
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    check_download(&k, GET("/give?52428800"));
    check_download(&k, GET("/stream?52428800"));
    pkit_close(&k);
}

TEST(events_pass_one_by_one)
{
    static const struct raw_script script = {
        .answers = {STR_INIT("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                             "data: 1\n\ndata: 2\n\n")},
        .piece = 9};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, &script, 1);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, GET("/events")));
    web_turns(&k.web, PKIT_TURNS);
    web_read(&k.web, &c);
    CHECK_HAS(str_n(c.p, c.len), "ta: 1\n\n");
    CHECK_HAS(str_n(c.p, c.len), "ta: 2\n\n"); /* in whatever pieces; the answer does not end */
    CHECK_INT(k.t.open, 1);
    web_close_client(&c); /* and who goes is gone inside as well */
    raw_close_conns(&k.raw);
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.t.open, 0);
    pkit_close(&k);
}

/* --- what breaks --- */

TEST(an_answer_that_is_cut_inside_is_cut_outside)
{
    static const struct raw_script scripts[] = {
        {.answers = {STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhalf")},
         .end = RAW_CLOSE},
        {.answers = {STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf")},
         .end = RAW_CLOSE},
        {.answers = {STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz")}},
    };
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, scripts, ARRAY_LEN(scripts));
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        pkit_dial(&k, k.t.port, &c, 4096);
        CHECK(web_send(&k.web, &c, GET("/")));
        web_turns(&k.web, PKIT_TURNS);
        web_read(&k.web, &c);
        CHECK(c.eof || c.errnum);
        CHECK(str_find(str_n(c.p, c.len), STR("\r\n0\r\n\r\n")) < 0);
        web_close_client(&c);
    }
    pkit_close(&k);
}

/* As it would be without a proxy between: V0 clients send it again, and the sandbox has kept the
 * answer. */
TEST(a_post_whose_connection_ends_before_the_answer_is_cut)
{
    static const struct raw_script script = {.answers = {STR_INIT("")}, .end = RAW_CLOSE};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, &script, 1);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, STR("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n")));
    web_turns(&k.web, PKIT_TURNS);
    web_read(&k.web, &c);
    CHECK(c.eof || c.errnum);
    CHECK_INT(c.len, 0);
    CHECK_INT(k.raw.accepted, 1); /* never repeated by us */
    web_close_client(&c);
    pkit_close(&k);
}

TEST(what_may_be_repeated_is_502_when_the_sandbox_answers_nothing)
{
    static const struct raw_script scripts[] = {
        {.answers = {STR_INIT("")}, .end = RAW_CLOSE},
        {.answers = {STR_INIT("HTTP/1.1 200\r\n")}, .end = RAW_CLOSE},
        {.answers = {STR_INIT("SSH-2.0-x\r\n\r\n")}},
        {.answers = {STR_INIT("HTTP/1.1 101 Why\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")}},
    };
    struct pkit k;

    pkit_open(&k, NULL, scripts, ARRAY_LEN(scripts));
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        struct web_answer a = pkit_ask(&k, GET("/"));
        CHECK_INT(a.status, 502);
        CHECK_HAS(a.body, "{\"detail\":\"");
    }
    pkit_close(&k);
}

TEST(a_connection_that_was_closed_meanwhile_is_made_anew)
{
    static const struct raw_script scripts[] = {
        {.answers = {STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none")},
         .end = RAW_HANGUP},
        {.answers = {STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo")}},
    };
    struct pkit k;

    pkit_open(&k, NULL, scripts, 2);
    CHECK_STR(pkit_ask(&k, GET("/")).body, "one");
    CHECK_STR(pkit_ask(&k, GET("/")).body, "two");
    CHECK_INT(k.raw.accepted, 2);
    pkit_close(&k);
}

TEST(nobody_there_is_502_and_silence_is_504)
{
    static const struct raw_script script = {0};
    struct proxy_config config = {.answer_ms = 5000};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, &config, &script, 1);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, GET("/")));
    web_turns(&k.web, PKIT_TURNS);
    web_pass(&k.web, 4999);
    web_turns(&k.web, PKIT_TURNS);
    web_read(&k.web, &c);
    CHECK_INT(c.len, 0);
    web_pass(&k.web, 2);
    CHECK_INT(pkit_take(&k, &c).status, 504);
    snprintf(k.t.address.unix_path, sizeof k.t.address.unix_path, "%s/none", test_dir());
    CHECK(web_send(&k.web, &c, GET("/")));
    struct web_answer a = pkit_take(&k, &c);
    CHECK_INT(a.status, 502);
    CHECK_HAS(a.body, "connect to the sandbox");
    web_close_client(&c);
    pkit_close(&k);
}

TEST(an_early_answer_ends_the_upload)
{
    static const struct raw_script script = {
        .answers = {STR_INIT("HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\n\r\nno")}};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, &script, 1);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, POST("Content-Length: 100000\r\n")));
    struct web_answer a = pkit_take(&k, &c);
    CHECK_INT(a.status, 413);
    CHECK_INT(k.t.open, 0);
    CHECK_INT(k.t.idlers, 0); /* it still waits for the rest */
    CHECK(web_send(&k.web, &c, str_n(block, 100000)));
    CHECK(web_send(&k.web, &c, GET("/")));
    CHECK_INT(pkit_take(&k, &c).status, 413); /* a new request, not the rest of the old one */
    web_close_client(&c);
    pkit_close(&k);
}

/* --- clients that go --- */

TEST(inside_they_see_that_the_client_hung_up_and_it_may_still_be_answered)
{
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, GET("/hold")));
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.held_count, 1);
    CHECK_INT(k.hangups, 0);
    shutdown(c.fd, SHUT_WR);
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.hangups, 1);
    pkit_answer_held(&k, 0);
    CHECK_STR(pkit_take(&k, &c).body, "late");
    CHECK_INT(k.t.idlers, 0); /* a connection half closed is of no more use */
    web_close_client(&c);
    pkit_close(&k);
}

/* Of one that was cut at once: inside, the answer is kept for the same request again. */
TEST(inside_they_see_that_the_client_hung_up_with_its_body)
{
    static const struct str requests[] = {
        STR_INIT("POST /hold HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody"),
        STR_INIT("POST /hold HTTP/1.1\r\n" HOST
                 "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"),
    };
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    for (int i = 0; i < 2; i++) {
        pkit_dial(&k, k.t.port, &c, 4096);
        CHECK_INT(send(c.fd, requests[i].p, requests[i].len, 0), (long long)requests[i].len);
        shutdown(c.fd, SHUT_WR);
        web_turns(&k.web, PKIT_TURNS);
        CHECK_INT(k.held_count, i + 1);
        CHECK_INT(k.hangups, i + 1);
        pkit_answer_held(&k, i);
        CHECK_STR(pkit_take(&k, &c).body, "late");
        web_close_client(&c);
    }
    pkit_close(&k);
}

/* As `printf … | nc -N` does: all is said, and the answer is waited for. */
TEST(who_closes_its_half_with_the_request_is_answered)
{
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    for (int parked = 0; parked < 2; parked++) {
        struct str request = GET("/");
        k.t.park = true;
        if (parked)
            proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
        pkit_dial(&k, k.t.port, &c, 4096);
        CHECK_INT(send(c.fd, request.p, request.len, 0), (long long)request.len);
        shutdown(c.fd, SHUT_WR);
        CHECK_INT(pkit_take(&k, &c).status, parked ? 503 : 200);
        web_close_client(&c);
    }
    pkit_close(&k);
}

TEST(an_upload_that_breaks_off_breaks_off_inside)
{
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, POST("Content-Length: 100\r\n")));
    CHECK(web_send(&k.web, &c, STR("some")));
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.taken_bytes, 4);
    web_close_client(&c);
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.gone, 1);
    CHECK_INT(k.t.open, 0);
    pkit_close(&k);
}
