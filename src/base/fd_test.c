// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "test/test.h"

static struct str content_of(struct buf *b, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    buf_reset(b);
    CHECK_OK(fd_read_file(path, b));
    return buf_str(b);
}

static unsigned files_in(const char *path)
{
    DIR *d = opendir(path);
    unsigned n = 0;

    CHECK(d != NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

TEST(replace_file_gives_the_new_content_and_the_mode_asked_for)
{
    own_done(buf) b;
    own_fd dir = test_dir_fd();
    struct stat st;

    buf_init(&b, 1 << 20);
    CHECK_OK(fd_replace_file(dir, "f", STR("one"), 0600));
    CHECK_STR(content_of(&b, "f"), "one");
    CHECK_OK(fd_replace_file(dir, "f", STR(""), 0600));
    CHECK_STR(content_of(&b, "f"), "");
    CHECK(fstatat(dir, "f", &st, 0) == 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_INT(files_in(test_dir()), 1);
}

TEST(replace_file_replaces_a_link_and_leaves_what_it_pointed_to)
{
    own_done(buf) b;
    own_fd dir = test_dir_fd();

    buf_init(&b, 1 << 20);
    CHECK_OK(fd_replace_file(dir, "target", STR("kept"), 0600));
    CHECK(symlinkat("target", dir, "link") == 0);
    CHECK_OK(fd_replace_file(dir, "link", STR("new"), 0600));
    CHECK_STR(content_of(&b, "target"), "kept");
    CHECK_STR(content_of(&b, "link"), "new");
}

TEST(replace_file_takes_a_name_and_no_path)
{
    static const char *const names[] = {"", ".", "..", "a/b", "../f", "/f"};
    own_fd dir = test_dir_fd();

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CHECK_ERR(fd_replace_file(dir, names[i], STR("x"), 0600), ERR_INVALID, "not the name");
    CHECK_INT(files_in(test_dir()), 0);
}

TEST(replace_file_leaves_old_or_new_and_nothing_else_whatever_call_fails)
{
    own_done(buf) b;
    own_fd dir = test_dir_fd();
    unsigned old_seen = 0, new_seen = 0, n = 1, before = test_open_fds();

    buf_init(&b, 1 << 20);
    for (bool fired = true; fired; n++) {
        CHECK_OK(fd_replace_file(dir, "f", STR("old"), 0600));
        fault_at(n);
        struct err *e = fd_replace_file(dir, "f", STR("new"), 0600);
        fired = fault_fired();
        fault_at(0);
        CHECK((e != NULL) == fired);
        err_free(e);
        struct str now = content_of(&b, "f");
        CHECK(str_eq(now, STR("old")) || str_eq(now, STR("new")));
        old_seen += str_eq(now, STR("old"));
        new_seen += str_eq(now, STR("new"));
        CHECK_INT(files_in(test_dir()), 1);
        CHECK_INT(test_open_fds(), before);
    }
    /* open, write, fsync and rename keep the old one; then the directory's open and fsync, and
     * the round in which nothing fails */
    CHECK_INT(old_seen, 4);
    CHECK_INT(new_seen, 3);
}

TEST(read_all_stops_at_the_limit_and_says_so)
{
    own_done(buf) fits, small;
    own_fd dir = test_dir_fd();
    static char data[10000];

    memset(data, 'd', sizeof data);
    CHECK_OK(fd_replace_file(dir, "f", str_n(data, sizeof data), 0600));
    buf_init(&fits, sizeof data);
    CHECK_STR(content_of(&fits, "f"), str_n(data, sizeof data));
    buf_init(&small, sizeof data - 1);
    own_fd fd = openat(dir, "f", O_RDONLY | O_CLOEXEC);
    CHECK_ERR(fd_read_all(fd, &small), ERR_TOO_LARGE, "9999");
    CHECK_INT(small.len, 9999);
}

TEST(read_all_appends_and_names_the_file_it_cannot_open)
{
    own_done(buf) b;
    own_fd dir = test_dir_fd();

    buf_init(&b, 100);
    CHECK_OK(fd_replace_file(dir, "f", STR("tail"), 0600));
    buf_add(&b, STR("head "));
    own_fd fd = openat(dir, "f", O_RDONLY | O_CLOEXEC);
    CHECK_OK(fd_read_all(fd, &b));
    CHECK_STR(buf_str(&b), "head tail");
    CHECK_ERR(fd_read_file("/nonexistent/x", &b), ERR_NOT_FOUND, "open '/nonexistent/x': No such");
    fault_at(1);
    CHECK_ERR(fd_read_all(fd, &b), ERR_IO, "read");
}

TEST(write_all_writes_on_after_a_short_write)
{
    int pair[2];
    static char data[300000], got[300000];
    size_t have = 0;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 31 >> 3);
    CHECK(pipe2(pair, O_CLOEXEC) == 0); /* holds 64 KB: write cannot take all at once */
    pid_t pid = fork();
    if (pid == 0) {
        struct err *e = fd_write_all(pair[1], str_n(data, sizeof data));
        _exit(e != NULL);
    }
    close(pair[1]);
    for (ssize_t n; (n = read(pair[0], got + have, sizeof got - have)) > 0;)
        have += (size_t)n;
    CHECK_STR(str_n(got, have), str_n(data, sizeof data));
    close(pair[0]);
    CHECK_ERR(fd_write_all(-1, STR("x")), ERR_IO, "write");
    CHECK_OK(fd_write_all(-1, STR("")));
}

TEST(nonblocking_is_set_and_keeps_the_other_flags)
{
    int pair[2];
    char c;

    CHECK(pipe2(pair, O_CLOEXEC) == 0);
    CHECK_OK(fd_set_nonblocking(pair[0]));
    CHECK(read(pair[0], &c, 1) < 0 && errno == EAGAIN);
    CHECK(fcntl(pair[0], F_GETFD) & FD_CLOEXEC);
    CHECK_ERR(fd_set_nonblocking(-1), ERR_IO, "non-blocking");
}

static void on_alarm(int sig)
{
    (void)sig;
}

TEST(wait_ends_when_ready_hung_up_or_out_of_time_and_not_for_a_signal)
{
    int pair[2];
    struct sigaction sa = {.sa_handler = on_alarm};
    struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};

    CHECK(pipe2(pair, O_CLOEXEC) == 0);
    CHECK_OK(fd_wait(pair[1], POLLOUT, 1000));
    CHECK_ERR(fd_wait(pair[0], POLLIN, 0), ERR_TIMEOUT, "0 ms");
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    uint64_t start = clock_mono_ns(&clock_system);
    CHECK_ERR(fd_wait(pair[0], POLLIN, 50), ERR_TIMEOUT, "50 ms");
    uint64_t spent_ms = (clock_mono_ns(&clock_system) - start) / NS_PER_MS;
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(spent_ms >= 45); /* signals in between do not end the waiting */
    CHECK(write(pair[1], "x", 1) == 1);
    CHECK_OK(fd_wait(pair[0], POLLIN, -1));
    close(pair[1]);
    CHECK_OK(fd_wait(pair[0], POLLIN, -1));
    CHECK_ERR(fd_wait(4000, POLLIN, -1), ERR_IO, "Bad file descriptor");
}

static void socket_pair(int type, int pair[2])
{
    CHECK(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) == 0);
}

TEST(descriptors_travel_with_their_bytes_and_arrive_close_on_exec)
{
    int pair[2], pipes[2], got[FD_PASS_MAX];
    char data[16];
    size_t len, count;

    socket_pair(SOCK_STREAM, pair);
    CHECK(pipe(pipes) == 0);
    CHECK_OK(fd_send(pair[0], STR("hello"), pipes, 2));
    CHECK_OK(fd_recv(pair[1], data, sizeof data, &len, got, FD_PASS_MAX, &count));
    CHECK_STR(str_n(data, len), "hello");
    CHECK_INT(count, 2);
    CHECK(fcntl(got[0], F_GETFD) & fcntl(got[1], F_GETFD) & FD_CLOEXEC);
    CHECK(write(got[1], "!", 1) == 1);
    CHECK(read(pipes[0], data, 1) == 1 && data[0] == '!');
    CHECK_OK(fd_send(pair[0], STR("plain"), NULL, 0));
    CHECK_OK(fd_recv(pair[1], data, sizeof data, &len, NULL, 0, &count));
    CHECK_STR(str_n(data, len), "plain");
    CHECK_INT(count, 0);
    close(pair[0]);
    CHECK_OK(fd_recv(pair[1], data, sizeof data, &len, got, FD_PASS_MAX, &count));
    CHECK_INT(len, 0);
}

TEST(the_full_number_of_descriptors_passes_and_one_more_is_refused)
{
    int pair[2], many[FD_PASS_MAX + 1], got[FD_PASS_MAX];
    char data[4];
    size_t len, count;

    socket_pair(SOCK_SEQPACKET, pair);
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = pair[0];
    CHECK_OK(fd_send(pair[0], STR("x"), many, FD_PASS_MAX));
    CHECK_OK(fd_recv(pair[1], data, sizeof data, &len, got, FD_PASS_MAX, &count));
    CHECK_INT(count, FD_PASS_MAX);
    CHECK_ERR(fd_send(pair[0], STR("x"), many, FD_PASS_MAX + 1), ERR_LIMIT, "33 descriptors");
    CHECK_ERR(fd_send(pair[0], STR(""), many, 1), ERR_INVALID, "a byte");
}

/* Sends more descriptors than fd_recv has room for, which fd_send would not. */
static void send_many(int sock, size_t count)
{
    static union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(100 * sizeof(int))];
    } control;
    struct iovec iov = {(void *)"x", 1};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; i++)
        memcpy(CMSG_DATA(c) + i * sizeof(int), &sock, sizeof(int));
    CHECK(sendmsg(sock, &m, 0) == 1);
}

TEST(surplus_descriptors_are_closed_and_the_message_refused)
{
    int pair[2], got[100] = {-1};
    char data[4];
    size_t len = 99, count = 99;

    socket_pair(SOCK_STREAM, pair);
    unsigned before = test_open_fds();
    send_many(pair[0], 3);
    CHECK_ERR(fd_recv(pair[1], data, 4, &len, got, 2, &count), ERR_LIMIT, "more than");
    CHECK_INT(test_open_fds(), before);
    send_many(pair[0], 100); /* more than any room: MSG_CTRUNC */
    CHECK_ERR(fd_recv(pair[1], data, 4, &len, got, 100, &count), ERR_LIMIT, "more than");
    CHECK_INT(test_open_fds(), before);
    CHECK(got[0] == -1 && len == 99 && count == 99);
}

TEST(a_cut_packet_is_refused_and_its_descriptors_closed)
{
    int pair[2], got[2];
    char data[4];
    size_t len, count;

    socket_pair(SOCK_SEQPACKET, pair);
    unsigned before = test_open_fds();
    CHECK_OK(fd_send(pair[0], STR("too long"), pair, 1));
    CHECK_ERR(fd_recv(pair[1], data, 4, &len, got, 2, &count), ERR_TOO_LARGE, "longer");
    CHECK_INT(test_open_fds(), before);
}

TEST(a_long_message_is_sent_whole_and_a_gone_peer_is_an_error_not_a_signal)
{
    int pair[2], got[1];
    static char data[1 << 20], back[1 << 20];
    size_t len, count, have;

    signal(SIGPIPE, SIG_DFL);
    memset(data, 'm', sizeof data);
    socket_pair(SOCK_STREAM, pair);
    CHECK_OK(fd_set_nonblocking(pair[0]));
    pid_t pid = fork();
    if (pid == 0) {
        struct err *e = fd_send(pair[0], str_n(data, sizeof data), pair, 1);
        _exit(e != NULL);
    }
    CHECK_OK(fd_recv(pair[1], back, sizeof back, &have, got, 1, &count));
    CHECK_INT(count, 1);
    close(got[0]);
    close(pair[0]);
    while (have < sizeof back) {
        CHECK_OK(fd_recv(pair[1], back + have, sizeof back - have, &len, NULL, 0, &count));
        CHECK(len > 0);
        have += len;
    }
    CHECK(memcmp(data, back, sizeof data) == 0);
    socket_pair(SOCK_STREAM, pair);
    close(pair[1]);
    CHECK_ERR(fd_send(pair[0], STR("x"), NULL, 0), ERR_CLOSED, "send");
}

TEST(a_tree_is_removed_and_links_are_not_followed)
{
    int dir = test_dir_fd();

    CHECK(mkdirat(dir, "kept", 0755) == 0 && mkdirat(dir, "tree", 0755) == 0);
    CHECK(mkdirat(dir, "tree/sub", 0755) == 0 && mkdirat(dir, "tree/sub/empty", 0755) == 0);
    CHECK(mknodat(dir, "kept/file", S_IFREG | 0644, 0) == 0);
    CHECK(mknodat(dir, "tree/sub/file", S_IFREG | 0644, 0) == 0);
    CHECK(symlinkat("../kept", dir, "tree/link") == 0);
    fd_remove_tree(dir, "tree");
    fd_remove_tree(dir, "not there");
    CHECK(faccessat(dir, "tree", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
    CHECK(faccessat(dir, "kept/file", F_OK, 0) == 0);
    fd_remove_tree(dir, "kept/file");
    CHECK(faccessat(dir, "kept/file", F_OK, 0) < 0);
}
