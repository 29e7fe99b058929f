// SPDX-License-Identifier: Apache-2.0
/* census_test.c — a control group that was left is found, and another's is not taken for it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/census.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

#define FIRST 90000000 /* no launcher has so many slots */

/* A process that is nobody's below the test, in the group; its pid. */
static pid_t put_another(const char *group)
{
    char path[200];
    int said[2];
    pid_t pid = 0;

    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    CHECK_INT(pipe(said), 0);
    pid_t between = fork();
    if (between == 0) {
        pid = fork();
        if (pid == 0)
            for (;;)
                pause();
        own_fd fd = open(path, O_WRONLY | O_CLOEXEC);
        fd_print(fd, "%d", (int)pid);
        _exit(write(said[1], &pid, sizeof pid) != sizeof pid);
    }
    CHECK_INT(program_wait(between), 0);
    CHECK_INT(read(said[0], &pid, sizeof pid), sizeof pid);
    close(said[0]);
    close(said[1]);
    return pid;
}

/* In a process of its own, for it fails the test when a group is left. */
static int check(struct census_groups *g, const char *state)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        census_check_groups(g, state);
        _exit(0);
    }
    return program_wait(pid);
}

TEST(a_control_group_that_is_left_is_told_from_anothers)
{
    char claim[400], group[100];
    const char *state = test_dir();
    struct census_groups groups;

    kit_need_root();
    if (access("/sys/fs/cgroup/pids/croft", W_OK) < 0)
        SKIP("no group of croft's for the number of processes");
    snprintf(claim, sizeof claim, "%s/ids", state);
    CHECK_INT(mkdir(claim, 0700), 0);
    snprintf(claim, sizeof claim, "%s/ids/%d", state, FIRST + (int)getpid());
    snprintf(group, sizeof group, "/sys/fs/cgroup/pids/croft/s%d", FIRST + (int)getpid());
    census_open_groups(&groups);
    CHECK_INT(mkdir(group, 0755), 0);
    close(open(claim, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    census_note_groups(&groups, state);
    CHECK_INT(check(&groups, state), 0); /* claimed */
    CHECK_INT(unlink(claim), 0);
    pid_t another = put_another(group);
    int held = check(&groups, state);
    CHECK_INT(kill(another, SIGKILL), 0);
    while (rmdir(group) < 0) /* until it is dead */
        CHECK_INT(errno, EBUSY);
    CHECK_INT(held, 0);
    CHECK_INT(check(&groups, state), 0); /* gone */
    free(groups.at);
    census_open_groups(&groups);
    CHECK_INT(mkdir(group, 0755), 0);
    close(open(claim, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    census_note_groups(&groups, state);
    CHECK_INT(unlink(claim), 0);
    int left = check(&groups, state);
    CHECK_INT(rmdir(group), 0);
    CHECK_INT(left, 1); /* empty, and nobody takes it away */
    free(groups.at);
}
