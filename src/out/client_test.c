// SPDX-License-Identifier: Apache-2.0
/* client_test.c — calls that go well: what is sent, what is read, what is reused. */
#include "out/client.h"

#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

#include "test/call.h"
#include "test/test.h"

#define OK5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello"

TEST(an_answer_is_the_same_in_pieces_of_any_size)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 20};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct raw_script script = {.answers = {STR(OK5)}, .piece = sizes[i]};
        struct call_fix f;
        call_fix_init(&f, &script, 1);
        struct result r = call_get(&f, "/a?b=c#d");
        CHECK_OK(r.error);
        CHECK_INT(r.status, 200);
        CHECK_STR(buf_str(&r.body), "hello");
        CHECK_STR(buf_str(&r.x_a), "b");
        CHECK_HAS(buf_str(&f.raw.seen), "GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:");
        result_done(&r);
        call_fix_done(&f);
    }
}

TEST(chunked_and_until_close_answers_are_read_to_their_end)
{
    static const struct raw_script scripts[] = {
        {.answers = {STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: railer\r\n\r\n"),
                     STR_INIT(OK5)},
         .piece = 1},
        {.answers = {STR_INIT("HTTP/1.1 200 OK\r\n\r\nhello")}, .piece = 3, .end = RAW_CLOSE},
        {.answers = {STR_INIT("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello")}},
    };
    struct call_fix f;

    call_fix_init(&f, scripts, ARRAY_LEN(scripts));
    for (unsigned i = 0; i < 2; i++)
        call_check(&f, "/", 200, "hello");
    CHECK_INT(f.raw.accepted, 1); /* the chunked one was kept */
    raw_close_all(&f);
    call_check(&f, "/", 200, "hello");
    call_check(&f, "/", 200, "hello");
    CHECK_INT(f.raw.accepted, 3);
    call_fix_done(&f);
}

TEST(answers_without_a_body_end_at_their_head)
{
    static const struct raw_script script = {
        .answers = {STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
                    STR_INIT("HTTP/1.1 204 No Content\r\n\r\n"),
                    STR_INIT("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
                    STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), STR_INIT(OK5)},
    };
    struct call_fix f;

    call_fix_init(&f, &script, 1);
    struct result r = call_run(&f, "/", &(struct http_call_spec){.method = STR("HEAD")});
    CHECK_OK(r.error);
    CHECK_INT(r.status, 200);
    CHECK_INT(r.body.len, 0);
    result_done(&r);
    call_check(&f, "/", 204, "");
    call_check(&f, "/", 304, "");
    call_check(&f, "/", 200, "");
    call_check(&f, "/", 200, "hello");
    CHECK_INT(f.raw.accepted, 1);
    call_fix_done(&f);
}

TEST(interim_answers_are_skipped)
{
    static const struct raw_script script = {
        .answers = {STR_INIT(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" OK5)},
        .piece = 5,
    };
    struct call_fix f;

    call_fix_init(&f, &script, 1);
    call_check(&f, "/", 200, "hello");
    call_fix_done(&f);
}

TEST(connections_are_reused_and_closed_when_the_server_says_so)
{
    static const struct raw_script script = {
        .answers = {STR_INIT(OK5), STR_INIT(OK5),
                    STR_INIT("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n"
                             "hello")},
    };
    struct call_fix f;

    call_fix_init(&f, &script, 1);
    for (unsigned i = 0; i < 6; i++)
        call_check(&f, "/", 200, "hello");
    CHECK_INT(f.raw.accepted, 2);
    CHECK_INT(f.raw.requests, 6);
    call_fix_done(&f);
}

TEST(bytes_behind_an_answer_end_its_connection)
{
    static const struct raw_script script = {.answers = {STR_INIT(OK5 "HTTP/1.1 200 smuggled")}};
    struct call_fix f;

    call_fix_init(&f, &script, 1);
    call_check(&f, "/", 200, "hello");
    call_check(&f, "/", 200, "hello");
    CHECK_INT(f.raw.accepted, 2);
    call_fix_done(&f);
}

TEST(a_connection_closed_while_idle_is_not_used)
{
    static const struct raw_script script = {.answers = {STR_INIT(OK5)}, .end = RAW_CLOSE};
    struct call_fix f;

    call_fix_init(&f, &script, 1);
    for (unsigned i = 0; i < 3; i++) {
        struct result r = call_run(&f, "/", &(struct http_call_spec){.method = STR("POST")});
        CHECK_OK(r.error);
        result_done(&r);
    }
    CHECK_INT(f.raw.accepted, 3);
    call_fix_done(&f);
}

TEST(only_so_many_idle_connections_are_kept)
{
    static const struct raw_script script = {.answers = {STR_INIT(OK5), STR_INIT(OK5)}};
    struct call_fix f;
    struct result r[4];

    call_fix_init(&f, &script, 1);
    http_client_free(f.client);
    CHECK_OK(
        http_client_new(&f.dialer, &(struct http_client_config){.idle_per_host = 2}, &f.client));
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 4; i++)
            call_begin(&f, "/", &(struct http_call_spec){.method = STR("GET")}, &r[i]);
        for (unsigned i = 0; i < 4; i++) {
            call_wait(&f, &r[i]);
            CHECK_OK(r[i].error);
            result_done(&r[i]);
        }
    }
    CHECK_INT(f.raw.accepted, 6);
    call_fix_done(&f);
}

TEST(requests_look_like_this)
{
    static const struct raw_script script = {.answers = {STR_INIT(OK5)}, .until = "end"};
    static const struct http_header headers[] = {{STR_INIT("X-One"), STR_INIT("1")},
                                                 {STR_INIT("Host"), STR_INIT("example.com")}};
    struct call_fix f;

    call_fix_init(&f, &script, 1);
    struct http_call_spec spec = {
        .method = STR("POST"),
        .headers = headers,
        .header_count = 2,
        .body = STR("the end"),
    };
    struct result r = call_run(&f, "", &spec);
    CHECK_OK(r.error);
    CHECK_STR(buf_str(&f.raw.seen), "POST / HTTP/1.1\r\nX-One: 1\r\nHost: example.com\r\n"
                                    "Content-Length: 7\r\n\r\nthe end");
    result_done(&r);
    call_fix_done(&f);
}

static void stream_request(uint64_t length, const char *want, const char *until)
{
    struct raw_script script = {.answers = {STR(OK5)}, .until = until};
    struct call_fix f;
    struct result r;

    call_fix_init(&f, &script, 1);
    struct http_call_spec spec = {
        .method = STR("PUT"),
        .stream_body = true,
        .body_length = length,
    };
    call_begin(&f, "/x", &spec, &r);
    http_call_write(r.call, STR("early ")); /* before there is a connection */
    while (f.raw.accepted == 0)
        CHECK_OK(loop_turn(f.loop, 100));
    http_call_write(r.call, STR(""));
    http_call_write(r.call, STR("late"));
    http_call_write_end(r.call);
    call_wait(&f, &r);
    CHECK_OK(r.error);
    CHECK_HAS(buf_str(&f.raw.seen), want);
    result_done(&r);
    call_fix_done(&f);
}

TEST(bodies_are_streamed_in_chunks_or_counted)
{
    stream_request(0, "Transfer-Encoding: chunked\r\n\r\n6\r\nearly \r\n4\r\nlate\r\n0\r\n\r\n",
                   "0\r\n\r\n");
    stream_request(10, "Content-Length: 10\r\n\r\nearly late", "late");
}

TEST(large_given_bodies_go_out_without_a_second_copy)
{
    static const struct raw_script script = {.answers = {STR_INIT(OK5)}, .until = "END"};
    struct call_fix f;
    size_t size = 40u << 20; /* over the limit of a stream's queue */
    own_free char *body = malloc(size);

    memset(body, 'x', size - 3);
    for (size_t i = 0; i < 3; i++)
        body[size - 3 + i] = "END"[i];
    call_fix_init(&f, &script, 1);
    struct result r;
    call_begin(&f, "/", &(struct http_call_spec){.method = STR("PUT"), .body = str_n(body, size)},
               &r);
    while (!r.done) {
        CHECK_OK(loop_turn(f.loop, 1000));
        CHECK(r.done || http_call_pending(r.call) < STREAM_HIGH + (128u << 10));
    }
    CHECK_OK(r.error);
    result_done(&r);
    call_fix_done(&f);
}

static void on_body_pause(struct http_call *call, struct str piece)
{
    struct result *r = http_call_owner(call);

    r->pieces++;
    buf_add(&r->body, piece);
    http_call_pause(call);
}

TEST(a_paused_call_holds_the_server_back)
{
    own_done(buf) answer;
    struct call_fix f;
    struct result r;

    buf_init(&answer, 16u << 20);
    buf_addf(&answer, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", 8u << 20);
    size_t head = answer.len;
    memset(buf_reserve(&answer, 8u << 20), 'x', 8u << 20);
    buf_commit(&answer, 8u << 20);
    struct raw_script script = {.answers = {buf_str(&answer)}};
    char address[300]; /* a closed TCP window takes its time to open */
    snprintf(address, sizeof address, "unix:%s/s.sock", test_dir());
    call_fix_init_at(&f, &script, 1, address);
    f.events.on_body = on_body_pause;
    call_begin(&f, "", &(struct http_call_spec){.method = STR("GET"), .idle_ms = 1000}, &r);
    while (!r.pieces)
        CHECK_OK(loop_turn(f.loop, 100));
    for (unsigned i = 0; i < 5; i++)
        CHECK_OK(loop_turn(f.loop, 300)); /* nor does our pause count as its silence */
    CHECK_INT(r.pieces, 1);
    CHECK(!r.done);
    while (!r.done) {
        http_call_resume(r.call);
        CHECK_OK(loop_turn(f.loop, 100));
    }
    CHECK_OK(r.error);
    CHECK_STR(buf_str(&r.body), str_from(buf_str(&answer), head));
    result_done(&r);
    call_fix_done(&f);
}

static size_t on_taken_data(struct stream *s, struct str data)
{
    buf_add(stream_owner(s), data);
    return data.len;
}

static void on_taken_error(struct stream *s, struct err *why)
{
    err_free(why);
    stream_close(s);
}

static const struct stream_events taken_events = {.on_data = on_taken_data,
                                                  .on_error = on_taken_error};

static void on_head_take(struct http_call *call, const struct http_head *head)
{
    struct result *r = http_call_owner(call);

    r->status = head->status;
    r->taken = http_call_take_stream(call);
    stream_set_events(r->taken, &taken_events, &r->body);
}

static void call_and_take(struct call_fix *f, const char *method, const char *answer, size_t piece)
{
    struct raw_script script = {.answers = {str_of(answer)}, .piece = piece};
    struct http_header headers[] = {{STR("Connection"), STR("upgrade")},
                                    {STR("Upgrade"), STR("x")}};
    struct result r;

    call_fix_init(f, &script, 1);
    f->events.on_head = on_head_take;
    struct http_call_spec spec = {
        .method = str_of(method), .headers = headers, .header_count = 2, .total_ms = 60000};
    call_begin(f, "/", &spec, &r);
    while (r.body.len < 5)
        CHECK_OK(loop_turn(f->loop, 1000));
    CHECK(!r.done);
    CHECK_STR(buf_str(&r.body), "first");
    stream_close(r.taken);
    result_done(&r);
}

TEST(an_upgraded_connection_is_handed_over_with_what_came_behind_the_head)
{
    struct call_fix f;

    for (size_t piece = 0; piece < 3; piece++) {
        call_and_take(
            &f, "GET",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nfirst",
            piece * 7);
        call_fix_done(&f);
        call_and_take(&f, "CONNECT", "HTTP/1.1 200 OK\r\n\r\nfirst", piece * 7);
        CHECK_HAS(buf_str(&f.raw.seen), "CONNECT 127.0.0.1:");
        call_fix_done(&f);
    }
}

TEST(unix_sockets_are_called_by_path_or_by_url)
{
    static const struct raw_script script = {
        .answers = {STR_INIT(OK5), STR_INIT(OK5), STR_INIT(OK5)}};
    struct call_fix f;
    char address[300];

    snprintf(address, sizeof address, "unix:%s/s.sock", test_dir());
    call_fix_init_at(&f, &script, 1, address);
    call_check(&f, ":/a?b", 200, "hello");
    CHECK_HAS(buf_str(&f.raw.seen), "GET /a?b HTTP/1.1\r\nHost: localhost\r\n");
    struct http_call_spec spec = {
        .method = STR("GET"),
        .url = STR("http://docker/v1/x"),
        .unix_path = str_from(str_of(address), 5),
    };
    struct result r = call_run(&f, NULL, &spec);
    CHECK_OK(r.error);
    CHECK_STR(buf_str(&r.body), "hello");
    CHECK_HAS(buf_str(&f.raw.seen), "GET /v1/x HTTP/1.1\r\nHost: docker\r\n");
    CHECK_INT(f.raw.accepted, 1); /* the same socket, so the same connection */
    result_done(&r);
    call_fix_done(&f);
}

TEST(names_are_resolved)
{
    static const struct raw_script script = {.answers = {STR_INIT(OK5)}};
    struct addrinfo *found = NULL, hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    char name[200], url[300];
    struct call_fix f;

    if (gethostname(name, sizeof name) < 0 || getaddrinfo(name, NULL, &hints, &found) != 0)
        SKIP("this machine does not know its own name");
    freeaddrinfo(found);
    call_fix_init_at(&f, &script, 1, "0.0.0.0:0");
    snprintf(url, sizeof url, "http://%s%s/", name, strrchr(f.raw.url, ':'));
    struct result r =
        call_run(&f, NULL, &(struct http_call_spec){.method = STR("GET"), .url = str_of(url)});
    CHECK_OK(r.error);
    CHECK_STR(buf_str(&r.body), "hello");
    result_done(&r);
    call_fix_done(&f);
}

TEST(long_headers_are_fine_up_to_the_limit)
{
    char answer[20000];
    struct call_fix f;
    int n = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: ");

    memset(answer + n, 'y', 10000);
    memcpy(answer + n + 10000, "\r\n\r\n", 5);
    struct raw_script script = {.answers = {str_of(answer)}, .piece = 997};
    call_fix_init(&f, &script, 1);
    struct result r = call_get(&f, "/");
    CHECK_OK(r.error);
    CHECK_INT(r.x_a.len, 10000);
    result_done(&r);
    call_fix_done(&f);
}
