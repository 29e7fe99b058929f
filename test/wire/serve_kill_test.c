// SPDX-License-Identifier: Apache-2.0
/* serve_kill_test.c — the server is killed; what it acknowledged is there when the next one comes.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rng.h"
#include "host/record/record.h"
#include "test/native/census.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/serve_kit.h"

static const char *status_of(struct serve *s, const char *session)
{
    return serve_field(s, serve_want(s, 200, "GET", serve_text(s, "/sessions/%s", session), NULL),
                       "status");
}

TEST_LIMIT(serve_killed_gives_its_runtimes_to_the_next_server, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *a = serve_start(&s, "a", "'environment':{'COLOUR':'red'}");
    struct json *b = serve_start(&s, "b", ""), *c = serve_start(&s, "c", "");
    CHECK_STR(serve_exec(&s, a, "cd /tmp; X=kept; echo ok"), "ok");
    serve_tell(&s, "/pause", b);
    serve_tell(&s, "/stop", c);
    serve_kill(&s);

    serve_run(&s, NULL);
    struct json *again = serve_want(&s, 200, "GET", "/sessions/a", NULL);
    CHECK_STR(serve_field(&s, again, "status"), "running");
    CHECK_STR(serve_field(&s, again, "url"), serve_field(&s, a, "url"));
    CHECK_STR(serve_field(&s, again, "session_api_key"), serve_field(&s, a, "session_api_key"));
    CHECK_STR(serve_exec(&s, a, "echo $X $COLOUR; pwd"), "kept red\n/tmp");
    CHECK_STR(status_of(&s, "b"), "paused");
    CHECK_INT(serve_visit(&s, b, "/alive"), 503);
    serve_tell(&s, "/resume", b);
    CHECK_INT(serve_visit(&s, b, "/alive"), 200);
    CHECK_STR(status_of(&s, "c"), "stopped");
    serve_close(&s);
}

/* The request that was answered so. */
static const char *request_of(struct serve *s, const struct serve_answer *a)
{
    struct str rest = str_from(a->head, (size_t)str_find(a->head, STR("x-request-id: "))), line;

    str_cut(&rest, '\r', &line);
    line = str_from(line, strlen("x-request-id: "));
    return serve_text(s, "\"request_id\":\"" STR_FMT "\"", STR_ARG(line));
}

TEST_LIMIT(serve_killed_right_behind_an_answer_has_told_its_journal, 120)
{
    struct serve s = {.key = NULL};
    const char *requests[8];
    own_done(buf) told;

    buf_init(&told, 1u << 20);
    serve_open(&s);
    for (unsigned i = 0; i < ARRAY_LEN(requests); i++) {
        struct serve_answer a = serve_ask(&s, "POST", "/start",
                                          serve_text(&s, "{'image':'host','session_id':'%u'}", i));
        serve_kill(&s);
        CHECK_INT(a.status, 200);
        requests[i] = request_of(&s, &a);
        serve_run(&s, NULL);
    }
    struct serve_answer last =
        serve_ask(&s, "POST", "/start", "{'image':'host','session_id':'last'}");
    program_run(ARGS("bash", "-c",
                     serve_text(&s,
                                "sed '/%s/q' < <(exec curl -sN 2>/dev/null "
                                "'http://127.0.0.1:%u/croft/v1/events?kind=audit&after=0')",
                                request_of(&s, &last), s.wire.port)),
                &told);
    for (unsigned i = 0; i < ARRAY_LEN(requests); i++)
        CHECK_HAS(buf_str(&told), requests[i]);
    serve_close(&s);
}

TEST_LIMIT(serve_killed_right_behind_an_answer_knows_which_snapshots_there_are, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r = serve_start(&s, "a", "");
    const char *path = serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, r, "runtime_id"));
    for (unsigned i = 0; i < 4; i++) {
        const char *name = serve_text(&s, "/croft/v1/snapshots/s%u", i);
        serve_want(&s, 200, "POST", serve_text(&s, "%s/snapshot", path),
                   serve_text(&s, "{'name':'s%u'}", i));
        serve_kill(&s);
        serve_run(&s, NULL);
        struct json *all = serve_want(&s, 200, "GET", "/croft/v1/snapshots", NULL);
        CHECK_INT(json_get(all, STR("snapshots"))->count, 1);
        CHECK_INT(serve_ask(&s, "DELETE", name, NULL).status, 204);
        serve_kill(&s);
        serve_run(&s, NULL);
        all = serve_want(&s, 200, "GET", "/croft/v1/snapshots", NULL);
        CHECK_INT(json_get(all, STR("snapshots"))->count, 0);
    }
    serve_close(&s);
}

/* Takes, goes on from and removes one name, without waiting for the others who do. */
static _Noreturn void take_and_remove(struct serve *s, const char *path, unsigned turns)
{
    for (unsigned i = 0; i < turns; i++) {
        int taken =
            serve_ask(s, "POST", serve_text(s, "%s/snapshot", path), "{'name':'one'}").status;
        CHECK(taken == 200 || taken == 409);
        const char *start =
            serve_text(s, "{'image':'host','session_id':'f-%d-%u','from':'one'}", (int)getpid(), i);
        struct serve_answer a = serve_ask(s, "POST", "/croft/v1/sandboxes", start);
        CHECK(a.status == 200 || a.status == 404);
        int removed = serve_ask(s, "DELETE", "/croft/v1/snapshots/one", NULL).status;
        CHECK(removed == 204 || removed == 404);
        if (a.status == 200)
            serve_tell(s, "/stop", a.json);
    }
    _exit(0);
}

TEST_LIMIT(serve_outlives_snapshots_that_are_taken_used_and_removed_at_once, 300)
{
    struct serve s = {.key = NULL};
    pid_t pids[3];

    serve_open(&s);
    struct json *r = serve_start(&s, "a", "");
    const char *path = serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, r, "runtime_id"));
    for (unsigned i = 0; i < ARRAY_LEN(pids); i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            take_and_remove(&s, path, 25);
    }
    for (unsigned i = 0; i < ARRAY_LEN(pids); i++)
        CHECK_INT(program_wait(pids[i]), 0);
    serve_ask(&s, "DELETE", "/croft/v1/snapshots/one", NULL);
    struct json *all = serve_want(&s, 200, "GET", "/croft/v1/snapshots", NULL);
    CHECK_INT(json_get(all, STR("snapshots"))->count, 0);
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

#define CLIENTS 3

/* "SESSION ID STATE": what was answered, or with a dash before it what is being asked for. */
static void note_line(struct serve *s, int note, const char *session, const char *id,
                      const char *state)
{
    const char *line = serve_text(s, "%s %s %s\n", session, id, state);

    if (write(note, line, strlen(line)) < 0)
        _exit(1);
}

static void tell(struct serve *s, const char *target, const char *id)
{
    struct serve_answer a = serve_ask(s, "POST", target, serve_text(s, "{'runtime_id':'%s'}", id));

    if (a.status != 200)
        _exit(1);
}

/* Its first command was answered, and so has been done; of every second one there is a fork then.
 */
static void work(struct serve *s, const struct json *r, const char *session, bool fork, int note)
{
    const char *id = serve_field(s, r, "runtime_id");
    struct serve_answer a = serve_ask_inside(
        s, r, "POST", "/execute_action",
        "{'action':{'action':'run','args':{'command':'echo done > /workspace/told'}}}");

    if (a.status != 200)
        _exit(1);
    note_line(s, note, session, id, "told");
    if (!fork)
        return;
    a = serve_ask(s, "POST", serve_text(s, "/croft/v1/sandboxes/%s/fork", id), "{}");
    if (a.status != 200)
        _exit(1);
    const struct json *forks = json_get(a.json, STR("sandboxes"));
    CHECK_INT(forks->count, 1);
    note_line(s, note, serve_field(s, forks->first, "session_id"),
              serve_field(s, forks->first, "runtime_id"), "told");
}

/* Starts, and of every three works in one, pauses one and stops one, until the server is killed. */
static _Noreturn void load(struct serve *s, const char *name, int note)
{
    for (unsigned i = 0;; i++) {
        const char *session = serve_text(s, "%s-%u", name, i);
        struct serve_answer a = serve_ask(
            s, "POST", "/start", serve_text(s, "{'image':'host','session_id':'%s'}", session));
        if (a.status != 200)
            _exit(1);
        const char *id = serve_field(s, a.json, "runtime_id");
        bool pause = i % 3 == 1;
        note_line(s, note, session, id, "running");
        if (i % 3 == 0) {
            work(s, a.json, session, i % 2 == 0, note);
            continue;
        }
        note_line(s, note, session, id, pause ? "-paused" : "-stopped");
        tell(s, pause ? "/pause" : "/stop", id);
        note_line(s, note, session, id, pause ? "paused" : "stopped");
    }
}

static void read_some(int fd, struct buf *into, unsigned lines)
{
    char byte;

    while (lines && read(fd, &byte, 1) == 1) {
        buf_add_char(into, byte);
        lines -= byte == '\n';
    }
}

/* The last line of a session counts; nobody else has its sandbox. */
static bool is_last(struct serve *s, struct str session, struct str id, struct str rest)
{
    struct str line, other, other_id;
    bool last = true;

    while (str_cut(&rest, '\n', &line)) {
        str_cut(&line, ' ', &other);
        str_cut(&line, ' ', &other_id);
        if (str_eq(other, session) != str_eq(other_id, id))
            FAIL("sandbox " STR_FMT " was given to two sessions", STR_ARG(id));
        last = last && !str_eq(other, session);
    }
    (void)s;
    return last;
}

static void check_one(struct serve *s, struct str session, struct str id, struct str state)
{
    const char *name = serve_text(s, STR_FMT, STR_ARG(session));
    struct json *r = serve_want(s, 200, "GET", serve_text(s, "/sessions/%s", name), NULL);

    CHECK_STR(json_get_str(r, "runtime_id", STR("")), id);
    if (str_eq(state, STR("running")) || str_eq(state, STR("told"))) {
        r = serve_start(s, name, ""); /* it may be on its way */
        CHECK_STR(json_get_str(r, "runtime_id", STR("")), id);
        CHECK_INT(serve_visit(s, r, "/alive"), 200);
        if (str_eq(state, STR("told")))
            CHECK_STR(serve_exec(s, r, "cat /workspace/told"), "done");
    } else if (state.p[0] != '-')
        CHECK_STR(json_get_str(r, "status", STR("")), state);
    serve_tell(s, "/stop", r);
}

static void check_all(struct serve *s, struct str noted)
{
    struct str line, session, id;

    while (str_cut(&noted, '\n', &line)) {
        str_cut(&line, ' ', &session);
        str_cut(&line, ' ', &id);
        if (is_last(s, session, id, noted))
            check_one(s, session, id, line);
    }
}

/* A server that does not live to say that it is ready: it is killed while it takes over. */
static void start_in_vain(struct serve *s)
{
    own_fd nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t pid = program_start(
        &(struct program){.argv = ARGS(test_program("croft"), "serve", "--listen", "127.0.0.1:0",
                                       "--state", s->state, "--log-level", "error"),
                          .fds = (int[]){nowhere, nowhere},
                          .fd_count = 2});

    poll(NULL, 0, (int)rng_below(rng_system(), 40)); /* anywhere in its first moments */
    CHECK_INT(kill(pid, SIGKILL), 0);
    program_wait(pid);
}

/* --- what is left on the machine --- */

static int64_t pool_says(struct serve *s, const char *what)
{
    struct json *o = serve_want(s, 200, "GET", "/croft/v1/pool", NULL);

    return json_get_int(json_at(json_get(o, STR("pools")), 0), what, 0);
}

/* Listening sockets of this process, among those of the machine. */
static unsigned count_ports(pid_t pid)
{
    own_done(buf) out;
    const char *line = "ls -l /proc/$0/fd | grep -o 'socket:\\[[0-9]*' | cut -d[ -f2 | sort > $1/a;"
                       "awk '$4 == \"0A\" {print $10}' /proc/net/tcp | sort > $1/b;"
                       "comm -12 $1/a $1/b | wc -l";
    char text[16];

    snprintf(text, sizeof text, "%d", (int)pid);
    buf_init(&out, 4096);
    CHECK_INT(program_run(ARGS("bash", "-c", line, text, test_dir()), &out), 0);
    return (unsigned)atoi(buf_cstr(&out));
}

struct left {
    struct census launcher;
    unsigned ports;
};

/* A server at rest: its pool is full, what was stopped is deleted, spare ports are open, and there
 * is no more than there was. Less is fine: used slots go in their own time. */
static bool is_at_rest(struct serve *s, pid_t launcher, struct left *l, const struct left *want)
{
    if (pool_says(s, "ready") < 4 || pool_says(s, "starting") > 0)
        return false;
    census_take(&l->launcher, launcher, s->state);
    l->ports = count_ports(s->wire.pid);
    return !want ||
           (l->launcher.fds <= want->launcher.fds && l->launcher.mounts <= want->launcher.mounts &&
            l->launcher.children <= want->launcher.children &&
            l->launcher.files <= want->launcher.files && l->ports <= want->ports);
}

/* Starts that were written down and whose client never heard of it. */
static void stop_the_rest(struct serve *s)
{
    const struct json *list = json_get(serve_want(s, 200, "GET", "/list", NULL), STR("runtimes"));

    for (const struct json *r = list->first; r; r = r->next)
        if (!str_eq(json_get_str(r, "session_id", STR("")), STR("anchor")))
            serve_tell(s, "/stop", r);
}

static void say_left(const char *when, const struct left *l)
{
    printf("%s: %u descriptors, %u mounts, %u children, %u files of the launcher; %u ports\n", when,
           l->launcher.fds, l->launcher.mounts, l->launcher.children, l->launcher.files, l->ports);
}

/* The launcher makes its spares one by one, behind everybody: until it does no more. */
static void take_first_stock(struct serve *s, pid_t launcher, struct left *l)
{
    struct left now = {.ports = 0};
    unsigned children = 0;

    for (unsigned i = 0, same = 0; same < 10; i++) {
        CHECK(i < 3000);
        bool rests = is_at_rest(s, launcher, &now, NULL);
        same = rests && now.launcher.children == children ? same + 1 : 0;
        children = now.launcher.children;
        if (rests && (!same || now.launcher.fds > l->launcher.fds))
            *l = now; /* what it holds for a moment comes and goes */
        poll(NULL, 0, 50);
    }
}

static void take_stock(struct serve *s, pid_t launcher, struct left *l, const struct left *want)
{
    for (unsigned i = 0; !is_at_rest(s, launcher, l, want); i++) {
        if (i > 600) {
            say_left("before", want);
            say_left("after", l);
            program_wait(program_start(&(struct program){
                .argv = ARGS("ls", "-l", serve_text(s, "/proc/%d/fd", (int)launcher))}));
            FAIL("more is left than there was");
        }
        poll(NULL, 0, 50);
    }
}

/* Five times here, CROFT_SOAK_SERVER_KILLS in make soak. serve_close() looks for orphans. */
TEST_LIMIT(serve_killed_under_load_again_and_again_loses_nothing_it_acknowledged, 1800)
{
    struct serve s = {.key = NULL};
    const char *text = getenv("CROFT_SOAK_SERVER_KILLS");
    unsigned rounds = text && *text ? (unsigned)atoi(text) : 5;

    struct census_groups groups;
    struct left before, after;

    census_open_groups(&groups);
    serve_open(&s);
    pid_t launcher = serve_launcher(&s);
    struct json *anchor = serve_start(&s, "anchor", ""); /* with none the launcher would end */
    serve_kill(&s);
    serve_run(&s, NULL);
    struct json *first = serve_start(&s, "first", ""); /* with it come remover and ports */
    const char *path =
        serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, first, "runtime_id"));
    serve_want(&s, 200, "POST", serve_text(&s, "%s/snapshot", path), "{'name':'first'}");
    CHECK_INT(serve_ask(&s, "DELETE", "/croft/v1/snapshots/first", NULL).status, 204);
    serve_tell(&s, "/stop", first);
    take_first_stock(&s, launcher, &before);
    for (unsigned round = 0; round < rounds; round++) {
        own_done(buf) noted;
        int ends[2];

        buf_init(&noted, 1u << 20);
        CHECK_INT(pipe(ends), 0);
        pid_t pids[CLIENTS];
        for (unsigned i = 0; i < CLIENTS; i++) {
            pids[i] = fork();
            if (pids[i] == 0)
                load(&s, serve_text(&s, "r%u-%u", round, i), ends[1]);
        }
        close(ends[1]);
        read_some(ends[0], &noted, 1 + (unsigned)rng_below(rng_system(), 24));
        census_note_groups(&groups, s.state);
        serve_kill(&s);
        for (unsigned i = 0; i < CLIENTS; i++)
            program_wait(pids[i]); /* its connection is gone: so is it */
        read_some(ends[0], &noted, 1000000);
        close(ends[0]);
        if (round % 2)
            start_in_vain(&s);
        serve_run(&s, NULL);
        check_all(&s, buf_str(&noted));
    }
    stop_the_rest(&s);
    serve_kill(&s); /* listeners of what was stopped stay a minute, but not over a new server */
    serve_run(&s, NULL);
    take_stock(&s, launcher, &after, &before);
    CHECK_INT(serve_visit(&s, anchor, "/alive"), 200);
    serve_close(&s);
    census_check_groups(&groups, s.state);
}

static void change_rows(struct serve *s, const char *sql)
{
    static const char script[] = "import sqlite3,sys\n"
                                 "d=sqlite3.connect(sys.argv[1])\n"
                                 "d.execute(sys.argv[2])\n"
                                 "d.commit()\n";
    own_done(buf) out;

    buf_init(&out, 4096);
    CHECK_INT(program_run(
                  ARGS("python3", "-c", script, serve_text(s, "%s/server/croft.db", s->state), sql),
                  &out),
              0);
}

/* Until its launcher has noticed. */
static void end_sandbox(struct serve *s, const char *id)
{
    struct record r;
    own_fd dir = open(serve_text(s, "%s/box/%s", s->state, id), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(dir >= 0);
    CHECK_OK(record_read(dir, &r));
    CHECK_INT(kill(r.pid, SIGKILL), 0);
    while (kill(r.pid, 0) == 0)
        poll(NULL, 0, 10);
}

/* A claim whose launcher was killed before pid 1 was told, and whose server before that was known:
 * the sandbox has ended, and its row still says that it begins. */
TEST_LIMIT(serve_starts_what_ended_before_anybody_noted_that_it_ran, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    serve_start(&s, "anchor", ""); /* its launcher stays */
    struct json *r = serve_start(&s, "a", "");
    serve_exec(&s, r, "echo mine > /workspace/file");
    serve_kill(&s);
    end_sandbox(&s, serve_field(&s, r, "runtime_id"));
    change_rows(&s, "UPDATE runtimes SET status='starting' WHERE session_id='a'");
    serve_run(&s, NULL);
    r = serve_start(&s, "a", ""); /* it is on its way */
    CHECK_STR(serve_exec(&s, r, "cat /workspace/file"), "mine");
    CHECK_STR(status_of(&s, "a"), "running");
    serve_close(&s);
}

/* As if the machine had been started anew: what its rows say ran cannot run. */
TEST_LIMIT(serve_takes_rows_of_another_boot_for_stopped, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    serve_start(&s, "runs", "");
    serve_tell(&s, "/pause", serve_start(&s, "paused", ""));
    serve_kill(&s);
    change_rows(&s, "UPDATE meta SET value='another' WHERE name='boot'");
    serve_run(&s, NULL);
    for (unsigned i = 0; i < 2; i++) {
        const struct json *r =
            serve_want(&s, 200, "GET", i ? "/sessions/paused" : "/sessions/runs", NULL);
        CHECK_STR(serve_field(&s, r, "status"), "stopped");
        CHECK_HAS(json_get_str(r, "status_detail", STR("")), "started anew");
    }
    struct json *again = serve_start(&s, "runs", ""); /* a session goes on with a new one */
    CHECK_HAS(serve_exec(&s, again, "echo here"), "here");
    serve_close(&s);
}

TEST_LIMIT(serve_of_an_ordinary_user_starts_claims_and_takes_over_too, 180)
{
    struct serve s = {.key = NULL};

    serve_prepare_user(&s);
    serve_run(&s, NULL);
    struct json *a = serve_start(&s, "a", "'environment':{'COLOUR':'blue'}");
    CHECK_STR(serve_exec(&s, a, "X=kept; echo $COLOUR; id -u"), "blue\n0");
    serve_kill(&s);
    serve_run(&s, NULL);
    CHECK_STR(status_of(&s, "a"), "running");
    CHECK_STR(serve_exec(&s, a, "echo $X"), "kept");
    serve_tell(&s, "/stop", a);
    serve_close(&s);
}
