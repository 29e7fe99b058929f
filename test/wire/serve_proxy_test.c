// SPDX-License-Identifier: Apache-2.0
/* serve_proxy_test.c — through the proxy of a real server into real sandboxes, with curl and bare
 * sockets: files both ways, ports inside, an answer that survives its connection. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/program.h"
#include "test/serve_kit.h"

#define FILE_BYTES (120u << 20)

/* curl with the runtime's key; what it printed. */
static struct str curl(struct serve *s, const struct json *r, const char *const *more)
{
    const char *argv[24] = {
        "curl",       "-sS",
        "--max-time", "60",
        "-H",         serve_text(s, "X-Session-API-Key: %s", serve_field(s, r, "session_api_key"))};
    struct buf out;
    size_t n = 6;

    for (; *more; more++)
        argv[n++] = *more;
    buf_init(&out, 1u << 20);
    int code = program_run(argv, &out);
    struct str text = arena_copy(&s->arena, buf_str(&out));
    buf_done(&out);
    if (code == 127)
        SKIP("curl is not there");
    if (code != 0)
        FAIL("curl: %d " STR_FMT, code, STR_ARG(text));
    return text;
}

static long peak_kb(pid_t pid)
{
    char path[64];
    struct buf b;

    buf_init(&b, 65536);
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    CHECK_OK(fd_read_file(path, &b));
    const char *line = strstr(buf_cstr(&b), "VmHWM:");
    CHECK(line != NULL);
    long kb = atol(line + 6);
    buf_done(&b);
    return kb;
}

TEST_LIMIT(serve_passes_large_files_into_and_out_of_a_sandbox, 180)
{
    static const char same[] =
        "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[2])\nname, = z.namelist()\n"
        "a, b = open(sys.argv[1], 'rb'), z.open(name)\n"
        "while True:\n x, y = a.read(1 << 20), b.read(1 << 20)\n assert x == y\n"
        " if not x: break\n";
    struct serve s = {.key = NULL};
    char from[300], into[300];
    struct buf said;

    buf_init(&said, 65536);
    serve_open(&s);
    struct json *r = serve_start(&s, "one", "");
    const char *url = serve_field(&s, r, "url");
    snprintf(from, sizeof from, "%s/big", test_dir());
    snprintf(into, sizeof into, "%s/back", test_dir());
    const char *make = serve_text(&s, "head -c %u /dev/urandom > '%s'", FILE_BYTES, from);
    CHECK_INT(program_run(ARGS("sh", "-c", make), &said), 0);
    curl(&s, r,
         ARGS("-F", serve_text(&s, "file=@%s", from), "-H", "Expect: 100-continue",
              serve_text(&s, "%s/upload_file?destination=/workspace/d", url)));
    curl(&s, r, ARGS("-o", into, serve_text(&s, "%s/download_files?path=/workspace/d", url)));
    if (program_run(ARGS("python3", "-c", same, from, into), &said) != 0)
        FAIL(STR_FMT, STR_ARG(buf_str(&said)));
    if (!strstr(test_program("croft"), "/asan/")) /* which keeps what is freed */
        CHECK(peak_kb(s.wire.pid) < 24 * 1024);
    buf_done(&said);
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

TEST_LIMIT(serve_reaches_ports_inside_by_path_and_by_their_own, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r = serve_start(&s, "one", "");
    const char *id = serve_field(&s, r, "runtime_id");
    struct serve_answer a = serve_get(&s, serve_text(&s, "/sandbox/%s/work-1/a", id));
    CHECK_INT(a.status, 502);
    serve_exec(&s, r,
               "mkdir -p /tmp/w; cd /tmp/w; echo deep > a; "
               "python3 -m http.server 12000 > /dev/null 2>&1 &");
    serve_exec(&s, r,
               "for i in $(seq 200); do (: < /dev/tcp/127.0.0.1/12000) 2> /dev/null && break; "
               "sleep 0.05; done");
    a = serve_get(&s, serve_text(&s, "/sandbox/%s/work-1/a", id));
    CHECK_INT(a.status, 200);
    CHECK_STR(a.body, "deep\n");
    CHECK_HAS(a.head, "Content-Security-Policy: sandbox "); /* no page of a server without keys */
    a = serve_get(&s, serve_text(&s, "/sandbox/%s/work-1/none", id));
    CHECK_INT(a.status, 404);
    CHECK_INT(serve_get(&s, serve_text(&s, "/sandbox/%s/alive", id)).status, 200);
    CHECK_INT(serve_get(&s, "/sandbox/aaaaaaaaaaaaaaaa/alive").status, 404);
    CHECK_INT(serve_visit(&s, r, "/alive"), 200); /* by its own port: counted as well */
    CHECK_HAS(serve_get(&s, "/metrics").body,
              "croft_http_requests_total{face=\"sandbox\",method=\"GET\",code=\"200\"} 3\n");
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

/* --- what V0 clients do when a connection breaks --- */

static int connect_url(const char *url)
{
    struct wire w;

    wire_at(&w, url);
    return wire_connect(&w);
}

static int send_command(struct serve *s, const struct json *r, const char *command)
{
    const char *body = serve_text(
        s, "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"%s\",\"blocking\":true}}}",
        command);
    const char *text = serve_text(s,
                                  "POST /execute_action HTTP/1.1\r\nHost: localhost\r\n"
                                  "X-Session-API-Key: %s\r\nContent-Type: application/json\r\n"
                                  "Content-Length: %zu\r\n\r\n%s",
                                  serve_field(s, r, "session_api_key"), strlen(body), body);
    int fd = connect_url(serve_field(s, r, "url"));

    wire_send(fd, str_of(text));
    return fd;
}

static void check_answer(int fd, const char *part)
{
    struct buf in;

    buf_init(&in, 1u << 20);
    wire_read_answer(fd, &in);
    CHECK_HAS(buf_str(&in), "HTTP/1.1 200");
    CHECK_HAS(buf_str(&in), part);
    buf_done(&in);
    close(fd);
}

/* Inside they see that the first one has gone: otherwise these were two clients, and two commands.
 */
TEST_LIMIT(serve_attaches_a_client_that_comes_back_to_its_command, 120)
{
    static const char command[] = "echo x >> /tmp/n; sleep 1; echo $(wc -l < /tmp/n) time";
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r = serve_start(&s, "one", "");
    int fd = send_command(&s, r, command);
    CHECK_INT(serve_visit(&s, r, "/alive"), 200);
    close(fd);
    check_answer(send_command(&s, r, command), "1 time");
    CHECK_STR(serve_exec(&s, r, "wc -l < /tmp/n"), "1");
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

/* The server inside dies with the command's connection; ours must break too, and not say 502. */
TEST_LIMIT(serve_cuts_a_command_whose_server_dies_and_gives_its_answer_later, 120)
{
    static const char command[] = "echo x >> /tmp/n; P=$(pgrep -x action-server || pgrep -f -- "
                                  "--init-fd); kill -9 $P; while [ -d /proc/$P ]; do "
                                  "sleep 0.05; done; echo $(wc -l < /tmp/n) time";
    struct serve s = {.key = NULL};
    struct buf in;

    serve_open(&s);
    struct json *r = serve_start(&s, "one", "");
    int fd = send_command(&s, r, command);
    buf_init(&in, 65536);
    wire_read_to_end(fd, &in);
    CHECK_INT(in.len, 0);
    close(fd);
    check_answer(send_command(&s, r, command), "1 time");
    buf_done(&in);
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

/* A command that kills all there is takes its own server along, and its shell. Who sends it again,
 * as clients do when a connection broke, is told; it is not done again. */
TEST_LIMIT(serve_runs_a_command_that_kills_its_server_once_and_counts_the_restart, 120)
{
    static const char command[] = "echo x >> /tmp/n; bash -c 'kill -9 -1'";
    struct serve s = {.key = NULL};
    struct buf in;

    serve_open(&s);
    struct json *r = serve_start(&s, "k", "'command':null");
    CHECK_STR(serve_exec(&s, r, "echo here"), "here");
    int fd = send_command(&s, r, command);
    buf_init(&in, 65536);
    wire_read_to_end(fd, &in);
    CHECK_INT(in.len, 0);
    close(fd);
    buf_done(&in);
    check_answer(send_command(&s, r, command), "started again");
    CHECK_HAS(serve_exec(&s, r, "wc -l < /tmp/n"), "1");
    for (unsigned i = 0; i < 2; i++) {
        const struct json *now = serve_want(&s, 200, "GET", "/sessions/k", NULL);
        CHECK_INT(json_get_int(now, "restart_count", -1), 1);
        CHECK_HAS(serve_get(&s, "/sessions/k").body, "its server died and was started again");
        if (i == 0) {
            serve_tell(&s, "/pause", r); /* rows are written in turn: now that one is on disk */
            serve_kill(&s);
            serve_run(&s, NULL);
        }
    }
    serve_close(&s);
}

/* From outside: pid 1 cannot be killed by what is inside. */
static void kill_all_of(const struct serve *s, const char *command)
{
    static const char line[] = "until P=$(pgrep -xf \"$1\"); do sleep 0.05; done;"
                               "N=$(readlink /proc/$P/ns/pid);"
                               "for C in $(cat /proc/$0/task/$0/children); do"
                               " [ \"$(readlink /proc/$C/ns/pid)\" != \"$N\" ] || kill -9 $C; done";
    own_done(buf) out;
    char launcher[16];

    buf_init(&out, 4096);
    snprintf(launcher, sizeof launcher, "%d", (int)serve_launcher(s));
    CHECK_INT(program_run(ARGS("bash", "-c", line, launcher, command), &out), 0);
}

TEST_LIMIT(serve_counts_a_sandbox_that_ends_under_a_request_once, 120)
{
    struct serve s = {.key = NULL};
    struct buf in;

    serve_open(&s);
    struct json *r = serve_start(&s, "k", "'command':null");
    const char *command = serve_text(&s, "sleep 1%u", (unsigned)s.wire.port); /* nobody else's */
    int fd = send_command(&s, r, command);
    kill_all_of(&s, command);
    buf_init(&in, 65536);
    wire_read_to_end(fd, &in);
    close(fd);
    buf_done(&in);
    while (strcmp(serve_field(&s, serve_get(&s, "/sessions/k").json, "status"), "running") == 0)
        ; /* the news comes another way than the end of the connection */
    const struct json *now = serve_want(&s, 200, "GET", "/sessions/k", NULL);
    CHECK_STR(serve_field(&s, now, "status"), "error");
    CHECK_INT(json_get_int(now, "restart_count", -1), 0);
    serve_tell(&s, "/resume", r);
    now = serve_want(&s, 200, "GET", "/sessions/k", NULL);
    CHECK_INT(json_get_int(now, "restart_count", -1), 1);
    CHECK_INT(str_find(serve_get(&s, "/sessions/k").body, STR("its server died")), -1);
    serve_close(&s);
}

static void check_paused(int fd)
{
    struct buf in;

    buf_init(&in, 1u << 20);
    wire_read_answer(fd, &in);
    CHECK_HAS(buf_str(&in), "HTTP/1.1 503");
    CHECK_HAS(buf_str(&in), "retry-after: 1\r\n");
    CHECK_HAS(buf_str(&in), "the sandbox is paused");
    buf_done(&in);
    close(fd);
}

/* To clients 502 is a connection that failed, which they give up, and 503 a pause, which they end.
 */
TEST_LIMIT(serve_tells_who_was_under_way_of_a_pause_that_became_a_stop, 120)
{
    static const char mute[] = "import socket\n"
                               "s = socket.create_server(('', 12000))\n"
                               "open('/tmp/listens', 'w')\n"
                               "c = s.accept()[0]\n"
                               "c.recv(9)\n"
                               "open('/tmp/asked', 'w')\n"
                               "s.accept()\n";
    struct serve s = {.key = NULL};
    own_done(buf) out;

    buf_init(&out, 4096);
    serve_open(&s);
    struct json *r = serve_start(&s, "k", "");
    const char *id = serve_field(&s, r, "runtime_id");
    const char *command = serve_text(&s, "sleep 1%u", (unsigned)s.wire.port); /* nobody else's */
    serve_put(&s, r, "/tmp/mute.py", str_of(mute));
    serve_exec(&s, r, "python3 /tmp/mute.py & until [ -e /tmp/listens ]; do sleep 0.05; done");
    int get = wire_connect(&s.wire);
    wire_send(get, str_of(serve_text(
                       &s, "GET /sandbox/%s/work-1/ HTTP/1.1\r\nHost: localhost\r\n\r\n", id)));
    serve_exec(&s, r, "until [ -e /tmp/asked ]; do sleep 0.05; done");
    int post = send_command(&s, r, command);
    CHECK_INT(program_run(
                  ARGS("bash", "-c", "until pgrep -xf \"$0\"; do sleep 0.05; done", command), &out),
              0);
    serve_tell(&s, "/pause", r);
    serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/stop", id), NULL);
    check_paused(get);
    check_paused(post);
    CHECK_INT(serve_visit(&s, r, "/alive"), 503);
    serve_tell(&s, "/resume", r);
    check_answer(send_command(&s, r, "echo again"), "again");
    serve_close(&s);
}
