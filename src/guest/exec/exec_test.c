// SPDX-License-Identifier: Apache-2.0
#include "guest/exec/exec.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "loop/loop.h"
#include "test/program.h"
#include "test/test.h"

#define MORE 10 /* exit code: the call failed as it should, try the next one */

static void on_ready(struct loop_io *io)
{
    loop_stop(io->loop);
}

/* Starts a server whose n-th call fails, lets it say that it is ready, and stops it. */
static struct err *start_and_stop(const char *address, const char *url, unsigned n, bool *ret_fired)
{
    const char *const env[] = {"PATH=/usr/bin:/bin", "RUNTIME_MEMORY_MONITOR=1", NULL};
    struct exec_config c = {.listen = str_of(address),
                            .working_dir = STR("/tmp"),
                            .uid = EXEC_NO_UID,
                            .viewer_url = url,
                            .envp = env};
    struct loop_io io = {0};
    struct loop *loop = NULL;
    bool served = false;
    int ready[2];

    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK(pipe2(ready, O_CLOEXEC | O_NONBLOCK) == 0);
    c.ready_fd = ready[1];
    CHECK_OK(loop_io_start(loop, &io, ready[0], EPOLLIN, on_ready));
    fault_at(n);
    struct exec *exec = NULL;
    struct err *e = exec_new(loop, &exec);
    if (!e)
        e = exec_run(exec, &c, &served);
    else
        close(ready[1]);
    exec_free(exec);
    *ret_fired = fault_fired();
    fault_at(0);
    CHECK(served || e);
    loop_io_stop(&io);
    loop_free(loop);
    close(ready[0]);
    return e;
}

static unsigned left_in_tmp(void)
{
    DIR *d = opendir("/tmp");
    unsigned n = 0;

    CHECK(d != NULL);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* In a process of its own: a size we chose that cannot be had ends it. */
static _Noreturn void fail_call(unsigned n)
{
    unsigned fds = test_open_fds();
    bool fired;
    struct err *e = start_and_stop("unix:/tmp/sock", "/tmp/url", n, &fired);

    if (test_open_fds() != fds)
        FAIL("call %u leaves a descriptor open: %s", n, e ? err_text(e) : "it served");
    if (e && (!fired || !err_text(e)[0]))
        FAIL("call %u: %s", n, err_text(e));
    if (e && left_in_tmp()) /* of one that served, a failing call may strike its tidying up */
        FAIL("call %u leaves a file: %s", n, err_text(e));
    err_free(e);
    _exit(fired ? MORE : 0);
}

TEST_LIMIT(exec_starts_or_fails_with_a_reason_whatever_call_fails, 120)
{
    char own_tmp[300];
    int status = 0;

    snprintf(own_tmp, sizeof own_tmp, "%s/tmp", test_dir());
    CHECK_INT(mkdir(own_tmp, 0777), 0);
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        SKIP("no mount namespace of our own here");
    CHECK_INT(mount(own_tmp, "/tmp", NULL, MS_BIND, NULL), 0);
    log_setup(STDERR_FILENO, LOG_OFF, LOG_TEXT);
    for (unsigned n = 1;; n++) {
        pid_t pid = fork();
        if (pid == 0)
            fail_call(n);
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        own_done(buf) said;
        buf_init(&said, 4096);
        CHECK_INT(program_run(ARGS("find", "/tmp", "-mindepth", "1", "-delete"), &said), 0);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
            continue;
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != MORE && WEXITSTATUS(status) != 0))
            FAIL("call %u: status %x", n, (unsigned)status);
        if (WEXITSTATUS(status) == 0)
            return;
    }
}
