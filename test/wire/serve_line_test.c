// SPDX-License-Identifier: Apache-2.0
/* serve_line_test.c — starts wait in line, and are served in turn.
 *
 * While the launcher stands still it has not answered BEGUN starts, which are told as starting; the
 * next ones are in line. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/program.h"
#include "test/serve_kit.h"

#define BEGUN 32

/* A start whose answer is read later. The server has read it when this returns. */
static int send_start(struct serve *s, const char *session)
{
    const char *body = serve_text(s, "{\"image\":\"host\",\"session_id\":\"%s\"}", session);
    int fd = wire_connect(&s->wire);

    wire_send(fd, str_of(serve_text(
                      s,
                      "POST /start HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s%s"
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                      s->key ? "X-API-Key: " : "", s->key ? s->key : "", s->key ? "\r\n" : "",
                      strlen(body), body)));
    CHECK_INT(serve_get(s, "/health").status, 200);
    return fd;
}

static void read_start(int fd, const char *status, const char *part)
{
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    wire_read_to_end(fd, &got);
    close(fd);
    CHECK_HAS(buf_str(&got), str_of(status));
    CHECK_HAS(buf_str(&got), str_of(part));
}

/* The launcher stands still, and has as many starts as it may have. */
static pid_t stand_still(struct serve *s, const char *config)
{
    serve_prepare(s);
    serve_run_with(s, config);
    pid_t launcher = serve_launcher(s);
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    for (unsigned i = 0; i < BEGUN; i++)
        serve_want(s, 200, "POST", "/start",
                   serve_text(s, "{'image':'host','session_id':'begun%u'}", i));
    return launcher;
}

TEST_LIMIT(serve_lets_starts_wait_in_line_and_serves_them_in_order, 120)
{
    struct serve s = {.key = NULL};
    pid_t launcher = stand_still(&s, "[pool.p]\ntarget = 0\n");
    int fds[20];

    for (unsigned i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = send_start(&s, serve_text(&s, "wait%u", i));
    CHECK_INT(json_get_int(serve_want(&s, 200, "GET", "/list", NULL), "total", 0), BEGUN);
    serve_refused(&s, 404, "wait0", "GET", "/sessions/wait0", NULL); /* nothing was made of it */
    CHECK_INT(kill(launcher, SIGCONT), 0);
    for (unsigned i = 0; i < ARRAY_LEN(fds); i++)
        read_start(fds[i], "HTTP/1.1 200", serve_text(&s, "\"wait%u\"", i));
    struct json *list = json_get(serve_want(&s, 200, "GET", "/list", NULL), STR("runtimes"));
    unsigned at = 0;
    for (const struct json *r = list->first; r; r = r->next, at++)
        if (at >= BEGUN)
            CHECK_STR(serve_field(&s, r, "session_id"), serve_text(&s, "wait%u", at - BEGUN));
    CHECK_INT(at, BEGUN + ARRAY_LEN(fds));
    serve_close(&s);
}

TEST_LIMIT(serve_serves_tenants_in_turn_whoever_has_more_in_line, 120)
{
    struct serve s = {.key = "a-rather-long-first-secret-of-a-test"};

    setenv("CROFT_API_KEY", s.key, 1);
    /* Room for one more of each: the rest of who has many is refused, by then. */
    pid_t launcher = stand_still(&s, "[server]\nmost_sandboxes = 34\n[pool.p]\ntarget = 0\n");
    const char *few = serve_make_key(&s, "{'name':'few'}");
    int many[5];

    for (unsigned i = 0; i < ARRAY_LEN(many); i++)
        many[i] = send_start(&s, serve_text(&s, "many%u", i));
    s.key = few;
    int one = send_start(&s, "one");
    CHECK_INT(kill(launcher, SIGCONT), 0);
    read_start(one, "HTTP/1.1 200", "\"one\"");
    read_start(many[0], "HTTP/1.1 200", "\"many0\"");
    for (unsigned i = 1; i < ARRAY_LEN(many); i++)
        read_start(many[i], "HTTP/1.1 429", "server.most_sandboxes");
    s.key = "a-rather-long-first-secret-of-a-test";
    serve_close(&s);
}

TEST_LIMIT(serve_refuses_a_start_when_the_line_is_full, 120)
{
    struct serve s = {.key = NULL};
    pid_t launcher = stand_still(&s, "[server]\nmost_starts = 2\n[pool.p]\ntarget = 0\n");
    int fds[] = {send_start(&s, "a"), send_start(&s, "b")};

    struct serve_answer c = serve_ask(&s, "POST", "/start", "{'image':'host','session_id':'c'}");
    serve_come_back(&c, 503, "server.most_starts");
    struct serve_answer old =
        serve_ask(&s, "POST", "/start", "{'image':'host','session_id':'begun0'}");
    CHECK_INT(old.status, 200); /* it has one already */
    CHECK_INT(kill(launcher, SIGCONT), 0);
    read_start(fds[0], "HTTP/1.1 200", "\"a\"");
    read_start(fds[1], "HTTP/1.1 200", "\"b\"");
    serve_start(&s, "c", "");
    serve_close(&s);
}

TEST_LIMIT(serve_gives_the_place_of_a_client_that_went_away_to_the_next, 120)
{
    struct serve s = {.key = NULL};
    pid_t launcher = stand_still(&s, "[server]\nmost_starts = 1\n[pool.p]\ntarget = 0\n");

    close(send_start(&s, "gone"));
    CHECK_INT(serve_get(&s, "/health").status, 200); /* its end was read by now */
    int next = send_start(&s, "next");
    struct serve_answer full =
        serve_ask(&s, "POST", "/start", "{'image':'host','session_id':'full'}");
    serve_come_back(&full, 503, "server.most_starts");
    CHECK_INT(kill(launcher, SIGCONT), 0);
    read_start(next, "HTTP/1.1 200", "\"next\"");
    serve_refused(&s, 404, "gone", "GET", "/sessions/gone", NULL);
    serve_close(&s);
}

TEST_LIMIT(serve_that_ends_answers_who_waits_in_line, 120)
{
    struct serve s = {.key = NULL};
    pid_t launcher = stand_still(&s, "[pool.p]\ntarget = 0\n");
    int fd = send_start(&s, "waits");

    CHECK_INT(kill(s.wire.pid, SIGTERM), 0);
    read_start(fd, "HTTP/1.1 503", "the server is being stopped");
    CHECK_INT(kill(launcher, SIGCONT), 0);
    CHECK_INT(program_wait(s.wire.pid), 0);
    serve_run(&s, NULL);
    serve_refused(&s, 404, "waits", "GET", "/sessions/waits", NULL);
    serve_close(&s);
}

TEST_LIMIT(serve_that_was_killed_keeps_what_it_acknowledged_and_not_who_waited, 120)
{
    struct serve s = {.key = NULL};
    pid_t launcher = stand_still(&s, "[pool.p]\ntarget = 0\n");
    int fd = send_start(&s, "waits");

    serve_kill(&s);
    CHECK_INT(kill(launcher, SIGCONT), 0);
    close(fd);
    serve_run(&s, NULL);
    CHECK_INT(json_get_int(serve_want(&s, 200, "GET", "/list", NULL), "total", 0), BEGUN);
    for (unsigned i = 0; i < BEGUN; i++)
        serve_start(&s, serve_text(&s, "begun%u", i), "");
    serve_refused(&s, 404, "waits", "GET", "/sessions/waits", NULL);
    serve_close(&s);
}
