// SPDX-License-Identifier: Apache-2.0
/* server_fault_test.c — a fault at any allocation or system call of a request ends that request
 * only: the next one, on a new connection, is served, and nothing is left open. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "net/file.h"
#include "net/listen.h"
#include "net/server.h"
#include "test/test.h"
#include "test/web.h"

static char file_path[300];

static fallible hello(struct http_req *req)
{
    http_reply_header(req, STR("x-one"), STR("1"));
    http_reply(req, 200, STR("text/plain"), STR("hello"));
    return NULL;
}

static fallible json(struct http_req *req)
{
    struct json *body;
    int64_t n;

    TRY(http_req_json(req, &body));
    TRY(json_want_int(body, "n", 0, 100, &n));
    http_reply_json(req, 200, arena_printf(&req->arena, "{\"n\":%d}", (int)n));
    return NULL;
}

static fallible on_up_body(struct http_req *req, struct str piece)
{
    size_t *sum = req->user;

    *sum += piece.len;
    if (!piece.len)
        http_reply(req, 200, STR("text/plain"), arena_printf(&req->arena, "%zu", *sum));
    return NULL;
}

static void on_up_gone(struct http_req *req)
{
    http_reply(req, 500, STR(""), STR(""));
}

static fallible up(struct http_req *req)
{
    size_t *sum = arena_new(&req->arena, size_t);

    if (!sum)
        return arena_check(&req->arena);
    req->user = sum;
    req->on_body = on_up_body;
    req->on_gone = on_up_gone;
    return NULL;
}

static fallible give(struct http_req *req)
{
    int fd = open(file_path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys("open");
    return file_reply(req, fd, STR("a.txt"), (struct str){NULL, 0}, true);
}

static const struct route routes[] = {
    {"GET", "/hello", hello, 0, 0},
    {"POST", "/json", json, 0, 0},
    {"POST", "/up", up, ROUTE_STREAM, 0},
    {"GET", "/file", give, 0, 0},
};

struct scene {
    struct web w;
    char socket_path[108];
    struct str request, body; /* of the answer, when all goes well */
    size_t split;             /* the rest of the request comes later */
};

/* By connect and accept, with what was sent in two pieces; the client's calls are not wrapped. */
static void run_request(struct scene *s, struct web_client *c)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    memcpy(addr.sun_path, s->socket_path, sizeof addr.sun_path);
    CHECK_INT(syscall(SYS_connect, c->fd, &addr, sizeof addr), 0);
    web_send(&s->w, c, str_first(s->request, s->split));
    web_turns(&s->w, 2);
    web_send(&s->w, c, str_from(s->request, s->split));
    web_read(&s->w, c);
    s->w.now_ns += 150 * NS_PER_MS; /* accepting is tried again by now */
    web_read(&s->w, c);
}

static void client_new(struct web_client *c)
{
    web_client_init(
        c, (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
        1u << 20);
}

static void check_healthy(struct scene *s, unsigned n)
{
    struct web_client c;

    client_new(&c);
    run_request(s, &c);
    if (!c.len)
        FAIL("after fault %u: no answer, eof %d, errno %d", n, c.eof, c.errnum);
    struct web_answer a = web_take(&s->w, &c);
    CHECK_INT(a.status, 200);
    CHECK_INT(a.body.len, s->body.len);
    CHECK(str_eq(a.body, s->body));
    web_close_client(&c);
    web_turns(&s->w, 4);
}

/* An answer that says 200 must be the whole and right one, or be seen to be broken. */
static void check_honest(struct scene *s, struct web_client *c, unsigned n)
{
    struct str got = str_n(c->p, c->len);
    ptrdiff_t end = str_find(got, STR("\r\n\r\n"));

    if (!str_starts(got, STR("HTTP/1.1 200 ")) || end < 0)
        return;
    struct str body = str_from(got, (size_t)end + 4);
    if (str_eq(body, s->body))
        return;
    if (!c->eof && !c->errnum)
        FAIL("fault %u: half an answer on a connection that stays", n);
    CHECK(str_find(got, STR("content-length: ")) >= 0);
    if (body.len >= s->body.len)
        FAIL("fault %u: " STR_FMT, n, STR_ARG(got));
    CHECK(str_eq(body, str_first(s->body, body.len)));
}

static void open_scene(struct scene *s)
{
    static const char *const origins[] = {"*", NULL};
    struct router_config rc = {.cors_origins = origins};
    char address[120];
    int fd;

    log_setup(2, LOG_OFF, LOG_TEXT);
    web_open(&s->w, WEB_ROUTES(routes), &rc, NULL);
    snprintf(s->socket_path, sizeof s->socket_path, "%s/sock", test_dir());
    snprintf(address, sizeof address, "unix:%s", s->socket_path);
    CHECK_OK(listen_open(str_of(address), &fd));
    CHECK_OK(http_server_listen(s->w.server, fd));
}

/* One request with its n-th call failing, then a healthy one. False when there is no n-th. */
static bool fault_once(struct scene *s, unsigned n, bool healthy)
{
    unsigned fds = test_open_fds();
    struct web_client c;

    client_new(&c);
    fault_at(n);
    run_request(s, &c);
    bool fired = fault_fired();
    fault_at(0);
    if (healthy)
        check_honest(s, &c, n);
    else if (!fired)
        CHECK(str_ends(str_n(c.p, c.len), s->body));
    web_close_client(&c);
    web_turns(&s->w, 4);
    web_pass(&s->w, 100000);
    CHECK_INT(http_server_connections(s->w.server), 0);
    CHECK_INT(test_open_fds(), fds);
    if (healthy)
        check_healthy(s, n);
    return fired;
}

/* Cold: each time a new server; warm: one that has spare requests and buffers. */
static void fault_everywhere(struct scene *s, unsigned at_least, bool healthy)
{
    unsigned n = 0;

    do {
        open_scene(s);
        CHECK(++n < 2000);
        bool fired = fault_once(s, n, healthy);
        web_close(&s->w);
        if (!fired)
            break;
    } while (true);
    CHECK(n > at_least);
    open_scene(s);
    for (n = 1; fault_once(s, n, healthy);)
        n++;
    CHECK(n > 4);
    web_close(&s->w);
}

TEST(a_fault_in_a_get_ends_that_request_only)
{
    struct scene s = {.request = STR("GET /hello?x=1 HTTP/1.1\r\nHost: a\r\nOrigin: b\r\n\r\n"),
                      .body = STR("hello"),
                      .split = 20};

    fault_everywhere(&s, 10, true);
}

TEST(a_fault_in_a_post_with_json_ends_that_request_only)
{
    struct scene s = {
        .request = STR("POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: 27\r\n\r\n"
                       "{\"a\":[1,2,\"\\u00e4\"],\"n\":7}\n"),
        .body = STR("{\"n\":7}"),
        .split = 70,
    };

    fault_everywhere(&s, 12, true);
}

TEST(a_fault_in_a_streamed_upload_ends_that_request_only)
{
    struct scene s = {
        .request = STR("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                       "Expect: 100-continue\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
        .body = STR("11"),
        .split = 105,
    };

    fault_everywhere(&s, 10, /* healthy= */ false); /* "100 Continue" comes before the answer */
}

TEST_LIMIT(a_fault_in_a_download_ends_that_request_only, 120)
{
    static char content[500000];
    struct scene s = {.request = STR("GET /file HTTP/1.1\r\nHost: a\r\n\r\n"), .split = 5};

    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (char)('a' + i % 23);
    s.body = str_n(content, sizeof content);
    snprintf(file_path, sizeof file_path, "%s/file", test_dir());
    FILE *f = fopen(file_path, "w");
    CHECK(f && fwrite(content, sizeof content, 1, f) == 1);
    fclose(f);
    fault_everywhere(&s, 20, true);
}

/* By this process, as the kernel counts. */
static unsigned long long bytes_read(void)
{
    unsigned long long n = 0;
    FILE *f = fopen("/proc/self/io", "r");

    CHECK(f && fscanf(f, "rchar: %llu", &n) == 1);
    fclose(f);
    return n;
}

TEST(a_download_whose_connection_failed_does_not_read_on)
{
    struct scene s = {.request = STR("GET /file HTTP/1.1\r\nHost: a\r\n\r\n"), .split = 5};

    snprintf(file_path, sizeof file_path, "%s/file", test_dir());
    int fd = open(file_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK_INT(ftruncate(fd, 1ll << 30), 0);
    close(fd);
    for (unsigned n = 1; n < 40; n++) {
        struct web_client c;
        open_scene(&s);
        client_new(&c); /* holds 1 MB: the rest is never asked for */
        unsigned long long before = bytes_read();
        fault_at(n);
        run_request(&s, &c);
        CHECK(fault_fired());
        fault_at(0);
        CHECK(bytes_read() - before < 50u << 20);
        web_close_client(&c);
        web_close(&s.w);
    }
}

TEST(a_fault_while_a_server_is_made_leaves_nothing)
{
    struct web w;
    unsigned n = 0, fds;

    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    fds = test_open_fds();
    for (bool fired = true; fired;) {
        struct http_server_config sc = {.router = w.router};
        struct http_server *server = NULL;
        int pair[2] = {-1, -1}, fd;
        CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
        CHECK_INT(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        fault_at(++n);
        struct err *e = http_server_new(w.net, &sc, &server);
        struct err *e2 = server ? http_server_listen(server, take_fd(&fd)) : NULL;
        struct err *e3 = server ? http_server_serve(server, take_fd(&pair[1])) : NULL;
        fired = fault_fired();
        fault_at(0);
        CHECK(fired == (e || e2 || e3));
        err_free(e);
        err_free(e2);
        err_free(e3);
        http_server_free(server);
        web_turns(&w, 2);
        own_close(fd);
        own_close(pair[0]);
        own_close(pair[1]);
        CHECK_INT(test_open_fds(), fds);
    }
    CHECK(n >= 6);
    web_close(&w);
}
