// SPDX-License-Identifier: Apache-2.0
/* proc.c — see proc.h. Between fork and exec only calls that are safe after a fork of threads. */
#include "guest/proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/passwd.h"

#define READ_SIZE    (64u << 10)
#define READS_IN_ROW 16
#define STOP_MS      2000
#define EXIT_NO_EXEC 127
#define EXIT_NO_USER 126
#define EXTRA_FD     3

struct groups {
    gid_t ids[PASSWD_GROUPS_MAX];
    size_t count;
};

static void keep_words(struct proc *p, struct str text)
{
    if (text.len > PROC_LAST_WORDS)
        text = str_from(text, text.len - PROC_LAST_WORDS);
    if (p->words.len + text.len > PROC_LAST_WORDS)
        buf_consume(&p->words, p->words.len + text.len - PROC_LAST_WORDS);
    buf_add(&p->words, text);
}

/* One read; false when nothing is there or all is over. */
static bool read_once(struct proc *p)
{
    char page[READ_SIZE];
    ssize_t n = read(p->out, page, sizeof page);

    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            loop_io_stop(&p->io);
        return false;
    }
    keep_words(p, str_n(page, (size_t)n));
    if (p->on_text)
        p->on_text(p, str_n(page, (size_t)n));
    return p->out >= 0;
}

void proc_drain(struct proc *p)
{
    for (unsigned i = 0; i < READS_IN_ROW && p->out >= 0 && read_once(p); i++)
        ;
}

static void on_readable(struct loop_io *io)
{
    proc_drain(container_of(io, struct proc, io));
}

static void on_child(struct loop_child *c)
{
    struct proc *p = container_of(c, struct proc, child);

    p->code = c->code;
    p->status = c->status;
    killpg(p->pid, SIGKILL); /* what it left running has lost its master */
    p->pid = 0;
    proc_drain(p);
    p->on_exit(p);
}

static _Noreturn void become(const struct proc_config *c, const struct groups *groups, int in,
                             int out)
{
    sigset_t none;

    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s < NSIG; s++)
        if (s != SIGKILL && s != SIGSTOP)
            signal(s, SIG_DFL);
    if (c->user && (setgroups(groups->count, groups->ids) < 0 || setgid(c->user->gid) < 0 ||
                    setuid(c->user->uid) < 0))
        _exit(EXIT_NO_USER);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user clears it */
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(EXIT_NO_EXEC);
    if (c->extra_fd >= 0 && dup2(c->extra_fd, EXTRA_FD) < 0)
        _exit(EXIT_NO_EXEC);
    /* what we inherited ourselves without close-on-exec is none of its business */
    syscall(SYS_close_range, c->extra_fd >= 0 ? EXTRA_FD + 1 : EXTRA_FD, ~0u, 0);
    if ((!c->cwd || chdir(c->cwd) < 0) && chdir("/") < 0)
        _exit(EXIT_NO_EXEC);
    execve(c->argv[0], c->argv, c->env);
    _exit(EXIT_NO_EXEC);
}

static fallible find_groups(const struct proc_user *user, struct groups *ret)
{
    if (!user)
        return NULL;
    return passwd_groups(PASSWD_ETC, str_of(user->name), user->gid, ret->ids, &ret->count);
}

fallible proc_start(struct proc *p, struct loop *loop, const struct proc_config *config)
{
    struct groups groups;
    int ends[2];

    p->loop = loop;
    p->out = -1;
    buf_init(&p->words, (size_t)2 * PROC_LAST_WORDS);
    TRY(find_groups(config->user, &groups));
    own_fd nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0)
        return err_sys("open /dev/null");
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("pipe");
    own_fd read_end = ends[0], write_end = ends[1];
    own_fd extra = -1; /* above 3, or dup2 onto itself would leave it close-on-exec */
    struct proc_config c = *config;
    if (c.extra_fd >= 0) {
        extra = fcntl(c.extra_fd, F_DUPFD_CLOEXEC, 10);
        if (extra < 0)
            return err_sys("duplicate a descriptor");
        c.extra_fd = extra;
    }
    TRY(fd_set_nonblocking(read_end));
    pid_t pid = fork();
    if (pid < 0)
        return err_sys("fork");
    if (pid == 0)
        become(&c, &groups, nothing, write_end);
    p->pid = pid;
    p->out = take_fd(&read_end);
    struct err *e = loop_child_start(loop, &p->child, pid, -1, on_child);
    if (!e)
        e = loop_io_start(loop, &p->io, p->out, EPOLLIN, on_readable);
    if (e)
        proc_stop(p);
    return e;
}

static void reap(pid_t pid)
{
    own_fd pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd >= 0)
        err_free(fd_wait(pidfd, POLLIN, STOP_MS)); /* it was killed: this takes a moment, no more */
    waitpid(pid, NULL, pidfd >= 0 ? WNOHANG : 0);
}

void proc_stop(struct proc *p)
{
    if (p->pid > 0) {
        loop_child_stop(&p->child);
        killpg(p->pid, SIGKILL);
        kill(p->pid, SIGKILL); /* it may not have reached setsid yet */
        reap(p->pid);
        p->pid = 0;
    }
    if (p->loop && p->out >= 0) {
        loop_io_stop(&p->io);
        own_close(take_fd(&p->out));
    }
    buf_done(&p->words);
}

void proc_signal(struct proc *p, int signo)
{
    if (p->pid > 0)
        killpg(p->pid, signo);
}

void proc_describe(const struct proc *p, char *out, size_t size)
{
    if (p->code == CLD_EXITED)
        snprintf(out, size, "exit status %d", p->status);
    else
        snprintf(out, size, "signal %d (%s)", p->status, strsignal(p->status));
}
