// SPDX-License-Identifier: Apache-2.0
/* serve_key_test.c — the session key of a runtime that is resumed; several keys of one tenant. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/program.h"
#include "test/serve_kit.h"

#define ASK "/croft/v1/shells"

/* The key of now is another and opens; the one before does not. */
static void check_new_key(struct serve *s, const struct json *now, const struct json *before)
{
    CHECK(
        strcmp(serve_field(s, now, "session_api_key"), serve_field(s, before, "session_api_key")));
    CHECK_STR(serve_field(s, now, "url"), serve_field(s, before, "url"));
    CHECK_INT(serve_visit(s, now, ASK), 200);
    CHECK_INT(serve_visit(s, before, ASK), 403);
}

/* As V0 clients ask: with the key of the API too. */
static int visit_as_v0(struct serve *s, const struct json *r, const char *api_key)
{
    own_done(buf) got;
    struct wire to;

    buf_init(&got, 1u << 20);
    wire_at(&to, serve_field(s, r, "url"));
    wire_exchange(&to,
                  str_of(serve_text(s,
                                    "GET " ASK " HTTP/1.1\r\nHost: localhost\r\n"
                                    "Connection: close\r\nX-API-Key: %s\r\n"
                                    "X-Session-API-Key: %s\r\n\r\n",
                                    api_key, serve_field(s, r, "session_api_key"))),
                  &got);
    return atoi(got.p + sizeof "HTTP/1.1");
}

static struct json *pause_and_resume(struct serve *s, const struct json *r)
{
    serve_tell(s, "/pause", r);
    return serve_tell(s, "/resume", r);
}

/* The new one has not been used: only who would be told it is let in with the one before. */
static void check_who_is_told(struct serve *s, const struct json *before, const char *const bad[])
{
    CHECK_INT(serve_visit(s, before, ASK), 403);
    for (size_t i = 0; bad[i]; i++)
        CHECK_INT(visit_as_v0(s, before, bad[i]), 403);
    CHECK_INT(visit_as_v0(s, before, s->key), 200);
}

TEST_LIMIT(serve_takes_the_session_key_from_before_of_v0_clients_until_the_new_one_is_used, 120)
{
    static const char on[] = "[server]\nrotate_session_key = true\n";
    struct serve s = {.key = "a-key-of-who-administers"};
    struct json *k[5];

    setenv("CROFT_API_KEY", s.key, 1);
    serve_prepare(&s);
    serve_run_with(&s, on);
    const char *own = serve_make_key(&s, "{'name':'own'}");
    const char *bad[] = {serve_make_key(&s, "{'name':'other'}"),
                         serve_make_key(&s, "{'name':'watch','of':'own'}"), "no-key-of-ours", NULL};
    s.key = own;
    k[0] = serve_start(&s, "one", "");
    k[1] = pause_and_resume(&s, k[0]);
    check_who_is_told(&s, k[0], bad);
    serve_kill(&s);
    serve_run_with(&s, on);
    check_who_is_told(&s, k[0], bad);

    k[2] = pause_and_resume(&s, k[0]); /* by who goes on, and by who read the key before that */
    CHECK_INT(visit_as_v0(&s, k[0], own), 200);
    CHECK_INT(visit_as_v0(&s, k[1], own), 200);
    k[3] = pause_and_resume(&s, k[0]);
    CHECK_INT(visit_as_v0(&s, k[0], own), 403); /* one came after it */
    CHECK_INT(visit_as_v0(&s, k[1], own), 200);
    CHECK_INT(visit_as_v0(&s, k[2], own), 200);

    for (int i = 0; i < 2; i++) {
        CHECK_INT(serve_visit(&s, k[3], ASK), 200);
        for (int j = 0; j < 3; j++)
            CHECK_INT(visit_as_v0(&s, k[j], own), 403);
        serve_start(&s, serve_text(&s, "s%d", i), ""); /* rows are written in turn */
        serve_kill(&s);
        serve_run_with(&s, on);
        for (int j = 0; j < 3; j++)
            CHECK_INT(visit_as_v0(&s, k[j], own), 403);
    }
    k[4] = pause_and_resume(&s, k[0]);
    CHECK_INT(visit_as_v0(&s, k[2], own), 403);
    check_who_is_told(&s, k[3], bad);
    check_new_key(&s, k[4], k[3]);
    serve_close(&s);
}

TEST_LIMIT(serve_gives_a_new_session_key_at_resume_if_it_is_told_to, 120)
{
    static const char on[] = "[server]\nrotate_session_key = true\n";
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, on);
    struct json *first = serve_start(&s, "one", "");
    CHECK_INT(serve_visit(&s, first, ASK), 200);
    serve_tell(&s, "/pause", first);
    struct json *second = serve_tell(&s, "/resume", first);
    CHECK_INT(visit_as_v0(&s, first, "any"), 200); /* there are no keys */
    check_new_key(&s, second, first);
    CHECK_INT(visit_as_v0(&s, first, "any"), 403);
    CHECK_STR(serve_field(&s, serve_tell(&s, "/resume", first), "session_api_key"),
              serve_field(&s, second, "session_api_key")); /* it runs: nothing was resumed */
    CHECK_HAS(serve_exec(&s, second, "echo in; cat /proc/1/environ"), "in");

    serve_kill(&s);
    serve_run_with(&s, on);
    check_new_key(&s, second, first);
    CHECK_INT(serve_visit(&s, second, ASK), 200);

    const char *path =
        serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, first, "runtime_id"));
    serve_want(&s, 200, "POST", serve_text(&s, "%s/stop", path), NULL);
    serve_want(&s, 200, "POST", serve_text(&s, "%s/resume", path), NULL);
    struct json *third = serve_start(&s, "one", "");
    check_new_key(&s, third, second);
    CHECK_INT(serve_visit(&s, first, ASK), 403);
    serve_close(&s);
}

/* Neither over a pause nor over a stop: what is told is what the next server knows too. */
TEST_LIMIT(serve_tells_no_session_key_that_is_not_written_down, 120)
{
    static const char on[] = "[server]\nrotate_session_key = true\n";
    static const char *const ends[] = {"pause", "stop"};
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, on);
    struct json *first = serve_start(&s, "one", "");
    const char *path =
        serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, first, "runtime_id"));
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        serve_want(&s, 200, "POST", serve_text(&s, "%s/%s", path, ends[i]), NULL);
        pid_t locker = serve_lock_rows(&s);
        struct serve_answer a = serve_ask(&s, "POST", serve_text(&s, "%s/resume", path), NULL);
        CHECK_INT(a.status, 503);
        serve_unlock_rows(locker);
        struct json *now = serve_start(&s, "one", "");
        CHECK_STR(serve_field(&s, now, "session_api_key"),
                  serve_field(&s, first, "session_api_key"));
        CHECK_INT(serve_visit(&s, first, ASK), 200);
    }
    serve_kill(&s);
    serve_run_with(&s, on);
    CHECK_INT(serve_visit(&s, first, ASK), 200);
    serve_close(&s);
}

static int send_post(struct serve *s, const char *target)
{
    int fd = wire_connect(&s->wire);

    wire_send(fd, str_of(serve_text(s,
                                    "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                                    "Connection: close\r\nContent-Length: 0\r\n\r\n",
                                    target)));
    return fd;
}

static void await_running(struct serve *s, const char *path)
{
    while (strcmp(serve_field(s, serve_want(s, 200, "GET", path, NULL), "status"), "running") != 0)
        ;
}

/* The sandbox is resumed, its row is not written yet, and then the launcher answers nobody. */
TEST_LIMIT(serve_tells_a_new_session_key_though_the_launcher_fell_silent, 120)
{
    struct serve s = {.key = NULL};
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    serve_prepare(&s);
    serve_run_with(&s, "[server]\nrotate_session_key = true\nlauncher_wait = '4s'\n"
                       "[pool.p]\ntarget = 0\n");
    struct json *first = serve_start(&s, "one", ""), *other = serve_start(&s, "two", "");
    pid_t launcher = serve_launcher(&s);
    const char *path =
        serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, first, "runtime_id"));
    serve_want(&s, 200, "POST", serve_text(&s, "%s/pause", path), NULL);
    pid_t locker = serve_lock_rows(&s);
    int fd = send_post(&s, serve_text(&s, "%s/resume", path));
    await_running(&s, path);
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    serve_reload(&s, "[server]\nrotate_session_key = true\nlauncher_wait = '100ms'\n");
    serve_refused(
        &s, 503, "(server.launcher_wait)", "GET",
        serve_text(&s, "/croft/v1/sandboxes/%s/stats", serve_field(&s, other, "runtime_id")), NULL);
    serve_unlock_rows(locker);
    wire_read_to_end(fd, &got);
    close(fd);
    CHECK_HAS(buf_str(&got), "HTTP/1.1 200 ");
    struct json *now = serve_want(&s, 200, "GET", path, NULL);
    CHECK_HAS(buf_str(&got), serve_field(&s, now, "session_api_key"));
    CHECK_INT(kill(launcher, SIGCONT), 0);
    check_new_key(&s, serve_start(&s, "one", ""), first);
    serve_close(&s);
}

TEST_LIMIT(serve_keeps_a_session_key_over_a_resume_as_clients_rely_on, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *first = serve_start(&s, "one", "");
    serve_tell(&s, "/pause", first);
    CHECK_STR(serve_field(&s, serve_tell(&s, "/resume", first), "session_api_key"),
              serve_field(&s, first, "session_api_key"));
    CHECK_INT(serve_visit(&s, first, ASK), 200);
    serve_close(&s);
}

/* --- several keys of one tenant --- */

static int64_t total(struct serve *s, const char *key)
{
    s->key = key;
    return json_get_int(serve_want(s, 200, "GET", "/list", NULL), "total", -1);
}

static void check_whose(struct serve *s)
{
    const struct json *all = serve_want(s, 200, "GET", "/croft/v1/tokens", NULL);
    for (all = json_get(all, STR("tokens"))->first; all; all = all->next) {
        const char *name = serve_field(s, all, "name");
        bool own = strcmp(name, "default") == 0 || strcmp(name, "build") == 0 ||
                   strcmp(name, "other") == 0;
        CHECK_STR(serve_field(s, all, "of"), own ? "" : "build");
    }
}

TEST_LIMIT(serve_shows_a_tenants_runtimes_to_its_key_that_only_looks, 120)
{
    struct serve s = {.key = "a-key-of-who-administers"};

    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    const char *admin = s.key;
    const char *build = serve_make_key(&s, "{'name':'build','most_runtimes':2}");
    const char *other = serve_make_key(&s, "{'name':'other'}");
    const char *watch = serve_make_key(&s, "{'name':'watch','of':'build'}");
    const char *second = serve_make_key(&s, "{'name':'second','of':'watch','scopes':['read']}");
    serve_refused(&s, 422, "no more scopes", "POST", "/croft/v1/tokens",
                  "{'name':'x','of':'watch','scopes':['runtime']}");
    serve_refused(&s, 422, "of: there is no key 'nobody'", "POST", "/croft/v1/tokens",
                  "{'name':'x','of':'nobody'}");
    serve_refused(&s, 422, "most_runtimes: quotas are those of key 'build'", "POST",
                  "/croft/v1/tokens", "{'name':'x','of':'build','most_runtimes':9}");
    const char *act = serve_make_key(&s, "{'name':'act','of':'build','scopes':['runtime']}");

    s.key = build;
    struct json *r = serve_start(&s, "s", "");
    const char *id = serve_field(&s, r, "runtime_id");
    CHECK_INT(total(&s, other), 0);
    CHECK_INT(total(&s, watch), 1);
    CHECK_INT(total(&s, second), 1); /* of a key of it */
    struct json *seen = serve_want(&s, 200, "GET", "/sessions/s", NULL);
    CHECK_STR(serve_field(&s, seen, "runtime_id"), id);
    CHECK_INT(json_get(seen, STR("session_api_key"))->type, JSON_NULL); /* it opens the sandbox */
    const char *path = serve_text(&s, "/croft/v1/sandboxes/%s", id);
    seen = serve_want(&s, 200, "GET", path, NULL);
    CHECK_INT(json_get(seen, STR("session_api_key"))->type, JSON_NULL);
    serve_refused(&s, 403, "lacks the scope 'runtime'", "POST", "/stop",
                  serve_text(&s, "{'runtime_id':'%s'}", id));
    serve_refused(&s, 403, "lacks the scope 'runtime'", "POST", "/start",
                  "{'image':'host','session_id':'w'}");

    s.key = act; /* one tenant: the same session, the same quota */
    struct json *same = serve_start(&s, "s", "");
    CHECK_STR(serve_field(&s, same, "session_api_key"), serve_field(&s, r, "session_api_key"));
    serve_start(&s, "t", "");
    serve_refused(&s, 429, "most_runtimes", "POST", "/start", "{'image':'host','session_id':'u'}");

    s.key = admin; /* each is revoked alone, be it the first */
    serve_want(&s, 200, "DELETE", "/croft/v1/tokens/watch", NULL);
    serve_want(&s, 200, "DELETE", "/croft/v1/tokens/build", NULL);
    s.key = watch;
    serve_refused(&s, 401, "not accepted", "GET", "/list", NULL);
    CHECK_INT(total(&s, second), 2);
    serve_kill(&s);
    serve_run(&s, NULL);
    CHECK_INT(total(&s, second), 2);
    s.key = act;
    serve_refused(&s, 429, "most_runtimes is 2", "POST", "/start",
                  "{'image':'host','session_id':'u'}");
    serve_tell(&s, "/stop", r);
    CHECK_INT(total(&s, second), 1);
    s.key = admin;
    check_whose(&s);
    serve_close(&s);
}

/* --- what all share --- */

static int ask_for_diff(struct serve *s, const struct json *r)
{
    int fd = wire_connect(&s->wire);

    wire_send(fd, str_of(serve_text(s,
                                    "GET /croft/v1/sandboxes/%s/diff HTTP/1.1\r\n"
                                    "Host: localhost\r\nX-API-Key: %s\r\n\r\n",
                                    serve_field(s, r, "runtime_id"), s->key)));
    return fd;
}

static void check_answer(int *fd, const char *line, const char *part)
{
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    wire_read_answer(*fd, &got);
    CHECK_HAS(buf_str(&got), line);
    CHECK_HAS(buf_str(&got), part);
    close(*fd);
    *fd = -1;
}

/* Who administers sees whose each is; CROFT_API_KEY is that one's. */
static void check_ps(struct serve *s)
{
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    setenv("CROFT_HOST", serve_text(s, "http://127.0.0.1:%u", s->wire.port), 1);
    CHECK_INT(program_run(ARGS(test_program("croft"), "ps"), &out), 0);
    CHECK_HAS(buf_str(&out), "  KEY         SESSION\n");
    CHECK_HAS(buf_str(&out), "  few         f\n");
    CHECK_HAS(buf_str(&out), "  many        m0\n");
}

/* While the launcher stands still none of them ends. */
TEST_LIMIT(serve_keeps_room_for_the_diff_of_another_tenant, 120)
{
    struct serve s = {.key = "a-key-of-who-administers"};
    struct pollfd asked[3];
    struct json *r[3];

    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    const char *many = serve_make_key(&s, "{'name':'many'}"),
               *few = serve_make_key(&s, "{'name':'few'}");
    s.key = few;
    struct json *other = serve_start(&s, "f", "");
    s.key = many;
    for (unsigned i = 0; i < ARRAY_LEN(r); i++)
        r[i] = serve_start(&s, serve_text(&s, "m%u", i), "");
    check_ps(&s);
    pid_t launcher = serve_launcher(&s);
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    for (unsigned i = 0; i < ARRAY_LEN(r); i++)
        asked[i] = (struct pollfd){.fd = ask_for_diff(&s, r[i]), .events = POLLIN};
    CHECK(poll(asked, ARRAY_LEN(asked), 60000) == 1); /* whichever came last */
    for (unsigned i = 0; i < ARRAY_LEN(r); i++)
        if (asked[i].revents)
            check_answer(&asked[i].fd, "HTTP/1.1 503 ", "2 of them of key 'many'");
    s.key = few;
    int fd = ask_for_diff(&s, other);
    CHECK_INT(kill(launcher, SIGCONT), 0);
    check_answer(&fd, "HTTP/1.1 200 ", "changes");
    for (unsigned i = 0; i < ARRAY_LEN(r); i++)
        if (asked[i].fd >= 0)
            check_answer(&asked[i].fd, "HTTP/1.1 200 ", "changes");
    s.key = many;
    for (unsigned i = 0; i < ARRAY_LEN(r); i++) { /* the places are free again */
        fd = ask_for_diff(&s, r[i]);
        check_answer(&fd, "HTTP/1.1 200 ", "changes");
    }
    serve_close(&s);
}
