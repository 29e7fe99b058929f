// SPDX-License-Identifier: Apache-2.0
/* web.c — see web.h. */
#include "test/web.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/listen.h"
#include "test/test.h"

#define QUIET_TURNS 6

static uint64_t web_now(const struct clock *c)
{
    return container_of(c, struct web, clock)->now_ns;
}

void web_open(struct web *w, const struct route *routes, size_t count,
              const struct router_config *rc, const struct http_server_config *sc)
{
    struct http_server_config config = sc ? *sc : (struct http_server_config){0};

    *w = (struct web){.clock = {web_now, web_now}, .now_ns = 1000 * NS_PER_S};
    CHECK_OK(loop_new(&w->clock, &w->loop));
    CHECK_OK(net_new(w->loop, &w->net));
    w->dialer.net = w->net;
    w->router = router_new(rc);
    router_add(w->router, routes, count, config.ctx);
    config.router = w->router;
    CHECK_OK(http_server_new(w->net, &config, &w->server));
}

void web_close(struct web *w)
{
    http_server_free(w->server);
    dialer_done(&w->dialer);
    net_free(w->net);
    loop_free(w->loop);
    router_free(w->router);
}

void web_turns(struct web *w, int turns)
{
    for (int i = 0; i < turns; i++)
        CHECK_OK(loop_turn(w->loop, 0));
}

void web_pass(struct web *w, uint64_t ms)
{
    w->now_ns += ms * NS_PER_MS;
    web_turns(w, QUIET_TURNS);
}

void web_client_init(struct web_client *c, int fd, size_t cap_bytes)
{
    *c = (struct web_client){.fd = fd, .p = mem_new(cap_bytes), .cap = cap_bytes};
}

void web_connect(struct web *w, struct web_client *c, size_t cap_bytes)
{
    int pair[2];

    CHECK_INT(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
              0);
    web_client_init(c, pair[0], cap_bytes);
    CHECK_OK(http_server_serve(w->server, pair[1]));
}

void web_close_client(struct web_client *c)
{
    if (c->fd >= 0)
        close(take_fd(&c->fd));
    free(take(&c->p));
}

bool web_send(struct web *w, struct web_client *c, struct str data)
{
    for (int idle = 0; data.len && idle < 50;) {
        long n = syscall(SYS_sendto, c->fd, data.p, data.len, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
        if (n < 0 && errno != EAGAIN) {
            c->errnum = errno;
            return false;
        }
        idle = n > 0 ? 0 : idle + 1;
        data = str_from(data, n > 0 ? (size_t)n : 0);
        web_turns(w, 1);
    }
    return data.len == 0;
}

size_t web_read_some(struct web_client *c, size_t n)
{
    size_t room = c->cap - c->len;

    if (n > room)
        n = room;
    if (!n || c->eof || c->errnum)
        return 0;
    long got = syscall(SYS_recvfrom, c->fd, c->p + c->len, n, MSG_DONTWAIT, NULL, NULL);
    if (got == 0)
        c->eof = true;
    if (got < 0 && errno != EAGAIN)
        c->errnum = errno;
    c->len += got > 0 ? (size_t)got : 0;
    return got > 0 ? (size_t)got : 0;
}

size_t web_read(struct web *w, struct web_client *c)
{
    size_t all = 0;

    for (int idle = 0; idle < QUIET_TURNS;) {
        web_turns(w, 1);
        size_t n = web_read_some(c, c->cap);
        all += n;
        idle = n ? 0 : idle + 1;
    }
    return all;
}

/* Decodes the body behind the head in place; gives where it ends, or 0 when it is not whole. */
static size_t take_body(struct web_client *c, size_t head_end, struct http_head *h,
                        struct str *ret_body)
{
    struct http_body b;
    struct str in = str_n(c->p + head_end, c->len - head_end), piece;
    char *to = c->p + head_end;

    http_body_init(&b, h);
    while (!b.done) {
        CHECK_OK(http_body_next(&b, &in, &piece));
        if (piece.len)
            memmove(to, piece.p, piece.len);
        to += piece.len;
        if (!in.len && !b.done)
            break;
    }
    if (!b.done && c->eof)
        CHECK_OK(http_body_eof(&b));
    *ret_body = str_n(c->p + head_end, (size_t)(to - c->p) - head_end);
    return b.done ? (size_t)(in.p - c->p) : 0;
}

struct web_answer web_take(struct web *w, struct web_client *c)
{
    static struct arena arena; /* of the answer before; reached from here, so it is no leak */
    static char *copy;
    struct http_head h;
    size_t scanned = 0, end = 0;

    web_read(w, c);
    CHECK_OK(http_head_end(str_n(c->p, c->len), &scanned, &end));
    if (!end)
        FAIL("no answer (%zu bytes, eof %d, errno %d)", c->len, c->eof, c->errnum);
    arena_done(&arena);
    arena_init(&arena, 1u << 20);
    free(copy);
    copy = malloc(c->cap);
    CHECK(copy != NULL);
    memcpy(copy, c->p, c->len);
    struct str head = str_n(copy, end);
    CHECK_OK(http_parse_response(&arena, head, STR("GET"), &h));
    struct web_client view = *c;
    view.p = copy;
    struct str body = {NULL, 0};
    size_t used = take_body(&view, end, &h, &body);
    if (!used)
        FAIL("half an answer: %d, %zu bytes of body, eof %d, errno %d", h.status, body.len, c->eof,
             c->errnum);
    memmove(c->p, c->p + used, c->len - used);
    c->len -= used;
    return (struct web_answer){h.status, head, body, h.keep_alive};
}

struct web_answer web_ask(struct web *w, struct str request)
{
    struct web_client c;

    web_connect(w, &c, 1u << 20);
    web_send(w, &c, request);
    struct web_answer a = web_take(w, &c);
    web_close_client(&c);
    web_turns(w, 3);
    return a;
}

void web_dial(struct web *w, struct web_client *c, const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    CHECK_INT(syscall(SYS_connect, fd, &addr, sizeof addr), 0);
    web_client_init(c, fd, 4096);
    web_turns(w, 2);
}

const char *web_serve_unix(struct web *w)
{
    static char path[200], address[210];
    int fd;

    snprintf(path, sizeof path, "%s/sock", test_dir());
    snprintf(address, sizeof address, "unix:%s", path);
    CHECK_OK(listen_open(str_of(address), &fd));
    CHECK_OK(http_server_listen(w->server, fd));
    return path;
}
