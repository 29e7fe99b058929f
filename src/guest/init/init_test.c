// SPDX-License-Identifier: Apache-2.0
/* init_test.c — pid 1 from the inside: every call of its start fails once, and nothing is left. The
 * programs from the outside are in test/wire/init_test.c. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/init/inner.h"
#include "net/listen.h"
#include "test/test.h"

static void check_starts(struct init_config config)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    int before = (int)test_open_fds();
    sigset_t mask;

    config.env = env;
    for (unsigned n = 1;; n++) {
        struct init in;
        fault_at(n);
        struct err *e = init_start(&in, &config);
        bool fired = fault_fired();
        fault_at(0);
        CHECK(fired || !e);
        if (!e)
            init_done(&in); /* some failures are mended later: a message is sent again */
        err_free(e);
        CHECK_INT(test_open_fds(), before);
        CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
        CHECK_INT(errno, ECHILD);
        sigemptyset(&mask);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        if (!fired)
            return;
    }
}

TEST(init_start_that_fails_leaves_nothing)
{
    static const char *const server[] = {"-c", "exec sleep 1000", NULL};
    static const char *const command[] = {"sleep", "1000", NULL};
    int connect_fd, control[2];

    CHECK_OK(listen_open(STR("127.0.0.1:0"), &connect_fd));
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
    struct init_config c = {.listen_fd = -1,
                            .ready_fd = -1,
                            .connect_fd = connect_fd,
                            .control_fd = control[0],
                            .program = "/bin/sh",
                            .argv = server};
    check_starts(c);
    c.exec = true;
    c.argv = command;
    check_starts(c);
    close(connect_fd);
    close(control[0]);
    close(control[1]);
}

/* Whether pid 1 has a forker, before anybody asked for one, when its server listens. */
static bool has_forker(bool claimed, uint32_t later_ms)
{
    static const char *const argv[] = {"-c", "exec sleep 1000", NULL}, *const env[] = {NULL};
    const struct held_message ready = {.kind = HELD_READY};
    struct init_config c = {.listen_fd = -1,
                            .ready_fd = -1,
                            .connect_fd = -1,
                            .control_fd = -1,
                            .program = "/bin/sh",
                            .argv = argv,
                            .env = env};
    struct init in;
    int server;

    CHECK_OK(init_start(&in, &c));
    init_wire_close(&in);
    CHECK_OK(init_wire_open(&in, &server)); /* we are it */
    in.bound = (struct wire_bind){.bytes = claimed ? strdup("") : NULL, .later_ms = later_ms};
    CHECK_OK(held_send(server, &ready, 0, NULL, 0));
    while (!in.ready)
        CHECK_OK(loop_turn(in.loop, -1));
    bool there = in.forker > 0;
    init_done(&in);
    close(server);
    return there;
}

TEST(the_forker_comes_with_a_claim_whose_shell_does_not_wait_and_else_with_a_command)
{
    CHECK(has_forker(true, 0));
    CHECK(has_forker(true, BIND_ALONE_MS));
    CHECK(!has_forker(true, BIND_ALONE_MS + 1));
    CHECK(!has_forker(false, 0)); /* started with all it needs, and nobody asks */
}

static struct init_config waiting_config(bool late)
{
    static const char *const argv[] = {"-c", "exec sleep 1000", NULL}, *const env[] = {NULL};

    return (struct init_config){.listen_fd = -1,
                                .ready_fd = -1,
                                .connect_fd = -1,
                                .control_fd = -1,
                                .await = true,
                                .late = late,
                                .program = "/bin/sh",
                                .argv = argv,
                                .env = env};
}

TEST(what_waits_for_its_claim_says_so_before_its_server_which_may_come_late)
{
    struct init_config c = waiting_config(true);
    struct init in;
    int ready[2];
    char byte = 0;

    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    c.ready_fd = ready[1];
    CHECK_OK(init_start(&in, &c));
    CHECK_INT(read(ready[0], &byte, 1), 1);
    CHECK_INT(byte, 'w');
    CHECK_INT(in.job, 0);
    while (!in.job)
        CHECK_OK(loop_turn(in.loop, -1));
    init_done(&in);
    close(ready[0]);
    close(ready[1]);
    c = waiting_config(false);
    CHECK_OK(init_start(&in, &c));
    CHECK(in.job > 0);
    init_done(&in);
}

static int listen_here(struct sockaddr_un *at)
{
    socklen_t len = sizeof *at;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK_INT(bind(fd, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)), 0);
    CHECK_INT(listen(fd, 1), 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)at, &len), 0);
    return fd;
}

static int connect_to(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK_INT(connect(fd, (const struct sockaddr *)at, sizeof(sa_family_t) + 6), 0);
    return fd;
}

static bool was_told(int server)
{
    struct held_message m = {.kind = 0};
    int fds[FD_PASS_MAX];
    size_t len, count;
    bool told = false;

    for (;;) {
        struct err *e = held_recv(server, &m, &len, fds, &count);
        if (e) {
            err_free(e);
            return told;
        }
        told |= m.kind == HELD_BIND;
        while (count--)
            close(fds[count]);
    }
}

static void check_byte(int ready, char byte)
{
    char c = 0;

    CHECK_INT(poll(&(struct pollfd){.fd = ready, .events = POLLIN}, 1, 0), byte != 0);
    CHECK_INT(byte ? read(ready, &c, 1) : 0, byte != 0);
    CHECK_INT(c, byte);
}

/* later_ms: far more than this test may take, or so little that nobody need connect. words: of the
 * claim, for our own server; NULL: of another program. held: they are right, and it is a crowd. */
static void check_crowd(uint32_t later_ms, bool connects, const char *const *words, bool held)
{
    struct init_config c = waiting_config(false);
    struct sockaddr_un at;
    struct init in;
    int server, ready[2];

    c.listen_fd = listen_here(&at);
    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    CHECK_OK(init_start(&in, &c));
    c.ready_fd = ready[1];
    init_wire_close(&in);
    CHECK_OK(init_wire_open(&in, &server)); /* we are it */
    in.bound = (struct wire_bind){.later_ms = later_ms};
    in.bind_fd = dup(server);
    c.await = false;
    if (words) {
        c.program = NULL;
        c.argv = words;
    }
    init_tell_claim(&in);
    check_byte(ready[0], held ? '1' : 0); /* else the server says so */
    CHECK_INT(was_told(server), !held);
    own_fd client = connects ? connect_to(&at) : -1;
    while (in.held)
        CHECK_OK(loop_turn(in.loop, -1));
    CHECK_INT(was_told(server), held);
    init_done(&in);
    close(server);
    close(ready[0]);
    own_close(c.ready_fd);
    close(c.listen_fd);
}

TEST(a_claim_in_a_crowd_listens_at_once_and_its_server_hears_of_it_when_wanted_or_in_time)
{
    check_crowd(BIND_LATER_MAX, true, NULL, true);
    check_crowd(BIND_ALONE_MS + 1, false, NULL, true);
    check_crowd(BIND_ALONE_MS, false, NULL, false);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define FOREIGN    "python3", "-u", "-m", "openhands.runtime.action_execution_server"

/* Nobody is told that what cannot start listens. */
TEST(a_claim_in_a_crowd_whose_words_are_wrong_is_its_servers_to_refuse_at_once)
{
    check_crowd(BIND_LATER_MAX, true, WORDS("action-server"), true);
    check_crowd(BIND_LATER_MAX, true,
                WORDS(FOREIGN, "60000", "--working-dir", "/w", "--plugins", "jupyter", "vscode",
                      "--username", "al", "--user-id=1000", "--no-enable-browser"),
                true);
    check_crowd(BIND_LATER_MAX, false, WORDS("action-server", "--bogus", "1"), false);
    check_crowd(BIND_LATER_MAX, false, WORDS(FOREIGN, "60000", "--user-id=many"), false);
    check_crowd(BIND_LATER_MAX, false, WORDS(FOREIGN, "60000", "60001"), false);
    check_crowd(BIND_LATER_MAX, false, WORDS(FOREIGN, "--working-dir"), false);
}

TEST(what_starts_late_listens_at_once_and_has_its_server_when_wanted_or_in_time)
{
    for (int connects = 0; connects < 2; connects++) {
        struct init_config c = waiting_config(true);
        struct sockaddr_un at;
        struct init in;
        int ready[2];

        c.await = false;
        c.listen_fd = listen_here(&at);
        CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
        c.ready_fd = ready[1];
        CHECK_OK(init_start(&in, &c));
        check_byte(ready[0], '1');
        CHECK_INT(in.job, 0);
        own_fd client = connects ? connect_to(&at) : -1;
        if (connects)
            loop_timer_stop(&in.restart); /* it does not come by that */
        CHECK(!in.kill.loop);
        while (!in.job)
            CHECK_OK(loop_turn(in.loop, -1));
        CHECK(in.kill.loop); /* nobody else ends it if it never listens */
        init_done(&in);
        close(ready[0]);
        close(c.listen_fd);
    }
}

TEST(held_gives_back_what_was_put_and_refuses_too_much)
{
    struct held k;
    struct held_message m = {.kind = HELD_HELLO, .id = 1u << HELD_OOM_SHIFT | HELD_INSIDE};
    int ends[2], spare = open("/dev/null", O_RDONLY | O_CLOEXEC), fds[FD_PASS_MAX];
    size_t len, count;
    unsigned before;

    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    before = test_open_fds();
    memcpy(m.data, "key", 3);
    CHECK_OK(held_send(ends[0], &m, 3, (int[]){spare, spare}, 2));
    m = (struct held_message){.kind = HELD_ITEM, .id = 7, .pid = 42};
    memcpy(m.data, "shell a", 7);
    CHECK_OK(held_send(ends[0], &m, 7, (int[]){spare, spare, spare}, 3));
    m = (struct held_message){.kind = HELD_END};
    CHECK_OK(held_send(ends[0], &m, 0, NULL, 0));
    CHECK_OK(held_open(&k, ends[1]));
    CHECK_STR(k.session_key, "key");
    CHECK_INT(k.oom_len, 1);
    CHECK(k.inside && !k.awaits && !k.may_rest && !k.tells);
    CHECK_INT(k.listen_fd, -1);
    CHECK(!held_take(&k, STR("undo ")));
    struct held_item *t = held_take(&k, STR("shell "));
    CHECK_INT(t->pid, 42);
    CHECK_INT(t->fds_len, 3);
    held_item_free(t);
    CHECK_INT(held_new_id(&k), 8); /* none is used twice */
    CHECK_OK(held_put(&k, 8, STR("x"), &spare, 1, 43));
    CHECK_OK(held_recv(ends[0], &m, &len, fds, &count));
    CHECK_INT(m.kind, HELD_ITEM);
    CHECK_INT(m.pid, 43);
    CHECK_INT(count, 1);
    close(fds[0]);
    char big[HELD_DATA_MAX + 1] = "";
    CHECK_ERR(held_put(&k, 9, str_n(big, sizeof big), NULL, 0, 0), ERR_TOO_LARGE, "too much");
    held_done(&k);
    CHECK_INT(test_open_fds(), before - 1);
    CHECK_OK(held_recv(ends[0], &m, &len, fds, &count));
    CHECK(len == SIZE_MAX);
    close(ends[0]);
    close(spare);
}

TEST(held_reads_the_counter_of_either_kind)
{
    CHECK_INT(held_parse_oom(STR("low 0\nhigh 2\nmax 0\noom 3\noom_kill 4\noom_group_kill 9\n")),
              4);
    CHECK_INT(held_parse_oom(STR("oom_kill_disable 0\nunder_oom 0\noom_kill 11\n")), 11);
    CHECK_INT(held_parse_oom(STR("")), 0);
    CHECK_INT(held_parse_oom(STR("oom_kill x\n")), 0);
    CHECK_INT(held_parse_oom(STR("oom_kill 5")), 5);
}
