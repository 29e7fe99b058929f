// SPDX-License-Identifier: Apache-2.0
/* serve_life_test.c — who ends a runtime: a clean end of the server, time, and nobody while it is
 * used. */
#include <fcntl.h>
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

/* Ends it, and wants this said. */
static void end_and_read(struct serve *s, const int log[2], const char *said)
{
    own_done(buf) line;

    buf_init(&line, 4096);
    CHECK_INT(wire_stop(&s->wire), 0);
    while (str_find(buf_str(&line), STR("\n")) < 0) {
        ssize_t n = read(log[0], buf_reserve(&line, 512), 512);
        CHECK(n > 0);
        buf_commit(&line, (size_t)n);
    }
    CHECK_HAS(buf_str(&line), str_of(said));
}

static void run_at_exit(struct serve *s, const char *how, int log)
{
    s->at_exit = true;
    s->log = log;
    serve_run(s,
              how ? ARGS("--log-format", "text", "--at-exit", how) : ARGS("--log-format", "text"));
}

TEST_LIMIT(serve_that_ends_halts_what_runs_and_says_how_to_go_on, 120)
{
    struct serve s = {.key = NULL};
    int log[2];

    CHECK_INT(pipe2(log, O_CLOEXEC), 0);
    serve_prepare(&s);
    run_at_exit(&s, NULL, log[1]);
    struct json *r = serve_start(&s, "work", ""), *rests = serve_start(&s, "rests", "");
    CHECK_STR(serve_exec(&s, r, "echo words > /workspace/file; echo ok"), "ok");
    serve_tell(&s, "/pause", rests);
    end_and_read(&s, log,
                 serve_text(&s,
                            "croft serve: ended: 2 sandboxes halted with all files "
                            "kept; go on with 'croft serve --listen 127.0.0.1:0 "
                            "--state %s ",
                            s.state));
    serve_reap(); /* no process is left */
    CHECK(has_files(&s, r));

    run_at_exit(&s, NULL, log[1]);
    CHECK_STR(status_of(&s, "work"), "paused");
    serve_tell(&s, "/resume", r);
    CHECK_STR(serve_exec(&s, serve_start(&s, "work", ""), "cat /workspace/file"), "words");
    serve_tell(&s, "/stop", rests);
    end_and_read(&s, log, "ended: 1 sandbox halted with all files kept; go on with 'croft serve ");
    s.at_exit = false;
    serve_run(&s, NULL);
    serve_close(&s);
}

TEST_LIMIT(serve_that_ends_lets_sandboxes_run_on_where_it_was_told_to_keep, 120)
{
    struct serve s = {.key = NULL};
    int log[2];

    CHECK_INT(pipe2(log, O_CLOEXEC), 0);
    serve_prepare(&s);
    run_at_exit(&s, "keep", log[1]);
    struct json *kept = serve_start(&s, "kept", ""), *still = serve_start(&s, "still", "");
    CHECK_STR(serve_exec(&s, kept, "X=here; echo $$ > /tmp/shell; echo ok"), "ok");
    serve_tell(&s, "/pause", still);
    end_and_read(&s, log, "ended: 2 sandboxes left running; go on with 'croft serve ");

    s.at_exit = false;
    serve_run(&s, NULL);
    struct json *again = serve_want(&s, 200, "GET", "/sessions/kept", NULL);
    CHECK_STR(serve_field(&s, again, "status"), "running");
    CHECK_STR(serve_field(&s, again, "url"), serve_field(&s, kept, "url"));
    CHECK_STR(serve_exec(&s, again, "echo $X; test $$ = $(cat /tmp/shell) && echo same"),
              "here\nsame");
    CHECK_STR(status_of(&s, "still"), "paused");
    serve_close(&s);
}

TEST_LIMIT(serve_that_ends_deletes_what_runs_where_it_was_told_to, 120)
{
    struct serve s = {.key = NULL};
    int log[2];

    CHECK_INT(pipe2(log, O_CLOEXEC), 0);
    serve_prepare(&s);
    run_at_exit(&s, "delete", log[1]);
    struct json *ended = serve_start(&s, "ended", "");
    end_and_read(&s, log, "croft serve: ended: 1 sandbox deleted with all files\n");
    CHECK(!has_files(&s, ended));
    s.at_exit = false;
    serve_run(&s, NULL);
    CHECK_STR(status_of(&s, "ended"), "stopped");
    serve_close(&s);
}

/* OpenHands' setting says it where server.at_exit does not; the settings of the end count. */
TEST_LIMIT(serve_takes_keep_runtime_alive_for_what_its_end_does, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    s.at_exit = true;
    serve_run_with(&s, "[sandbox]\nkeep_runtime_alive = true\n[pool.p]\ntarget = 0\n");
    serve_start(&s, "kept", "");
    CHECK_INT(wire_stop(&s.wire), 0);
    serve_run(&s, ARGS("--config", serve_text(&s, "%s/croft.toml", test_dir())));
    CHECK_STR(status_of(&s, "kept"), "running");
    serve_reload(&s, "[sandbox]\nkeep_runtime_alive = false\n");
    CHECK_INT(wire_stop(&s.wire), 0);
    serve_run(&s, ARGS("--config", serve_text(&s, "%s/croft.toml", test_dir())));
    CHECK_STR(status_of(&s, "kept"), "paused");
    serve_tell(&s, "/resume", serve_want(&s, 200, "GET", "/sessions/kept", NULL));
    serve_reload(&s, "[sandbox]\nkeep_runtime_alive = true\n[server]\nat_exit = 'delete'\n");
    serve_close(&s);
}

TEST_LIMIT(serve_refuses_another_word_for_its_end_by_name, 120)
{
    struct serve s = {.key = NULL};
    own_done(buf) said;
    int log[2];

    buf_init(&said, 65536);
    CHECK_INT(pipe2(log, O_CLOEXEC), 0);
    serve_prepare(&s);
    s.log = log[1];
    serve_run_with(&s, "");
    own_fd dir = test_dir_fd();
    CHECK_OK(fd_replace_file(dir, "croft.toml", STR("[server]\nat_exit = 'later'\n"), 0644));
    CHECK_INT(kill(s.wire.pid, SIGHUP), 0);
    serve_read_until(log[0], "server.at_exit");
    serve_read_until(log[0], "'later'");
    serve_close(&s);
    CHECK_INT(program_run(ARGS(test_program("croft"), "serve", "--at-exit", "later"), &said), 2);
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
