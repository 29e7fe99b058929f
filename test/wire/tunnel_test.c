// SPDX-License-Identifier: Apache-2.0
/* tunnel_test.c — CONNECT through pid 1: bytes both ways, ends, limits, and what is refused. */
#include "test/init_kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#define BIG (8u << 20)

/* A port of loopback, as a program inside would open one. */
static int open_port(bool v6, uint16_t *ret_port)
{
    int fd;
    struct sockaddr_storage a;
    socklen_t len = sizeof a;

    CHECK_OK(listen_open(v6 ? STR("[::1]:0") : STR("127.0.0.1:0"), &fd));
    CHECK_INT(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *ret_port = ntohs(((struct sockaddr_in *)&a)->sin_port); /* at the same place in both */
    return fd;
}

static int accept_one(int listener)
{
    CHECK_OK(fd_wait(listener, POLLIN, 20000));
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static struct str ask(struct kit *k, struct str request)
{
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    wire_exchange(&k->tunnel, request, &got);
    return arena_copy(&k->arena, buf_str(&got));
}

static int open_tunnel(struct kit *k, const char *host, uint16_t port, const char *first)
{
    static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    char text[300], got[sizeof yes] = "";
    int fd = wire_connect(&k->tunnel);

    snprintf(text, sizeof text, "CONNECT %s:%u HTTP/1.1\r\nHost: x\r\n\r\n%s", host, port, first);
    wire_send(fd, str_of(text));
    CHECK_INT(recv(fd, got, sizeof yes - 1, MSG_WAITALL), sizeof yes - 1);
    CHECK_STR(got, yes);
    return fd;
}

static struct str receive(struct kit *k, int fd, size_t n)
{
    char *to = arena_alloc(&k->arena, n + 1);

    CHECK_INT(recv(fd, to, n, MSG_WAITALL), n);
    return str_n(to, n);
}

static void check_through(struct kit *k, const char *host, bool v6)
{
    uint16_t port;
    int listener = open_port(v6, &port);
    int outer = open_tunnel(k, host, port, "early"), inner = accept_one(listener);

    CHECK_STR(receive(k, inner, 5), "early"); /* what came with the request */
    wire_send(inner, STR("hello"));
    CHECK_STR(receive(k, outer, 5), "hello");
    CHECK_INT(shutdown(outer, SHUT_WR), 0); /* half an end is half an end */
    CHECK_STR(receive(k, inner, 0), "");
    char byte;
    CHECK_INT(recv(inner, &byte, 1, 0), 0);
    wire_send(inner, STR("still"));
    CHECK_STR(receive(k, outer, 5), "still");
    close(inner);
    CHECK_INT(recv(outer, &byte, 1, 0), 0);
    close(outer);
    close(listener);
}

TEST(tunnel_carries_bytes_both_ways_and_each_end_alone)
{
    struct kit k;

    kit_open(&k);
    check_through(&k, "127.0.0.1", false);
    check_through(&k, "localhost", false);
    check_through(&k, "localhost", true); /* a program that knows only the newer loopback */
    kit_close(&k);
}

TEST(tunnel_slows_a_sender_whose_receiver_is_slow)
{
    struct kit k;
    uint16_t port;
    own_free char *block = calloc(1, BIG);

    kit_open(&k);
    int listener = open_port(false, &port);
    int outer = open_tunnel(&k, "127.0.0.1", port, ""), inner = accept_one(listener);
    CHECK_OK(fd_set_nonblocking(inner));
    size_t sent = 0, got = 0;
    struct pollfd p = {.fd = inner, .events = POLLOUT};
    while (poll(&p, 1, 500) == 1) { /* nobody reads: it must stop somewhere */
        ssize_t n = send(inner, block, BIG, MSG_NOSIGNAL);
        CHECK(n > 0);
        sent += (size_t)n;
        CHECK(sent < 64u << 20);
    }
    close(inner); /* what was taken is delivered all the same */
    for (ssize_t n; (n = recv(outer, block, BIG, 0)) > 0;)
        got += (size_t)n;
    CHECK_INT(got, sent);
    close(outer);
    close(listener);
    kit_close(&k);
}

TEST(tunnel_refuses_every_other_host_and_request)
{
    struct kit k;
    static const struct {
        const char *request, *answer;
    } cases[] = {
        {"CONNECT 10.0.0.1:80 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 "},
        {"CONNECT 127.0.0.2:80 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 "},
        {"CONNECT 127.0.0.1.evil.example:80 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 "},
        {"CONNECT LOCALHOST:80 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 "},
        {"CONNECT [::1]:80 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 "},
        {"CONNECT 127.0.0.1:0 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400 "},
        {"CONNECT 127.0.0.1:65536 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400 "},
        {"CONNECT 127.0.0.1:-1 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400 "},
        {"CONNECT 127.0.0.1: HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400 "},
        {"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 502 "},
        {"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n", "HTTP/1.1 400 "},
        {"CONNECT 127.0.0.1:80 HTTP/1.1\nHost: x\n\n\r\n\r\n", "HTTP/1.1 400 "},
        {"CONNECT 127.0.0.1:80\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 "},
        {"\x16\x03\x01\r\n\r\n", "HTTP/1.1 400 "},
    };

    kit_open(&k);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str got = ask(&k, str_of(cases[i].request));
        if (!str_starts(got, str_of(cases[i].answer)))
            FAIL("%s: " STR_FMT, cases[i].request, STR_ARG(got));
    }
    own_free char *long_head = malloc(9000);
    memset(long_head, 'a', 9000);
    CHECK_HAS(ask(&k, str_n(long_head, 9000)), "HTTP/1.1 431 ");
    int half = wire_connect(&k.tunnel); /* and one that never says it all holds up nobody */
    wire_send(half, STR("CONNECT 127.0"));
    check_through(&k, "127.0.0.1", false);
    close(half);
    kit_close(&k);
}

TEST(tunnels_are_limited_and_outlive_the_server)
{
    struct kit k;
    uint16_t port;
    int outer[256], byte_fd;
    char byte;

    kit_open(&k);
    int listener = open_port(false, &port);
    for (size_t i = 0; i < ARRAY_LEN(outer); i++)
        outer[i] = wire_connect(&k.tunnel); /* each holds a place until it asks or time is up */
    int inner_of_last;
    char text[100];
    snprintf(text, sizeof text, "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: x\r\n\r\n", port);
    wire_send(outer[255], str_of(text));
    inner_of_last = accept_one(listener);
    byte_fd = wire_connect(&k.tunnel); /* one too many waits for a place */
    wire_send(byte_fd, str_of(text));
    CHECK_ERR(fd_wait(listener, POLLIN, 100), ERR_TIMEOUT, "");
    CHECK_INT(kill(kit_server(&k), SIGKILL), 0);
    close(outer[0]);
    close(accept_one(listener)); /* and gets it */
    wire_send(inner_of_last, STR("x"));
    receive(&k, outer[255], strlen("HTTP/1.1 200 Connection established\r\n\r\n"));
    CHECK_INT(recv(outer[255], &byte, 1, 0), 1);
    CHECK_INT(byte, 'x');
    for (size_t i = 1; i < ARRAY_LEN(outer); i++)
        close(outer[i]);
    close(byte_fd);
    close(inner_of_last);
    close(listener);
    kit_run(&k, "true"); /* the server is back */
    kit_close(&k);
}
