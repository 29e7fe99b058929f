// SPDX-License-Identifier: Apache-2.0
/* The real binary, from the outside: raw bytes, curl and Python's websockets. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/program.h"
#include "test/site.h"
#include "test/test.h"
#include "test/wire.h"

#define REQUEST(line) line " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static void start(struct wire *w)
{
    const char *args[] = {"--dir", test_dir(), NULL};

    wire_start(w, "echo-server", args);
}

static void check_healthy(const struct wire *w)
{
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    wire_exchange(w, STR(REQUEST("GET /alive")), &got);
    CHECK_HAS(buf_str(&got), "HTTP/1.1 200 OK\r\n");
}

TEST(wire_one_connection_answers_pipelined_requests_in_order)
{
    struct wire w;
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    start(&w);
    wire_exchange(&w,
                  STR("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n[1]"
                      "GET /late?ms=30 HTTP/1.1\r\nHost: x\r\n\r\n"
                      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                      "Connection: close\r\n\r\n3\r\n[2]\r\n0\r\n\r\n"),
                  &got);
    ptrdiff_t first = str_find(buf_str(&got), STR("[1]"));
    ptrdiff_t second = str_find(buf_str(&got), STR("{\"late\":true}"));
    ptrdiff_t third = str_find(buf_str(&got), STR("[2]"));
    CHECK(first > 0 && second > first && third > second);
    CHECK_INT(wire_stop(&w), 0);
}

TEST(wire_each_kind_of_bad_input_gets_its_status_and_the_server_lives_on)
{
    static const struct {
        const char *request, *status, *detail;
    } rows[] = {
        {REQUEST("GET /nowhere"), "404", "Not Found"},
        {REQUEST("DELETE /echo"), "405", "Method Not Allowed"},
        {"GET / HTTP/1.1\nHost: x\n\n", "400", "LF without CR"},
        {"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", "400", "folded"},
        {"GET / HTTP/1.1\r\n\r\n", "400", "no Host"},
        {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", "505", "HTTP/1.1"},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: "
         "chunked\r\n\r\n",
         "400", "both"},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", "413", "at most"},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400",
         "chunk"},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\n{\"a\":",
         "422", "line 1 column 6"},
        {REQUEST("GET /flood?bytes=many"), "422", "'bytes'"},
        {REQUEST("GET /files/../../etc/passwd"), "403", "etc/passwd"},
        {REQUEST("GET /files/a%00b"), "400", "%00"},
        {REQUEST("GET /ws"), "426", "WebSocket"},
    };
    struct wire w;

    start(&w);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        own_done(buf) got;
        char status[32];
        buf_init(&got, 1u << 20);
        wire_exchange(&w, str_of(rows[i].request), &got);
        snprintf(status, sizeof status, "HTTP/1.1 %s ", rows[i].status);
        if (!str_starts(buf_str(&got), str_of(status)) ||
            str_find(buf_str(&got), str_of(rows[i].detail)) < 0)
            FAIL("row %zu: want %s … %s, got " STR_FMT, i, rows[i].status, rows[i].detail,
                 STR_ARG(buf_str(&got)));
        CHECK_HAS(buf_str(&got), "{\"detail\":\"");
    }
    check_healthy(&w);
    CHECK_INT(wire_stop(&w), 0);
}

TEST(wire_a_head_over_64_kb_is_431)
{
    struct wire w;
    own_done(buf) request;
    own_done(buf) got;

    buf_init(&request, 1u << 20);
    buf_init(&got, 1u << 20);
    buf_add_cstr(&request, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: ");
    for (int i = 0; i < 70000; i++)
        buf_add_char(&request, 'a');
    start(&w);
    wire_exchange(&w, buf_str(&request), &got);
    CHECK(str_starts(buf_str(&got), STR("HTTP/1.1 431 ")));
    check_healthy(&w);
    CHECK_INT(wire_stop(&w), 0);
}

static void curl(struct buf *out, const char *const *args)
{
    const char *argv[24] = {"curl", "-sS", "--max-time", "60"};

    for (int i = 0; args[i]; i++)
        argv[i + 4] = args[i];
    int code = program_run(argv, out);
    if (code == 127)
        SKIP("curl is not installed");
    if (code)
        FAIL("curl: exit %d: " STR_FMT, code, STR_ARG(buf_str(out)));
}

TEST(wire_a_file_sent_by_curl_comes_back_whole_and_in_ranges)
{
    struct wire w;
    char url[256], form[512], sent[300], back[300];
    own_done(buf) out;

    buf_init(&out, 64u << 20);
    start(&w);
    snprintf(sent, sizeof sent, "%s/sent.bin", test_dir());
    snprintf(back, sizeof back, "%s/back.bin", test_dir());
    int fd = open(sent, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    own_free char *content = malloc(5000000);
    for (size_t i = 0; i < 5000000; i++)
        content[i] = (char)(i * 2654435761u >> 13);
    CHECK_OK(fd_write_all(fd, str_n(content, 5000000)));
    close(fd);
    snprintf(url, sizeof url, "%s/upload", w.url);
    snprintf(form, sizeof form, "file=@%s;filename=up.bin", sent);
    curl(&out, (const char *[]){"-F", "note=hello", "-F", form, url, NULL});
    CHECK_STR(buf_str(&out),
              "{\"files\":[{\"field\":\"file\",\"name\":\"up.bin\",\"bytes\":5000000}],"
              "\"fields\":{\"note\":\"hello\"}}");
    snprintf(url, sizeof url, "%s/files/up.bin", w.url);
    buf_reset(&out);
    curl(&out, (const char *[]){url, NULL});
    CHECK(str_eq(buf_str(&out), str_n(content, 5000000)));
    buf_reset(&out);
    curl(&out, (const char *[]){"-r", "100-299", url, NULL});
    CHECK(str_eq(buf_str(&out), str_n(content + 100, 200)));
    buf_reset(&out);
    curl(&out, (const char *[]){"-r", "-10", url, NULL});
    CHECK(str_eq(buf_str(&out), str_n(content + 4999990, 10)));
    CHECK_INT(wire_stop(&w), 0);
}

TEST(wire_an_upload_cut_in_the_middle_leaves_no_file)
{
    struct wire w;

    start(&w);
    int fd = wire_connect(&w);
    wire_send(fd,
              STR("POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n"
                  "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
                  "Content-Disposition: form-data; name=\"f\"; filename=\"half\"\r\n\r\nbytes"));
    close(fd);
    check_healthy(&w);
    CHECK_INT(wire_stop(&w), 0);     /* the connection was dealt with before the server ended */
    CHECK_INT(rmdir(test_dir()), 0); /* empty */
    CHECK_INT(mkdir(test_dir(), 0700), 0);
}

TEST(wire_events_continue_after_the_last_id_the_client_has)
{
    struct wire w;
    char url[256];
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    start(&w);
    snprintf(url, sizeof url, "%s/events?count=4", w.url);
    curl(&out, (const char *[]){"-N", "-H", "Last-Event-ID: 1", url, NULL});
    CHECK_STR(buf_str(&out), "id: 2\nevent: tick\ndata: 2\n\nid: 3\nevent: tick\ndata: 3\n\n");
    CHECK_INT(wire_stop(&w), 0);
}

TEST(wire_a_reader_that_never_reads_does_not_grow_the_server)
{
    struct wire w;
    char path[64];
    own_done(buf) status;

    buf_init(&status, 1u << 20);
    start(&w);
    int fd = wire_connect(&w);
    wire_send(fd, STR("GET /flood?bytes=1000000000 HTTP/1.1\r\nHost: x\r\n\r\n"));
    for (int i = 0; i < 20; i++)
        check_healthy(&w); /* others are served meanwhile */
    snprintf(path, sizeof path, "/proc/%d/status", (int)w.pid);
    CHECK_OK(fd_read_file(path, &status));
    ptrdiff_t at = str_find(buf_str(&status), STR("RssAnon:"));
    CHECK(at >= 0);
    long kb = strtol(status.p + at + 8, NULL, 10);
    if (strstr(test_program("croft"), "/asan/") == NULL && kb > 8192)
        FAIL("the server holds %ld KB for one slow reader", kb);
    close(fd);
    CHECK_INT(wire_stop(&w), 0);
}

TEST(wire_a_wrong_key_is_401_and_an_open_route_needs_none)
{
    struct wire w;
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    wire_start(&w, "echo-server", (const char *[]){"--key", "s3cret", NULL});
    wire_exchange(&w, STR(REQUEST("GET /info")), &got);
    CHECK(str_starts(buf_str(&got), STR("HTTP/1.1 401 ")));
    buf_reset(&got);
    wire_exchange(
        &w, STR("GET /info HTTP/1.1\r\nHost: x\r\nX-API-Key: s3cret\r\nConnection: close\r\n\r\n"),
        &got);
    CHECK(str_starts(buf_str(&got), STR("HTTP/1.1 200 ")));
    check_healthy(&w);
    CHECK_INT(wire_stop(&w), 0);
}

TEST(wire_a_unix_socket_is_served_and_removed_at_the_end)
{
    struct wire w;
    char address[200];

    snprintf(address, sizeof address, "unix:%s/s", test_dir());
    wire_start(&w, "echo-server", (const char *[]){"--listen", address, NULL});
    CHECK_STR(str_of(w.url), address);
    check_healthy(&w);
    CHECK_INT(wire_stop(&w), 0);
    CHECK_INT(access(address + 5, F_OK), -1);
}

TEST(wire_a_term_signal_lets_the_answer_in_progress_finish)
{
    struct wire w;
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    start(&w);
    int fd = wire_connect(&w);
    wire_send(fd, STR("GET /late?ms=200 HTTP/1.1\r\nHost: x\r\n\r\n"));
    check_healthy(&w); /* by now the late one is in */
    kill(w.pid, SIGTERM);
    wire_read_to_end(fd, &got);
    CHECK_HAS(buf_str(&got), "{\"late\":true}");
    CHECK_INT(wire_stop(&w), 0);
}

TEST(wire_a_real_websocket_client_is_echoed)
{
    struct wire w;
    char url[256], script[512];
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    start(&w);
    snprintf(url, sizeof url, "ws://127.0.0.1:%u/ws", w.port);
    snprintf(script, sizeof script, "%s", test_source("test/wire/ws_peer.py"));
    int code = program_run((const char *[]){"/usr/bin/python3", script, url, NULL}, &out);
    if (code == 77)
        SKIP("python3-websockets is not installed");
    if (code)
        FAIL("exit %d: " STR_FMT, code, STR_ARG(buf_str(&out)));
    check_healthy(&w);
    CHECK_INT(wire_stop(&w), 0);
}

/* --- certificates --- */

static void point(const char *link, const char *target)
{
    unlink(link);
    CHECK(symlink(target, link) == 0);
}

static void check_serves(const struct wire *w, const struct test_cert *cert)
{
    struct site site = {.cert = *cert, .port = w->port};
    struct site_client c;
    char answer[1024];

    site_client_open(&site, 0, &c); /* trusts cert alone */
    site_client_send(&c, STR(REQUEST("GET /alive")));
    CHECK_HAS(site_client_answer(&c, answer, sizeof answer), "HTTP/1.1 200 OK\r\n");
    site_client_close(&c);
}

static void hang_up(const struct wire *w, int log, const char *must_say)
{
    char text[4096];

    CHECK(kill(w->pid, SIGHUP) == 0);
    ssize_t n = read(log, text, sizeof text);
    CHECK(n > 0);
    CHECK_HAS(str_n(text, (size_t)n), must_say);
}

TEST(wire_a_hangup_signal_changes_the_certificate_or_nothing)
{
    struct test_cert first, second;
    char cert[300], key[300];
    struct wire w;
    int log[2];

    test_cert_make("first", &first);
    test_cert_make("second", &second);
    snprintf(cert, sizeof cert, "%s/cert", test_dir());
    snprintf(key, sizeof key, "%s/key", test_dir());
    point(cert, first.certificate);
    point(key, first.key);
    CHECK(pipe2(log, O_CLOEXEC) == 0);
    wire_start_log(&w, "echo-server", ARGS("--tls-cert", cert, "--tls-key", key), log[1]);
    check_serves(&w, &first);
    point(cert, second.certificate);
    hang_up(&w, log[0], "does not belong to certificate");
    check_serves(&w, &first);
    point(key, second.key);
    hang_up(&w, log[0], "certificate reloaded");
    check_serves(&w, &second);
    CHECK_INT(wire_stop(&w), 0);
}
