// SPDX-License-Identifier: Apache-2.0
/* forker.c — forks on behalf of the server. It keeps nothing: the new process reads the plan
 * itself and answers through the status pipe, so one that hangs delays no other. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/spawn/inner.h"

enum { PLAN_FD, STATUS_FD, FIRST_FD }; /* of what comes with a request */

static _Noreturn void grow_up(const int *fds, size_t len, int born)
{
    int32_t pid = (int32_t)getpid();
    struct spawn_job job;
    struct stat st;
    void *plan = MAP_FAILED;

    if (born >= 0 && syscall(SYS_write, born, &pid, sizeof pid) != sizeof pid)
        _exit(EXIT_FAILURE);
    spawn_tell(fds[STATUS_FD], 0, SPAWN_AT_FORK);
    if (fstat(fds[PLAN_FD], &st) == 0 && st.st_size > 0 && st.st_size <= (off_t)SPAWN_BYTES_MAX)
        plan = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fds[PLAN_FD], 0);
    if (plan == MAP_FAILED || !spawn_parse(str_n(plan, (size_t)st.st_size), &job)) {
        spawn_tell(fds[STATUS_FD], EBADMSG, SPAWN_AT_MESSAGE);
        _exit(EXIT_FAILURE);
    }
    spawn_become(&job, fds + FIRST_FD, len - FIRST_FD, fds[STATUS_FD]);
}

void spawn_forker(int requests, int born)
{
    spawn_default_signals(1, 64); /* once for all that is forked here … */
    signal(SIGPIPE, SIG_IGN);     /* … but for this one: the asker may be gone */
    for (;;) {
        int fds[FIRST_FD + SPAWN_FDS_MAX];
        char byte;
        size_t len, count;
        struct err *e = fd_recv(requests, &byte, 1, &len, fds, ARRAY_LEN(fds), &count);
        if (e || len == 0) {
            bool over = !e || err_errno(e);
            err_free(e); /* one we cannot read costs its sender an answer */
            if (over)
                return;
            continue;
        }
        if (count > STATUS_FD) {
            long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
            if (pid == 0)
                grow_up(fds, count, born);
            if (pid < 0) {
                struct spawn_status s = {.errnum = errno, .step = SPAWN_AT_FORK};
                syscall(SYS_write, fds[STATUS_FD], &s, sizeof s);
            }
        }
        for (size_t i = 0; i < count; i++)
            own_close(fds[i]);
    }
}
