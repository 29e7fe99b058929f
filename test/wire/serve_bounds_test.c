// SPDX-License-Identifier: Apache-2.0
/* serve_bounds_test.c — too many, no disk, a locked file, a launcher that stands still: an answer
 * that says so, and never a hang. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/image_kit.h"
#include "test/program.h"
#include "test/serve_kit.h"

static struct serve_answer start(struct serve *s, const char *session)
{
    return serve_ask(s, "POST", "/start",
                     serve_text(s, "{'image':'host','session_id':'%s'}", session));
}

TEST_LIMIT(serve_refuses_one_runtime_too_many_and_says_when_to_come_back, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[server]\nmost_sandboxes = 2\n");
    serve_start(&s, "a", "");
    struct json *b = serve_start(&s, "b", "");
    struct serve_answer c = start(&s, "c");
    serve_come_back(&c, 429, "server.most_sandboxes");
    CHECK_INT(start(&s, "a").status, 200); /* has one already */
    serve_tell(&s, "/stop", b);
    serve_start(&s, "c", "");
    serve_close(&s);
}

TEST_LIMIT(serve_holds_a_key_to_its_quota, 120)
{
    struct serve s = {.key = "a-rather-long-first-secret-of-a-test"};

    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    struct json *made =
        serve_want(&s, 201, "POST", "/croft/v1/tokens", "{'name':'small','most_runtimes':1}");
    s.key = serve_field(&s, made, "secret");
    serve_start(&s, "a", "");
    struct serve_answer b = start(&s, "b");
    serve_come_back(&b, 429, "most_runtimes");
    s.key = "a-rather-long-first-secret-of-a-test";
    made = serve_want(&s, 201, "POST", "/croft/v1/tokens", "{'name':'slow','starts_per_minute':1}");
    s.key = serve_field(&s, made, "secret");
    struct json *c = serve_start(&s, "c", "");
    const char *id = serve_field(&s, c, "runtime_id");
    serve_tell(&s, "/pause", c);
    serve_tell(&s, "/resume", c); /* which starts nothing */
    serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/stop", id), NULL);
    const char *again = serve_text(&s, "{'runtime_id':'%s'}", id);
    struct serve_answer resumed = serve_ask(&s, "POST", "/resume", again);
    serve_come_back(&resumed, 429, "starts_per_minute");
    resumed = start(&s, "c");
    serve_come_back(&resumed, 429, "starts_per_minute");
    serve_tell(&s, "/stop", c); /* it is not how many there are */
    struct serve_answer d = start(&s, "d");
    serve_come_back(&d, 429, "starts_per_minute");
    CHECK(str_find(d.head, STR("retry-after: 0")) < 0);
    serve_close(&s);
}

TEST_LIMIT(serve_keeps_no_more_keys_than_it_may, 120)
{
    static const char fill[] =
        "import sqlite3,sys\n"
        "d=sqlite3.connect(sys.argv[1])\n"
        "d.executemany('INSERT INTO api_keys (name,hash,scopes,made_ms) VALUES (?,?,2,1)',\n"
        "  [('k%d'%i, i.to_bytes(32,'big')) for i in range(9999)])\n"
        "d.commit()\n";
    struct serve s = {.key = "a-rather-long-first-secret-of-a-test"};
    own_done(buf) said;

    buf_init(&said, 1u << 16);
    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    serve_kill(&s);
    const char *rows = serve_text(&s, "%s/server/croft.db", s.state);
    if (program_run(ARGS("python3", "-c", fill, rows), &said) != 0)
        FAIL("python3: " STR_FMT, STR_ARG(buf_str(&said)));
    serve_run(&s, NULL);
    struct serve_answer a = serve_ask(&s, "POST", "/croft/v1/tokens", "{'name':'more'}");
    serve_come_back(&a, 429, "there are 10000 keys");
    serve_come_back(&a, 429, "use one that there is (croft token ls)");
    CHECK(str_find(a.body, STR("KEYS_MOST")) < 0);
    serve_close(&s);
}

TEST_LIMIT(serve_holds_a_key_to_its_number_of_snapshots, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[tenant]\nmost_snapshots = 2\n");
    struct json *r = serve_start(&s, "a", "");
    const char *id = serve_field(&s, r, "runtime_id");
    const char *take = serve_text(&s, "/croft/v1/sandboxes/%s/snapshot", id);
    serve_want(&s, 200, "POST", take, "{'name':'one'}");
    serve_want(&s, 200, "POST", take, "{'name':'two'}");
    struct serve_answer a = serve_ask(&s, "POST", take, "{'name':'three'}");
    serve_come_back(&a, 429, "tenant.most_snapshots is 2");
    serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/fork", id), "{'count':1}");
    struct json *all = serve_want(&s, 200, "GET", "/croft/v1/snapshots", NULL);
    CHECK_INT(json_get(all, STR("snapshots"))->count, 2); /* what it goes on from is not kept */
    serve_refused(&s, 409, "'two' already", "POST", take, "{'name':'two'}");
    CHECK_INT(serve_ask(&s, "DELETE", "/croft/v1/snapshots/one", NULL).status / 100, 2);
    serve_want(&s, 200, "POST", take, "{'name':'three'}");
    serve_close(&s);
}

TEST_LIMIT(serve_answers_while_the_launcher_stands_still, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[pool.p]\ntarget = 0\n");
    struct json *first = serve_start(&s, "first", "");
    pid_t launcher = serve_launcher(&s);
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct serve_answer a = start(&s, serve_text(&s, "s%u", i));
        CHECK_INT(a.status, 200);
        CHECK_STR(json_get_str(a.json, "status", STR("")), "starting");
        CHECK_STR(json_get_str(a.json, "pod_status", STR("")), "pending");
    }
    CHECK_INT(serve_visit(&s, first, "/alive"), 200);
    struct json *list = serve_want(&s, 200, "GET", "/list", NULL);
    CHECK_INT(json_get_int(list, "total", 0), 4);
    CHECK_INT(kill(launcher, SIGCONT), 0);
    for (unsigned i = 0; i < 3; i++)
        serve_start(&s, serve_text(&s, "s%u", i), "");
    serve_close(&s);
}

/* A request whose answer is read later. */
static int send_ask(struct serve *s, const char *method, const char *target, const char *quoted)
{
    char *body = (char *)serve_text(s, "%s", quoted);
    int fd = wire_connect(&s->wire);

    for (char *c = body; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    wire_send(fd,
              str_of(serve_text(s,
                                "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                method, target, strlen(body), body)));
    return fd;
}

static void read_ask(int fd, const char *status, const char *part, const char *other)
{
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    wire_read_to_end(fd, &got);
    close(fd);
    CHECK_HAS(buf_str(&got), str_of(status));
    CHECK_HAS(buf_str(&got), str_of(part));
    CHECK_HAS(buf_str(&got), str_of(other));
}

/* One of each that asks the launcher, of a sandbox each, or of an image. */
enum { STOP, PAUSE, RESUME, HALT, STATS, SNAP, DIFF, FORK, EXISTS, IMPORTED, ASKS };
static const struct {
    const char *name, *method, *target, *body; /* %s: its id */
} asks[ASKS] = {
    [STOP] = {"stop", "POST", "/stop", "{'runtime_id':'%s'}"},
    [PAUSE] = {"pause", "POST", "/pause", "{'runtime_id':'%s'}"},
    [RESUME] = {"resume", "POST", "/resume", "{'runtime_id':'%s'}"},
    [HALT] = {"halt", "POST", "/croft/v1/sandboxes/%s/stop", ""},
    [STATS] = {"stats", "GET", "/croft/v1/sandboxes/%s/stats", ""},
    [SNAP] = {"snap", "POST", "/croft/v1/sandboxes/%s/snapshot", "{'name':'s'}"},
    [DIFF] = {"diff", "GET", "/croft/v1/sandboxes/%s/diff", ""},
    [FORK] = {"fork", "POST", "/croft/v1/sandboxes/%s/fork", "{'count':1}"},
    [EXISTS] = {"exists", "GET", "/image_exists?image=mine:1", ""},
    [IMPORTED] = {"imported", "POST", "/start", "{'image':'mine:1','session_id':'imported'}"},
};

struct asked {
    const char *target, *body, *id;
};

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void prepare_asks(struct serve *s, struct asked all[ASKS])
{
    for (unsigned i = 0; i < ASKS; i++) {
        struct json *r = i < EXISTS ? serve_start(s, asks[i].name, "") : NULL;
        all[i].id = r ? serve_field(s, r, "runtime_id") : "";
        all[i].target = serve_text(s, asks[i].target, all[i].id);
        all[i].body = serve_text(s, asks[i].body, all[i].id);
        if (i == RESUME)
            serve_tell(s, "/pause", r);
    }
}

static void await_status(struct serve *s, const char *id, const char *status)
{
    struct json *r;

    do {
        r = serve_want(s, 200, "GET", serve_text(s, "/runtime/%s", id), NULL);
    } while (strcmp(serve_field(s, r, "status"), status) != 0);
}

/* What was begun when it stood still is done, once, and what is asked again goes well. */
static void check_asked(struct serve *s, const struct asked all[ASKS])
{
    await_status(s, all[STOP].id, "stopped");
    await_status(s, all[PAUSE].id, "paused");
    await_status(s, all[RESUME].id, "running");
    await_status(s, all[HALT].id, "paused");
    for (unsigned i = 0; i < ASKS; i++)
        if (i != SNAP && i != FORK)
            serve_want(s, 200, asks[i].method, all[i].target, all[i].body[0] ? all[i].body : NULL);
    serve_refused(s, 409, "a snapshot 's' already", "POST", all[SNAP].target, all[SNAP].body);
    serve_want(s, 200, "POST", all[FORK].target, all[FORK].body);
    serve_want(s, 200, "GET", serve_text(s, "/croft/v1/sandboxes/%s/stats", all[SNAP].id), NULL);
    serve_want(s, 200, "POST", "/croft/v1/sandboxes",
               "{'image':'host','session_id':'of-it','from':'s'}");
    struct json *kept =
        json_get(serve_want(s, 200, "GET", "/croft/v1/snapshots", NULL), STR("snapshots"));
    CHECK(kept->first && !kept->first->next); /* and not what a fork stood on */
    await_status(
        s, serve_field(s, serve_want(s, 200, "GET", "/sessions/imported", NULL), "runtime_id"),
        "running");
}

/* One request of each kind, read and begun by a server whose launcher stands still, which is given.
 */
static pid_t ask_in_silence(struct serve *s, struct asked all[ASKS], int fds[ASKS])
{
    serve_prepare(s);
    image_kit_import(s->state, "mine:1", "{}");
    serve_run_with(s, "[pool.p]\ntarget = 0\n");
    prepare_asks(s, all);
    pid_t launcher = serve_launcher(s);
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    for (unsigned i = 0; i < ASKS; i++)
        fds[i] = send_ask(s, asks[i].method, all[i].target, all[i].body);
    CHECK_INT(serve_get(s, "/health").status, 200); /* it has read them all by now */
    return launcher;
}

TEST_LIMIT(serve_says_of_all_else_that_the_launcher_does_not_answer, 120)
{
    struct serve s = {.key = NULL};
    struct asked all[ASKS];
    int fds[ASKS];

    pid_t launcher = ask_in_silence(&s, all, fds);
    serve_reload(&s, "[server]\nlauncher_wait = '500ms'\n");
    for (unsigned i = 0; i < ASKS; i++)
        read_ask(fds[i], "HTTP/1.1 503 ", "the launcher has not answered for 500 ms",
                 "\r\nretry-after: 1\r\n");
    for (unsigned i = 0; i < ASKS; i++) { /* and from now on at once */
        struct serve_answer a =
            serve_ask(&s, asks[i].method, all[i].target, all[i].body[0] ? all[i].body : NULL);
        if (i != SNAP)
            serve_come_back(&a, 503, "(server.launcher_wait)");
    }
    CHECK_INT(json_get_int(serve_want(&s, 200, "GET", "/list", NULL), "total", 0), EXISTS);
    struct serve_answer new = start(&s, "new"); /* it has a row, and time */
    CHECK_INT(new.status, 200);
    serve_reload(&s, "");
    CHECK_INT(kill(launcher, SIGCONT), 0);
    check_asked(&s, all);
    serve_start(&s, "new", "");
    serve_close(&s);
}

/* Of whichever kind: what was begun may be done, and nobody is left without an answer. */
TEST_LIMIT(serve_answers_who_waits_for_the_launcher_when_it_ends_at_once, 120)
{
    struct serve s = {.key = NULL};
    struct asked all[ASKS];
    int fds[ASKS];

    pid_t launcher = ask_in_silence(&s, all, fds);
    CHECK(kill(s.wire.pid, SIGTERM) == 0 && kill(s.wire.pid, SIGINT) == 0);
    for (unsigned i = 0; i < ASKS; i++)
        read_ask(fds[i], "HTTP/1.1 503 ", "the server is being stopped", "\r\nretry-after: 1\r\n");
    CHECK_INT(program_wait(s.wire.pid), 0); /* and nothing leaked */
    CHECK_INT(kill(launcher, SIGCONT), 0);
    serve_run(&s, NULL);
    serve_start(&s, "new", "");
    serve_close(&s);
}

/* A claim waits a while for its sandbox; it has its row. */
TEST_LIMIT(serve_answers_who_waits_for_a_start_when_it_ends_at_once, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    serve_wait_warm(&s);
    pid_t launcher = serve_launcher(&s);
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    int fd = send_ask(&s, "POST", "/start", "{'image':'host','session_id':'a'}");
    CHECK_INT(serve_get(&s, "/health").status, 200); /* it has read that by now */
    CHECK(kill(s.wire.pid, SIGTERM) == 0 && kill(s.wire.pid, SIGINT) == 0);
    read_ask(fd, "HTTP/1.1 200 ", "\"status\":\"starting\"", "runtime_id");
    CHECK_INT(program_wait(s.wire.pid), 0);
    CHECK_INT(kill(launcher, SIGCONT), 0);
    serve_run(&s, NULL);
    serve_start(&s, "a", ""); /* it is begun, or was */
    serve_close(&s);
}

TEST_LIMIT(serve_lets_no_more_wait_for_the_launcher_than_it_was_told, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[server]\nmost_waiting = 2\n[pool.p]\ntarget = 0\n");
    const char *id = serve_field(&s, serve_start(&s, "a", ""), "runtime_id");
    const char *stats = serve_text(&s, "/croft/v1/sandboxes/%s/stats", id);
    pid_t launcher = serve_launcher(&s);
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    int one = send_ask(&s, "GET", stats, ""), two = send_ask(&s, "GET", stats, "");
    CHECK_INT(serve_get(&s, "/health").status, 200); /* it has read both by now */
    struct serve_answer a = serve_get(&s, stats);
    serve_come_back(&a, 503, "server.most_waiting");
    a = serve_get(&s, "/image_exists?image=none:1");
    serve_come_back(&a, 503, "server.most_waiting");
    CHECK_INT(kill(launcher, SIGCONT), 0);
    read_ask(one, "HTTP/1.1 200 ", "memory_bytes", "pids");
    read_ask(two, "HTTP/1.1 200 ", "memory_bytes", "pids");
    CHECK_INT(serve_get(&s, stats).status, 200);
    serve_close(&s);
}

TEST_LIMIT(serve_starts_nothing_it_cannot_write_down, 120)
{
    struct serve s = {.key = NULL};
    own_done(buf) zeros;

    serve_prepare(&s);
    char own[320];
    snprintf(own, sizeof own, "%s/server", s.state);
    CHECK_INT(mkdir(own, 0700), 0);
    CHECK_INT(mount("none", own, "tmpfs", 0, "size=2m"), 0);
    serve_run(&s, NULL);
    serve_start(&s, "before", "");
    const char *filler = serve_text(&s, "%s/filler", own);
    own_fd fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    buf_init(&zeros, 64u << 10);
    memset(buf_reserve(&zeros, 4096), 0, 4096);
    buf_commit(&zeros, 4096);
    while (write(fd, zeros.p, zeros.len) > 0)
        ;
    struct serve_answer a = {.status = 200};
    unsigned began = 1;
    for (; began < 200 && a.status == 200; began++) /* the log has room for a few */
        a = start(&s, serve_text(&s, "during%u", began));
    serve_come_back(&a, 503, "make room on its disk and try again");
    /* Each that was acknowledged, and not the one that could not be. */
    CHECK_INT(json_get_int(serve_want(&s, 200, "GET", "/list", NULL), "total", 0), began - 1);
    close(take_fd(&fd));
    CHECK_INT(unlink(filler), 0);
    serve_start(&s, "after", "");
    serve_close(&s);
    CHECK_INT(umount2(own, MNT_DETACH), 0);
}

/* Writes until there is no room left. */
static void fill(const char *path)
{
    static char zeros[4096];
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0)
        ;
}

static unsigned times_in(struct str text, struct str part)
{
    unsigned n = 0;

    for (ptrdiff_t at; (at = str_find(text, part)) >= 0; n++)
        text = str_from(text, (size_t)at + part.len);
    return n;
}

TEST_LIMIT(serve_says_which_directory_is_full, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    const char *own = serve_text(&s, "%s/server", s.state),
               *layers = serve_text(&s, "%s/rootfs", s.state),
               *filler = serve_text(&s, "%s/filler", s.state);
    CHECK_INT(mount("none", s.state, "tmpfs", 0, "size=4m,mode=755"), 0);
    CHECK(mkdir(own, 0700) == 0 && mkdir(layers, 0700) == 0);
    CHECK_INT(mount(test_program("test-state"), layers, NULL, MS_BIND, NULL), 0);
    CHECK_INT(mount("none", own, "tmpfs", 0, "size=16m"), 0); /* rows and journal have room */
    serve_run_with(&s, "[pool.none]\nimage = 'host'\ntarget = 0\n");
    struct json *r = serve_start(&s, "before", "");
    serve_exec(&s, r, "echo text > /workspace/f");
    fill(filler);
    serve_refused(
        &s, 507, "No space left on device", "POST",
        serve_text(&s, "/croft/v1/sandboxes/%s/snapshot", serve_field(&s, r, "runtime_id")),
        "{'name':'one'}");
    start(&s, "during");
    struct json *failed = NULL;
    do {
        failed = serve_want(&s, 200, "GET", "/sessions/during", NULL);
    } while (strcmp(serve_field(&s, failed, "status"), "starting") == 0);
    CHECK_STR(serve_field(&s, failed, "status"), "error");
    struct str detail = str_of(serve_field(&s, failed, "status_detail"));
    CHECK_HAS(detail, "No space left on device (Insufficient ephemeral-storage): make room in");
    CHECK_HAS(detail, serve_text(&s, "'%s'", s.state));
    CHECK_INT(times_in(detail, STR("start sandbox")), 1);
    CHECK_INT(unlink(filler), 0);
    serve_tell(&s, "/resume", failed);
    serve_start(&s, "during", "");
    serve_close(&s);
}

TEST_LIMIT(serve_says_that_it_is_busy_while_its_rows_are_locked, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    serve_start(&s, "before", "");
    pid_t locker = serve_lock_rows(&s);
    struct serve_answer a = start(&s, "during");
    serve_come_back(&a, 503, "another process holds it");
    CHECK_INT(serve_get(&s, "/sessions/before").status, 200);
    CHECK_INT(serve_get(&s, "/sessions/during").status, 404);
    serve_unlock_rows(locker);
    serve_start(&s, "after", "");
    serve_close(&s);
}

/* In error: its command cannot be run. */
static struct json *start_broken(struct serve *s, const char *session)
{
    struct json *r = serve_want(s, 200, "POST", "/start",
                                serve_text(s,
                                           "{'image':'host','session_id':'%s',"
                                           "'command':['/no/such/program']}",
                                           session));

    while (strcmp(serve_field(s, r, "status"), "starting") == 0) {
        poll(NULL, 0, 20);
        r = serve_want(s, 200, "GET", serve_text(s, "/sessions/%s", session), NULL);
    }
    CHECK_STR(serve_field(s, r, "status"), "error");
    return r;
}

TEST_LIMIT(serve_counts_a_failed_runtime_until_it_is_replaced_or_stopped, 120)
{
    struct serve s = {.key = "a-rather-long-first-secret-of-a-test"};

    setenv("CROFT_API_KEY", s.key, 1);
    serve_prepare(&s);
    serve_run_with(&s, "[server]\nmost_sandboxes = 2\n");
    struct json *made =
        serve_want(&s, 201, "POST", "/croft/v1/tokens", "{'name':'small','most_runtimes':1}");
    const char *boss = s.key, *small = serve_field(&s, made, "secret");
    s.key = small;
    start_broken(&s, "a");
    struct serve_answer b = start(&s, "b");
    serve_come_back(&b, 429, "most_runtimes");
    start_broken(&s, "a"); /* takes its own place, however often */
    struct json *r = start_broken(&s, "a");
    s.key = boss;
    start_broken(&s, "x");
    struct serve_answer c = start(&s, "c");
    serve_come_back(&c, 429, "server.most_sandboxes");
    serve_start(&s, "x", ""); /* in the place of the one that failed */
    s.key = small;
    serve_kill(&s);
    serve_run(&s, NULL);
    b = start(&s, "b"); /* and after a restart */
    serve_come_back(&b, 429, "most_runtimes");
    serve_tell(&s, "/stop", r);
    serve_start(&s, "b", "");
    serve_close(&s);
}

TEST_LIMIT(serve_stops_what_never_ran_and_says_that_it_is_gone, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "");
    struct json *ran = serve_start(&s, "ran", /* who only looks whether it listens says nothing */
                                   "'command':['python3','-c','import socket; "
                                   "s = socket.create_server((str(), 60000)); "
                                   "list(iter(lambda: s.accept()[0].recv(1), bytes([71])))']");
    while (strcmp(serve_field(&s, ran, "status"), "error") != 0) { /* it ends with its first call */
        serve_visit(&s, ran, "/");
        ran = serve_want(&s, 200, "GET", "/sessions/ran", NULL);
    }
    struct json *r = start_broken(&s, "never");
    serve_reload(&s, "[idle]\nfailed_after = '100ms'\n");
    while (strcmp(serve_field(&s, r, "status"), "error") == 0) {
        poll(NULL, 0, 20);
        r = serve_want(&s, 200, "GET", "/sessions/never", NULL);
    }
    CHECK_STR(serve_field(&s, r, "status"), "stopped");
    CHECK_HAS(serve_field(&s, r, "status_detail"), "/no/such/program"); /* the cause stays */
    CHECK_INT(serve_visit(&s, r, "/"), 404); /* for a minute; then its port is another's */
    ran = serve_want(&s, 200, "GET", "/sessions/ran", NULL); /* its files are worth keeping */
    CHECK_STR(serve_field(&s, ran, "status"), "error");
    CHECK_INT(serve_visit(&s, ran, "/"), 502); /* not 503, which clients answer with a resume */
    serve_close(&s);
}

#define LOOKERS 300

/* All are read in one turn: more than the launcher's socket holds. */
TEST_LIMIT(serve_answers_many_who_look_for_images_at_once, 120)
{
    struct serve s = {.key = NULL};
    int fds[LOOKERS];

    serve_open(&s);
    for (int i = 0; i < LOOKERS; i++)
        fds[i] = wire_connect(&s.wire);
    CHECK_INT(serve_get(&s, "/health").status, 200); /* it has taken all of them by now */
    CHECK_INT(kill(s.wire.pid, SIGSTOP), 0);
    for (int i = 0; i < LOOKERS; i++)
        wire_send(fds[i], str_of(serve_text(&s,
                                            "GET /image_exists?image=none:%d HTTP/1.1\r\n"
                                            "Host: localhost\r\nConnection: close\r\n\r\n",
                                            i)));
    CHECK_INT(kill(s.wire.pid, SIGCONT), 0);
    for (int i = 0; i < LOOKERS; i++) {
        own_done(buf) got;
        buf_init(&got, 1u << 20);
        wire_read_to_end(fds[i], &got);
        close(fds[i]);
        CHECK_HAS(buf_str(&got), "HTTP/1.1 200 ");
        CHECK_HAS(buf_str(&got), "\"exists\":false");
    }
    serve_start(&s, "after", "");
    serve_close(&s);
}
