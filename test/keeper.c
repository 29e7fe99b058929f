// SPDX-License-Identifier: Apache-2.0
/* keeper.c — see keeper.h. */
#include "test/keeper.h"

#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "test/support.h"
#include "test/test.h"

#define GRACE_S    3          /* for janitors, which tidy up behind a test that failed */
#define END_S      60         /* for what was killed to be gone */
#define GROUPS_MAX (1u << 20) /* bytes of names */

/* --- control groups of sandboxes that are ended --- */

/* "N:NAMES:/PATH", one line per hierarchy; ours are croft/sSLOT, the same in each. A dead
 * process that is not waited for yet is still in those of v2, not in those of v1. */
static void note_groups(pid_t pid, struct buf *groups)
{
    char path[64];
    own_done(buf) text = {0};

    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    buf_init(&text, 4096);
    err_free(fd_read_file(path, &text)); /* it may be gone */
    struct str rest = buf_str(&text), line, number, names, group;
    while (str_cut(&rest, '\n', &line)) {
        str_cut(&line, ':', &number);
        str_cut(&line, ':', &names);
        str_cut(&line, ' ', &group); /* " (deleted)" */
        if (str_find(group, STR("/croft/s")) >= 0)
            buf_addf(groups, STR_FMT "\n", STR_ARG(group));
    }
}

static void remove_groups(struct str groups)
{
    struct str group;

    while (str_cut(&groups, '\n', &group)) {
        char pattern[4200];
        glob_t found;

        snprintf(pattern, sizeof pattern, "/sys/fs/cgroup{/*,}" STR_FMT, STR_ARG(group));
        if (glob(pattern, GLOB_BRACE, NULL, &found) != 0)
            continue;
        for (size_t i = 0; i < found.gl_pathc; i++)
            rmdir(found.gl_pathv[i]); /* refused while anything lives in it */
        globfree(&found);
    }
}

/* --- the end --- */

static void kill_children(struct buf *groups)
{
    char path[64];
    own_done(buf) text = {0};

    buf_init(&text, 1u << 20);
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    err_free(fd_read_file(path, &text));
    buf_add_char(&text, '\0');
    for (char *at = text.p, *next; at && *at; at = next) {
        pid_t pid = (pid_t)strtol(at, &next, 10);
        if (next == at)
            break;
        note_groups(pid, groups);
        kill(pid, SIGKILL);
        next += *next == ' ';
    }
}

/* Until there are no children, or the time is over. SIGCHLD is blocked. */
static void let_end(unsigned seconds)
{
    uint64_t end = clock_mono_ns(&clock_system) + seconds * NS_PER_S, now;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while ((now = clock_mono_ns(&clock_system)) < end) {
        pid_t pid = waitpid(-1, NULL, __WALL | WNOHANG);
        if (pid < 0)
            return;
        struct timespec left = {(time_t)((end - now) / NS_PER_S), (long)((end - now) % NS_PER_S)};
        if (pid == 0)
            sigtimedwait(&child, NULL, &left);
    }
}

/* A killed process leaves its children to us: until there are none. */
static void end_rest(pid_t test, bool failed)
{
    own_done(buf) groups = {0};

    buf_init(&groups, GROUPS_MAX);
    kill(-test, SIGKILL);
    if (failed)
        let_end(GRACE_S);
    alarm(END_S);
    do
        kill_children(&groups);
    while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR);
    remove_groups(buf_str(&groups));
}

/* --- the test --- */

static void run(const struct test *t, int output)
{
    static const int usual[] = {SIGINT, SIGQUIT, SIGHUP}; /* ignored behind "&" and nohup */

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        signal(usual[i], SIG_DFL);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    signal(SIGPIPE, SIG_IGN);
    t->run();
    support_end_test(EXIT_PASS);
}

static int code_of(pid_t test)
{
    int status = 0;

    while (waitpid(test, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The runner's death is a SIGTERM to us, and the test's end. */
static _Noreturn void keep(const struct test *t, unsigned limit_s, int output)
{
    sigset_t term, blocked, before;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    blocked = term;
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    pid_t test = fork();
    if (test == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        run(t, output);
    }
    struct pollfd polls[] = {{(int)syscall(SYS_pidfd_open, test, 0), POLLIN, 0},
                             {signalfd(-1, &term, SFD_CLOEXEC), POLLIN, 0}};
    bool late = poll(polls, 2, (int)limit_s * 1000) == 0;
    if (!(polls[0].revents & POLLIN))
        kill(test, SIGKILL);
    int code = code_of(test);
    end_rest(test, late || (code != EXIT_PASS && code != EXIT_SKIP));
    support_remove_dir_of(test);
    _exit(late ? KEEPER_LATE : code);
}

pid_t keeper_start(const struct test *t, unsigned limit_s, int output)
{
    fflush(NULL); /* or the child writes our buffers once more, the JUnit file too */
    pid_t pid = fork();
    if (pid == 0)
        keep(t, limit_s, output);
    return pid;
}
