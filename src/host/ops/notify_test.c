// SPDX-License-Identifier: Apache-2.0
#include "host/ops/notify.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/test.h"

TEST(a_service_manager_hears_our_lines)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char env[200], got[64] = "";
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%s/n", test_dir());
    CHECK_INT(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    snprintf(env, sizeof env, "NOTIFY_SOCKET=%s", at.sun_path);
    CHECK_OK(notify_send((const char *const[]){env, NULL}, "READY=1\nSTATUS=here"));
    CHECK(recv(fd, got, sizeof got - 1, MSG_DONTWAIT) > 0);
    CHECK_STR(got, "READY=1\nSTATUS=here");
    close(fd);
}

TEST(without_a_service_manager_nothing_is_said)
{
    CHECK_OK(notify_send((const char *const[]){NULL}, "READY=1"));
    CHECK_ERR(notify_send((const char *const[]){"NOTIFY_SOCKET=x", NULL}, "READY=1"), ERR_INVALID,
              "NOTIFY_SOCKET");
}

TEST(only_sockets_that_listen_and_are_meant_for_us_are_taken)
{
    int fds[NOTIFY_FDS_MAX], pair[2];
    size_t count = 9;
    char pid[40];

    snprintf(pid, sizeof pid, "LISTEN_PID=%d", getpid());
    CHECK_OK(notify_listen_fds((const char *const[]){"LISTEN_PID=1", "LISTEN_FDS=1", NULL}, fds,
                               &count));
    CHECK_INT(count, 0);
    CHECK_ERR(notify_listen_fds((const char *const[]){pid, "LISTEN_FDS=x", NULL}, fds, &count),
              ERR_INVALID, "LISTEN_FDS");
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_INT(dup2(pair[0], 3), 3);
    CHECK_ERR(notify_listen_fds((const char *const[]){pid, "LISTEN_FDS=1", NULL}, fds, &count),
              ERR_INVALID, "does not listen");
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(listen(listener, 1), 0);
    CHECK_INT(dup2(listener, 3), 3);
    CHECK_OK(notify_listen_fds((const char *const[]){pid, "LISTEN_FDS=1", NULL}, fds, &count));
    CHECK_INT(count, 1);
    CHECK_INT(fds[0], 3);
}

TEST(a_watchdog_is_fed_twice_per_period)
{
    CHECK_INT(notify_watchdog_ms((const char *const[]){"WATCHDOG_USEC=30000000", NULL}), 15000);
    CHECK_INT(notify_watchdog_ms((const char *const[]){NULL}), 0);
}
