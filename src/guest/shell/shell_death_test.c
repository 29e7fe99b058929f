// SPDX-License-Identifier: Apache-2.0
/* A shell that ends is replaced (DEF-32); one that is closed takes everything with it. */
#include "test/test.h"

#include "guest/shell/shell_inner.h"
#include "guest/shell/shell_kit.h"
#include "guest/spawn/spawn.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"

#define RESPAWN_NOTE                                                                               \
    "\n[The shell ended and was started again in the same directory with the same exported "       \
    "variables; functions, aliases and other variables are lost.]"

static void check_replaced(struct kit *k, int exit_code)
{
    CHECK_INT(k->status, SHELL_COMPLETED);
    CHECK_INT(k->exit_code, exit_code);
    CHECK_INT(k->happened, SHELL_RESPAWNED);
    CHECK_HAS(k->suffix, RESPAWN_NOTE);
}

TEST(shell_comes_back_where_it_was_with_what_it_exported)
{
    struct kit k;
    char want[400];

    kit_open(&k);
    kit_run(&k, "mkdir 'a \"b' && cd 'a \"b' && export KEPT=$'one\\ntwo\"$x`' && lost=1");
    snprintf(want, sizeof want, "%s/a \"b", k.home);
    kit_run(&k, "exit 3");
    check_replaced(&k, 3);
    CHECK_STR(k.content, "exit");
    CHECK_STR(k.suffix, "\n[The command completed with exit code 3.]" RESPAWN_NOTE);
    kit_expect(&k, "pwd", want, 0);
    CHECK_INT(k.happened, 0);
    kit_expect(&k, "echo \"$KEPT/$lost\"", "one\ntwo\"$x`/", 0);
    kit_run(&k, "export LATE=x; cd /tmp; exit 4");
    check_replaced(&k, 4);
    kit_expect(&k, "echo $LATE $PWD", "x /tmp", 0);
    kit_run(&k, "unset PAGER LATE");
    kit_run(&k, "kill -9 $$");
    check_replaced(&k, 137);
    kit_expect(&k, "echo ${PAGER-unset} ${LATE-unset} $PWD", "unset unset /tmp", 0);
    kit_close(&k);
}

TEST(shell_survives_every_way_to_end_it)
{
    struct kit k;

    kit_open(&k);
    kit_expect(&k, "set -e", "", 0);
    kit_run(&k, "false");
    check_replaced(&k, 1);
    kit_run(&k, "exec sh -c 'echo replaced; exit 9'");
    check_replaced(&k, 9);
    CHECK_STR(k.content, "replaced");
    kit_run(&k, "C-d");
    check_replaced(&k, 0);
    kit_run(&k, "exec 0</dev/null");
    CHECK_INT(k.exit_code, 0);
    kit_run(&k, "echo still here");
    CHECK_HAS(k.content, "still here");
    kit_run(&k, "trap 'echo bye' EXIT; exit 5");
    check_replaced(&k, 5);
    CHECK_HAS(k.content, "bye");
    kit_expect(&k, "exec bash --noediting", "", 0);
    kit_expect(&k, "echo ok", "ok", 0);
    CHECK_INT(k.happened, 0);
    kit_run(&k, "kill -HUP $$; sleep 30");
    CHECK_INT(k.happened, SHELL_RESPAWNED);
    kit_expect(&k, "echo ok", "ok", 0);
    kit_close(&k);
}

TEST(shell_that_dies_while_idle_is_replaced_and_says_so)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "echo one");
    pid_t before = shell_pid(k.shell);
    kill(before, SIGKILL);
    while (shell_pid(k.shell) == before)
        CHECK_OK(loop_turn(k.loop, 1000));
    kit_run(&k, "echo two");
    CHECK_STR(k.content, "two");
    CHECK_INT(k.happened, SHELL_RESPAWNED);
    kit_close(&k);
}

/* What is on its way through a terminal may go with the session, the mark too. */
static void die_unseen(const char *command, int exit_code)
{
    struct shell_request r = {.command = str_of(command), .blocking = true, .done = kit_on_done};
    struct kit k;
    char bytes[4096];
    siginfo_t ended;

    kit_open(&k);
    kit_expect(&k, "rm -f times; echo one", "one", 0);
    r.arg = &k;
    k.answered = false;
    CHECK_OK(shell_run(k.shell, &r));
    CHECK_INT(waitid(P_PID, (id_t)shell_pid(k.shell), &ended, WEXITED | WNOWAIT), 0);
    while (read(k.shell->master, bytes, sizeof bytes) > 0)
        ;
    kit_wait(&k);
    check_replaced(&k, exit_code);
    kit_expect(&k, "wc -l <times", "1", 0);
    kit_close(&k);
}

TEST(shell_that_dies_before_its_mark_is_read_runs_no_command_twice)
{
    die_unseen("echo x >>times; kill -9 $$", 137);
    die_unseen("echo x >>times; exit 3", 3);
}

TEST(shell_that_dies_unasked_keeps_its_result)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "true");
    kit_hard(&k, "echo one; " KIT_UNTIL("go") "echo two; exit 6", KIT_HARD_S);
    CHECK_INT(k.status, SHELL_HARD_TIMEOUT);
    CHECK_STR(k.content, "one");
    pid_t before = shell_pid(k.shell);
    kit_let(&k, "go");
    while (shell_pid(k.shell) == before)
        CHECK_OK(loop_turn(k.loop, 1000));
    kit_run(&k, "");
    check_replaced(&k, 6);
    CHECK_STR(k.content, "two\nexit");
    kit_expect(&k, "echo ok", "ok", 0);
    kit_close(&k);
}

TEST(shell_background_jobs_outlive_the_shell_but_not_its_closing)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "sleep 300 </dev/null >/dev/null 2>&1 &");
    pid_t job = k.pid;
    kit_run(&k, "exit 0");
    CHECK_INT(k.happened, SHELL_RESPAWNED);
    CHECK_INT(kill(job, 0), 0);
    kit_run(&k, "(trap '' HUP TERM INT; while :; do sleep 300; done) &");
    pid_t stubborn = k.pid;
    CHECK_INT(kill(stubborn, 0), 0);
    own_fd job_fd = (int)syscall(SYS_pidfd_open, job, 0);
    own_fd stubborn_fd = (int)syscall(SYS_pidfd_open, stubborn, 0);
    kit_close(&k);
    CHECK_OK(fd_wait(job_fd, POLLIN, 10000)); /* readable: it has ended */
    CHECK_OK(fd_wait(stubborn_fd, POLLIN, 10000));
}

TEST(shell_leaves_no_descriptor_and_no_file)
{
    unsigned before = test_open_fds();
    struct kit k;
    char command[400];

    for (int i = 0; i < 3; i++) {
        kit_open(&k);
        kit_run(&k, "echo hi");
        kit_run(&k, "exit 1");
        kit_run(&k, "echo hi");
        kit_close(&k);
    }
    CHECK_INT(test_open_fds(), before);
    snprintf(command, sizeof command, "ls -d %s/croft-* >/dev/null 2>&1", test_dir());
    CHECK(system(command) != 0);
}

TEST(shell_gives_its_children_no_descriptor_of_ours)
{
    struct kit k;

    kit_open(&k);
    kit_expect(&k, "ls /proc/self/fd | wc -l", "4", 0);
    kit_expect(&k, "ls /proc/$$/fd | tr '\\n' ' '", "0 1 2 255", 0);
    kit_close(&k);
}

TEST(shell_answers_a_waiting_request_when_closed)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "true");
    k.answered = false;
    CHECK_OK(shell_run(k.shell, &(struct shell_request){
                                    .command = STR("sleep 100"), .done = kit_on_done, .arg = &k}));
    CHECK_ERR(shell_run(k.shell, &(struct shell_request){.command = STR("x")}), ERR_BUSY, "busy");
    kit_close(&k);
    CHECK(k.answered);
    CHECK_INT(k.status, SHELL_FAILED);
}

TEST(shell_runs_on_when_nobody_waits_any_more)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "true");
    CHECK_OK(shell_run(k.shell, &(struct shell_request){.command = STR("sleep 0.1; echo done"),
                                                        .blocking = true,
                                                        .done = kit_on_done,
                                                        .arg = &k}));
    shell_forget(k.shell);
    CHECK(shell_is_running(k.shell));
    kit_run(&k, "");
    CHECK_STR(k.content, "done");
    CHECK_OK(shell_run(k.shell, &(struct shell_request){.command = STR("sleep 100"),
                                                        .blocking = true,
                                                        .done = kit_on_done,
                                                        .arg = &k}));
    k.answered = false;
    shell_interrupt(k.shell); /* perhaps before it even began */
    kit_wait(&k);
    CHECK_INT(k.exit_code, 130);
    kit_close(&k);
}

TEST(shell_says_when_bash_cannot_be_started)
{
    struct kit k;

    kit_open_with(&k, (struct shell_config){.bash = "/bin/false"});
    kit_run(&k, "echo hi");
    CHECK_INT(k.status, SHELL_FAILED);
    CHECK_STR(k.content, "'/bin/false' does not start: exit status 1");
    kit_run(&k, "echo again");
    CHECK_INT(k.status, SHELL_FAILED);
    kit_close(&k);
    struct loop *loop;
    struct shell *s;
    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_ERR(shell_new(loop, &(struct shell_config){.bash = "/nonexistent/bash"}, &s),
              ERR_UNSUPPORTED,
              "shell: start bash, which an image must have: '/nonexistent/bash': No such file or "
              "directory");
    CHECK_ERR(shell_new(loop, &(struct shell_config){.state_dir = "/nonexistent"}, &s),
              ERR_NOT_FOUND, "shell: make '/nonexistent/croft-shell-");
    loop_free(loop);
}

TEST(shell_runs_as_another_user)
{
    struct kit k;
    struct proc_user nobody = {"nobody", "/", 65534, 65534};

    if (geteuid() != 0)
        SKIP("needs root");
    kit_open_with(&k, (struct shell_config){.user = &nobody, .cwd = "/", .state_dir = "/tmp"});
    kit_expect(&k, "id -un; id -gn", "nobody\nnogroup", 0);
    CHECK_STR(k.username, "nobody");
    kit_run(&k, "exit 2");
    check_replaced(&k, 2);
    kit_close(&k);
}

TEST(shells_live_side_by_side)
{
    struct kit k[8];
    static const char *const words[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    char command[64];

    for (int i = 0; i < 8; i++)
        kit_open(&k[i]);
    for (int i = 0; i < 8; i++) {
        snprintf(command, sizeof command, "export ME=%s; cd /; sleep 0.05; echo $ME", words[i]);
        k[i].answered = false;
        CHECK_OK(shell_run(k[i].shell, &(struct shell_request){.command = str_of(command),
                                                               .blocking = true,
                                                               .done = kit_on_done,
                                                               .arg = &k[i]}));
    }
    for (int i = 0; i < 8; i++) {
        kit_wait(&k[i]);
        CHECK_STR(k[i].content, words[i]);
    }
    for (int i = 0; i < 8; i++)
        kit_close_one(&k[i]);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(shell_of_one_action_sees_and_changes_nothing_of_another) /* 83, DEF-38 */
{
    struct kit k, fresh;
    char dir[300];

    kit_open(&k);
    kit_run(&k, "mkdir d; here=1; export HERE=1");
    kit_hard(&k, "sleep 100", 0.05);
    snprintf(dir, sizeof dir, "%s/d", k.home);
    kit_open_with(&fresh, (struct shell_config){.cwd = dir});
    kit_expect(&fresh, "echo $PWD/$here$HERE; cd /; here=2", strcat(dir, "/"), 0);
    kit_close_one(&fresh);
    kit_finish(&k, "C-c");
    CHECK_INT(k.exit_code, 130);
    kit_expect(&k, "echo $PWD/$here", strcat(strcpy(dir, k.home), "/1"), 0);
    kit_close(&k);
}
