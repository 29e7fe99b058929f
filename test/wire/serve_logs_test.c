// SPDX-License-Identifier: Apache-2.0
/* serve_logs_test.c — what sandboxes say, read and followed. The launcher makes a file for what pid
 * 1 and the server inside write; here the test is who writes into it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/serve_kit.h"

#define MUCH (3u << 20)

static void say(struct serve *s, const char *id, struct str text)
{
    own_fd fd = open(serve_text(s, "%s/sock/%s.l", s->state, id), O_WRONLY | O_APPEND | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, text));
}

struct listener {
    pid_t pid;
    int fd;
    struct buf heard;
};

static void hear(struct listener *l, const char *line)
{
    int ends[2];

    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    l->pid = program_start(&(struct program){
        .argv = ARGS("bash", "-c", line), .fds = (int[]){-1, ends[1]}, .fd_count = 2});
    close(ends[1]);
    l->fd = ends[0];
    buf_init(&l->heard, 8u << 20);
}

/* Waits until it was said; "": for the end. */
static void wait_to_hear(struct listener *l, const char *what)
{
    char page[4096];
    ssize_t got = 1;

    while (got > 0 && (!*what || str_find(buf_str(&l->heard), str_of(what)) < 0)) {
        got = read(l->fd, page, sizeof page);
        if (got > 0)
            buf_add_mem(&l->heard, page, (size_t)got);
    }
    if (*what && got <= 0)
        FAIL("'%s' was never heard, only '" STR_FMT "'", what, STR_ARG(buf_str(&l->heard)));
}

static void end_hearing(struct listener *l)
{
    wait_to_hear(l, "");
    CHECK_INT(program_wait(l->pid), 0);
    close(l->fd);
}

static void at_server(struct serve *s)
{
    setenv("CROFT_HOST", serve_text(s, "unix:%s/server/api.sock", s->state), 1);
    setenv("CROFT", test_program("croft"), 1);
}

/* A client that asked, has the head of the answer and takes no more so far. */
static int ask_slowly(struct serve *s, const char *target)
{
    int fd = wire_connect(&s->wire), small = 64 << 10;

    CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    wire_send(fd, str_of(serve_text(s, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", target)));
    for (char last[5] = ""; strcmp(last, "\r\n\r\n") != 0;) {
        memmove(last, last + 1, 3);
        CHECK_INT(read(fd, last + 3, 1), 1);
    }
    return fd;
}

static void check_reads(struct serve *s, const char *id)
{
    const char *logs = serve_text(s, "/croft/v1/sandboxes/%s/logs", id);
    struct serve_answer a = serve_get(s, serve_text(s, "%s?tail=0", logs));

    CHECK_INT(a.status, 200);
    ptrdiff_t at = str_find(a.head, STR("x-croft-log-place: "));
    CHECK(at > 0);
    struct str place = str_from(a.head, (size_t)at + strlen("x-croft-log-place: ")), line;
    str_cut(&place, '\r', &line);
    say(s, id, STR("one\ntwo\nthree\n"));
    CHECK_STR(serve_get(s, serve_text(s, "%s?since=" STR_FMT, logs, STR_ARG(line))).body,
              "e\r\none\ntwo\nthree\n\r\n0\r\n\r\n");
    CHECK_STR(serve_get(s, serve_text(s, "%s?tail=2", logs)).body,
              "a\r\ntwo\nthree\n\r\n0\r\n\r\n");
    CHECK_HAS(serve_get(s, logs).body, "one\ntwo\nthree\n");
    serve_refused(s, 422, "tail", "GET", serve_text(s, "%s?tail=-1", logs), NULL);
    serve_refused(s, 422, "since", "GET", serve_text(s, "%s?since=1.x", logs), NULL);
    serve_refused(s, 422, "follow", "GET", serve_text(s, "%s?follow=yes", logs), NULL);
}

TEST_LIMIT(serve_follows_what_a_sandbox_says_until_it_ends, 120)
{
    struct serve s = {.key = NULL};
    struct listener plain, events, again;
    own_done(buf) slow;

    serve_open(&s);
    at_server(&s);
    struct json *r = serve_start(&s, "demo", "");
    const char *id = serve_field(&s, r, "runtime_id");
    check_reads(&s, id);
    hear(&plain, "exec $CROFT logs -f -n 1 demo");
    wait_to_hear(&plain, "three\n");
    hear(&events, "exec $CROFT logs -f --json --tail 1 demo");
    wait_to_hear(&events, "three");
    say(&s, id, STR("fo\303"));
    wait_to_hear(&plain, "fo\303");
    say(&s, id, STR("\274r\n"));
    wait_to_hear(&plain, "\274r\n");
    int fd = ask_slowly(&s, serve_text(&s, "/croft/v1/sandboxes/%s/logs?follow=1&tail=0", id));
    wait_to_hear(&events, "r\\n\"}\n");
    hear(&again, serve_text(&s,
                            "curl -sN -H 'Accept: text/event-stream' -H 'Last-Event-ID: 0' "
                            "http://127.0.0.1:%u/croft/v1/sandboxes/%s/logs?follow=true",
                            s.wire.port, id));
    wait_to_hear(&again, "two\\nthree\\n");

    char *much = malloc(MUCH);
    memset(much, 'm', MUCH);
    say(&s, id, str_n(much, MUCH)); /* the slow one takes none of it yet */
    free(much);
    wait_to_hear(&plain, "mmm");
    CHECK_INT(serve_get(&s, "/health").status, 200);
    serve_tell(&s, "/stop", r);
    buf_init(&slow, 8u << 20);
    wire_read_to_end(fd, &slow);
    close(fd);
    CHECK_INT(slow.len, MUCH);
    end_hearing(&plain);
    CHECK_HAS(buf_str(&plain.heard), "mmm");
    CHECK_INT(str_find(buf_str(&plain.heard), STR("two")), -1);
    end_hearing(&events);
    CHECK_HAS(buf_str(&events.heard), "{\"place\":\"");
    end_hearing(&again);
    CHECK_HAS(buf_str(&again.heard), "event: end\n");
    buf_done(&plain.heard);
    buf_done(&events.heard);
    buf_done(&again.heard);
    serve_close(&s);
}

#define LINES     100
#define LINE_SIZE 65536
#define KEPT_MOST (4ll << 20)

/* Lines of a number and dashes, from a number on. */
static void say_lines(struct serve *s, const char *id, unsigned from)
{
    static char line[LINE_SIZE];

    memset(line, '-', sizeof line);
    line[sizeof line - 1] = '\n';
    for (unsigned i = 0; i < LINES; i++) {
        int n = snprintf(line, sizeof line, "<%u>", from + i);
        line[n] = '-';
        say(s, id, str_n(line, sizeof line));
    }
}

static void wait_until_cut(struct serve *s, const char *id)
{
    const char *path = serve_text(s, "%s/sock/%s.l", s->state, id);
    own_fd news = inotify_init1(IN_CLOEXEC);
    char page[4096];
    struct stat st;

    CHECK(inotify_add_watch(news, path, IN_MODIFY) >= 0); /* which a cut is, too */
    while (stat(path, &st) == 0 && st.st_blocks * 512 > KEPT_MOST)
        CHECK(read(news, page, sizeof page) > 0);
    CHECK(st.st_size >= (off_t)LINES * LINE_SIZE); /* places stay what they were */
}

/* From the beginning on: whole lines, the newest among them, and nothing that was never said. */
static void check_cut(struct serve *s, const char *id, unsigned newest)
{
    const char *logs = serve_text(s, "/croft/v1/sandboxes/%s/logs", id);
    own_done(buf) got;

    buf_init(&got, 8u << 20);
    int fd = ask_slowly(s, serve_text(s, "%s?since=0.0", logs));
    wire_read_to_end(fd, &got);
    close(fd);
    CHECK(got.len >= (1u << 20) && got.len <= KEPT_MOST);
    CHECK_INT(got.p[0], '<');
    CHECK(!memchr(got.p, '\0', got.len));
    CHECK_HAS(buf_str(&got), serve_text(s, "\n<%u>-", newest));
    struct serve_answer a = serve_get(s, serve_text(s, "%s?tail=1", logs));
    CHECK_HAS(a.body, serve_text(s, "<%u>-", newest));
    CHECK_INT(str_find(a.body, str_of(serve_text(s, "<%u>-", newest - 1))), -1);
}

TEST_LIMIT(serve_cuts_the_log_of_a_sandbox_and_followers_read_on, 120)
{
    struct serve s = {.key = NULL};
    struct listener l;

    serve_open(&s);
    at_server(&s);
    struct json *r = serve_start(&s, "talker", "");
    const char *id = serve_field(&s, r, "runtime_id");
    say(&s, id, STR("first\n"));
    hear(&l, "exec $CROFT logs -f -n 1 talker");
    wait_to_hear(&l, "first\n");
    say_lines(&s, id, 1000);
    wait_until_cut(&s, id);
    check_cut(&s, id, 1000 + LINES - 1);
    wait_to_hear(&l, "<1099>-");
    CHECK_INT(kill(serve_launcher(&s), SIGKILL), 0); /* then nobody cuts */
    CHECK_INT(program_wait(s.wire.pid), 1);
    say_lines(&s, id, 2000);
    serve_run(&s, NULL);
    wait_until_cut(&s, id);
    check_cut(&s, id, 2000 + LINES - 1);
    wait_to_hear(&l, "");
    program_wait(l.pid); /* its server left */
    close(l.fd);
    buf_done(&l.heard);
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

/* The launcher has heard of all that was written so far. */
static void cut_another(struct serve *s, const char *id)
{
    say_lines(s, id, 1000);
    wait_until_cut(s, id);
}

static unsigned cuts_of(struct serve *s, int log, const char *id)
{
    const char *line = serve_text(s, "%s.l", id);
    own_done(buf) text;
    unsigned count = 0;

    buf_init(&text, 32u << 20);
    CHECK_OK(fd_read_file(serve_text(s, "/proc/self/fd/%d", log), &text));
    for (struct str rest = buf_str(&text), one; rest.len;) {
        str_cut(&rest, '\n', &one);
        count += str_find(one, STR("was cut")) >= 0 && str_find(one, str_of(line)) >= 0;
    }
    return count;
}

/* No hole gives back what is laid out beyond the end. */
TEST_LIMIT(serve_neither_loses_nor_cuts_for_ever_a_log_that_has_room_laid_out, 120)
{
    struct serve s = {.key = NULL};
    struct stat st;
    char path[300];

    snprintf(path, sizeof path, "%s/log", test_dir());
    s.log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(s.log > 0);
    serve_prepare(&s);
    serve_run(&s, ARGS("--log-level", "info"));
    const char *id = serve_field(&s, serve_start(&s, "large", ""), "runtime_id");
    const char *other = serve_field(&s, serve_start(&s, "other", ""), "runtime_id");
    own_fd fd = open(serve_text(&s, "%s/sock/%s.l", s.state, id), O_RDWR | O_CLOEXEC);
    say(&s, id, STR("first\n"));
    CHECK_INT(fallocate(fd, FALLOC_FL_KEEP_SIZE, 4 << 20, 5 << 20), 0);
    cut_another(&s, other);
    CHECK_INT(fstat(fd, &st), 0);
    CHECK(st.st_size >= 6);
    CHECK_INT(cuts_of(&s, s.log, id), 0);

    own_free char *much = malloc(MUCH);
    memset(much, 'm', MUCH);
    say(&s, id, str_n(much, MUCH));
    for (int i = 0; i < 2; i++) /* it hears of its own cut, too */
        cut_another(&s, other);
    CHECK_INT(fstat(fd, &st), 0);
    CHECK(st.st_size >= (off_t)MUCH);
    CHECK_INT(cuts_of(&s, s.log, id), 1);
    serve_close(&s);
    close(s.log);
}

TEST_LIMIT(serve_follows_what_a_command_run_as_given_says, 120)
{
    struct serve s = {.key = NULL};
    struct listener l;

    serve_open(&s);
    at_server(&s);
    struct json *r =
        serve_start(&s, "site", "'command':'python3 -u -m http.server 60000','working_dir':'/usr'");
    hear(&l, "exec $CROFT logs --follow site");
    while (serve_visit(&s, r, "/lib/") != 200) /* it listens when it likes */
        ;
    wait_to_hear(&l, "GET /lib/");
    CHECK_INT(serve_visit(&s, r, "/share/"), 200);
    wait_to_hear(&l, "GET /share/");
    serve_tell(&s, "/stop", r);
    end_hearing(&l);
    buf_done(&l.heard);
    serve_close(&s);
}

/* The first line that holds part, of those that 'croft events follow' prints. */
static struct str followed(struct serve *s, const char *flags, const char *part)
{
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    program_run(ARGS("bash", "-c",
                     serve_text(s,
                                "exec 3< <(exec $CROFT events follow %s 2>/dev/null)\n"
                                "grep -m 1 '%s' <&3; kill $!",
                                flags, part)),
                &out);
    return arena_copy(&s->arena, buf_str(&out));
}

TEST_LIMIT(serve_tells_by_events_what_became_of_a_sandbox, 120)
{
    struct serve s = {.key = NULL};
    own_done(buf) out;

    serve_open(&s);
    at_server(&s);
    struct json *r = serve_start(&s, "demo", "");
    CHECK_HAS(followed(&s, "--since 0 --kind status", "READY"), " demo STATUS$READY\n");
    serve_tell(&s, "/pause", r);
    CHECK_HAS(followed(&s, "--since 0", "stand still"), " demo STATUS$STOPPED ");
    CHECK_HAS(followed(&s, "--since 0 --kind audit", "/pause"), " audit ");
    serve_tell(&s, "/stop", r);
    CHECK_HAS(followed(&s, "--since 0 --json", "files are gone"), "\"kind\": \"status\"");
    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS("bash", "-c", "$CROFT events follow --since soon 2>&1"), &out), 2);
    CHECK_HAS(buf_str(&out), "wanted the number of an event, or 'now'");
    CHECK_INT(program_run(ARGS("bash", "-c", "$CROFT events follow --kind odd 2>&1"), &out), 2);
    CHECK_HAS(buf_str(&out), "wanted 'status' or 'audit'");
    CHECK_INT(program_run(ARGS("bash", "-c", "$CROFT events follow --since 9000 2>&1"), &out), 1);
    CHECK_HAS(buf_str(&out), "no event 9000 yet");
    serve_close(&s);
}

static void check_once(const struct listener *l, const char *part)
{
    struct str rest = buf_str(&l->heard);

    CHECK_HAS(rest, part);
    rest = str_from(rest, (size_t)str_find(rest, str_of(part)) + strlen(part));
    CHECK_INT(str_find(rest, str_of(part)), -1);
}

/* What became of sandboxes meanwhile, and what they said, is told too. */
TEST_LIMIT(serve_that_comes_back_finds_its_followers_waiting, 120)
{
    struct serve s = {.key = NULL};
    struct listener l, logs, shown;

    serve_open(&s);
    at_server(&s);
    hear(&l, "exec $CROFT events follow --since 0 --kind status 2>&1");
    const char *id = serve_field(&s, serve_start(&s, "before", ""), "runtime_id");
    wait_to_hear(&l, " before STATUS$READY");
    say(&s, id, STR("one\n"));
    hear(&logs, "exec $CROFT logs -f --json before 2>&1");
    hear(&shown, "exec script -qec '$CROFT logs -f before' /dev/null");
    wait_to_hear(&logs, "one\\n");
    wait_to_hear(&shown, "one\r\n");
    serve_kill(&s);
    wait_to_hear(&shown, "croft logs: the connection was lost (");
    say(&s, id, STR("two\n"));
    wait_to_hear(&l, "croft events: the connection was lost (");
    serve_run(&s, NULL);
    serve_start(&s, "after", "");
    wait_to_hear(&l, " after STATUS$READY");
    say(&s, id, STR("three\n"));
    wait_to_hear(&logs, "two\\n");
    wait_to_hear(&logs, "three\\n");
    wait_to_hear(&shown, "two\r\n");
    wait_to_hear(&shown, "three\r\n");
    CHECK_INT(serve_ask(&s, "DELETE", serve_text(&s, "/croft/v1/sandboxes/%s", id), NULL).status,
              204);
    end_hearing(&logs);
    end_hearing(&shown);
    check_once(&logs, "one\\n");
    check_once(&shown, "one\r\n");
    buf_done(&logs.heard);
    buf_done(&shown.heard);
    check_once(&l, " before STATUS$READY");
    CHECK_INT(kill(l.pid, SIGTERM), 0);
    wait_to_hear(&l, "");
    CHECK_INT(program_wait(l.pid), 128 + SIGTERM);
    close(l.fd);
    buf_done(&l.heard);
    serve_close(&s);
}

/* It writes a line for each request, into a pipe whose reader was killed with the server. */
TEST_LIMIT(serve_killed_does_not_end_what_a_command_can_say, 120)
{
    struct serve s = {.key = NULL};
    struct listener l;

    serve_open(&s);
    at_server(&s);
    struct json *r =
        serve_start(&s, "site", "'command':'python3 -u -m http.server 60000','working_dir':'/usr'");
    while (serve_visit(&s, r, "/lib/") != 200)
        ;
    serve_kill(&s);
    serve_run(&s, NULL);
    CHECK_INT(serve_visit(&s, r, "/share/"), 200);
    hear(&l, "exec $CROFT logs --follow site");
    CHECK_INT(serve_visit(&s, r, "/lib/"), 200);
    wait_to_hear(&l, "GET /lib/");
    serve_tell(&s, "/stop", r);
    end_hearing(&l);
    buf_done(&l.heard);
    serve_close(&s);
}

static void leave_said(struct serve *s, const char *id)
{
    for (int i = 0; i < 2; i++)
        CHECK_INT(mknod(serve_text(s, "%s/server/out/%s%s", s->state, id, i ? ".said" : ""),
                        S_IFIFO | 0600, 0),
                  0);
}

/* As one leaves it that was killed between the end of a sandbox and of what it said; and of whom
 * only the row says that it lives. */
TEST_LIMIT(serve_sweeps_what_commands_said_whom_nobody_knows, 120)
{
    static const char still_runs[] = "import sqlite3,sys\nd=sqlite3.connect(sys.argv[1])\n"
                                     "d.execute(\"UPDATE runtimes SET status='running'\")\n"
                                     "d.commit()";
    struct serve s = {.key = NULL};
    own_done(buf) out;

    serve_open(&s);
    struct json *r = serve_start(&s, "gone", "");
    serve_tell(&s, "/stop", r);
    serve_kill(&s);
    leave_said(&s, "abcdefghijklmnop");
    leave_said(&s, serve_field(&s, r, "runtime_id"));
    buf_init(&out, 4096);
    CHECK_INT(
        program_run(
            ARGS("python3", "-c", still_runs, serve_text(&s, "%s/server/croft.db", s.state)), &out),
        0);
    serve_run(&s, NULL);
    r = serve_want(&s, 200, "GET", "/sessions/gone", NULL);
    CHECK_STR(serve_field(&s, r, "status"), "stopped");
    kit_check_empty("state/server/out");
    serve_close(&s);
}
