// SPDX-License-Identifier: Apache-2.0
/* relay.c — see relay.h. */
#include "host/run/relay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

#define CHUNK (64u << 10)

enum { AT_END, AT_SIGNAL, AT_IN, AT_MASTER, AT_COUNT };

struct pump {
    const struct relay *r;
    int signals;
    bool raw;
    struct termios before;
    struct pollfd at[AT_COUNT];
};

static void copy_size(const struct relay *r)
{
    struct winsize size;

    if (r->master >= 0 && ioctl(r->in, TIOCGWINSZ, &size) == 0)
        ioctl(r->master, TIOCSWINSZ, &size); /* a terminal without a size stays without */
}

static void make_raw(struct pump *p)
{
    struct termios t;

    if (p->r->master < 0 || tcgetattr(p->r->in, &p->before) < 0)
        return;
    t = p->before;
    cfmakeraw(&t);
    p->raw = tcsetattr(p->r->in, TCSADRAIN, &t) == 0;
}

/* Gives false at the end of the stream. A terminal says EIO when its last process has gone. */
static bool copy(int from, int to)
{
    static _Thread_local char chunk[CHUNK];
    ssize_t n = read(from, chunk, sizeof chunk);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    if (n == 0)
        return false;
    struct err *e = fd_write_all(to, str_n(chunk, (size_t)n));
    if (!e)
        return true;
    err_free(e); /* the reader has gone: the sandbox will notice by itself */
    return false;
}

static void pass_signal(struct pump *p)
{
    struct signalfd_siginfo s;

    if (read(p->signals, &s, sizeof s) != sizeof s)
        return;
    if (s.ssi_signo == SIGWINCH)
        copy_size(p->r);
    else
        syscall(SYS_pidfd_send_signal, p->r->pidfd, (int)s.ssi_signo, NULL, 0);
}

static fallible pump(struct pump *p)
{
    for (;;) {
        if (poll(p->at, AT_COUNT, -1) < 0) {
            if (errno == EINTR)
                continue;
            return err_sys("wait for the sandbox");
        }
        if (p->at[AT_SIGNAL].revents)
            pass_signal(p);
        if (p->at[AT_MASTER].revents && !copy(p->r->master, p->r->out))
            p->at[AT_MASTER].fd = -1;
        if (p->at[AT_IN].revents && !copy(p->r->in, p->r->master))
            p->at[AT_IN].fd = -1;
        /* The dead send nothing more, but what they sent may still be on its way. */
        if (p->at[AT_END].revents && p->at[AT_MASTER].fd < 0)
            return NULL;
        if (p->at[AT_END].revents && !(p->at[AT_MASTER].revents))
            return NULL;
    }
}

fallible relay_run(const struct relay *r)
{
    sigset_t pass, before;
    struct pump p = {.r = r};

    sigemptyset(&pass);
    sigaddset(&pass, SIGTERM);
    sigaddset(&pass, SIGINT);
    sigaddset(&pass, SIGQUIT);
    sigaddset(&pass, SIGHUP);
    sigaddset(&pass, SIGUSR1);
    sigaddset(&pass, SIGUSR2);
    sigaddset(&pass, SIGWINCH);
    if (sigprocmask(SIG_BLOCK, &pass, &before) < 0)
        return err_sys("block signals");
    own_fd signals = signalfd(-1, &pass, SFD_CLOEXEC);
    if (signals < 0)
        return err_sys("watch signals");
    p.signals = signals;
    p.at[AT_END] = (struct pollfd){r->end >= 0 ? r->end : r->pidfd, POLLIN, 0};
    p.at[AT_SIGNAL] = (struct pollfd){signals, POLLIN, 0};
    p.at[AT_IN] = (struct pollfd){r->master >= 0 ? r->in : -1, POLLIN, 0};
    p.at[AT_MASTER] = (struct pollfd){r->master, POLLIN, 0};
    copy_size(r);
    make_raw(&p);
    struct err *e = pump(&p);
    if (p.raw)
        tcsetattr(r->in, TCSADRAIN, &p.before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return e;
}
