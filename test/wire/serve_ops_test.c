// SPDX-License-Identifier: Apache-2.0
/* serve_ops_test.c — the server under a service manager: sockets it is given, words it says,
 * settings it reads anew. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/program.h"
#include "test/serve_kit.h"
#include "test/test.h"

extern char **environ;

static void write_config(struct serve *s, const char *text)
{
    int dir = test_dir_fd();

    CHECK_OK(fd_replace_file(dir, "croft.toml", str_of(text), 0644));
    (void)s;
}

/* Until the server says so: the signal is handled in its own time. */
static void wait_for(struct serve *s, const char *target, const char *part)
{
    for (int i = 0; i < 3000; i++) {
        struct serve_answer a = serve_get(s, target);
        if (str_find(a.body, str_of(part)) >= 0)
            return;
        usleep(10000); /* a deadline against a hang, nothing is measured */
    }
    FAIL("%s never had %s", target, part);
}

static void wait_logged(const char *path, const char *part)
{
    for (int i = 0; i < 3000; i++) {
        own_done(buf) log;
        buf_init(&log, 4u << 20);
        CHECK_OK(fd_read_file(path, &log));
        if (str_find(buf_str(&log), str_of(part)) >= 0)
            return;
        usleep(10000); /* a deadline against a hang, nothing is measured */
    }
    FAIL("the log never had %s", part);
}

TEST_LIMIT(serve_takes_over_what_is_paused_without_complaint, 120)
{
    own_done(buf) log;
    struct serve s = {0};
    char path[300];

    serve_prepare(&s);
    snprintf(path, sizeof path, "%s/log", test_dir());
    s.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    serve_run(&s, NULL);
    struct json *r = serve_start(&s, "p", "");
    serve_tell(&s, "/pause", r);
    serve_kill(&s);
    serve_run(&s, NULL);
    serve_tell(&s, "/resume", r);
    CHECK_STR(serve_exec(&s, r, "echo ok"), "ok");
    serve_close(&s);
    buf_init(&log, 4u << 20);
    CHECK_OK(fd_read_file(path, &log));
    CHECK_INT(str_find(buf_str(&log), STR("cannot be reached")), -1);
}

TEST(serve_reads_its_settings_anew_at_sighup)
{
    struct serve s = {0};
    char path[300];

    serve_prepare(&s);
    snprintf(path, sizeof path, "%s/log", test_dir());
    s.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    write_config(&s, "[pool.small]\nimage = \"host\"\ntarget = 1\n");
    serve_run(&s,
              (const char *const[]){"--config", serve_text(&s, "%s/croft.toml", test_dir()), NULL});
    wait_for(&s, "/croft/v1/pool", "\"name\":\"small\",\"image\":\"host\",\"target\":1,");
    write_config(&s, "[pool.other]\nimage = \"host\"\ntarget = 2\n");
    CHECK_INT(kill(s.wire.pid, SIGHUP), 0);
    wait_for(&s, "/croft/v1/pool", "\"name\":\"other\",\"image\":\"host\",\"target\":2,");
    CHECK_INT(str_find(serve_get(&s, "/croft/v1/pool").body, STR("small")), -1);
    write_config(&s, "[pool.other]\ntaget = 3\n");
    CHECK_INT(kill(s.wire.pid, SIGHUP), 0);
    wait_logged(path, "settings were not read anew");
    wait_logged(path, "taget"); /* what makes no sense is named, and changes nothing */
    CHECK_HAS(serve_get(&s, "/croft/v1/pool").body, "\"target\":2,");
    serve_close(&s);
    close(s.log);
}

TEST(serve_tells_a_service_manager_when_it_is_ready)
{
    struct serve s = {0};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char got[200] = "";
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    serve_prepare(&s);
    snprintf(at.sun_path, sizeof at.sun_path, "%s/notify", test_dir());
    CHECK_INT(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    setenv("NOTIFY_SOCKET", at.sun_path, 1);
    CHECK_INT(system(serve_text(&s, "chmod 777 %s", at.sun_path)), 0);
    serve_run(&s, NULL);
    CHECK(recv(fd, got, sizeof got - 1, 0) > 0);
    CHECK_STR(got, "READY=1");
    unsetenv("NOTIFY_SOCKET");
    serve_close(&s);
    memset(got, 0, sizeof got);
    CHECK(recv(fd, got, sizeof got - 1, MSG_DONTWAIT) > 0);
    CHECK_STR(got, "STOPPING=1");
    close(fd);
}

TEST(serve_listens_on_the_socket_it_was_given)
{
    struct serve s = {0};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char url[200] = "";
    int out[2];

    serve_prepare(&s);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 8) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&at, &size) == 0 && pipe(out) == 0);
    const char *const argv[] = {
        "/bin/sh",
        "-c",
        "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" serve --state \"$1\" --log-level error",
        test_program("croft"),
        s.state,
        NULL};
    struct program p = {.argv = argv,
                        .env = (const char *const *)environ,
                        .fds = (int[]){-1, out[1], -1, listener},
                        .fd_count = 4};
    pid_t pid = program_start(&p);
    close(out[1]);
    close(listener);
    CHECK(read(out[0], url, sizeof url - 1) > 0);
    url[strcspn(url, "\n")] = '\0';
    CHECK_STR(url, serve_text(&s, "http://127.0.0.1:%u", ntohs(at.sin_port)));
    wire_at(&s.wire, url);
    s.wire.pid = pid;
    CHECK_INT(serve_get(&s, "/health").status, 200);
    close(out[0]);
    serve_close(&s);
}

static struct serve_answer ask_as(struct serve *s, const char *id, const char *method,
                                  const char *target, const char *quoted)
{
    s->key = serve_text(s, "none\r\nX-Request-ID: %s", id); /* no key is asked for */
    struct serve_answer a = serve_ask(s, method, target, quoted);
    s->key = NULL;
    return a;
}

/* Is there a line with all of these? */
static bool has_line(struct str text, const char *a, const char *b, const char *c)
{
    struct str line;

    for (bool more = true; more;) {
        more = str_cut(&text, '\n', &line);
        if (str_find(line, str_of(a)) >= 0 && str_find(line, str_of(b)) >= 0 &&
            str_find(line, str_of(c)) >= 0)
            return true;
    }
    return false;
}

static void check_journal(struct serve *s, const char *kind, const char *part)
{
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    program_run(
        ARGS("bash", "-c",
             serve_text(s,
                        "grep -m 1 '\"request_id\":\"start-1\"' < <(exec curl -sN 2>/dev/null "
                        "'http://127.0.0.1:%u/croft/v1/events?kind=%s')",
                        s->wire.port, kind)),
        &out);
    CHECK_HAS(buf_str(&out), str_of(part));
}

#define ADMIN "the-first-key-0123456789"

/* What the journal has by now of a request, seen with a key. */
static struct str seen(struct serve *s, struct buf *out, const char *request)
{
    program_run(ARGS("bash", "-c",
                     serve_text(s,
                                "grep -m 1 '\"request_id\":\"%s\"' < <(exec curl -sN 2>/dev/null "
                                "-H 'X-API-Key: " ADMIN "' "
                                "'http://127.0.0.1:%u/croft/v1/events?kind=audit')",
                                request, s->wire.port)),
                out);
    return buf_str(out);
}

TEST(serve_blames_nobody_for_what_was_asked_without_a_key)
{
    struct serve s = {.key = ADMIN};
    own_done(buf) out;

    setenv("CROFT_API_KEY", ADMIN, 1);
    serve_open(&s);
    s.key = NULL;
    CHECK_INT(ask_as(&s, "stranger", "GET", "/list", NULL).status, 401);
    CHECK_INT(ask_as(&s, "passer-by", "POST", "/no/such", "{}").status, 401);
    buf_init(&out, 1u << 20);
    CHECK_HAS(seen(&s, &out, "stranger"), "\"decision\":\"denied\"");
    buf_reset(&out);
    CHECK_HAS(seen(&s, &out, "passer-by"), "\"decision\":\"denied\"");
    seen(&s, &out, "passer-by");
    CHECK_INT(str_find(buf_str(&out), STR("default")), -1);
    serve_close(&s);
}

/* The first error that the journal has of the session is this. */
static void wait_event(struct serve *s, const char *session, const char *status)
{
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    program_run(
        ARGS("bash", "-c",
             serve_text(s,
                        "grep -m 1 '\"session_id\":\"%s\".*\"STATUS$ERROR[A-Z_]*\"' < <(exec curl "
                        "-sN 2>/dev/null 'http://127.0.0.1:%u/croft/v1/events?kind=status')",
                        session, s->wire.port)),
        &out);
    CHECK_HAS(buf_str(&out), serve_text(s, "\"%s\"", status));
    CHECK_HAS(buf_str(&out), "\"level\":\"error\"");
}

TEST_LIMIT(serve_tells_whether_memory_ran_out_or_a_sandbox_is_gone, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    serve_want(&s, 200, "POST", "/croft/v1/sandboxes",
               "{'image':'host','session_id':'full','memory':'96M','command':['python3','-c',"
               "'x = bytearray(1 << 30)']}");
    wait_event(&s, "full", "STATUS$ERROR_MEMORY");
    struct json *r = serve_start(&s, "gone",
                                 "'command':['python3','-c','import socket; "
                                 "socket.create_server((\\'127.0.0.1\\', 60000)).accept()']");
    while (serve_visit(&s, r, "/") == 502 &&
           strcmp(serve_field(&s, serve_get(&s, "/sessions/gone").json, "status"), "running") == 0)
        ; /* until it listens: then it leaves */
    wait_event(&s, "gone", "STATUS$ERROR_RUNTIME_DISCONNECTED");
    serve_close(&s);
}

/* A claim is told as running before its server listens, and is not gone if that never does. */
TEST_LIMIT(serve_tells_of_a_claim_whose_server_never_came_that_it_failed, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    serve_wait_warm(&s);
    serve_want(&s, 200, "POST", "/start",
               "{'image':'host','session_id':'wrong','command':['python3','-m',"
               "'openhands.runtime.action_execution_server','60000','--bogus','1']}");
    wait_event(&s, "wrong", "STATUS$ERROR");
    struct json *r = serve_want(&s, 200, "GET", "/sessions/wrong", NULL);
    CHECK_HAS(serve_field(&s, r, "status_detail"), "unknown option '--bogus'");
    serve_close(&s);
}

TEST(serve_names_every_request_in_its_answer_log_and_journal)
{
    struct serve s = {0};
    own_done(buf) log;

    serve_prepare(&s);
    char path[300];
    snprintf(path, sizeof path, "%s/log", test_dir());
    s.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    serve_run(&s, ARGS("--log-level", "debug"));
    struct serve_answer a =
        ask_as(&s, "start-1", "POST", "/start", "{'image':'host','session_id':'one'}");
    CHECK_HAS(a.head, "x-request-id: start-1");
    struct json *r = serve_start(&s, "one", "");
    a = ask_as(&s, "what is {this}", "GET", "/runtime/none", NULL);
    CHECK_INT(a.status, 404);
    CHECK_HAS(a.head, "x-request-id: ");
    CHECK_INT(str_find(a.head, STR("this")), -1);
    check_journal(&s, "audit", "\"object\":\"/start\"");
    check_journal(&s, "status", "STATUS$");
    ask_as(&s, "stop-1", "POST", "/stop",
           serve_text(&s, "{'runtime_id':'%s'}", serve_field(&s, r, "runtime_id")));
    serve_close(&s);
    close(s.log);
    buf_init(&log, 4u << 20);
    CHECK_OK(fd_read_file(path, &log));
    struct str text = buf_str(&log);
    CHECK(has_line(text, "\"runtime\"", "STATUS$READY", "\"request_id\":\"start-1\""));
    CHECK(has_line(text, "\"runtime\"", "STATUS$STOPPED", "\"request_id\":\"stop-1\""));
    CHECK(has_line(text, "\"request\"", "/start", "\"request_id\":\"start-1\""));
    CHECK(has_line(text, "\"request\"", "404", "\"request_id\":\""));
}

/* Who follows is told nothing more, and his connection ends. */
TEST(serve_ends_the_streams_of_a_key_that_is_revoked)
{
    struct serve s = {.key = ADMIN};
    int out[2];
    char byte[4096];

    setenv("CROFT_API_KEY", ADMIN, 1);
    serve_open(&s);
    struct json *made = serve_want(&s, 201, "POST", "/croft/v1/tokens", "{'name':'tx'}");
    s.key = serve_field(&s, made, "secret");
    const char *id = serve_field(&s, serve_start(&s, "one", ""), "runtime_id");
    CHECK_INT(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = program_start(&(struct program){
        .argv = ARGS("curl", "-sN", "-H", serve_text(&s, "X-API-Key: %s", s.key),
                     serve_text(&s, "http://127.0.0.1:%u/croft/v1/events", s.wire.port)),
        .fds = (int[]){-1, out[1], -1},
        .fd_count = 3});
    close(out[1]);
    CHECK(read(out[0], byte, sizeof byte) > 0); /* what happened before */
    s.key = ADMIN;
    CHECK_INT(serve_ask(&s, "DELETE", "/croft/v1/tokens/tx", NULL).status, 200);
    serve_ask(&s, "DELETE", serve_text(&s, "/croft/v1/sandboxes/%s", id), NULL); /* news for it */
    while (read(out[0], byte, sizeof byte) > 0) /* or it hangs here */
        ;
    CHECK_INT(program_wait(pid), 0);
    close(out[0]);
    serve_close(&s);
}
