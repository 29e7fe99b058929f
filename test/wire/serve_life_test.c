// SPDX-License-Identifier: Apache-2.0
/* serve_life_test.c — who ends a runtime: a clean end of the server, time, and nobody while it is
 * used. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/serve_kit.h"

static const char *status_of(struct serve *s, const char *session)
{
    struct serve_answer a = serve_get(s, serve_text(s, "/sessions/%s", session));

    return a.status == 200 ? serve_field(s, a.json, "status") : "";
}

static void wait_for(struct serve *s, const char *session, const char *status)
{
    for (unsigned i = 0; i < 3000; i++) {
        if (strcmp(status_of(s, session), status) == 0)
            return;
        poll(NULL, 0, 20);
    }
    FAIL("session %s is %s, never %s", session, status_of(s, session), status);
}

static bool has_files(struct serve *s, const struct json *r)
{
    struct stat st;

    return stat(serve_text(s, "%s/box/%s", s->state, serve_field(s, r, "runtime_id")), &st) == 0;
}

TEST_LIMIT(serve_ended_cleanly_keeps_what_is_to_be_kept_and_stops_the_rest, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[sandbox]\nkeep_runtime_alive = true\n[pool.p]\ntarget = 0\n");
    struct json *kept = serve_start(&s, "kept", ""), *still = serve_start(&s, "still", "");
    CHECK_STR(serve_exec(&s, kept, "X=here; echo $$ > /tmp/shell; echo ok"), "ok");
    serve_tell(&s, "/pause", still);
    serve_reload(&s,
                 "[sandbox]\nkeep_runtime_alive = false\n"); /* of those that start from now on */
    struct json *ended = serve_start(&s, "ended", "");
    CHECK(has_files(&s, ended));
    CHECK_INT(wire_stop(&s.wire), 0);
    CHECK(!has_files(&s, ended));

    serve_run(&s, NULL);
    CHECK_STR(status_of(&s, "ended"), "stopped");
    CHECK_STR(status_of(&s, "still"), "paused");
    struct json *again = serve_want(&s, 200, "GET", "/sessions/kept", NULL);
    CHECK_STR(serve_field(&s, again, "status"), "running");
    CHECK_STR(serve_field(&s, again, "url"), serve_field(&s, kept, "url"));
    CHECK_STR(serve_exec(&s, again, "echo $X; test $$ = $(cat /tmp/shell) && echo same"),
              "here\nsame");
    serve_tell(&s, "/resume", still);
    CHECK_INT(serve_visit(&s, still, "/alive"), 200);
    serve_tell(&s, "/stop", kept);
    serve_tell(&s, "/stop", still);
    serve_close(&s);
}

TEST_LIMIT(serve_stops_what_is_idle_longer_and_a_resume_finds_its_files, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "");
    struct json *r = serve_start(&s, "one", "");
    CHECK_STR(serve_exec(&s, r, "echo words > /workspace/file; X=gone; echo ok"), "ok");
    serve_reload(&s, "[idle]\nstop_after = '1s'\n");
    wait_for(&s, "one", "paused");
    CHECK_STR(serve_field(&s, serve_get(&s, "/sessions/one").json, "status_detail"),
              "its processes were ended, its files are kept");
    CHECK_HAS(serve_get(&s, "/metrics").body, "croft_idle_transitions_total{to=\"stopped\"} 1\n");
    CHECK(has_files(&s, r));
    serve_reload(&s, ""); /* from here on it may take its time */
    serve_tell(&s, "/resume", r);
    r = serve_start(&s, "one", "");
    CHECK_STR(serve_exec(&s, r, "cat /workspace/file; echo x$X"), "words\nx");
    serve_close(&s);
}

/* Its files may be all there is of somebody's work, and nobody asked for its end. */
TEST_LIMIT(serve_deletes_what_does_not_run_and_nothing_that_runs, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "");
    struct json *runs = serve_start(&s, "runs", ""), *rests = serve_start(&s, "rests", "");
    struct json *next = serve_start(&s, "next", "");
    serve_tell(&s, "/pause", rests);
    serve_reload(&s, "[idle]\ndelete_after = '1s'\n");
    wait_for(&s, "rests", ""); /* its row too, when it was stopped as long */
    serve_tell(&s, "/pause", next);
    wait_for(&s, "next", "");
    CHECK_STR(status_of(&s, "runs"), "running");
    CHECK_HAS(serve_get(&s, "/metrics").body, "croft_idle_transitions_total{to=\"deleted\"} 2\n");
    CHECK(has_files(&s, runs) && !has_files(&s, rests) && !has_files(&s, next));
    serve_tell(&s, "/pause", runs);
    wait_for(&s, "runs", "");
    CHECK(!has_files(&s, runs));
    serve_close(&s);
}

/* Nobody touched them since: their time runs from when the server found them. */
TEST_LIMIT(serve_deletes_what_it_took_over_stopped_or_failed, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run(&s, NULL);
    struct json *halted = serve_start(&s, "halted", "");
    const char *id = serve_field(&s, halted, "runtime_id");
    serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/stop", id), NULL);
    struct json *failed = serve_want(&s, 200, "POST", "/start",
                                     "{'image':'host','session_id':'failed','command':['false']}");
    wait_for(&s, "failed", "error");
    serve_kill(&s);
    serve_run_with(&s, "[idle]\ndelete_after = '1s'\n");
    wait_for(&s, "halted", "");
    wait_for(&s, "failed", "");
    CHECK(!has_files(&s, halted) && !has_files(&s, failed));
    serve_close(&s);
}

TEST_LIMIT(serve_takes_an_open_connection_for_use_until_it_is_closed, 120)
{
    struct serve s = {.key = NULL};
    struct wire to = {.pid = 0};
    char head[16];

    serve_prepare(&s);
    serve_run_with(&s, "");
    struct json *held = serve_start(&s, "held", "");
    CHECK_STR(serve_exec(&s, held, "echo ok"), "ok"); /* now it has a shell to listen to */
    wire_at(&to, serve_field(&s, held, "url"));
    int fd = wire_connect(&to);
    wire_send(fd, str_of(serve_text(&s,
                                    "GET /croft/v1/shells/default/output HTTP/1.1\r\n"
                                    "Host: localhost\r\nX-Session-API-Key: %s\r\n\r\n",
                                    serve_field(&s, held, "session_api_key"))));
    CHECK_INT(recv(fd, head, 12, MSG_WAITALL), 12);
    CHECK(memcmp(head, "HTTP/1.1 200", 12) == 0);
    struct json *idle = serve_start(&s, "idle", "");
    serve_reload(&s, "[idle]\npause_after = '1s'\n");
    wait_for(&s, "idle", "paused");
    serve_tell(&s, "/resume", idle);
    wait_for(&s, "idle", "paused");
    CHECK_STR(status_of(&s, "held"), "running");
    close(fd);
    wait_for(&s, "held", "paused");
    serve_close(&s);
}
