// SPDX-License-Identifier: Apache-2.0
/* client_fail_test.c — calls that end badly: each with its reason, and none taking others along. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/listen.h"
#include "out/client.h"
#include "test/call.h"
#include "test/test.h"

#define OK5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void check_fails(const struct raw_script *script, const struct http_call_spec *spec,
                        enum err_code code, const char *why)
{
    struct call_fix f;

    call_fix_init(&f, script, 1);
    struct result r = call_run(&f, "/p?secret=1", spec);
    CHECK(r.error != NULL);
    CHECK_HAS(err_text(r.error), "GET http://127.0.0.1:");
    CHECK(strstr(err_text(r.error), "secret") == NULL);
    CHECK_ERR(r.error, code, why);
    r.error = NULL;
    result_done(&r);
    call_fix_done(&f);
}

TEST(bad_answers_are_the_upstreams_fault)
{
    static const struct {
        struct str answer;
        enum raw_end end;
        const char *why;
    } cases[] = {
        {STR_INIT("SSH-2.0-OpenSSH\r\n\r\n"), RAW_KEEP, "answer is not HTTP"},
        {STR_INIT("HTTP/2.0 200 OK\r\n\r\n"), RAW_KEEP, "answer is not HTTP"},
        {STR_INIT("HTTP/1.1 abc\r\n\r\n"), RAW_KEEP, "answer is not HTTP: bad status"},
        {STR_INIT("HTTP/1.1 200 OK\nA: b\n\n"), RAW_KEEP, "LF without CR"},
        {STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), RAW_KEEP, "Content-Length"},
        {STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
         RAW_KEEP, "both"},
        {STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"), RAW_KEEP, "chunked"},
        {STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), RAW_KEEP,
         "bad chunk"},
        {STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab"), RAW_CLOSE,
         "ended inside the body"},
        {STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"),
         RAW_CLOSE, "ended inside the body"},
        {STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"), RAW_CLOSE,
         "ended inside the body"},
        {STR_INIT("HTTP/1.1 200 OK\r\nContent-"), RAW_CLOSE, "inside the answer's head"},
        {STR_INIT("HTTP/1.1 100 Continue\r\n\r\n"), RAW_CLOSE, "inside the answer's head"},
        {STR_INIT(""), RAW_HANGUP, "before an answer"},
        {STR_INIT("HTTP/1.1 101 Switching Protocols\r\n\r\n"), RAW_KEEP, "left HTTP"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t piece = 0; piece < 4; piece += 3) {
            struct raw_script script = {
                .answers = {cases[i].answer}, .piece = piece, .end = cases[i].end};
            if (cases[i].answer.len == 0)
                script.answers[0].p = NULL;
            check_fails(&script, &(struct http_call_spec){.method = STR("GET")}, ERR_UPSTREAM,
                        cases[i].why);
        }
}

TEST(a_reset_inside_the_body_ends_the_call)
{
    struct raw_script script = {
        .answers = {STR("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhalf")}, .end = RAW_RESET};

    check_fails(&script, &(struct http_call_spec){.method = STR("GET")}, ERR_UPSTREAM, "reset");
}

TEST(endless_interim_answers_and_heads_are_refused)
{
    own_done(buf) b;

    buf_init(&b, 1 << 20);
    for (unsigned i = 0; i < 11; i++)
        buf_add_cstr(&b, "HTTP/1.1 102 Processing\r\n\r\n");
    struct raw_script script = {.answers = {buf_str(&b)}};
    check_fails(&script, &(struct http_call_spec){.method = STR("GET")}, ERR_UPSTREAM, "interim");
    buf_reset(&b);
    buf_add_cstr(&b, "HTTP/1.1 200 OK\r\nX: ");
    while (b.len < HTTP_MAX_HEAD + 10)
        buf_add_char(&b, 'x');
    script.answers[0] = buf_str(&b);
    check_fails(&script, &(struct http_call_spec){.method = STR("GET")}, ERR_UPSTREAM, "65536");
}

TEST(an_answer_over_the_limit_is_too_large)
{
    static const struct {
        struct str answer;
        unsigned limit;
    } cases[] = {
        {STR_INIT(OK5), 4},
        {STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\nabc\r\n"),
         5},
        {STR_INIT("HTTP/1.1 200 OK\r\n\r\nabcdef"), 5},
        {STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n"), 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct raw_script script = {.answers = {cases[i].answer}, .piece = i};
        check_fails(
            &script,
            &(struct http_call_spec){.method = STR("GET"), .max_body_bytes = cases[i].limit},
            ERR_TOO_LARGE, "over");
    }
    struct raw_script fits = {.answers = {STR(OK5)}};
    struct call_fix f;
    call_fix_init(&f, &fits, 1);
    struct result r =
        call_run(&f, "/", &(struct http_call_spec){.method = STR("GET"), .max_body_bytes = 5});
    CHECK_OK(r.error);
    result_done(&r);
    call_fix_done(&f);
}

TEST(a_silent_server_times_out)
{
    struct raw_script silent = {.answers = {{NULL, 0}}};
    struct raw_script stops = {.answers = {STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")}};

    check_fails(&silent, &(struct http_call_spec){.method = STR("GET"), .idle_ms = 20}, ERR_TIMEOUT,
                "nothing moved for 20 ms");
    check_fails(&stops, &(struct http_call_spec){.method = STR("GET"), .idle_ms = 20}, ERR_TIMEOUT,
                "nothing moved");
    check_fails(&stops, &(struct http_call_spec){.method = STR("GET"), .total_ms = 20}, ERR_TIMEOUT,
                "not done after 20 ms");
}

TEST(a_connect_without_answer_times_out)
{
    struct raw_script script = {.answers = {STR(OK5)}};
    struct call_fix f;
    int fds[8];
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;

    /* A backlog of none, filled: Linux then leaves further connects unanswered. */
    call_fix_init(&f, &script, 1);
    loop_io_stop(&f.raw.io);
    CHECK(listen(f.raw.fd, 0) == 0);
    CHECK(getsockname(f.raw.fd, (struct sockaddr *)&addr, &len) == 0);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        CHECK_OK(connect_start(&addr, len, &fds[i]));
    struct result r =
        call_run(&f, "/", &(struct http_call_spec){.method = STR("GET"), .connect_ms = 30});
    CHECK_ERR(r.error, ERR_TIMEOUT, "no answer for 30 ms");
    r.error = NULL;
    result_done(&r);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    call_fix_done(&f);
}

TEST(nobody_listening_is_the_upstreams_fault)
{
    struct raw_script script = {.answers = {STR(OK5)}};
    struct call_fix f;
    char url[200];

    call_fix_init(&f, &script, 1);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", test_free_port());
    raw_stop(&f.raw);
    struct result r =
        call_run(&f, NULL, &(struct http_call_spec){.method = STR("GET"), .url = str_of(url)});
    CHECK_ERR(r.error, ERR_UPSTREAM, "connect: Connection refused");
    r.error = NULL;
    result_done(&r);
    r = call_run(&f, NULL,
                 &(struct http_call_spec){.method = STR("GET"), .url = STR("unix:/nonexistent/s")});
    CHECK_ERR(r.error, ERR_UPSTREAM, "GET unix:/nonexistent/s:/: connect: No such file");
    r.error = NULL;
    result_done(&r);
    raw_start(&f.raw, f.loop, "127.0.0.1:0", &script, 1);
    call_fix_done(&f);
}

TEST(a_stale_connection_is_replaced_once_if_that_is_safe)
{
    static const struct raw_script scripts[] = {
        {.answers = {STR_INIT(OK5)}, .end = RAW_HANGUP}, /* takes the second request and hangs up */
        {.answers = {STR_INIT(OK5)}, .end = RAW_HANGUP},
        {.end = RAW_HANGUP}, /* a new connection gets no second chance */
    };
    struct call_fix f;

    call_fix_init(&f, scripts, ARRAY_LEN(scripts));
    call_check(&f, "/", 200, "hello");
    call_check(&f, "/", 200, "hello");
    CHECK_INT(f.raw.accepted, 2);
    CHECK_INT(f.raw.requests, 3);
    struct result r = call_get(&f, "/");
    CHECK_ERR(r.error, ERR_UPSTREAM, "before an answer");
    r.error = NULL;
    result_done(&r);
    CHECK_INT(f.raw.accepted, 3);
    call_fix_done(&f);
}

TEST(what_is_not_safe_is_never_sent_twice)
{
    static const struct raw_script script = {.answers = {STR_INIT(OK5)}, .end = RAW_HANGUP};
    struct call_fix f;

    call_fix_init(&f, &script, 1);
    call_check(&f, "/", 200, "hello");
    struct result r = call_run(&f, "/", &(struct http_call_spec){.method = STR("POST")});
    CHECK_ERR(r.error, ERR_UPSTREAM, "before an answer");
    r.error = NULL;
    result_done(&r);
    CHECK_INT(f.raw.accepted, 1);
    call_check(&f, "/", 200, "hello");
    struct result s;
    call_begin(&f, "/", &(struct http_call_spec){.method = STR("PUT"), .stream_body = true}, &s);
    http_call_write_end(s.call);
    call_wait(&f, &s);
    CHECK_ERR(s.error, ERR_UPSTREAM, "before an answer");
    s.error = NULL;
    result_done(&s);
    CHECK_INT(f.raw.accepted, 2);
    call_fix_done(&f);
}

TEST(calls_that_would_not_be_http_are_refused_at_once)
{
    static const struct http_header bad_name[] = {{STR_INIT("A b"), STR_INIT("c")}};
    static const struct http_header empty_name[] = {{STR_INIT(""), STR_INIT("c")}};
    static const struct http_header inject_name[] = {{STR_INIT("A\r\nB"), STR_INIT("c")}};
    static const struct http_header inject[] = {{STR_INIT("A"), STR_INIT("b\r\nC: d")}};
    static const struct http_header lf[] = {{STR_INIT("A"), STR_INIT("b\nC: d")}};
    static const struct http_header nul[] = {{STR_INIT("A"), STR_INIT("b\0")}};
    static const struct http_header length[] = {{STR_INIT("content-length"), STR_INIT("5")}};
    static const struct http_header coding[] = {{STR_INIT("Transfer-Encoding"), STR_INIT("x")}};
    static const struct {
        struct http_call_spec spec;
        enum err_code code;
        const char *why;
    } cases[] = {
        {{.method = STR_INIT(""), .url = STR_INIT("http://h/")}, ERR_INVALID, "method"},
        {{.method = STR_INIT("G ET"), .url = STR_INIT("http://h/")}, ERR_INVALID, "method"},
        {{.method = STR_INIT("GET\r\n"), .url = STR_INIT("http://h/")}, ERR_INVALID, "method"},
        {{.method = STR_INIT("GET"), .url = STR_INIT("h/")}, ERR_INVALID, "bad URL"},
        {{.method = STR_INIT("GET"), .url = STR_INIT("http://h/ x")}, ERR_INVALID, "bad URL"},
        {{.method = STR_INIT("GET"), .url = STR_INIT("ws://h/")}, ERR_INVALID, "WebSocket"},
        {{.method = STR_INIT("GET"), .url = STR_INIT("http://a:b@h/")}, ERR_INVALID, "credentials"},
        {{.headers = bad_name}, ERR_INVALID, "token"},
        {{.headers = empty_name}, ERR_INVALID, "token"},
        {{.headers = inject_name}, ERR_INVALID, "token"},
        {{.headers = inject}, ERR_INVALID, "control"},
        {{.headers = lf}, ERR_INVALID, "control"},
        {{.headers = nul}, ERR_INVALID, "control"},
        {{.headers = length}, ERR_INVALID, "own"},
        {{.headers = coding}, ERR_INVALID, "own"},
    };
    struct raw_script script = {.answers = {STR(OK5)}};
    struct call_fix f;
    struct result r;

    call_fix_init(&f, &script, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_call_spec spec = cases[i].spec;
        if (spec.headers) {
            spec.header_count = 1;
            spec.method = STR("GET");
            spec.url = STR("http://h/");
        }
        CHECK_ERR(call_try_begin(&f, NULL, &spec, &r), cases[i].code, cases[i].why);
        result_done(&r);
    }
    CHECK_INT(f.raw.accepted, 0);
    call_fix_done(&f);
}

TEST(a_streamed_body_must_have_the_length_it_promised)
{
    struct raw_script script = {.answers = {STR(OK5)}, .until = "never"};
    struct http_call_spec spec = {.method = STR("PUT"), .stream_body = true, .body_length = 4};
    struct call_fix f;
    struct result r;

    call_fix_init(&f, &script, 1);
    call_begin(&f, "/", &spec, &r);
    http_call_write(r.call, STR("12345"));
    CHECK(!r.done);
    call_wait(&f, &r);
    CHECK_ERR(r.error, ERR_INVALID, "more body");
    r.error = NULL;
    result_done(&r);
    call_begin(&f, "/", &spec, &r);
    http_call_write(r.call, STR("123"));
    http_call_write_end(r.call);
    call_wait(&f, &r);
    CHECK_ERR(r.error, ERR_INVALID, "less body");
    r.error = NULL;
    result_done(&r);
    call_fix_done(&f);
}

static void cancel_in_head(struct http_call *call, const struct http_head *head)
{
    struct result *r = http_call_owner(call);

    r->status = head->status;
    http_call_cancel(call);
    http_call_write(call, STR("ignored"));
}

static void cancel_in_body(struct http_call *call, struct str piece)
{
    struct result *r = http_call_owner(call);

    r->pieces += piece.len > 0;
    r->status = 1;
    http_call_cancel(call);
}

TEST(a_call_may_be_cancelled_anywhere)
{
    struct raw_script script = {.answers = {STR(OK5)}, .piece = 41};
    struct call_fix f;
    struct result r;

    for (unsigned turns = 0; turns < 8; turns++) {
        call_fix_init(&f, &script, 1);
        call_begin(&f, "/", &(struct http_call_spec){.method = STR("GET")}, &r);
        for (unsigned i = 0; i < turns && !r.done; i++)
            CHECK_OK(loop_turn(f.loop, 0));
        if (!r.done)
            http_call_cancel(r.call);
        result_done(&r);
        call_fix_done(&f);
    }
    for (unsigned where = 0; where < 2; where++) {
        call_fix_init(&f, &script, 1);
        if (where)
            f.events.on_body = cancel_in_body;
        else
            f.events.on_head = cancel_in_head;
        call_begin(&f, "/", &(struct http_call_spec){.method = STR("GET")}, &r);
        while (r.status == 0 || (where && !r.pieces))
            CHECK_OK(loop_turn(f.loop, 100));
        CHECK_OK(loop_turn(f.loop, 0));
        CHECK(!r.done);
        result_done(&r);
        call_fix_done(&f);
    }
}

TEST(a_name_is_refused_where_there_may_be_no_threads)
{
    struct raw_script script = {.answers = {STR(OK5)}};
    struct call_fix f;

    call_fix_init(&f, &script, 1);
    loop_forbid_threads(f.loop);
    struct result r = call_run(
        &f, NULL,
        &(struct http_call_spec){.method = STR("GET"), .url = STR("http://name.invalid/")});
    CHECK_ERR(r.error, ERR_UNSUPPORTED, "resolve 'name.invalid'");
    r.error = NULL;
    result_done(&r);
    call_check(&f, "/", 200, "hello");
    call_fix_done(&f);
}

TEST(a_name_that_does_not_exist_is_the_upstreams_fault)
{
    struct raw_script script = {.answers = {STR(OK5)}};
    struct call_fix f;

    call_fix_init(&f, &script, 1);
    struct http_call_spec spec = {
        .method = STR("GET"), .url = STR("http://name.invalid/"), .connect_ms = 2000};
    struct result r = call_run(&f, NULL, &spec);
    CHECK(r.error != NULL);
    CHECK(err_code(r.error) == ERR_UPSTREAM || err_code(r.error) == ERR_TIMEOUT);
    CHECK_HAS(err_text(r.error), "resolve");
    result_done(&r);
    call_begin(&f, NULL, &spec, &r); /* cancelled while the resolver is asked */
    CHECK_OK(loop_turn(f.loop, 0));
    CHECK_OK(loop_turn(f.loop, 0));
    if (!r.done)
        http_call_cancel(r.call);
    result_done(&r);
    call_fix_done(&f);
}

/* A GET and a POST at once, so that whatever fails may only end the call it happened to. */
static bool two_calls(struct call_fix *f, unsigned fault)
{
    struct result get, post;

    fault_at(fault);
    struct err *e = call_try_begin(
        f, "/", &(struct http_call_spec){.method = STR("GET"), .total_ms = 5000}, &get);
    if (e)
        get.done = true;
    err_free(e);
    e = call_try_begin(
        f, "/",
        &(struct http_call_spec){.method = STR("POST"), .body = STR("x\r\n\r\n"), .total_ms = 5000},
        &post);
    if (e)
        post.done = true;
    err_free(e);
    while (!get.done || !post.done)
        err_free(loop_turn(f->loop, 1000));
    bool fired = fault_fired();
    fault_at(0);
    CHECK(!get.error || !post.error);
    CHECK(fired || (!get.error && !post.error && get.status == 200 && post.status == 200));
    result_done(&get);
    result_done(&post);
    return fired;
}

static void fail_each_call(bool warm)
{
    static const struct raw_script script = {
        .answers = {STR_INIT(OK5), STR_INIT(OK5), STR_INIT(OK5), STR_INIT(OK5)}, .piece = 30};
    unsigned n = 0, fds = test_open_fds();

    for (bool fired = true; fired;) {
        struct call_fix f;
        call_fix_init(&f, &script, 1);
        if (warm)
            call_check(&f, "/", 200, "hello"); /* leaves a connection to reuse */
        fired = two_calls(&f, ++n);
        f.raw.seen.no_memory = false;
        call_check(&f, "/", 200, "hello"); /* the client is as good as new */
        call_fix_done(&f);
        CHECK_INT(test_open_fds(), fds);
    }
    CHECK(n > 30);
}

TEST(any_failing_call_ends_one_request_and_leaks_nothing)
{
    fail_each_call(false);
}

TEST(any_failing_call_ends_one_request_on_a_reused_connection_too)
{
    fail_each_call(true);
}

static void free_client(struct http_call *call, struct err *e)
{
    struct call_fix *f = http_call_owner(call);

    err_free(e);
    http_client_free(take(&f->client));
}

TEST(the_client_may_be_freed_by_the_last_callback_of_a_call)
{
    static const struct http_call_events events = {.on_done = free_client};
    struct raw_script scripts[] = {{.answers = {STR(OK5)}}, {.end = RAW_HANGUP}};

    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        struct call_fix f;
        struct http_call *call;
        char url[200];
        call_fix_init(&f, &scripts[i], 1);
        snprintf(url, sizeof url, "%s/", f.raw.url);
        struct http_call_spec spec = {.method = STR("GET"), .url = str_of(url)};
        for (unsigned n = 0; n < 3; n++)
            CHECK_OK(http_call_start(f.client, &spec, &events, &f, &call));
        while (f.client)
            CHECK_OK(loop_turn(f.loop, 1000)); /* the other two end without a word */
        call_fix_done(&f);
    }
}
