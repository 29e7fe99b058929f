// SPDX-License-Identifier: Apache-2.0
/* listen_test.c — addresses, unix sockets left over, and descriptors that were handed to us. */
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/test.h"

TEST(tcp_addresses_give_a_listener_with_a_name)
{
    static const struct {
        const char *address, *name;
    } rows[] = {
        {"127.0.0.1:0", "http://127.0.0.1:"},
        {"localhost:0", "http://127.0.0.1:"},
        {"[::1]:0", "http://[::1]:"},
        {"0.0.0.0:0", "http://0.0.0.0:"},
    };
    char name[200];
    int fd;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err *e = listen_open(str_of(rows[i].address), &fd);
        if (e && rows[i].address[0] == '[') { /* no IPv6 on this machine */
            err_free(e);
            continue;
        }
        CHECK_OK(e);
        CHECK_OK(listen_name(fd, false, name, sizeof name));
        CHECK_HAS(name, rows[i].name);
        CHECK_INT(listen_is_loopback(fd), i != 3);
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
        listen_close(fd);
    }
}

TEST(addresses_that_are_none_say_what_is_missing)
{
    static const struct {
        const char *address, *why;
    } rows[] = {
        {"", "port"},
        {"127.0.0.1", "port"},
        {"127.0.0.1:", "port"},
        {"127.0.0.1:http", "port"},
        {"127.0.0.1:65536", "port"},
        {"127.0.0.1:-1", "port"},
        {":80", "host"},
        {"[]:80", "host"},
        {"[::1:80", "host"},
        {"example.org:80", "numeric"},
        {"1.2.3:80", "numeric"},
        {"1.2.3.4.5:80", "numeric"},
        {"unix:", "1 to 107"},
        {"fd:", "fd:NUMBER"},
        {"fd:x", "fd:NUMBER"},
        {"fd:99999999999", "fd:NUMBER"},
    };
    int fd = -7;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_ERR(listen_open(str_of(rows[i].address), &fd), ERR_INVALID, rows[i].why);
    CHECK_INT(fd, -7);
    char longer[200] = "unix:/";
    memset(longer + 6, 'x', 150);
    CHECK_ERR(listen_open(str_of(longer), &fd), ERR_INVALID, "107");
}

TEST(a_port_in_use_is_a_conflict)
{
    char name[100];
    int fd, other;

    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_OK(listen_name(fd, false, name, sizeof name));
    CHECK_ERR(listen_open(str_of(name + strlen("http://")), &other), ERR_CONFLICT, "127.0.0.1");
    listen_close(fd);
}

static void unix_address(char out[300])
{
    snprintf(out, 300, "unix:%s/sock", test_dir());
}

TEST(a_unix_socket_is_removed_when_closed)
{
    char address[300], name[300];
    int fd;

    unix_address(address);
    CHECK_OK(listen_open(str_of(address), &fd));
    CHECK_OK(listen_name(fd, true, name, sizeof name));
    CHECK_STR(name, address);
    CHECK(listen_is_loopback(fd));
    CHECK_INT(access(address + 5, F_OK), 0);
    listen_close(fd);
    CHECK_INT(access(address + 5, F_OK), -1);
}

TEST(a_stale_socket_is_replaced_and_a_live_one_is_not)
{
    char address[300];
    int fd, other;

    unix_address(address);
    CHECK_OK(listen_open(str_of(address), &fd));
    CHECK_ERR(listen_open(str_of(address), &other), ERR_CONFLICT, "another server");
    close(fd); /* as in a crash: the file stays */
    CHECK_INT(access(address + 5, F_OK), 0);
    CHECK_OK(listen_open(str_of(address), &fd));
    listen_close(fd);
}

TEST(a_file_that_is_not_a_socket_stays)
{
    char address[300];
    struct stat st;
    int fd;

    unix_address(address);
    own_fd file = open(address + 5, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    CHECK_ERR(listen_open(str_of(address), &fd), ERR_CONFLICT, "not a socket");
    CHECK_INT(stat(address + 5, &st), 0);
    CHECK(S_ISREG(st.st_mode));
}

TEST(an_inherited_listener_is_taken_by_number)
{
    char address[40];
    int fd, got, plain[2];

    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_INT(fcntl(fd, F_SETFD, 0), 0);
    snprintf(address, sizeof address, "fd:%d", fd);
    CHECK_OK(listen_open(str_of(address), &got));
    CHECK_INT(got, fd);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    listen_close(fd);
    CHECK_ERR(listen_open(str_of(address), &got), ERR_IO, "descriptor");
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, plain), 0);
    snprintf(address, sizeof address, "fd:%d", plain[0]);
    CHECK_ERR(listen_open(str_of(address), &got), ERR_INVALID, "not a listening socket");
}

/* A socket file that systemd made is systemd's: it listens there again when we have gone. */
TEST(the_file_of_an_inherited_unix_socket_stays)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    char address[40];
    int got, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/theirs", test_dir());
    CHECK_INT(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    CHECK_INT(listen(fd, 5), 0);
    snprintf(address, sizeof address, "fd:%d", fd);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK_OK(listen_open(str_of(address), &got));
        listen_close(got);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_INT(access(addr.sun_path, F_OK), 0);
    listen_close(fd);
    CHECK_INT(access(addr.sun_path, F_OK), -1); /* ours to remove: we called listen */
}

TEST(a_fault_while_opening_leaves_nothing_open)
{
    char address[300];
    unsigned fds = test_open_fds();

    unix_address(address);
    for (int kind = 0; kind < 2; kind++) {
        unsigned n = 0;
        for (bool fired = true; fired;) {
            int fd = -1;
            fault_at(++n);
            struct err *e = listen_open(kind ? str_of(address) : STR("127.0.0.1:0"), &fd);
            fired = fault_fired();
            fault_at(0);
            CHECK(fired == (e != NULL));
            err_free(e);
            listen_close(fd);
            unlink(address + 5);
            CHECK_INT(test_open_fds(), fds);
        }
        CHECK(n > 2);
    }
}

TEST(a_connection_is_begun_without_waiting)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    int fd, client;

    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_INT(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    CHECK_OK(connect_start(&addr, len, &client));
    CHECK_OK(fd_wait(client, 4 /* POLLOUT */, 10000));
    close(client);
    listen_close(fd);
    CHECK(!addr_numeric(STR("example.org"), 80, &addr, &len));
    CHECK(!addr_numeric(STR(""), 80, &addr, &len));
    CHECK(addr_numeric(STR("LOCALHOST"), 80, &addr, &len));
    CHECK_ERR(addr_unix(STR("a\0b"), &addr, &len), ERR_INVALID, "socket path");
}

/* Whoever asks a port again and again until somebody listens there comes by it himself: the kernel
 * goes through its ports in order. */
TEST(a_connection_is_never_to_itself)
{
    int range = 0, on = 1, fd;
    struct sockaddr_storage addr;
    socklen_t len;

    if (!test_own_network())
        SKIP("needs a network of its own");
    own_fd any = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (setsockopt(any, IPPROTO_IP, 51 /* IP_LOCAL_PORT_RANGE */, &range, sizeof range) < 0)
        SKIP("this kernel chooses among all ports");
    CHECK(addr_numeric(STR("127.0.0.1"), 60000, &addr, &len));
    for (unsigned i = 0; i < 40000; i++) {
        CHECK_OK(connect_start(&addr, len, &fd));
        CHECK(send(fd, &on, 1, MSG_NOSIGNAL) < 0);
        close(fd);
    }
}

/* There the kernel cannot be told which ports not to take: it is refused, and the port is free. */
TEST(a_connection_to_itself_is_refused_whatever_range_a_machine_has)
{
    struct sockaddr_storage addr;
    socklen_t len;
    int fd;

    if (!test_own_network())
        SKIP("needs a network of its own");
    own_fd range = open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY | O_CLOEXEC);
    if (range < 0)
        SKIP("needs a network of its own to settle");
    CHECK_OK(fd_write_all(range, STR("20002 20002\n")));
    CHECK(addr_numeric(STR("127.0.0.1"), 20002, &addr, &len));
    for (unsigned i = 0; i < 20; i++) /* nothing of the one before is left in the way */
        CHECK_ERR(connect_start(&addr, len, &fd), ERR_UPSTREAM, "Connection refused");
    own_fd server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(server, (const struct sockaddr *)&addr, len), 0);
}
