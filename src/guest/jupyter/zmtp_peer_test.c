// SPDX-License-Identifier: Apache-2.0
/* zmtp_peer_test.c — the connection: it waits for its socket, and survives what answers there. */
#include "guest/jupyter/zmtp_peer.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"
#include "net/listen.h"
#include "net/stream.h"
#include "test/test.h"

struct seen {
    char text[512];
    bool failed, free_in_ready;
};

static void on_ready(struct zmtp_peer *p)
{
    struct seen *s = zmtp_peer_owner(p);

    strcat(s->text, "ready ");
    if (s->free_in_ready)
        zmtp_peer_free(p);
}

static void on_message(struct zmtp_peer *p, const struct zmtp_message *m)
{
    struct seen *s = zmtp_peer_owner(p);

    snprintf(s->text + strlen(s->text), 100, "message %.*s ", STR_ARG(m->parts[0]));
}

static void on_error(struct zmtp_peer *p, struct err *why)
{
    struct seen *s = zmtp_peer_owner(p);

    snprintf(s->text + strlen(s->text), 300, "%s", err_text(why));
    s->failed = true;
    err_free(why);
    zmtp_peer_free(p);
}

static const struct zmtp_peer_events events = {on_ready, on_message, on_error};

static const char *path(void)
{
    static char p[200];

    snprintf(p, sizeof p, "%s/s", test_dir());
    return p;
}

static int listen_here(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof a.sun_path, "%.100s", path());
    CHECK_INT(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    CHECK_INT(listen(fd, 1), 0);
    return fd;
}

/* What is seen of a server that says this and hangs up. */
static void against(struct str says, bool late, struct seen *s)
{
    own(loop) loop = NULL;
    own(net) net = NULL;
    struct zmtp_peer *p;
    own_fd fd = late ? -1 : listen_here();

    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_OK(net_new(loop, &net));
    CHECK_OK(zmtp_peer_new(net, path(), ZMTP_SUB, 5000, &events, s, &p));
    for (int i = 0; late && i < 5; i++)
        CHECK_OK(loop_turn(loop, 10));
    if (late)
        fd = listen_here();
    for (int i = 0; i < 10; i++)
        CHECK_OK(loop_turn(loop, 10));
    own_fd conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK(conn >= 0);
    CHECK_INT(write(conn, says.p, says.len), says.len);
    CHECK_INT(shutdown(conn, SHUT_WR), 0);
    while (!s->failed && !s->free_in_ready)
        CHECK_OK(loop_turn(loop, 1000));
    CHECK_OK(loop_turn(loop, 0));
    CHECK_OK(loop_turn(loop, 10));
    unlink(path());
}

#define GREETING                                                                                   \
    "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                             \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define READY "\4\x19\5READY\13Socket-Type\0\0\0\3PUB"

TEST(zmtp_peer_waits_for_a_socket_that_comes_later)
{
    struct seen s = {0};

    against(STR(GREETING READY "\0\2hi"), true, &s);
    CHECK_HAS(s.text, "ready message hi kernel socket '");
    CHECK_HAS(s.text, "the peer closed the connection");
}

TEST(zmtp_peer_refuses_another_protocol)
{
    struct seen s = {0};

    against(STR("SSH-2.0-OpenSSH_9.2p1\r\n"), false, &s);
    CHECK_HAS(s.text, "the peer does not speak ZMTP");
}

TEST(zmtp_peer_may_be_freed_in_its_callback)
{
    struct seen s = {.free_in_ready = true};

    against(STR(GREETING READY "\0\2hi"), false, &s);
    CHECK_STR(s.text, "ready ");
}

TEST(zmtp_peer_gives_up_at_its_deadline)
{
    own(loop) loop = NULL;
    own(net) net = NULL;
    struct zmtp_peer *p;
    struct seen s = {0};

    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_OK(net_new(loop, &net));
    CHECK_ERR(zmtp_peer_new(net, "", ZMTP_SUB, 50, &events, &s, &p), ERR_INVALID, "socket path");
    CHECK_OK(zmtp_peer_new(net, path(), ZMTP_SUB, 50, &events, &s, &p));
    CHECK_ERR(zmtp_peer_send(p, NULL, 0), ERR_CLOSED, "is not connected");
    while (!s.failed)
        CHECK_OK(loop_turn(loop, 1000));
    CHECK_HAS(s.text, "not ready after 50 ms");
}
