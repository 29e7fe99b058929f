// SPDX-License-Identifier: Apache-2.0
/* forker.c — the process that forks shells and commands: in the cgroups of the work, a child of
 * pid 1 like everything it makes. Forked for the first request, or for the shell of a claim that
 * does not wait: an idle sandbox has none. When memory runs out the work is killed first. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/init/inner.h"

#define JOIN_MS        10000
#define OUT_OF_THE_WAY 64
enum { REQUESTS = 3, BIRTHS }; /* its only descriptors beside standard error */

/* A directory, or its cgroup.procs opened by the launcher: in a sandbox we may not. */
static bool forker_join(int group)
{
    own_fd fd = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    int to = fd < 0 && errno == ENOTDIR ? group : fd;

    return to >= 0 && write(to, "0", 1) == 1;
}

/* Makes the kernel end it, when memory is short, before pid 1 and the server, however small it is:
 * all processes forked here inherit that. If it cannot, the kernel goes by size. */
static void die_first(void)
{
    own_fd fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    syscall(SYS_write, fd, "1000", 4);
}

/* Linux 6.12; where it cannot be said, slices are as long as everybody's. */
void init_set_slice(uint64_t ns)
{
    const uint64_t attr[6] = {sizeof attr, 0, 0, ns}; /* struct sched_attr */

    syscall(SYS_sched_setattr, 0, attr, 0);
}

void init_be(const char *name)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
}

static _Noreturn void forker_live(const struct init *in, int status)
{
    const struct init_config *c = in->config;
    int errnum = 0;

    init_be("forker");
    die_first();
    init_set_slice(0); /* work is work */
    for (size_t i = 0; i < c->cgroup_len && !errnum; i++)
        errnum = forker_join(c->cgroup_fds[i]) ? 0 : errno;
    int requests = fcntl(in->requests[1], F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    int births = fcntl(in->births[1], F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    if (requests < 0 || births < 0)
        errnum = errno;
    syscall(SYS_write, status, &errnum, sizeof errnum);
    if (errnum)
        _exit(EXIT_FAILURE);
    dup3(requests, REQUESTS, O_CLOEXEC);
    dup3(births, BIRTHS, O_CLOEXEC);
    syscall(SYS_close_range, BIRTHS + 1, ~0u, 0);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    spawn_forker(REQUESTS, BIRTHS);
    _exit(EXIT_SUCCESS);
}

fallible init_start_forker(struct init *in)
{
    int ends[2], errnum = ECHILD;

    if (in->births[0] < 0 && pipe2(in->births, O_CLOEXEC) < 0)
        return err_sys("pipe");
    TRY(fd_set_nonblocking(in->births[0]));
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("pipe");
    own_fd status = ends[0], write_end = ends[1];
    in->forker = fork();
    if (in->forker < 0)
        return err_sys("start the forker");
    if (in->forker == 0)
        forker_live(in, write_end);
    own_close(take_fd(&write_end));
    TRY_WRAP(fd_wait(status, POLLIN, JOIN_MS), "start the forker");
    if (read(status, &errnum, sizeof errnum) != sizeof errnum)
        return err_sys("start the forker");
    if (errnum)
        return err_sysno(errnum, "the forker joins the cgroup of the work");
    return NULL;
}
