// SPDX-License-Identifier: Apache-2.0
/* relay_test.c — upgrades: WebSocket and any other protocol after a 101. */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/proxy/proxy.h"
#include "net/listen.h"
#include "net/ws_peer.h"
#include "out/dial.h"
#include "test/program.h"
#include "test/proxy_kit.h"
#include "test/test.h"

#define MB      (1u << 20)
#define UPGRADE "Connection: Upgrade, keep-alive\r\nUpgrade: raw\r\n"
#define REQUEST STR("GET /up HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-ID: i\r\n" UPGRADE "\r\n")
#define ANSWER                                                                                     \
    STR("HTTP/1.1 101 Ok\r\nConnection: Upgrade\r\nUpgrade: raw\r\nSec-X: y\r\nKeep-Alive: "       \
        "3\r\n\r\n")

struct pair { /* a client, and the sandbox's end of its connection */
    struct pkit k;
    struct web_client c, s;
    int listener;
};

/* The test itself is the sandbox. */
static void pair_open(struct pair *p, struct str early)
{
    char address[110];

    pkit_open(&p->k, NULL, NULL, 0);
    snprintf(address, sizeof address, "unix:%s/own.sock", test_dir());
    CHECK_OK(listen_open(str_of(address), &p->listener));
    snprintf(p->k.t.address.unix_path, sizeof p->k.t.address.unix_path, "%s", address + 5);
    pkit_dial(&p->k, p->k.t.port, &p->c, MB);
    CHECK(web_send(&p->k.web, &p->c, REQUEST));
    CHECK(web_send(&p->k.web, &p->c, early)); /* before anybody agreed */
    web_turns(&p->k.web, PKIT_TURNS);
    int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    CHECK(fd >= 0);
    web_client_init(&p->s, fd, MB);
    web_read(&p->k.web, &p->s);
    CHECK_HAS(str_n(p->s.p, p->s.len), "Connection: Upgrade\r\nUpgrade: raw\r\n");
    p->s.len = 0;
}

static void pair_close(struct pair *p)
{
    web_close_client(&p->c);
    web_close_client(&p->s);
    web_turns(&p->k.web, PKIT_TURNS);
    CHECK_INT(p->k.t.open, 0);
    listen_close(p->listener);
    pkit_close(&p->k);
}

static void check_read(struct pair *p, struct web_client *c, const char *want)
{
    web_turns(&p->k.web, PKIT_TURNS);
    web_read(&p->k.web, c);
    CHECK_STR(str_n(c->p, c->len), want);
    c->len = 0;
}

static void say(struct pair *p, struct web_client *c, struct str text)
{
    CHECK(web_send(&p->k.web, c, text));
}

TEST(after_a_101_bytes_go_both_ways_the_early_ones_first)
{
    struct pair p;

    pair_open(&p, STR("early "));
    say(&p, &p.s, ANSWER);
    say(&p, &p.s, STR("welcome"));
    check_read(&p, &p.c,
               "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n"
               "Sec-X: y\r\nx-request-id: i\r\n\r\nwelcome");
    check_read(&p, &p.s, "early ");
    CHECK_INT(p.k.t.open, 1);
    say(&p, &p.c, STR("ping"));
    check_read(&p, &p.s, "ping");
    say(&p, &p.s, STR("pong"));
    check_read(&p, &p.c, "pong");
    web_pass(&p.k.web, 24u * 3600 * 1000); /* silence is no end */
    say(&p, &p.c, STR("still"));
    check_read(&p, &p.s, "still");
    pair_close(&p);
}

TEST(an_end_of_one_side_is_an_end_of_that_direction_only)
{
    struct pair p;

    pair_open(&p, STR(""));
    say(&p, &p.s, ANSWER);
    web_read(&p.k.web, &p.c);
    p.c.len = 0;
    say(&p, &p.c, STR("last"));
    CHECK_INT(shutdown(p.c.fd, SHUT_WR), 0);
    check_read(&p, &p.s, "last");
    CHECK(p.s.eof);
    CHECK(!p.c.eof);
    say(&p, &p.s, STR("and the rest"));
    CHECK_INT(shutdown(p.s.fd, SHUT_WR), 0);
    check_read(&p, &p.c, "and the rest");
    CHECK(p.c.eof);
    web_turns(&p.k.web, PKIT_TURNS);
    CHECK_INT(p.k.t.open, 0);
    for (unsigned i = 0; i < PROXY_DROPS; i++)
        CHECK_INT(proxy_stats(p.k.proxy)->drops[i], 0);
    pair_close(&p);
}

/* Closed with bytes that nobody read: the other side is told of a reset. */
TEST(a_relay_that_breaks_is_counted_with_the_side_that_did)
{
    struct pair p;

    pair_open(&p, STR(""));
    say(&p, &p.s, ANSWER);
    web_turns(&p.k.web, PKIT_TURNS);
    struct linger at_once = {.l_onoff = 1};
    CHECK_INT(setsockopt(p.c.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    web_close_client(&p.c);
    web_turns(&p.k.web, PKIT_TURNS);
    CHECK_INT(proxy_stats(p.k.proxy)->drops[PROXY_DROP_CLIENT], 1);
    CHECK_INT(proxy_stats(p.k.proxy)->relays, 0);
    pair_close(&p);
}

TEST(a_refused_upgrade_is_an_answer_like_any_other)
{
    struct pair p;

    pair_open(&p, STR(""));
    say(&p, &p.s, STR("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"));
    struct web_answer a = pkit_take(&p.k, &p.c);
    CHECK_INT(a.status, 403);
    CHECK(a.keep_alive);
    pair_close(&p);
}

/* How much one side takes before it must wait; then all comes through. */
static void flood(struct pair *p, struct web_client *from, struct web_client *to)
{
    static char block[MB];
    size_t sent = 0, got = 0, all = 40u * MB;
    size_t before = mallinfo2().uordblks;

    for (int idle = 0; idle < 20; idle++) {
        ssize_t n = send(from->fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle;
        web_turns(&p->k.web, 1);
    }
    CHECK(sent < all / 2);
    CHECK(mallinfo2().uordblks < before + 2 * MB);
    for (int idle = 0; idle < 200 && got < all; idle++) {
        size_t left = all - sent < MB ? all - sent : MB;
        ssize_t n = left ? send(from->fd, block, left, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        sent += n > 0 ? (size_t)n : 0;
        web_turns(&p->k.web, 1);
        size_t r = web_read_some(to, MB);
        got += r;
        to->len = 0;
        idle = r ? 0 : idle;
        if (!r) /* a turn waits for nothing, and the kernel may be busy with the bytes */
            poll(&(struct pollfd){.fd = to->fd, .events = POLLIN}, 1, 10);
    }
    CHECK_INT(got, all);
}

TEST(who_does_not_read_holds_the_other_back)
{
    struct pair p;

    pair_open(&p, STR(""));
    say(&p, &p.s, ANSWER);
    web_turns(&p.k.web, PKIT_TURNS);
    web_read(&p.k.web, &p.c);
    p.c.len = 0;
    flood(&p, &p.s, &p.c);
    flood(&p, &p.c, &p.s);
    say(&p, &p.s, STR("alive"));
    check_read(&p, &p.c, "alive");
    pair_close(&p);
}

TEST(a_sandbox_that_goes_takes_its_relays_along)
{
    struct pair p;

    pair_open(&p, STR(""));
    say(&p, &p.s, ANSWER);
    web_turns(&p.k.web, PKIT_TURNS);
    web_read(&p.k.web, &p.c);
    proxy_set_state(p.k.proxy, &p.k.t, PROXY_PAUSED); /* held, not cut */
    web_turns(&p.k.web, PKIT_TURNS);
    CHECK_INT(p.k.t.open, 1);
    CHECK_INT(proxy_stats(p.k.proxy)->relays, 1);
    proxy_set_state(p.k.proxy, &p.k.t, PROXY_GONE);
    CHECK_INT(p.k.t.open, 0);
    CHECK_INT(proxy_stats(p.k.proxy)->relays, 0);
    CHECK_INT(proxy_stats(p.k.proxy)->drops[PROXY_DROP_REMOVED], 1);
    web_read(&p.k.web, &p.c);
    CHECK(p.c.eof || p.c.errnum);
    pair_close(&p);
}

/* --- the npm package ws --- */

struct node {
    struct loop_child child;
    bool ended;
};

static void on_node_end(struct loop_child *c)
{
    container_of(c, struct node, child)->ended = true;
}

static bool has_ended(void *ctx)
{
    return ((struct node *)ctx)->ended;
}

TEST_LIMIT(a_real_websocket_client_is_satisfied_through_the_proxy, 120)
{
    struct proxy_target t = {.id = "t", .state = PROXY_OPEN};
    struct node node = {0};
    char modules[512], script[512], url[110];
    struct proxy *proxy;
    struct ws_rig r;
    int fd;

    snprintf(modules, sizeof modules, "%s", test_source("build/npm/node_modules"));
    snprintf(script, sizeof script, "%s", test_source("test/wire/ws_peer.mjs"));
    if (access(modules, R_OK) != 0)
        SKIP("npm package ws is not there (npm install --prefix build/npm ws)");
    ws_rig_init(&r);
    r.quiet = true;
    snprintf(url, sizeof url, "unix:%s/ws.sock", test_dir());
    CHECK_OK(listen_open(str_of(url), &fd));
    CHECK_OK(http_server_listen(r.server, fd));
    snprintf(t.address.unix_path, sizeof t.address.unix_path, "%s", url + 5);
    CHECK_OK(proxy_new(&(struct proxy_config){.dialer = &(struct dialer){.net = r.net}}, &proxy));
    CHECK_OK(proxy_add(proxy, &t, 0));
    snprintf(url, sizeof url, "ws://127.0.0.1:%u/echo", t.port);
    pid_t pid =
        program_start(&(struct program){.argv = ARGS("node", script, modules, "check", url)});
    CHECK_OK(loop_child_start(r.loop, &node.child, pid, -1, on_node_end));
    ws_rig_until(&r, has_ended, &node);
    if (node.child.code == CLD_EXITED && node.child.status == 127)
        SKIP("node is not there");
    CHECK_INT(node.child.code, CLD_EXITED);
    CHECK_INT(node.child.status, 0);
    proxy_free(proxy);
    r.ws = NULL;
    ws_rig_done(&r);
}
