// SPDX-License-Identifier: Apache-2.0
/* An answer that was decided and has not gone out yet, while the command goes on: it stays as it
 * is. The loop turns only where a test says so, so both are always there in one turn. */
#include "test/test.h"

#include "guest/shell/shell_kit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "guest/shell/shell_inner.h"

#define AWAIT_MS 100000

static void ask(struct kit *k, struct shell_request r)
{
    r.done = kit_on_done;
    r.arg = k;
    k->answered = false;
    CHECK_OK(shell_run(k->shell, &r));
}

static void await_report(struct kit *k)
{
    struct pollfd report = {.fd = k->shell->files.report_fd, .events = POLLIN};

    CHECK_INT(poll(&report, 1, AWAIT_MS), 1);
}

static void await_death(struct kit *k)
{
    siginfo_t dead;

    CHECK_INT(waitid(P_PID, (id_t)shell_pid(k->shell), &dead, WEXITED | WNOWAIT), 0);
}

/* To a command that waits at the FIFO of this name; it has gone on when this returns. */
static void pass(struct kit *k, const char *name)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", k->home, name);
    own_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
}

TEST(shell_refuses_a_command_and_the_one_before_it_ends) /* DEF-28 */
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "mkfifo a b c");
    kit_hard(&k, ": < a; echo two; : < b; : < c; echo three; (exit 4)", 0.05);
    pass(&k, "a");
    pass(&k, "b"); /* so it has said two */
    ask(&k, (struct shell_request){.command = STR("echo four; (exit 5)")});
    pass(&k, "c");
    await_report(&k);
    kit_wait(&k);
    CHECK_INT(k.status, SHELL_NOT_EXECUTED);
    CHECK_STR(k.content, "two");
    CHECK_INT(k.exit_code, -1);
    kit_run(&k, "echo four; (exit 5)");
    CHECK_STR(k.content, "three\nfour");
    CHECK_INT(k.exit_code, 5);
    kit_close(&k);
}

TEST(shell_refuses_several_commands_and_the_one_before_them_ends)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "mkfifo a");
    kit_hard(&k, ": < a; echo one; (exit 4)", 0.05);
    ask(&k, (struct shell_request){.command = STR("echo two\necho three")});
    pass(&k, "a");
    await_report(&k);
    kit_wait(&k);
    CHECK_INT(k.status, SHELL_SEVERAL);
    kit_soft(&k, "");
    CHECK_INT(k.status, SHELL_COMPLETED);
    CHECK_STR(k.content, "one");
    CHECK_INT(k.exit_code, 4);
    kit_close(&k);
}

/* What it said and a report that could not go through the FIFO wait in the terminal. */
static void await_said(struct kit *k, const char *text)
{
    char all[200];
    int n = snprintf(all, sizeof all, "%s\033]7771;%s;4\a", text, k->shell->sequence), there;

    do
        CHECK_INT(ioctl(k->shell->master, FIONREAD, &there), 0);
    while (there < n && poll(NULL, 0, 1) == 0);
}

TEST(shell_refuses_a_command_and_reads_the_end_of_the_one_before_it)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "mkfifo a");
    kit_hard(&k, ": < a; rm -rf $HOME/croft-*; echo one; (exit 4)", 0.05);
    pass(&k, "a");
    await_said(&k, "one\r\n");
    ask(&k, (struct shell_request){.command = STR("echo two; (exit 5)")});
    kit_wait(&k);
    CHECK_INT(k.status, SHELL_NOT_EXECUTED);
    CHECK_STR(k.content, "one");
    kit_run(&k, "echo two; (exit 5)"); /* for it has ended */
    CHECK_INT(k.status, SHELL_COMPLETED);
    CHECK_STR(k.content, "two");
    CHECK_INT(k.exit_code, 5);
    kit_close(&k);
}

TEST(shell_refuses_a_command_and_bash_ends)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "mkfifo a");
    kit_hard(&k, ": < a; echo one; exec sh -c 'exit 7'", 0.05);
    ask(&k, (struct shell_request){.command = STR("echo two")});
    pass(&k, "a");
    await_death(&k);
    kit_wait(&k);
    CHECK_INT(k.status, SHELL_NOT_EXECUTED);
    CHECK_INT(k.happened, 0);
    kit_soft(&k, "");
    CHECK_INT(k.status, SHELL_COMPLETED);
    CHECK_STR(k.content, "one");
    CHECK_INT(k.exit_code, 7);
    CHECK_INT(k.happened, SHELL_RESPAWNED);
    kit_close(&k);
}

TEST(shell_waits_no_longer_and_the_command_ends)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "true");
    ask(&k, (struct shell_request){
                .command = STR("echo one; (exit 4)"), .blocking = true, .hard_timeout_s = 0.001});
    for (uint64_t end = clock_mono_ns(&clock_system) + 3 * NS_PER_MS;
         clock_mono_ns(&clock_system) < end;) /* the timer is due as well */
        await_report(&k);
    kit_wait(&k);
    CHECK_INT(k.status, SHELL_HARD_TIMEOUT);
    CHECK_STR(k.content, "one");
    kit_soft(&k, "");
    CHECK_INT(k.status, SHELL_COMPLETED);
    CHECK_STR(k.content, "");
    CHECK_INT(k.exit_code, 4);
    kit_close(&k);
}

/* What it left is longer than the directory it reported, so that this has moved in memory. */
TEST(shell_completes_a_command_and_bash_ends)
{
    char deep[4096];
    struct kit k;

    kit_open(&k);
    kit_run(&k, "d=$(printf %0200d); mkdir -p $d/$d/$d; cd $d/$d/$d; pwd; cd ~");
    snprintf(deep, sizeof deep, "%s", k.content);
    ask(&k, (struct shell_request){.command = STR("echo one; (exit 4)")});
    await_report(&k);
    CHECK_INT(kill(shell_pid(k.shell), SIGKILL), 0);
    await_death(&k);
    FILE *f = fopen(k.shell->files.cwd, "we");
    CHECK(f && fputs(deep, f) >= 0 && fclose(f) == 0);
    kit_wait(&k);
    CHECK_INT(k.status, SHELL_COMPLETED);
    CHECK_STR(k.content, "one");
    CHECK_INT(k.exit_code, 4);
    CHECK_STR(k.working_dir, deep);
    kit_expect(&k, "pwd", deep, 0);
    kit_close(&k);
}
