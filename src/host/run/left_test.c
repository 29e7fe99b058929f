// SPDX-License-Identifier: Apache-2.0
#include "host/run/left.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/program.h"
#include "test/test.h"

static void keep(const char *what)
{
    own_fd state = open(test_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    own(err) e = err_new(ERR_BUSY, "%s", what);

    left_keep(state, left_listen(), e);
}

/* Until the child waits for the lock, or has ended without. */
static void wait_until_it_waits(pid_t pid)
{
    char mark[32];
    siginfo_t info = {.si_pid = 0};

    snprintf(mark, sizeof mark, " %d ", (int)pid);
    while (!info.si_pid) {
        own_done(buf) locks;
        buf_init(&locks, 1u << 20);
        CHECK_OK(fd_read_file("/proc/locks", &locks));
        struct str rest = buf_str(&locks), line;
        while (str_cut(&rest, '\n', &line))
            if (str_find(line, STR("->")) >= 0 && str_find(line, str_of(mark)) >= 0)
                return;
        CHECK_INT(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    }
}

static void told(struct buf *into)
{
    int ends[2];

    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    left_tell(test_dir(), ends[1]);
    close(ends[1]);
    buf_reset(into);
    CHECK_OK(fd_read_all(ends[0], into));
    close(ends[0]);
}

/* The test is the one who tells: it has read, and has not unlinked yet. */
TEST(what_a_run_leaves_while_another_tells_is_said_by_the_next)
{
    own_done(buf) said;
    char path[300];

    buf_init(&said, 1u << 20);
    keep("first");
    snprintf(path, sizeof path, "%s/left", test_dir());
    own_fd left = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(left >= 0);
    CHECK_INT(flock(left, LOCK_EX), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(left); /* the lock is the parent's */
        keep("second");
        _exit(0);
    }
    wait_until_it_waits(pid);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(flock(left, LOCK_UN), 0);
    CHECK_INT(program_wait(pid), 0);
    told(&said);
    CHECK_HAS(buf_str(&said), "second");
    told(&said);
    CHECK_STR(buf_str(&said), "");
}

TEST(a_line_is_new_once_a_day)
{
    static const struct timespec long_ago[2] = {{1700000000, 0}, {1700000000, 0}};
    own_fd dir = test_dir_fd();

    CHECK(left_is_new(test_dir(), STR("no limits\n")));
    CHECK(!left_is_new(test_dir(), STR("no limits\n")));
    CHECK(left_is_new(test_dir(), STR("another\n")));
    CHECK_INT(utimensat(dir, "left.told", long_ago, 0), 0);
    CHECK(left_is_new(test_dir(), STR("no limits\n")));
}
