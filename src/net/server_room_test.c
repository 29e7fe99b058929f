// SPDX-License-Identifier: Apache-2.0
/* server_room_test.c — as many connections as there may be, and who makes room for others. */
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/server.h"
#include "test/test.h"
#include "test/web.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static fallible hello(struct http_req *req)
{
    http_reply(req, 200, STR("text/plain"), STR("hello"));
    return NULL;
}

static const struct route routes[] = {{"GET", "/hello", hello, 0, 0}};

static void open_web(struct web *w, struct http_limits limits)
{
    struct http_server_config sc = {.limits = limits};

    web_open(w, WEB_ROUTES(routes), NULL, &sc);
}

/* Busy: the rest of its head has come, and that of its body has not. */
#define HALF "GET /hello HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n1"

TEST(connections_over_the_limit_wait_until_one_goes)
{
    struct web w;
    struct web_client c[3];

    open_web(&w, (struct http_limits){.connections = 2});
    const char *path = web_serve_unix(&w);
    for (int i = 0; i < 3; i++) {
        web_dial(&w, &c[i], path);
        CHECK(web_send(&w, &c[i], i < 2 ? STR(HALF) : STR(GET("/hello"))));
        web_read(&w, &c[i]);
        CHECK_INT(c[i].len, 0);
    }
    CHECK_INT(http_server_connections(w.server), 2);
    web_close_client(&c[0]);
    CHECK_STR(web_take(&w, &c[2]).body, "hello");
    CHECK_INT(http_server_connections(w.server), 2);
    web_close_client(&c[1]);
    web_close_client(&c[2]);
    web_turns(&w, 3);
    CHECK_INT(http_server_connections(w.server), 0);
    web_close(&w);
}

TEST(who_asked_for_nothing_longest_makes_room_for_who_comes)
{
    struct web w;
    struct web_client c[4];

    open_web(&w, (struct http_limits){.connections = 3});
    const char *path = web_serve_unix(&w);
    for (int i = 0; i < 3; i++)
        web_dial(&w, &c[i], path);
    CHECK(web_send(&w, &c[0], STR(GET("/hello")))); /* so the second is idle longest */
    CHECK_STR(web_take(&w, &c[0]).body, "hello");
    CHECK(web_send(&w, &c[2], STR(HALF)));
    web_dial(&w, &c[3], path);
    CHECK(web_send(&w, &c[3], STR(GET("/hello"))));
    CHECK_STR(web_take(&w, &c[3]).body, "hello");
    CHECK_INT(http_server_connections(w.server), 3);
    web_read(&w, &c[1]);
    CHECK(c[1].eof);
    CHECK(web_send(&w, &c[0], STR(GET("/hello"))));
    CHECK_STR(web_take(&w, &c[0]).body, "hello");
    CHECK(web_send(&w, &c[2], STR("2")));
    CHECK_STR(web_take(&w, &c[2]).body, "hello");
    for (int i = 0; i < 4; i++)
        web_close_client(&c[i]);
    web_close(&w);
}

TEST(who_waits_comes_in_when_a_busy_one_has_become_idle)
{
    struct web w;
    struct web_client busy[20], late;

    open_web(&w, (struct http_limits){.connections = 20});
    const char *path = web_serve_unix(&w);
    for (int i = 0; i < 20; i++) {
        web_dial(&w, &busy[i], path);
        CHECK(web_send(&w, &busy[i], STR(HALF)));
    }
    web_dial(&w, &late, path);
    CHECK(web_send(&w, &late, STR(GET("/hello"))));
    web_read(&w, &late);
    CHECK_INT(late.len, 0);
    CHECK(web_send(&w, &busy[19], STR("2")));
    CHECK_STR(web_take(&w, &busy[19]).body, "hello");
    CHECK_STR(web_take(&w, &late).body, "hello");
    for (int i = 0; i < 20; i++)
        web_close_client(&busy[i]);
    web_close_client(&late);
    web_close(&w);
}

TEST(a_fault_while_the_limit_is_lifted_leaves_no_listener_deaf)
{
    for (unsigned n = 1; n < 12; n++) {
        struct web w;
        struct web_client first, second, third;
        open_web(&w, (struct http_limits){.connections = 1});
        const char *path = web_serve_unix(&w);
        web_dial(&w, &first, path);
        CHECK(web_send(&w, &first, STR(HALF)));
        web_dial(&w, &second, path);
        CHECK(web_send(&w, &second, STR(GET("/hello"))));
        fault_at(n);
        web_close_client(&first);
        web_turns(&w, 5);
        fault_at(0);
        web_pass(&w, 1000);
        web_close_client(&second); /* served or refused, by where the fault was */
        web_turns(&w, 5);
        web_dial(&w, &third, path);
        CHECK(web_send(&w, &third, STR(GET("/hello"))));
        CHECK_STR(web_take(&w, &third).body, "hello");
        web_close_client(&third);
        web_close(&w);
    }
}

TEST(accepting_goes_on_after_the_descriptors_ran_out)
{
    struct rlimit old, low;
    struct web w;
    struct web_client c, spare;

    open_web(&w, (struct http_limits){0});
    const char *path = web_serve_unix(&w);
    web_dial(&w, &spare, path);
    CHECK(web_send(&w, &spare, STR(HALF)));
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
    int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    low = old;
    low.rlim_cur = (rlim_t)fd + 1;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
    CHECK_INT(syscall(SYS_connect, fd, &addr, sizeof addr), 0);
    web_client_init(&c, fd, 4096);
    web_send(&w, &c, STR(GET("/hello")));
    web_pass(&w, 1000);
    CHECK_INT(http_server_connections(w.server), 1);
    fault_at(UINT32_MAX); /* while it waits it does not try again and again */
    web_turns(&w, 20);
    CHECK_INT(fault_calls(), 0);
    fault_at(0);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &old), 0);
    web_pass(&w, 1000);
    CHECK_STR(web_take(&w, &c).body, "hello");
    web_close_client(&c);
    web_close_client(&spare);
    web_close(&w);
}

TEST(an_idle_connection_holds_little_memory)
{
    enum { COUNT = 200 }; /* bench/idle has ten thousand */
    static struct web_client c[COUNT];
    struct web w;

    open_web(&w, (struct http_limits){0});
    CHECK_STR(web_ask(&w, STR(GET("/hello"))).body, "hello");
    for (int i = 0; i < COUNT; i++)
        web_client_init(&c[i], -1, 512);
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int i = 0; i < COUNT; i++) {
        int pair[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        c[i].fd = pair[0];
        CHECK_OK(http_server_serve(w.server, pair[1]));
        CHECK(web_send(&w, &c[i], STR(GET("/hello"))));
        CHECK(web_read(&w, &c[i]) > 0);
    }
    size_t now = mallinfo2().uordblks + mallinfo2().hblkhd;
    if (now > before) /* ASan's malloc has no mallinfo */
        CHECK((now - before) / COUNT <= 4096);
    fault_at(UINT32_MAX);
    web_turns(&w, 50);
    CHECK_INT(fault_calls(), 0);
    fault_at(0);
    for (int i = 0; i < COUNT; i++)
        web_close_client(&c[i]);
    web_close(&w);
}
