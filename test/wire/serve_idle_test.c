// SPDX-License-Identifier: Apache-2.0
/* serve_idle_test.c — what nobody uses is paused; what somebody uses is not. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "test/program.h"
#include "test/serve_kit.h"

static const char *status_of(struct serve *s, const char *session)
{
    return serve_field(s, serve_want(s, 200, "GET", serve_text(s, "/sessions/%s", session), NULL),
                       "status");
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

/* All is set up before any time counts. It is paused, and once more. */
static void let_pause_twice(struct serve *s, const struct json *idle)
{
    const char *session = serve_field(s, idle, "session_id");

    serve_reload(s, "[idle]\npause_after = '1s'\n");
    wait_for(s, session, "paused");
    serve_tell(s, "/resume", idle);
    wait_for(s, session, "paused");
}

TEST_LIMIT(serve_pauses_what_is_idle_and_not_what_runs_something, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "");
    struct json *busy = serve_start(&s, "busy", "'environment':{'NO_CHANGE_TIMEOUT_SECONDS':'1'}");
    CHECK_HAS(serve_exec_soft(&s, busy, "echo on; sleep 600"), "on");
    let_pause_twice(&s, serve_start(&s, "idle", ""));
    CHECK_STR(status_of(&s, "busy"), "running");
    serve_close(&s);
}

/* Calls, each on its own connection, until the other one is paused. If they come late, on a machine
 * that is very busy, this one may be paused between two of them, and only then. */
static void call_until_paused(struct serve *s, const struct json *called, const char *other)
{
    uint64_t last_ns = clock_mono_ns(&clock_system);

    while (strcmp(status_of(s, other), "paused") != 0) {
        uint64_t begun_ns =
            clock_mono_ns(&clock_system); /* it counts from the end, which is later */
        int status = serve_visit(s, called, "/alive");
        if (status == 503) {
            CHECK(clock_mono_ns(&clock_system) - last_ns >= NS_PER_S);
            serve_tell(s, "/resume", called);
        } else {
            CHECK_INT(status, 200);
        }
        last_ns = begun_ns;
        poll(NULL, 0, 20);
    }
}

TEST_LIMIT(serve_takes_short_calls_for_use_until_they_end, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "");
    struct json *called = serve_start(&s, "called", ""), *idle = serve_start(&s, "idle", "");
    serve_reload(&s, "[idle]\npause_after = '1s'\n");
    call_until_paused(&s, called, "idle");
    serve_tell(&s, "/resume", idle);
    call_until_paused(&s, called, "idle"); /* more than the allowed time, twice */
    CHECK_HAS(serve_get(&s, "/metrics").body, "croft_idle_transitions_total{to=\"paused\"} 2\n");
    wait_for(&s, "called", "paused");
    serve_close(&s);
}

/* It may be too busy for it. */
TEST_LIMIT(serve_does_not_take_a_sandbox_that_does_not_answer_for_idle, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "");
    struct json *busy = serve_start(&s, "busy", ""), *idle = serve_start(&s, "idle", "");
    const char *at = serve_text(&s, "%s/sock/%s.s", s.state, serve_field(&s, busy, "runtime_id"));
    const char *away = serve_text(&s, "%s.away", at);
    CHECK_INT(rename(at, away), 0);
    let_pause_twice(&s, idle);
    serve_tell(&s, "/resume", idle);
    wait_for(&s, "idle", "paused");
    CHECK_STR(status_of(&s, "busy"), "running");
    CHECK_INT(rename(away, at), 0); /* now it answers that nothing runs */
    wait_for(&s, "busy", "paused");
    serve_close(&s);
}

TEST_LIMIT(serve_pauses_what_has_run_as_long_as_it_may, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[idle]\nmax_age = '1h'\n");
    struct json *busy = serve_start(&s, "busy", "'environment':{'NO_CHANGE_TIMEOUT_SECONDS':'1'}");
    CHECK_HAS(serve_exec_soft(&s, busy, "echo on; sleep 600"), "on");
    serve_kill(&s);
    serve_run_with(&s, "[idle]\nmax_age = '1s'\n"); /* its age goes on over a new server */
    wait_for(&s, "busy", "paused");
    serve_kill(&s);
    serve_run_with(&s, "[idle]\nmax_age = '1h'\n");
    serve_tell(&s, "/resume", busy); /* and begins anew */
    CHECK_STR(status_of(&s, "busy"), "running");
    serve_close(&s);
}

TEST_LIMIT(serve_takes_a_background_job_for_use_until_it_ends, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "");
    struct json *job = serve_start(&s, "job", "");
    struct json *daemon = serve_start(&s, "daemon", "");
    serve_exec(&s, job, "sleep 600 & echo begun");
    serve_exec(&s, daemon, "setsid sleep 600 >/dev/null 2>&1 & disown; exit");
    struct json *idle = serve_start(&s, "idle", "");
    serve_exec(&s, idle, "true");
    let_pause_twice(&s, idle); /* its shell waits: that is no use */
    CHECK_STR(status_of(&s, "job"), "running");
    CHECK_STR(status_of(&s, "daemon"), "running");
    CHECK_HAS(serve_exec(&s, job, "kill %1; wait; echo over"), "over");
    serve_exec(&s, daemon, "pkill sleep");
    wait_for(&s, "job", "paused");
    wait_for(&s, "daemon", "paused");
    serve_close(&s);
}

#define LOCAL "[server]\nbackend = 'local'\n"

/* There its processes are among those of the machine, which are no use of it. */
TEST_LIMIT(serve_local_takes_what_descends_from_a_sandbox_for_use_of_it_and_nothing_else, 120)
{
    struct serve s = {.key = NULL};
    own_fd dir = test_dir_fd();

    serve_prepare(&s);
    serve_run_with(&s, LOCAL);
    struct json *job = serve_start(&s, "job", ""), *daemon = serve_start(&s, "daemon", "");
    serve_exec(&s, job, "sleep 600 & echo begun");
    serve_exec(&s, daemon, "(setsid sleep 600 >/dev/null 2>&1 & echo $! > pid); exit");
    serve_exec(&s, serve_start(&s, "idle", ""), "true");
    CHECK_OK(fd_replace_file(dir, "croft.toml", STR(LOCAL "[idle]\nstop_after = '1s'\n"), 0644));
    CHECK_INT(kill(s.wire.pid, SIGHUP), 0); /* read when the first of them is stopped */
    wait_for(&s, "idle", "paused");
    serve_start(&s, "next", "");
    wait_for(&s, "next", "paused"); /* the others have been looked at by then */
    CHECK_STR(status_of(&s, "job"), "running");
    CHECK_STR(status_of(&s, "daemon"), "running");
    serve_exec(&s, job, "kill %1; wait");
    serve_exec(&s, daemon, "kill $(cat pid)");
    wait_for(&s, "job", "paused");
    wait_for(&s, "daemon", "paused");
    CHECK_INT(wire_stop(&s.wire), 0);
    serve_reap();
    arena_done(&s.arena);
}

static bool is_gone(struct serve *s, const char *session)
{
    struct serve_answer a = serve_get(s, serve_text(s, "/sessions/%s", session));

    return a.status == 404 || strcmp(serve_field(s, a.json, "status"), "stopped") == 0;
}

TEST_LIMIT(serve_takes_a_command_run_as_given_for_use_as_long_as_it_runs, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "");
    serve_start(&s, "busy", "'command':['sh','-c','while :; do :; done']");
    serve_start(&s, "asleep", "'command':['sleep','600']");
    serve_start(&s, "idle", "");
    serve_reload(&s, "[idle]\npause_after = '1s'\nstop_after = '2s'\ndelete_after = '3s'\n");
    for (unsigned i = 0; !is_gone(&s, "idle"); i++) {
        CHECK(i < 3000);
        poll(NULL, 0, 20);
    }
    CHECK_STR(status_of(&s, "busy"), "running");
    CHECK_STR(status_of(&s, "asleep"), "running");
    struct str counted = serve_get(&s, "/metrics").body;
    CHECK_HAS(counted, "croft_idle_transitions_total{to=\"paused\"} 1\n");
    CHECK_HAS(counted, "croft_idle_transitions_total{to=\"deleted\"} 1\n");
    CHECK_HAS(counted, "croft_sandboxes{runtime=\"native\",state=\"running\"} 2\n");
    serve_close(&s);
}

/* Without a control group of his own; whoever has one sees it paused first. */
TEST_LIMIT(serve_stops_and_deletes_what_is_idle_where_nothing_can_be_paused, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare_user(&s);
    serve_run_with(&s, "");
    serve_start(&s, "idle", "");
    serve_reload(&s, "[idle]\npause_after = '1s'\nstop_after = '2s'\ndelete_after = '3s'\n");
    for (unsigned i = 0; !is_gone(&s, "idle"); i++) {
        CHECK(i < 3000);
        poll(NULL, 0, 20);
    }
    struct str counted = serve_get(&s, "/metrics").body;
    CHECK_HAS(counted, "croft_idle_transitions_total{to=\"stopped\"} 1\n");
    CHECK_HAS(counted, "croft_idle_transitions_total{to=\"deleted\"} 1\n");
    serve_close(&s);
}

/* Paused by now, with a row that is not written: somebody else has the lock. */
static pid_t begin_pause(struct serve *s, const struct json *r)
{
    serve_exec(s, r, "sleep 600 & echo begun"); /* it must not be paused before */
    pid_t locker = serve_lock_rows(s);
    serve_exec(s, r, "kill %1; wait");
    wait_for(s, "one", "paused");
    return locker;
}

/* What came before has been seen by now. */
static void let_it_turn(struct serve *s)
{
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(serve_get(s, "/health").status, 200);
}

TEST_LIMIT(serve_wakes_and_ends_what_is_just_being_paused, 120)
{
    struct serve s = {.key = NULL};
    struct wire to = {.pid = 0};
    own_done(buf) got;

    serve_prepare(&s);
    serve_run_with(&s, "[server]\nresume_on_request = true\n");
    struct json *r = serve_start(&s, "one", "");
    serve_reload(&s, "[server]\nresume_on_request = true\n[idle]\npause_after = '2s'\n");
    pid_t locker = begin_pause(&s, r);
    wire_at(&to, serve_field(&s, r, "url"));
    int fd = wire_connect(&to);
    wire_send(fd, STR("GET /alive HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    let_it_turn(&s);
    serve_unlock_rows(locker);
    buf_init(&got, 1u << 20);
    wire_read_to_end(fd, &got);
    close(fd);
    CHECK_HAS(buf_str(&got), "200 OK");

    locker = begin_pause(&s, r);
    CHECK_INT(kill(s.wire.pid, SIGTERM), 0);
    let_it_turn(&s);
    serve_unlock_rows(locker);
    CHECK_INT(program_wait(s.wire.pid), 0);
    serve_reap();
    arena_done(&s.arena);
}

/* What is halted stays so: a sandbox that a late client wakes would be nobody's to end. */
TEST_LIMIT(serve_resumes_nothing_while_it_is_being_stopped, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run(&s, NULL);
    struct json *kept = serve_start(&s, "kept", "");
    serve_start(&s, "one", "");
    const char *id = serve_field(&s, kept, "runtime_id");
    serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/stop", id), NULL);
    pid_t locker = serve_lock_rows(&s); /* the end of the other one waits */
    CHECK_INT(kill(s.wire.pid, SIGTERM), 0);
    let_it_turn(&s);
    serve_refused(&s, 503, "the server is being stopped", "POST", "/resume",
                  serve_text(&s, "{'runtime_id':'%s'}", id));
    serve_unlock_rows(locker);
    CHECK_INT(program_wait(s.wire.pid), 0);
    serve_run(&s, NULL);
    serve_tell(&s, "/resume", kept);
    serve_close(&s);
}
