// SPDX-License-Identifier: Apache-2.0
/* keeper_test.c — what a test leaves running ends with it, however it ended. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/keeper.h"
#include "test/program.h"
#include "test/test.h"

/* As launchers are: a session of its own, and the parent of orphans. Says its pid. */
static pid_t be_daemon(int said)
{
    pid_t me = getpid();

    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    CHECK_INT(write(said, &me, sizeof me), sizeof me);
    return me;
}

/* A directory whose last name no path reaches. */
static void leave_deep(void)
{
    int at = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (unsigned i = 0; i < 1500; i++) {
        CHECK_INT(mkdirat(at, "something", 0700), 0);
        int next = openat(at, "something", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    close(at);
}

/* Prints the pids of a daemon and of one below it, and its directory, which is not empty. */
static void leave_things(void)
{
    int said[2];
    pid_t a, b;

    leave_deep();
    CHECK_INT(pipe(said), 0);
    if (fork() == 0) {
        be_daemon(said[1]);
        if (fork() == 0)
            be_daemon(said[1]);
        for (;;)
            pause();
    }
    CHECK(read(said[0], &a, sizeof a) == sizeof a && read(said[0], &b, sizeof b) == sizeof b);
    printf("%d %d %s\n", (int)a, (int)b, test_dir());
    fflush(stdout);
}

static void leave_and_fail(void)
{
    leave_things();
    CHECK_INT(1, 2);
}

static void leave_and_hang(void)
{
    leave_things();
    for (;;)
        pause();
}

static void check_ended(void (*run)(void), unsigned limit_s, int want)
{
    const struct test t = {.file = __FILE__, .name = "kept", .run = run};
    int out = memfd_create("output", MFD_CLOEXEC), a = 0, b = 0;
    char text[600] = "", dir[300] = "";

    CHECK_INT(program_wait(keeper_start(&t, limit_s, out)), want);
    CHECK(pread(out, text, sizeof text - 1, 0) > 0);
    CHECK_INT(sscanf(text, "%d %d %299s", &a, &b, dir), 3);
    CHECK(kill(a, 0) < 0 && errno == ESRCH);
    CHECK(kill(b, 0) < 0 && errno == ESRCH);
    CHECK(access(dir, F_OK) < 0 && errno == ENOENT);
    close(out);
}

TEST(a_test_that_passes_leaves_nothing_running)
{
    check_ended(leave_things, 60, 0);
}

TEST(a_test_that_fails_leaves_nothing_running)
{
    check_ended(leave_and_fail, 60, 1);
}

TEST(a_test_over_its_time_is_ended_with_all_it_started)
{
    check_ended(leave_and_hang, 8, KEEPER_LATE); /* time to leave it all, on a busy machine */
}

TEST(a_test_ends_with_its_runner)
{
    const struct test t = {.file = __FILE__, .name = "kept", .run = leave_and_hang};
    char text[600] = "";
    int out[2], a = 0, b = 0;

    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    CHECK_INT(pipe(out), 0);
    pid_t runner = fork();
    if (runner == 0) {
        keeper_start(&t, 60, out[1]);
        for (;;)
            pause();
    }
    CHECK(read(out[0], text, sizeof text - 1) > 0);
    CHECK_INT(sscanf(text, "%d %d", &a, &b), 2);
    CHECK_INT(kill(runner, SIGKILL), 0);
    while (waitpid(-1, NULL, 0) > 0) /* the runner, and the keeper that is ours now */
        ;
    CHECK(kill(a, 0) < 0 && errno == ESRCH);
    CHECK(kill(b, 0) < 0 && errno == ESRCH);
}
