// SPDX-License-Identifier: Apache-2.0
/* program.c — see proc.h. */
#include "test/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/test.h"

#define FDS_MAX 12
#define HIGH_FD 100 /* above any number that is asked for */

/* In the child. First out of each other's way, then to their places. */
static void place_fds(const struct program *p)
{
    int high[FDS_MAX];

    for (size_t i = 0; i < p->fd_count; i++)
        high[i] = p->fds[i] < 0 ? -1 : fcntl(p->fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
    for (size_t i = 0; i < p->fd_count; i++)
        if (high[i] >= 0)
            dup2(high[i], (int)i);
}

pid_t program_start(const struct program *p)
{
    sigset_t none;

    CHECK(p->fd_count <= FDS_MAX);
    sigemptyset(&none);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigprocmask(SIG_SETMASK, &none, NULL); /* a loop may have blocked some */
        place_fds(p);
        execvpe(p->argv[0], (char *const *)p->argv, p->env ? (char *const *)p->env : environ);
        _exit(127);
    }
    CHECK(pid > 0);
    return pid;
}

int program_wait(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        CHECK(errno == EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int program_stop(pid_t pid)
{
    CHECK(kill(pid, SIGTERM) == 0);
    return program_wait(pid);
}

int program_run(const char *const *argv, struct buf *into)
{
    int out[2];

    CHECK(pipe2(out, O_CLOEXEC) == 0);
    pid_t pid = program_start(
        &(struct program){.argv = argv, .fds = (int[]){-1, out[1], out[1]}, .fd_count = 3});
    close(out[1]);
    CHECK_OK(fd_read_all(out[0], into));
    close(out[0]);
    return program_wait(pid);
}
