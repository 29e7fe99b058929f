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

static struct init_config idle_config(bool await)
{
    static const char *const argv[] = {"-c", "exec sleep 1000", NULL}, *const env[] = {NULL};

    return (struct init_config){.listen_fd = -1,
                                .ready_fd = -1,
                                .connect_fd = -1,
                                .control_fd = -1,
                                .memory_fd = -1,
                                .await = await,
                                .program = "/bin/sh",
                                .argv = argv,
                                .env = env};
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

static void check_byte(int ready, char byte)
{
    char c = 0;

    CHECK_INT(poll(&(struct pollfd){.fd = ready, .events = POLLIN}, 1, 0), byte != 0);
    CHECK_INT(byte ? read(ready, &c, 1) : 0, byte != 0);
    CHECK_INT(c, byte);
}

TEST(what_waits_for_its_claim_says_so_and_has_no_server)
{
    struct init_config c = idle_config(true);
    struct init in;
    int ready[2];

    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    c.ready_fd = ready[1];
    CHECK_OK(init_start(&in, &c));
    check_byte(ready[0], 'w');
    CHECK_INT(in.job, 0);
    init_done(&in);
    close(ready[0]);
    close(ready[1]);
}

TEST(the_first_connection_makes_the_server)
{
    struct init_config c = idle_config(false);
    struct sockaddr_un at;
    struct init in;
    int ready[2];

    c.listen_fd = listen_here(&at);
    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    c.ready_fd = ready[1];
    CHECK_OK(init_start(&in, &c));
    check_byte(ready[0], '1');
    CHECK_INT(in.job, 0);
    CHECK_OK(loop_turn(in.loop, 0));
    CHECK(!in.job && !in.kill.loop);
    own_fd client = connect_to(&at);
    while (!in.job)
        CHECK_OK(loop_turn(in.loop, -1));
    CHECK(in.kill.loop); /* nobody else ends it if it never listens */
    CHECK(!in.inbound.loop);
    init_done(&in);
    close(ready[0]);
    close(c.listen_fd);
}

/* Waits: until somebody connects. Otherwise a server is made at once and speaks for itself. */
static void check_words(bool waits, const char *const *words)
{
    struct init_config c = idle_config(false);
    struct sockaddr_un at;
    struct init in;
    int ready[2];

    c.program = NULL;
    c.argv = words;
    c.listen_fd = listen_here(&at);
    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    c.ready_fd = ready[1];
    CHECK_OK(init_start(&in, &c));
    CHECK_INT(in.job > 0, !waits);
    if (waits)
        check_byte(ready[0], '1');
    init_done(&in);
    close(ready[0]);
    own_close(c.ready_fd);
    close(c.listen_fd);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define FOREIGN    "python3", "-u", "-m", "openhands.runtime.action_execution_server"

/* Nobody is told that what cannot start listens. */
TEST(a_server_whose_words_are_wrong_is_made_at_once_to_refuse_them)
{
    check_words(true, WORDS("action-server"));
    check_words(true,
                WORDS(FOREIGN, "60000", "--working-dir", "/usr/bin", "--plugins", "agent_skills",
                      "jupyter", "--username", "al", "--user-id=1000", "--no-enable-browser"));
    check_words(true, WORDS("action-server", "--user", "12345:7"));
    check_words(false, WORDS("action-server", "--user", "nobody-of-that-name"));
    check_words(false, WORDS("action-server", "--bogus", "1"));
    check_words(false, WORDS("action-server", "--working-dir", "/etc/passwd"));
    check_words(true, WORDS("action-server", "--working-dir", "/usr/is/not/there/yet"));
    check_words(false, WORDS(FOREIGN, "60000", "--user-id=many"));
    check_words(false, WORDS(FOREIGN, "60000", "60001"));
    check_words(false, WORDS(FOREIGN, "--working-dir"));
    check_words(false, WORDS(FOREIGN, "60000", "--plugins", "no-such-plugin"));
}

TEST(a_server_with_a_plugin_to_start_is_made_at_once)
{
    check_words(false, WORDS(FOREIGN, "60000", "--plugins", "vscode"));
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
    CHECK(k.inside && !k.again && !k.listens);
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
