// SPDX-License-Identifier: Apache-2.0
/* serve_remote_test.c — a server whose sandboxes are another server's: what clients see of it, and
 * what becomes of it when somebody does something to them there. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/cert.h"
#include "test/far_kit.h"
#include "test/program.h"
#include "test/serve_kit.h"

#define PYTHON "/usr/bin/python3"

static const char *status_of(struct two *t, const char *session)
{
    struct json *r =
        serve_want(&t->near, 200, "GET", serve_text(&t->near, "/sessions/%s", session), NULL);

    return serve_field(&t->near, r, "status");
}

/* Nobody tells: it is seen by who asks it something. */
static void wait_seen(struct two *t, const struct json *r, const char *session, const char *status)
{
    while (strcmp(status_of(t, session), status) != 0) {
        serve_visit(&t->near, r, "/alive");
        poll(NULL, 0, 20);
    }
}

TEST_LIMIT(serve_remote_is_a_face_of_another_server, 120)
{
    struct two t;

    two_open(&t, "");
    struct json *r = serve_start(&t.near, "s", "'environment':{'A':'b c'},'resource_factor':2");
    struct json *far = two_far_of(&t, r);
    CHECK_STR(serve_exec(&t.near, r, "echo $A; cd /tmp"), "b c");
    CHECK_STR(serve_exec(&t.near, r, "pwd"), "/tmp"); /* one and the same shell */
    CHECK_STR(serve_exec(&t.near, r, "echo $RUNTIME_ID"), serve_field(&t.far, far, "runtime_id"));
    CHECK(strcmp(serve_field(&t.near, r, "session_api_key"),
                 serve_field(&t.far, far, "session_api_key")) != 0);
    const struct json *v1 = serve_want(
        &t.far, 200, "GET",
        serve_text(&t.far, "/croft/v1/sandboxes/%s", serve_field(&t.far, far, "runtime_id")), NULL);
    CHECK_INT(json_get_int(v1, "resource_factor", 0), 2);
    v1 = serve_want(
        &t.near, 200, "GET",
        serve_text(&t.near, "/croft/v1/sandboxes/%s", serve_field(&t.near, r, "runtime_id")), NULL);
    CHECK_STR(serve_field(&t.near, v1, "backend"), "remote");
    serve_tell(&t.near, "/pause", r);
    CHECK_STR(serve_field(&t.far, two_far_of(&t, r), "status"), "paused");
    CHECK_INT(serve_visit(&t.near, r, "/alive"), 503);
    serve_tell(&t.near, "/resume", r);
    CHECK_STR(serve_exec(&t.near, r, "pwd"), "/tmp");
    serve_want(&t.near, 200, "POST", "/croft/v1/sandboxes",
               "{'image':'host','session_id':'m','memory':'64M'}");
    struct json *small = serve_start(&t.near, "m", ""); /* the same one */
    v1 = serve_want(&t.far, 200, "GET",
                    serve_text(&t.far, "/croft/v1/sandboxes/%s",
                               serve_field(&t.far, two_far_of(&t, small), "runtime_id")),
                    NULL);
    CHECK_INT(json_get_int(v1, "memory", 0), 64 << 20);
    serve_tell(&t.near, "/stop", small);
    struct json *bad =
        serve_want(&t.near, 200, "POST", "/start", "{'image':'no/such:image','session_id':'bad'}");
    while (strcmp(serve_field(&t.near, bad, "status"), "starting") == 0)
        bad = serve_want(&t.near, 200, "GET", "/sessions/bad", NULL);
    CHECK_STR(serve_field(&t.near, bad, "status"), "error");
    CHECK_HAS(serve_field(&t.near, bad, "status_detail"), "no/such:image");
    serve_tell(&t.near, "/stop", bad);
    serve_tell(&t.near, "/stop", r);
    two_close(&t);
}

TEST_LIMIT(serve_remote_passes_on_ports_snapshots_and_forks, 120)
{
    struct two t;

    two_open(&t, "");
    struct json *r = serve_start(&t.near, "s", "");
    serve_exec(&t.near, r,
               "mkdir web; echo within > web/index.html; python3 -m http.server 12000 "
               "--bind 127.0.0.1 --directory web >/dev/null 2>&1 &");
    CHECK_STR(serve_exec(&t.near, r,
                         "until (: > /dev/tcp/127.0.0.1/12000) 2>/dev/null; do sleep 0.05; done; "
                         "echo up"),
              "up");
    struct serve_answer page = serve_ask_inside(&t.near, r, "GET", "/work-1/", NULL);
    CHECK_INT(page.status, 200);
    CHECK_STR(page.body, "within\n");
    CHECK_INT(serve_visit(&t.near, r, "/work-2/"), 502); /* nobody listens */
    const char *id = serve_field(&t.near, r, "runtime_id");
    serve_want(&t.near, 200, "POST", serve_text(&t.near, "/croft/v1/sandboxes/%s/snapshot", id),
               "{'name':'point'}");
    serve_exec(&t.near, r, "rm -r web");
    const struct json *forks =
        json_get(serve_want(&t.near, 200, "POST",
                            serve_text(&t.near, "/croft/v1/sandboxes/%s/fork", id), "{}"),
                 STR("sandboxes"));
    struct json *fork = serve_start(&t.near, serve_field(&t.near, json_at(forks, 0), "session_id"),
                                    ""); /* the same one */
    CHECK_STR(serve_exec(&t.near, fork, "test -e web || echo none"), "none");
    serve_want(&t.near, 200, "POST", "/croft/v1/sandboxes",
               "{'image':'host','session_id':'f','from':'point'}");
    struct json *child = serve_start(&t.near, "f", "");
    CHECK_STR(serve_exec(&t.near, child, "cat web/index.html"), "within");
    CHECK_INT(serve_ask(&t.near, "DELETE", "/croft/v1/snapshots/point", NULL).status, 204);
    serve_tell(&t.near, "/stop", child);
    serve_tell(&t.near, "/stop", fork);
    serve_tell(&t.near, "/stop", r);
    for (;;) { /* they are removed behind the answer */
        const struct json *left =
            json_get(serve_want(&t.far, 200, "GET", "/croft/v1/snapshots", NULL), STR("snapshots"));
        if (left->count == 0)
            break;
        poll(NULL, 0, 20);
    }
    two_close(&t);
}

TEST_LIMIT(serve_remote_sees_what_is_done_to_sandboxes_there, 120)
{
    struct two t;

    two_open(&t, "");
    struct json *r = serve_start(&t.near, "s", "");
    serve_exec(&t.near, r, "cd /tmp");
    serve_tell(&t.far, "/pause", two_far_of(&t, r));
    CHECK_INT(serve_visit(&t.near, r, "/alive"), 503); /* theirs; from then on ours */
    wait_seen(&t, r, "s", "paused");
    CHECK_HAS(
        serve_field(&t.near, serve_want(&t.near, 200, "GET", "/sessions/s", NULL), "status_detail"),
        "at the other server");
    serve_tell(&t.near, "/resume", r);
    CHECK_STR(serve_exec(&t.near, r, "pwd"), "/tmp");
    serve_tell(&t.far, "/pause", two_far_of(&t, r)); /* and resumed before anybody saw it */
    serve_tell(&t.near, "/resume", r);
    CHECK_STR(serve_exec(&t.near, r, "pwd"), "/tmp");
    serve_tell(&t.far, "/pause", two_far_of(&t, r)); /* a start of the session does the same */
    serve_start(&t.near, "s", "");
    CHECK_STR(serve_exec(&t.near, r, "pwd"), "/tmp");
    serve_tell(&t.far, "/stop", two_far_of(&t, r));
    wait_seen(&t, r, "s", "error");
    struct json *next = serve_start(&t.near, "s", "");
    CHECK(strcmp(serve_field(&t.near, next, "runtime_id"), serve_field(&t.near, r, "runtime_id")) !=
          0);
    CHECK_STR(serve_exec(&t.near, next, "echo anew"), "anew");
    serve_tell(&t.near, "/stop", next);
    two_close(&t);
}

TEST_LIMIT(serve_remote_wakes_what_was_paused_there_if_it_is_to, 120)
{
    struct two t;

    two_open(&t, "[server]\nresume_on_request = true\n");
    struct json *r = serve_start(&t.near, "s", "");
    serve_exec(&t.near, r, "cd /tmp");
    serve_tell(&t.far, "/pause", two_far_of(&t, r));
    while (serve_visit(&t.near, r, "/alive") == 503)
        poll(NULL, 0, 20);
    CHECK_STR(serve_exec(&t.near, r, "pwd"), "/tmp");
    CHECK_STR(status_of(&t, "s"), "running");
    serve_tell(&t.near, "/stop", r);
    two_close(&t);
}

TEST_LIMIT(serve_remote_waits_while_the_other_server_is_away, 120)
{
    struct two t;
    struct json *r;

    two_open(&t, "");
    struct json *old = serve_start(&t.near, "old", "");
    serve_exec(&t.near, old, "cd /tmp");
    unsigned port = t.far.wire.port;
    serve_kill(&t.far);
    r = serve_want(&t.near, 200, "POST", "/start", "{'image':'host','session_id':'late'}");
    CHECK_STR(serve_field(&t.near, r, "status"), "starting");
    CHECK_INT(serve_visit(&t.near, old, "/alive"), 502);
    two_run_far(&t, port);
    r = serve_start(&t.near, "late", "");
    CHECK_STR(serve_exec(&t.near, r, "echo there"), "there");
    CHECK_STR(serve_exec(&t.near, old, "pwd"), "/tmp"); /* it never ended */
    serve_kill(&t.near);
    two_run_near(&t, "");
    two_wait_answers(&t, old);
    two_wait_answers(&t, r);
    CHECK_STR(serve_exec(&t.near, old, "pwd"), "/tmp"); /* on the same port, with the same key */
    CHECK_STR(serve_exec(&t.near, r, "echo still"), "still");
    serve_tell(&t.near, "/stop", r);
    serve_tell(&t.near, "/pause", old);
    serve_tell(&t.near, "/resume", old); /* its row tells that it runs */
    serve_kill(&t.near);
    serve_kill(&t.far);
    t.far.wire.port = port;
    two_run_near(&t, ""); /* it does not wait for who is not there, and forgets nothing */
    while (strcmp(status_of(&t, "old"), "error") != 0)
        poll(NULL, 0, 20);
    CHECK_INT(wire_stop(&t.near.wire), 0);
    two_run_near(&t, "");
    two_run_far(&t, port);
    old = serve_start(&t.near, "old", "");
    CHECK_STR(serve_exec(&t.near, old, "pwd"), "/tmp");
    serve_tell(&t.near, "/stop", old);
    two_close(&t);
}

TEST_LIMIT(serve_remote_serves_while_the_other_server_says_nothing, 120)
{
    struct two t;

    two_open(&t, "");
    struct json *r = serve_start(&t.near, "s", "");
    serve_exec(&t.near, r, "cd /tmp");
    serve_kill(&t.near);
    kill(t.far.wire.pid, SIGSTOP); /* it takes connections, and answers none */
    two_run_near(&t, "");
    CHECK(strcmp(status_of(&t, "s"), "error") != 0); /* as far as anybody knows */
    CHECK_INT(serve_visit(&t.near, r, "/alive"), 503);
    CHECK_INT(serve_ask(&t.near, "GET", "/list", NULL).status, 200);
    kill(t.far.wire.pid, SIGCONT);
    two_wait_answers(&t, r);
    CHECK_STR(serve_exec(&t.near, r, "pwd"), "/tmp");
    serve_kill(&t.near);
    kill(t.far.wire.pid, SIGSTOP);
    two_run_near(&t, "");
    kill(t.near.wire.pid, SIGTERM); /* it waits to be told, and ends what is there */
    kill(t.far.wire.pid, SIGCONT);
    int status = -1;
    CHECK(waitpid(t.near.wire.pid, &status, 0) == t.near.wire.pid);
    CHECK_INT(status, 0);
    two_run_near(&t, "");
    CHECK_INT(json_get_int(serve_want(&t.near, 200, "GET", "/list", NULL), "total", -1), 0);
    two_close(&t);
}

static void client(struct two *t, const char *kind)
{
    own_done(buf) said;

    buf_init(&said, 1u << 20);
    const char *url = serve_text(&t->near, "http://127.0.0.1:%u", t->near.wire.port);
    int code = program_run(ARGS(PYTHON, "test/wire/serve_clients.py", kind, url, NEAR_KEY), &said);
    if (code != 0)
        FAIL("%s: %.*s", kind, (int)said.len, said.p);
    CHECK_HAS(buf_str(&said), "all of it");
}

TEST_LIMIT(serve_remote_keeps_what_clients_rely_on, 180)
{
    struct two t;
    own_done(buf) said;

    buf_init(&said, 1u << 20);
    if (program_run(ARGS(PYTHON, "-c", "import httpx"), &said) != 0)
        SKIP("no httpx here (package python3-httpx)");
    setenv("FAR", "1", 1);
    two_open(&t, "[tenant]\nmost_runtimes = 3\n");
    client(&t, "v0");
    client(&t, "v1");
    client(&t, "sdk");
    two_close(&t);
}

/* --- by TLS --- */

static pid_t start_front(struct two *t, const struct test_cert *cert, unsigned *ret_port)
{
    int out[2];
    char text[16] = "";

    CHECK_INT(pipe2(out, O_CLOEXEC), 0);
    struct program p = {
        .argv = ARGS(PYTHON, "test/wire/tls_front.py", cert->certificate, cert->key,
                     serve_text(&t->far, "%s/server/api.sock", t->far.state)),
        .fds = (const int[]){-1, out[1], -1},
        .fd_count = 3,
    };
    pid_t pid = program_start(&p);
    close(out[1]);
    for (size_t n = 0; n + 1 < sizeof text && !strchr(text, '\n');) {
        ssize_t got = read(out[0], text + n, sizeof text - 1 - n);
        CHECK(got > 0);
        n += (size_t)got;
    }
    close(out[0]);
    CHECK(sscanf(text, "%u", ret_port) == 1);
    return pid;
}

static void run_near_by_tls(struct two *t, unsigned port)
{
    serve_run(&t->near, ARGS("--backend", "remote", "--remote-url",
                             serve_text(&t->near, "https://127.0.0.1:%u", port),
                             "--remote-key-file", t->keys[0], "--api-key-file", t->keys[1]));
}

/* The far server tells sandboxes' urls by the name of what stands before it: all goes by TLS. */
TEST_LIMIT(serve_remote_speaks_tls_to_whom_it_trusts_and_to_nobody_else, 120)
{
    struct two t = {.far = {.key = FAR_KEY}, .near = {.key = NEAR_KEY}};
    struct test_cert cert;
    unsigned port;
    int log[2];
    own_fd dir = test_dir_fd();

    serve_prepare(&t.far);
    test_cert_make("front", &cert);
    CHECK(chmod(cert.certificate, 0644) == 0); /* the server is an ordinary user */
    two_put_key(&t, 0, "far.key", FAR_KEY "\n");
    two_put_key(&t, 1, "near.key", NEAR_KEY);
    arena_init(&t.near.arena, 1u << 30);
    snprintf(t.near.state, sizeof t.near.state, "%s/near", test_dir());
    pid_t front = start_front(&t, &cert, &port);
    CHECK_OK(fd_replace_file(
        dir, "far.toml",
        str_of(serve_text(&t.far, "[server]\npublic_url = 'https://127.0.0.1:%u'\n", port)), 0644));
    serve_run(&t.far, ARGS("--api-key-file", t.keys[0], "--config",
                           serve_text(&t.far, "%s/far.toml", test_dir())));
    setenv("CROFT_CA_FILE", cert.certificate, 1);
    run_near_by_tls(&t, port);
    struct json *r = serve_start(&t.near, "s", "");
    CHECK_HAS(str_of(serve_field(&t.far, two_far_of(&t, r), "url")), "https://");
    CHECK_STR(serve_exec(&t.near, r, "echo by TLS"), "by TLS");
    serve_tell(&t.near, "/stop", r);
    CHECK_INT(wire_stop(&t.near.wire), 0);
    unsetenv("CROFT_CA_FILE"); /* nobody of the system knows it */
    CHECK_INT(pipe2(log, O_CLOEXEC), 0);
    t.near.log = log[1];
    run_near_by_tls(&t, port);
    serve_read_until(log[0], "certificate is not trusted");
    close(log[0]);
    close(log[1]);
    CHECK_INT(wire_stop(&t.near.wire), 0);
    CHECK_INT(json_get_int(serve_want(&t.far, 200, "GET", "/list", NULL), "total", -1), 0);
    arena_done(&t.near.arena);
    program_stop(front);
    serve_close(&t.far);
}

/* --- which backend --- */

static void refused(struct serve *s, const char *args, const char *part)
{
    own_done(buf) said;

    buf_init(&said, 1u << 20);
    const char *line = serve_text(s, "%s serve --listen 127.0.0.1:0 --state %s/other %s 2>&1",
                                  test_program("croft"), test_dir(), args);
    CHECK(program_run(ARGS("sh", "-c", line), &said) != 0);
    CHECK_HAS(buf_str(&said), part);
}

/* It is idle, and the other server does not let it be paused, until it knows our key again. */
TEST_LIMIT(serve_remote_pauses_what_is_idle_though_that_failed_once, 120)
{
    struct two t;
    int log[2];

    two_open(&t, "");
    struct json *r = serve_start(&t.near, "s", "");
    serve_exec(&t.near, r, "sleep 600 & echo begun");
    serve_kill(&t.near);
    CHECK_INT(pipe2(log, O_CLOEXEC), 0);
    t.near.log = log[1];
    two_run_near(&t, "[idle]\npause_after = '1s'\n");
    two_wait_answers(&t, r);
    unsigned port = t.far.wire.port;
    serve_kill(&t.far);
    two_run_far_as(&t, port, t.keys[1]);
    two_wait_answers(&t, r);
    serve_exec(&t.near, r, "kill %1; wait");
    serve_read_until(log[0], "runtime not changed");
    CHECK_STR(status_of(&t, "s"), "running");
    serve_kill(&t.far);
    two_run_far(&t, port);
    while (strcmp(status_of(&t, "s"), "paused") != 0)
        poll(NULL, 0, 20);
    serve_tell(&t.near, "/stop", r);
    two_close(&t);
    close(log[0]);
    close(log[1]);
}

TEST(serve_takes_no_backend_for_granted)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    refused(&s, "--backend docker", "local, native, remote");
    refused(&s, "--remote-url http://127.0.0.1:1", "for --backend remote");
    refused(&s, "--backend remote --remote-url http://elsewhere:3000", "API key is required");
    refused(&s, "--backend remote --remote-url nonsense", "remote_runtime_api_url");
    refused(&s, "--backend remote --remote-key-file /dev/null", "is empty");
    setenv("CROFT_API_KEY", "", 1);
    refused(&s, "", "CROFT_API_KEY is empty");
    unsetenv("CROFT_API_KEY");
    refused(&s, "", "of backend 'remote'"); /* which the rows there are of by now */
    arena_done(&s.arena);
}

#define NO_WALLS "no isolation: commands run as you"

/* In every place a person looks. */
static void check_said(struct serve *s, const char *const *argv)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    setenv("CROFT_SERVER_STATE_DIR", s->state, 1);
    program_run(argv, &out);
    if (str_find(buf_str(&out), STR(NO_WALLS)) < 0)
        FAIL("%s does not say it: " STR_FMT, argv[1], STR_ARG(buf_str(&out)));
}

TEST_LIMIT(serve_local_works_and_says_that_it_isolates_nothing, 120)
{
    own_done(buf) said;
    struct serve s = {.key = NULL};
    int pipe[2];

    buf_init(&said, 1u << 16);
    CHECK_INT(pipe2(pipe, O_CLOEXEC), 0);
    s.log = pipe[1];
    serve_prepare(&s);
    serve_run(&s, ARGS("--backend", "local", "--log-level", "off"));
    struct json *r = serve_start(&s, "s", "");
    CHECK_STR(serve_exec(&s, r, "echo here"), "here");
    CHECK_STR(serve_exec(&s, r, "id -u"), "65534");
    CHECK_HAS(str_of(serve_field(&s, r, "status_detail")), NO_WALLS);
    check_said(&s, ARGS(test_program("croft"), "ps"));
    check_said(&s, ARGS(test_program("croft"), "inspect", "s"));
    check_said(&s, ARGS(test_program("croft"), "doctor"));
    serve_tell(&s, "/stop", r);
    CHECK_INT(wire_stop(&s.wire), 0);
    close(pipe[1]);
    char *room = buf_reserve(&said, 4096);
    ssize_t n = read(pipe[0], room, 4096);
    buf_commit(&said, n > 0 ? (size_t)n : 0);
    close(pipe[0]);
    CHECK_HAS(buf_str(&said), "backend 'local'");
    CHECK_HAS(buf_str(&said), "isolat");
    arena_done(&s.arena);
}
