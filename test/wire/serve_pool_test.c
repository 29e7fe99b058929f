// SPDX-License-Identifier: Apache-2.0
/* serve_pool_test.c — warm sandboxes: who gets one, what is bound to it, and that nobody gets one
 * twice. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/record/record.h"
#include "test/program.h"
#include "test/serve_kit.h"

#define BURST 24

static const char *detail_of(struct serve *s, const struct json *r)
{
    return serve_field(s, r, "status_detail");
}

/* Until one is warm: what tells is a start itself. */
static struct json *start_warm(struct serve *s, const char *prefix, const char *more)
{
    for (unsigned i = 0; i < 3000; i++) {
        struct json *r = serve_start(s, serve_text(s, "%s-%u", prefix, i), more);
        if (strncmp(detail_of(s, r), "warm", 4) == 0)
            return r;
        serve_tell(s, "/stop", r);
        poll(NULL, 0, 20);
    }
    FAIL("nothing becomes warm");
}

static void write_config(struct serve *s, const char *text)
{
    own_fd dir = test_dir_fd();

    CHECK_OK(fd_replace_file(dir, "croft.toml", str_of(text), 0644));
    (void)s;
}

TEST_LIMIT(serve_binds_a_warm_sandbox_to_whoever_claims_it, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r = start_warm(&s, "a",
                                "'environment':{'COLOUR':'green'},'working_dir':'/srv/here',"
                                "'run_as_user':4321,'run_as_group':4322,'command':null");
    CHECK_HAS(str_of(detail_of(&s, r)), "pool 'default'");
    CHECK_STR(serve_exec(&s, r, "echo $COLOUR $RUNTIME_ID; pwd; id -u; id -g; hostname"),
              serve_text(&s, "green %s\n/srv/here\n4321\n4322\n%s",
                         serve_field(&s, r, "runtime_id"), serve_field(&s, r, "runtime_id")));
    struct json *other = start_warm(&s, "b", "'command':null");
    CHECK_STR(serve_exec(&s, other, "echo x$COLOUR; pwd; id -u"), "x\n/workspace\n0");
    serve_close(&s);
}

/* What those before left is nowhere, be there as many as the pool holds. */
TEST_LIMIT(serve_gives_nobody_what_another_left, 120)
{
    static const char dirty[] =
        "for d in /workspace /tmp /var/tmp /dev/shm /root /etc /usr; do echo mine > $d/left; done; "
        "(sleep 1234 &); touch /workspace/.left; ls -1 /etc/left /usr/left";
    static const char clean[] =
        "ls -1A /workspace /tmp /var/tmp; "
        "ls /dev/shm/left /root/left /etc/left /usr/left 2>/dev/null; pgrep -c sleep";
    struct serve s = {.key = NULL};

    serve_open(&s);
    for (unsigned i = 0; i < 4; i++) {
        struct json *r = start_warm(&s, serve_text(&s, "dirty%u", i), "'command':null");
        CHECK_STR(serve_exec(&s, r, dirty), "/etc/left\n/usr/left");
        serve_tell(&s, "/stop", r);
    }
    for (unsigned i = 0; i < 6; i++) {
        struct json *r = start_warm(&s, serve_text(&s, "clean%u", i), "'command':null");
        CHECK_STR(serve_exec(&s, r, clean), "/tmp:\noh-server-url\n\n/var/tmp:\n\n/workspace:\n0");
    }
    serve_close(&s);
}

/* 100 MB are too much for one that has 64 MiB, and not for one that has four times as much. */
TEST_LIMIT(serve_binds_the_limits_of_the_resource_factor_to_a_warm_sandbox, 120)
{
    static const char use[] = "head -c 100000000 /dev/zero | tail -c 99999999 | wc -c";
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[limits]\nmemory = '64M'\n[pool.default]\nimage = 'host'\ntarget = 2\n");
    struct json *one = start_warm(&s, "one", "'command':null");
    struct json *four = start_warm(&s, "four", "'command':null,'resource_factor':4");
    struct str said = serve_exec(&s, one, use);
    CHECK(!str_eq(said, STR("99999999")));
    CHECK_STR(serve_exec(&s, four, use), "99999999");
    serve_close(&s);
}

TEST_LIMIT(serve_gives_no_sandbox_to_two_sessions, 120)
{
    struct serve s = {.key = NULL};
    struct json *got[BURST];
    int fds[BURST];

    serve_open(&s);
    serve_tell(&s, "/stop", start_warm(&s, "first", ""));
    for (unsigned i = 0; i < BURST; i++) {
        fds[i] = wire_connect(&s.wire);
        const char *body = serve_text(&s, "{\"image\":\"host\",\"session_id\":\"s%u\"}", i);
        wire_send(fds[i], str_of(serve_text(&s,
                                            "POST /start HTTP/1.1\r\nHost: localhost\r\n"
                                            "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                                            strlen(body), body)));
    }
    for (unsigned i = 0; i < BURST; i++) {
        own_done(buf) answer;
        buf_init(&answer, 1u << 20);
        wire_read_to_end(fds[i], &answer);
        close(fds[i]);
        CHECK_HAS(buf_str(&answer), "HTTP/1.1 200");
    }
    for (unsigned i = 0; i < BURST; i++) {
        got[i] = serve_start(&s, serve_text(&s, "s%u", i), "");
        for (unsigned k = 0; k < i; k++)
            CHECK(!str_eq(json_get_str(got[i], "runtime_id", STR("")),
                          json_get_str(got[k], "runtime_id", STR(""))));
        CHECK_STR(serve_exec(&s, got[i], serve_text(&s, "echo %u > /tmp/mine; cat /tmp/mine", i)),
                  serve_text(&s, "%u", i));
    }
    for (unsigned i = 0; i < BURST; i++)
        CHECK_STR(serve_exec(&s, got[i], "cat /tmp/mine"), serve_text(&s, "%u", i));
    serve_close(&s);
}

TEST_LIMIT(serve_says_why_a_start_was_not_warm, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    write_config(&s, "[pool.none]\nimage = 'host'\ntarget = 0\n");
    serve_run(&s, ARGS("--config", serve_text(&s, "%s/croft.toml", test_dir())));
    struct json *r = serve_start(&s, "a", "");
    CHECK_HAS(str_of(detail_of(&s, r)), "cold: the pool is empty");
    struct json *configs = serve_want(&s, 200, "GET", "/api/warm-runtime-configs", NULL);
    const struct json *c = json_at(json_get(configs, STR("configs")), 0);
    CHECK_STR(json_get_str(c, "name", STR("")), "none");
    CHECK_STR(json_get_str(c, "image", STR("")), "host");
    CHECK_INT(json_get(c, STR("command"))->type, JSON_ARRAY);
    CHECK_INT(json_get(c, STR("environment"))->type, JSON_OBJECT);
    serve_close(&s);
}

/* serve_close() looks: none of them may be left. */
TEST_LIMIT(serve_ends_warm_sandboxes_of_a_server_that_was_killed, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *a = start_warm(&s, "a", "");
    serve_kill(&s);
    serve_run(&s, NULL);
    CHECK_INT(serve_visit(&s, a, "/alive"), 200);
    struct json *b = start_warm(&s, "b", "");
    CHECK_INT(serve_visit(&s, b, "/alive"), 200);
    serve_close(&s);
}

static int64_t pool_says(struct serve *s, const char *what)
{
    struct json *o = serve_want(s, 200, "GET", "/croft/v1/pool", NULL);

    return json_get_int(json_at(json_get(o, STR("pools")), 0), what, 0);
}

static void wait_for(struct serve *s, const char *what, int64_t least)
{
    for (unsigned i = 0; i < 3000 && pool_says(s, what) < least; i++)
        poll(NULL, 0, 20);
    CHECK(pool_says(s, what) >= least);
}

/* Of the launcher's children those that are a sandbox's pid 1, and no spare. */
static void signal_warm(struct serve *s, int sig)
{
    char path[80], name[32];
    own_done(buf) kids;

    buf_init(&kids, 1u << 16);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)s->wire.pid, (int)s->wire.pid);
    CHECK_OK(fd_read_file(path, &kids));
    int launcher = (int)strtol(buf_cstr(&kids), NULL, 10);
    buf_reset(&kids);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", launcher, launcher);
    CHECK_OK(fd_read_file(path, &kids));
    char *at = (char *)buf_cstr(&kids), *end;
    for (long pid; (pid = strtol(at, &end, 10)) > 0; at = end) {
        own_done(buf) comm;
        buf_init(&comm, sizeof name);
        snprintf(path, sizeof path, "/proc/%ld/comm", pid);
        err_free(fd_read_file(path, &comm)); /* a helper of the launcher's that ended */
        if (str_starts(buf_str(&comm), STR("guest-")))
            kill((pid_t)pid, sig);
    }
}

/* What the session's runtime is said to be; "": there is none. */
static const char *status_of(struct serve *s, const char *session)
{
    struct serve_answer a = serve_get(s, serve_text(s, "/sessions/%s", session));

    return a.status == 200 ? serve_field(s, a.json, "status") : "";
}

static bool becomes(struct serve *s, const char *session, const char *status)
{
    for (unsigned i = 0; i < 3000 && strcmp(status_of(s, session), status) != 0; i++) {
        if (!status_of(s, session)[0] && i)
            return false;
        poll(NULL, 0, 10);
    }
    return strcmp(status_of(s, session), status) == 0;
}

TEST_LIMIT(serve_fills_the_pool_though_a_claim_hangs, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    wait_for(&s, "ready", 4);
    signal_warm(&s, SIGSTOP);
    struct json *r = serve_want(&s, 200, "POST", "/start", "{'image':'host','session_id':'a'}");
    CHECK(becomes(&s, "a", "running")); /* and who comes waits */
    wait_for(&s, "ready", 4);           /* another one for it, while it hangs */
    signal_warm(&s, SIGCONT);
    CHECK_INT(serve_visit(&s, r, "/alive"), 200);
    r = serve_want(&s, 200, "GET",
                   serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, r, "runtime_id")),
                   NULL);
    CHECK(json_get_int(json_get(r, STR("timeline")), "ready_ns", 0) > 0);
    signal_warm(&s, SIGSTOP);
    r = serve_want(&s, 200, "POST", "/start", "{'image':'host','session_id':'b'}");
    serve_tell(&s, "/pause", r); /* what does not listen yet is paused, resumed and stopped too */
    signal_warm(&s, SIGCONT);
    serve_tell(&s, "/resume", r);
    CHECK_INT(serve_visit(&s, r, "/alive"), 200);
    signal_warm(&s, SIGSTOP);
    serve_tell(&s, "/stop",
               serve_want(&s, 200, "POST", "/start", "{'image':'host','session_id':'c'}"));
    signal_warm(&s, SIGCONT);
    serve_close(&s);
}

static pid_t pid_of(struct serve *s, const struct json *r)
{
    own_fd dir = open(serve_text(s, "%s/box/%s", s->state, serve_field(s, r, "runtime_id")),
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct record life;

    CHECK_OK(record_read(dir, &life));
    return life.pid;
}

static void wait_until(struct serve *s, pid_t pid, const char *state)
{
    own_done(buf) stat;

    buf_init(&stat, 4096);
    do {
        poll(NULL, 0, 5);
        buf_reset(&stat);
        CHECK_OK(fd_read_file(serve_text(s, "/proc/%d/stat", pid), &stat));
    } while (str_find(buf_str(&stat), str_of(state)) < 0);
}

/* Until this child of the launcher has ended, and it has told that, for it sleeps. */
static void wait_for_end(struct serve *s, pid_t launcher, pid_t pid)
{
    while (kill(pid, 0) == 0)
        poll(NULL, 0, 5);
    wait_until(s, launcher, ") S ");
}

/* The server hears in one turn that the claim is done and that the sandbox has ended. */
TEST_LIMIT(serve_starts_again_what_ended_as_soon_as_it_was_claimed, 120)
{
    static const char start[] =
        "{'image':'host','session_id':'once','command':['sh','-c',"
        "'test -e /workspace/was && exec sleep 600; touch /workspace/was; exit 3']}";
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *other = serve_start(&s, "other", "");
    wait_for(&s, "ready", 4);
    pid_t launcher = serve_launcher(&s);
    signal_warm(&s, SIGSTOP);
    struct json *r = serve_want(&s, 200, "POST", "/start", start);
    serve_want(&s, 200, "GET", /* behind it: the launcher has answered both */
               serve_text(&s, "/croft/v1/sandboxes/%s/stats", serve_field(&s, other, "runtime_id")),
               NULL);
    pid_t pid = pid_of(&s, r);
    CHECK_INT(kill(s.wire.pid, SIGSTOP), 0);
    signal_warm(&s, SIGCONT);
    wait_for_end(&s, launcher, pid);
    CHECK_INT(kill(s.wire.pid, SIGCONT), 0);
    CHECK(becomes(&s, "once", "error"));
    CHECK_HAS(str_of(detail_of(&s, serve_get(&s, "/sessions/once").json)), "exit status 3");
    serve_tell(&s, "/resume", r);
    CHECK(becomes(&s, "once", "running"));
    serve_close(&s);
}

/* It was given away, and pid 1 was dead when the launcher came to bind it. at_once: the server
 * hears that the claim failed and that the sandbox ended in one turn. */
static void claim_the_dead(struct serve *s, const char *session, bool at_once)
{
    pid_t launcher = serve_launcher(s);

    serve_wait_warm(s);
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    struct json *r = serve_want(s, 200, "POST", "/start",
                                serve_text(s, "{'image':'host','session_id':'%s'}", session));
    CHECK_STR(serve_field(s, r, "status"), "starting");
    CHECK_HAS(str_of(detail_of(s, r)), "warm: from pool 'default'");
    pid_t pid = pid_of(s, r);
    CHECK_INT(kill(pid, SIGKILL), 0);
    wait_until(s, pid, ") Z "); /* nobody reaps it so far */
    if (at_once)
        CHECK_INT(kill(s->wire.pid, SIGSTOP), 0);
    CHECK_INT(kill(launcher, SIGCONT), 0);
    if (at_once) {
        wait_for_end(s, launcher, pid);
        CHECK_INT(kill(s->wire.pid, SIGCONT), 0);
    }
    CHECK(becomes(s, session, "running"));
}

TEST_LIMIT(serve_starts_cold_who_was_given_a_warm_sandbox_that_had_died, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    for (int i = 0; i < 2; i++) {
        const char *session = serve_text(&s, "s%d", i);
        claim_the_dead(&s, session, i);
        struct json *r = serve_want(&s, 200, "GET", serve_text(&s, "/sessions/%s", session), NULL);
        CHECK_HAS(str_of(detail_of(&s, r)), "cold: the warm sandbox was not well: ");
        r = serve_want(&s, 200, "GET",
                       serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, r, "runtime_id")),
                       NULL);
        CHECK_STR(serve_field(&s, r, "launch_type"), "cold");
        CHECK_STR(json_get_str(json_get(r, STR("timeline")), "pool_miss", STR("")),
                  "the warm sandbox was not well");
        CHECK_STR(serve_exec(&s, r, "echo it is"), "it is");
        CHECK_HAS(serve_get(&s, "/metrics").body,
                  serve_text(&s,
                             "\ncroft_pool_misses_total{pool=\"default\",reason=\"unwell\"} %d\n",
                             i + 1));
        CHECK_HAS(serve_get(&s, "/metrics").body,
                  "\ncroft_claims_total{pool=\"default\",result=\"hit\"} 0\n");
    }
    serve_close(&s);
}

/* It has the row of a claim that its launcher never passed on to pid 1, who ended then. */
TEST_LIMIT(serve_begins_what_was_acknowledged_and_not_bound_when_its_launcher_was_killed, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    wait_for(&s, "ready", 4);
    pid_t launcher = serve_launcher(&s);
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    struct json *r = serve_want(&s, 200, "POST", "/start", "{'image':'host','session_id':'a'}");
    CHECK_STR(serve_field(&s, r, "status"), "starting");
    CHECK_HAS(str_of(detail_of(&s, r)), "warm");
    CHECK_INT(kill(launcher, SIGKILL), 0);
    CHECK_INT(program_wait(s.wire.pid), 1);
    serve_reap(); /* all that were warm */
    serve_run(&s, NULL);
    CHECK(becomes(&s, "a", "running"));
    CHECK_STR(serve_exec(&s, r, "echo it is"), "it is");
    serve_close(&s);
}

static int ask_without_waiting(const char *url, const char *method, const char *target,
                               const char *body)
{
    struct wire w;
    char text[400];

    wire_at(&w, url);
    int fd = wire_connect(&w);
    snprintf(text, sizeof text,
             "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %zu\r\n\r\n%s", method, target,
             strlen(body), body);
    wire_send(fd, str_of(text));
    return fd;
}

TEST_LIMIT(serve_says_so_when_what_it_gave_away_ends_before_it_listens, 120)
{
    struct serve s = {.key = NULL};
    own_done(buf) text;

    buf_init(&text, 1u << 20);
    serve_open(&s);
    wait_for(&s, "ready", 4);
    signal_warm(&s, SIGSTOP);
    struct json *r = serve_want(&s, 200, "POST", "/start", "{'image':'host','session_id':'a'}");
    CHECK(becomes(&s, "a", "running"));
    int waits = ask_without_waiting(serve_field(&s, r, "url"), "GET", "/alive", "");
    signal_warm(&s, SIGKILL);
    wire_read_answer(waits, &text); /* a refusal, and no hang */
    CHECK(str_starts(buf_str(&text), STR("HTTP/1.1 50")));
    close(waits);
    CHECK(becomes(&s, "a", "error"));
    r = serve_want(&s, 200, "GET", "/sessions/a", NULL);
    CHECK_HAS(str_of(detail_of(&s, r)), "ended by signal 9");
    buf_reset(&text);
    int events = ask_without_waiting(s.wire.url, "GET", "/croft/v1/events?after=0", "");
    while (str_find(buf_str(&text), STR("STATUS$ERROR")) < 0) {
        ssize_t n = read(events, buf_reserve(&text, 4096), 4096);
        CHECK(n > 0);
        buf_commit(&text, (size_t)n);
    }
    close(events);
    serve_tell(&s, "/resume", r);
    CHECK(becomes(&s, "a", "running"));
    CHECK_STR(serve_exec(&s, r, "echo again"), "again");
    serve_close(&s);
}

/* A claim that is handed over while its row cannot be written. False: the row's time was over
 * first, on a machine that is very busy. */
static bool claimed_without_row(struct serve *s, const char *session, pid_t *ret_locker,
                                int *ret_fd)
{
    wait_for(s, "ready", 4);
    *ret_locker = serve_lock_rows(s);
    *ret_fd =
        ask_without_waiting(s->wire.url, "POST", "/start",
                            serve_text(s, "{\"image\":\"host\",\"session_id\":\"%s\"}", session));
    for (unsigned i = 0; i < 3000 && !status_of(s, session)[0]; i++)
        poll(NULL, 0, 1);
    return becomes(s, session, "running");
}

TEST_LIMIT(serve_killed_between_a_claim_and_its_row_keeps_neither, 120)
{
    struct serve s = {.key = NULL};
    pid_t locker;
    int fd;

    serve_open(&s);
    while (!claimed_without_row(&s, "a", &locker, &fd)) {
        serve_unlock_rows(locker);
        close(fd);
    }
    serve_kill(&s);
    serve_unlock_rows(locker);
    close(fd);
    serve_run(&s, NULL);
    CHECK_INT(serve_get(&s, "/sessions/a").status, 404);
    CHECK_INT(json_get_int(serve_want(&s, 200, "GET", "/list", NULL), "total", 9), 0);
    serve_close(&s); /* looks: nothing of it is left */
}

TEST_LIMIT(serve_says_so_when_what_it_gave_away_ends_before_its_row_is_written, 120)
{
    struct serve s = {.key = NULL};
    own_done(buf) text;
    pid_t locker;
    int fd;

    buf_init(&text, 1u << 20);
    serve_open(&s);
    for (;;) {
        bool claimed = claimed_without_row(&s, "a", &locker, &fd);
        if (claimed)
            signal_warm(&s, SIGKILL);
        claimed = claimed && becomes(&s, "a", "error");
        serve_unlock_rows(locker);
        buf_reset(&text);
        wire_read_answer(fd, &text);
        close(fd);
        if (claimed && str_starts(buf_str(&text), STR("HTTP/1.1 200")))
            break;
    }
    CHECK_HAS(buf_str(&text), "\"status\":\"error\"");
    CHECK_HAS(buf_str(&text), "ended by signal 9");
    serve_tell(&s, "/stop", serve_want(&s, 200, "GET", "/sessions/a", NULL));
    serve_close(&s);
}

/* The launcher's socket holds ten words each way: more ends at once, and both waited for ever. */
TEST_LIMIT(serve_ends_a_large_pool_a_few_at_a_time, 180)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[pool.default]\nimage = 'host'\ntarget = 40\nceiling = 40\n");
    wait_for(&s, "ready", 40);
    serve_close(&s);
}
