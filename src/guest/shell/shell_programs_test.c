// SPDX-License-Identifier: Apache-2.0
/* Rows of the contract's table that need a program of the machine, and failing system calls. */
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/own.h"
#include "test/test.h"

#include "guest/shell/shell_kit.h"

static void need(const char *program)
{
    if (access(program, X_OK) != 0)
        SKIP("needs %s", program);
}

/* It says that it serves before it is ready for a C-c; once it has answered, it is. */
static void await_server(const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)atoi(port ? port + 5 : ""))};
    static const char ask[] = "HEAD / HTTP/1.0\r\n\r\n";
    own_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char byte;

    CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    CHECK_INT(write(fd, ask, sizeof ask - 1), sizeof ask - 1);
    CHECK_INT(read(fd, &byte, 1), 1);
}

TEST(shell_runs_a_server_and_interrupts_it) /* 25 26 27 28 */
{
    struct kit k;

    need("/usr/bin/python3");
    kit_open(&k);
    kit_ask(&k, (struct shell_request){.command = STR("python3 -u -m http.server 0"),
                                       .hard_timeout_s = 30,
                                       .soft_timeout_ms = 1500});
    for (int i = 0; i < 20 && !strstr(k.content, "Serving HTTP on"); i++) /* a busy machine */
        kit_ask(&k, (struct shell_request){.command = STR(""), .soft_timeout_ms = 1500});
    CHECK_INT(k.exit_code, -1);
    CHECK_HAS(k.content, "Serving HTTP on");
    await_server(strstr(k.content, "port "));
    kit_ask(&k,
            (struct shell_request){
                .command = STR("C-c"), .is_input = true, .hard_timeout_s = 30, .blocking = true});
    CHECK_HAS(k.content, "Keyboard interrupt received, exiting.");
    CHECK_INT(k.exit_code, 0);
    kit_run(&k, "ls");
    CHECK_INT(k.exit_code, 0);
    CHECK(!strstr(k.content, "Keyboard"));
    kit_run(&k, "python3 -m http.server 0 > server.log 2>&1 &");
    CHECK_INT(k.exit_code, 0);
    CHECK_HAS(k.content, "[1]");
    kit_run(&k, "kill %1");
    CHECK_INT(k.exit_code, 0);
    kit_close(&k);
}

TEST(shell_talks_to_an_interpreter) /* 33 57 77 */
{
    struct kit k;

    need("/usr/bin/python3");
    kit_open(&k);
    kit_run(&k, "python3 --version");
    CHECK_HAS(k.content, "Python 3");
    kit_ask(&k, (struct shell_request){
                    .command = STR("python3 -c \"n=input('Enter your name: '); a=input('Enter your "
                                   "age: '); print(f'Hello {n}, you are {a} years old')\""),
                    .soft_timeout_ms = 1500});
    CHECK_STR(k.content, "Enter your name:");
    kit_input(&k, "Alice");
    CHECK_STR(k.content, "Enter your age:");
    kit_finish(&k, "25");
    CHECK_STR(k.content, "Hello Alice, you are 25 years old");
    kit_hard(&k, "python3 -q", 2);
    CHECK_STR(k.content, ">>>");
    CHECK_INT(k.exit_code, -1);
    kit_input(&k, "1+1");
    CHECK_STR(k.content, "2\n>>>");
    CHECK_STR(k.prefix, "[Below is the output of the previous command.]\n");
    kit_finish(&k, "C-d");
    CHECK_INT(k.exit_code, 0);
    CHECK_HAS(k.suffix, "CTRL+D was sent");
    kit_close(&k);
}

TEST(shell_uses_git) /* 55 56 */
{
    struct kit k;

    need("/usr/bin/git");
    kit_open(&k);
    kit_run(&k, "alias git=\"git --no-pager\"");
    kit_run(&k, "git init -q && git remote add origin https://example.org/x.git");
    CHECK_INT(k.exit_code, 0);
    kit_run(&k, "git remote -v");
    CHECK_HAS(k.content, "https://example.org/x.git");
    CHECK(!strstr(k.content, "git remote -v"));
    kit_run(&k, "git config user.name a && git config user.email a@b && echo x > f && git add f");
    CHECK_INT(k.exit_code, 0);
    kit_run(&k, "git diff --no-color --cached");
    CHECK_HAS(k.content, "+x");
    kit_run(&k, "git commit -q -m x");
    CHECK_INT(k.exit_code, 0);
    kit_close(&k);
}

static void on_any_answer(void *arg, const struct shell_result *r)
{
    struct kit *k = arg;

    k->status = r->status;
    k->answered = true;
}

/* One shell, one command, with the n-th call failing: an answer or an error, never a hang or
 * leak.
 */
static bool run_with_fault(unsigned n)
{
    struct kit k = {.home = test_dir()};
    static const char *const env[] = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", NULL};
    struct shell_config config = {.env = env,
                                  .cwd = "/tmp",
                                  .state_dir = k.home,
                                  .start_timeout_ms = 300,
                                  .on_closed = kit_on_closed,
                                  .arg = &k};

    CHECK_OK(loop_new(&clock_system, &k.loop));
    fault_at(n);
    struct err *e = shell_new(k.loop, &config, &k.shell);
    if (!e) {
        struct shell_request r = {.command = STR("echo hi"),
                                  .blocking = true,
                                  .hard_timeout_s = 2,
                                  .done = on_any_answer,
                                  .arg = &k};
        e = shell_run(k.shell, &r);
        if (!e)
            while (!k.answered)
                err_free(loop_turn(k.loop, 1000));
    }
    bool fired = fault_fired();
    fault_at(0);
    err_free(e);
    if (k.shell) {
        kit_close(&k);
    } else {
        CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
        loop_free(k.loop);
    }
    return fired;
}

TEST_LIMIT(shell_stands_a_failure_of_any_call, 300)
{
    unsigned before = test_open_fds(), n = 1;

    while (run_with_fault(n) && n < 400)
        n++;
    CHECK(n > 10);
    CHECK_INT(test_open_fds(), before);
}
