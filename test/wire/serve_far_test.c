// SPDX-License-Identifier: Apache-2.0
/* serve_far_test.c — what a server tells of sandboxes that are another server's: their log, what
 * they use, what they changed. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/far_kit.h"
#include "test/program.h"

/* What the launcher's file of the far sandbox gets, as if its server had said it. */
static void say(struct two *t, const char *far_id, struct str text)
{
    own_fd fd = open(serve_text(&t->far, "%s/sock/%s.l", t->far.state, far_id),
                     O_WRONLY | O_APPEND | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, text));
}

static pid_t hear(struct two *t, const char *args, int *ret_fd)
{
    int ends[2];

    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    setenv("CROFT_HOST", serve_text(&t->near, "http://127.0.0.1:%u", t->near.wire.port), 1);
    setenv("CROFT_API_KEY", NEAR_KEY, 1);
    const char *line = serve_text(&t->near, "exec %s logs %s", test_program("croft"), args);
    pid_t pid = program_start(&(struct program){
        .argv = ARGS("bash", "-c", line), .fds = (int[]){-1, ends[1]}, .fd_count = 2});
    close(ends[1]);
    *ret_fd = ends[0];
    return pid;
}

static int end_hearing(pid_t pid, int fd, struct buf *heard)
{
    buf_init(heard, 8u << 20);
    CHECK_OK(fd_read_all(fd, heard));
    close(fd);
    return program_wait(pid);
}

static void check_log(struct two *t, const char *args, const char *said)
{
    own_done(buf) heard;
    int fd;
    pid_t pid = hear(t, args, &fd);

    CHECK_INT(end_hearing(pid, fd, &heard), 0);
    CHECK_HAS(buf_str(&heard), said);
}

/* One listens all the time and one takes nothing until it is over: neither costs anybody a word. */
TEST_LIMIT(serve_remote_passes_on_what_a_sandbox_says, 120)
{
    enum { MUCH = 3u << 20 };
    struct two t;
    int fd, slow;
    own_done(buf) heard, late;

    two_open(&t, "");
    struct json *r = serve_start(&t.near, "talker", "");
    const char *id = serve_field(&t.far, two_far_of(&t, r), "runtime_id");
    say(&t, id, STR("one\ntwo\nthree\n"));
    check_log(&t, "talker", "one\ntwo\nthree\n");
    check_log(&t, "--tail 1 --json talker", "\"text\":\"three\\n\"}");
    pid_t live = hear(&t, "-f -n 2 talker", &fd), lazy = hear(&t, "-f -n 1 talker", &slow);
    serve_read_until(fd, "two\nthree\n");
    serve_read_until(slow, "three\n");
    say(&t, id, STR("f\303\274r\n"));
    serve_read_until(slow, "f\303\274r\n"); /* it listens, too; from now on it does not */
    serve_read_until(fd, "f\303\274r\n");
    own_free char *much = malloc(MUCH);
    memset(much, 'm', MUCH);
    say(&t, id, str_n(much, MUCH));
    CHECK_STR(serve_exec(&t.near, r, "echo goes on"), "goes on");
    serve_tell(&t.near, "/stop", r);
    CHECK_INT(end_hearing(live, fd, &heard), 0);
    CHECK(str_find(buf_str(&heard), str_n(much, MUCH)) >= 0);
    CHECK_INT(end_hearing(lazy, slow, &late), 0);
    CHECK_STR(buf_str(&late), buf_str(&heard));
    two_close(&t);
}

TEST_LIMIT(serve_remote_cuts_a_log_whose_server_dies, 120)
{
    struct two t;
    int fd;
    own_done(buf) heard;

    two_open(&t, "");
    struct json *r = serve_start(&t.near, "talker", "");
    const char *id = serve_field(&t.far, two_far_of(&t, r), "runtime_id");
    say(&t, id, STR("one\n"));
    pid_t live = hear(&t, "-f -n 1 talker", &fd);
    serve_read_until(fd, "one\n");
    unsigned port = t.far.wire.port;
    serve_kill(&t.far);
    CHECK(end_hearing(live, fd, &heard) != 0);
    two_run_far(&t, port);
    two_wait_answers(&t, r);
    check_log(&t, "-n 1 talker", "one\n");
    serve_tell(&t.near, "/stop", r);
    two_close(&t);
}

static struct json *of_near(struct two *t, int status, const struct json *r, const char *what)
{
    return serve_want(&t->near, status, "GET",
                      serve_text(&t->near, "/croft/v1/sandboxes/%s%s",
                                 serve_field(&t->near, r, "runtime_id"), what),
                      NULL);
}

TEST_LIMIT(serve_remote_tells_what_a_sandbox_uses, 120)
{
    struct two t;

    two_open(&t, "");
    struct json *r = serve_start(&t.near, "s", "");
    const char *far = serve_text(&t.far, "/croft/v1/sandboxes/%s/stats",
                                 serve_field(&t.far, two_far_of(&t, r), "runtime_id"));
    const struct json *there = serve_want(&t.far, 200, "GET", far, NULL);
    const struct json *here = of_near(&t, 200, r, "/stats");
    CHECK_INT(json_get(here, STR("pids"))->type, json_get(there, STR("pids"))->type);
    CHECK(json_get_int(here, "cpu_ns", 0) >= json_get_int(there, "cpu_ns", 0));
    serve_tell(&t.near, "/pause", r);
    of_near(&t, 200, r, "/stats");
    serve_want(
        &t.near, 200, "POST",
        serve_text(&t.near, "/croft/v1/sandboxes/%s/stop", serve_field(&t.near, r, "runtime_id")),
        NULL);
    of_near(&t, 409, r, "/stats");
    serve_tell(&t.near, "/stop", r);
    two_close(&t);
}

TEST_LIMIT(serve_remote_tells_what_a_sandbox_changed_and_undoes_it, 120)
{
    struct two t;

    two_open(&t, "");
    struct json *r = serve_start(&t.near, "s", "");
    const char *near =
        serve_text(&t.near, "/croft/v1/sandboxes/%s", serve_field(&t.near, r, "runtime_id"));
    CHECK_STR(serve_exec(&t.near, r, "for i in 1 2 3; do echo $i > /workspace/made$i; done; sync"),
              "");
    struct json *d = of_near(&t, 200, r, "/diff");
    CHECK(json_get_int(d, "total", 0) >= 3);
    CHECK_STR(serve_field(&t.near, d, "sandbox"), serve_field(&t.near, r, "runtime_id"));
    d = of_near(&t, 200, r, "/diff?limit=2");
    CHECK_INT(json_get(d, STR("changes"))->count, 2);
    CHECK_INT(json_get_int(d, "next", 0), 2);
    of_near(&t, 422, r, "/diff?limit=0");
    serve_refused(&t.near, 501, "no directory of this machine", "POST",
                  serve_text(&t.near, "%s/apply", near), NULL);
    serve_want(&t.near, 200, "POST", serve_text(&t.near, "%s/stop", near), NULL);
    CHECK_HAS(serve_get(&t.near, serve_text(&t.near, "%s/diff", near)).body, "/workspace/made3");
    serve_want(&t.near, 200, "POST", serve_text(&t.near, "%s/rollback", near), NULL);
    serve_tell(&t.near, "/resume", r);
    CHECK_STR(serve_exec(&t.near, r, "ls /workspace"), "");
    serve_tell(&t.near, "/stop", r);
    of_near(&t, 409, r, "/diff");
    two_close(&t);
}

TEST_LIMIT(serve_remote_is_stopped_while_somebody_listens, 120)
{
    struct two t;
    int fd;
    own_done(buf) heard;

    two_open(&t, "");
    struct json *r = serve_start(&t.near, "talker", "");
    say(&t, serve_field(&t.far, two_far_of(&t, r), "runtime_id"), STR("one\n"));
    pid_t live = hear(&t, "-f -n 1 talker", &fd);
    serve_read_until(fd, "one\n");
    CHECK_INT(wire_stop(&t.near.wire), 0);
    end_hearing(live, fd, &heard);
    two_run_near(&t, "");
    serve_tell(&t.near, "/stop", r);
    two_close(&t);
}

/* Killed before it had removed it, of all times while the other server was not known yet. */
TEST_LIMIT(serve_far_removes_snapshots_that_nobody_wants_when_it_knows_who_has_them, 120)
{
    static const char hide[] = "import sqlite3,sys\n"
                               "d=sqlite3.connect(sys.argv[1])\n"
                               "d.execute(\"UPDATE snapshots SET name=':'||id\")\n"
                               "d.commit()\n";
    struct two t;
    own_done(buf) said;

    buf_init(&said, 1u << 16);
    two_open(&t, "");
    struct json *r = serve_start(&t.near, "s", "");
    const char *id = serve_field(&t.near, r, "runtime_id");
    serve_want(&t.near, 200, "POST", serve_text(&t.near, "/croft/v1/sandboxes/%s/snapshot", id),
               "{'name':'one'}");
    serve_start(&t.near, "late", ""); /* rows are written in turn */
    serve_kill(&t.near);
    const char *rows = serve_text(&t.near, "%s/server/croft.db", t.near.state);
    if (program_run(ARGS("python3", "-c", hide, rows), &said) != 0)
        FAIL("python3: " STR_FMT, STR_ARG(buf_str(&said)));
    two_run_near(&t, "");
    two_wait_answers(&t, r);
    const struct json *there;
    do
        there =
            json_get(serve_want(&t.far, 200, "GET", "/croft/v1/snapshots", NULL), STR("snapshots"));
    while (there->count && !poll(NULL, 0, 20));
    struct json *here = serve_want(&t.near, 200, "GET", "/croft/v1/snapshots", NULL);
    CHECK_INT(json_get(here, STR("snapshots"))->count, 0);
    serve_tell(&t.near, "/stop", r);
    serve_tell(&t.near, "/stop", serve_want(&t.near, 200, "GET", "/sessions/late", NULL));
    two_close(&t);
}
