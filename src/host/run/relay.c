// SPDX-License-Identifier: Apache-2.0
/* relay.c — see relay.h. */
#include "host/run/relay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
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
    char typed[4096]; /* and not yet taken: who does not read must still be heard */
    size_t typed_len;
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

    if (p->r->master < 0 || p->raw || tcgetattr(p->r->in, &p->before) < 0)
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

static void make_cooked(struct pump *p)
{
    if (p->raw)
        tcsetattr(p->r->in, TCSADRAIN, &p->before);
    p->raw = false;
}

static void take_typed(struct pump *p)
{
    ssize_t n = read(p->r->in, p->typed, sizeof p->typed);

    if (n > 0)
        p->typed_len = (size_t)n;
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        p->at[AT_IN].fd = -1;
}

static void give_typed(struct pump *p)
{
    ssize_t n = write(p->r->master, p->typed, p->typed_len);

    if (n < 0) /* nobody is there any more, or nobody has read yet */
        n = errno == EAGAIN || errno == EINTR ? 0 : (ssize_t)p->typed_len;
    p->typed_len -= (size_t)n;
    memmove(p->typed, p->typed + n, p->typed_len);
}

/* It stops when we do, and goes on when we do. */
static void pass_signal(struct pump *p)
{
    struct signalfd_siginfo s;

    if (read(p->signals, &s, sizeof s) != sizeof s)
        return;
    if (s.ssi_signo == SIGCONT)
        make_raw(p);
    if (s.ssi_signo == SIGCONT || s.ssi_signo == SIGWINCH)
        copy_size(p->r);
    if (s.ssi_signo != SIGWINCH)
        syscall(SYS_pidfd_send_signal, p->r->pidfd, (int)s.ssi_signo, NULL, 0);
    if (s.ssi_signo == SIGTSTP) {
        make_cooked(p);
        kill(getpid(), SIGSTOP);
    }
}

static fallible pump(struct pump *p)
{
    for (;;) {
        p->at[AT_IN].events = p->typed_len ? 0 : POLLIN;
        p->at[AT_MASTER].events = p->typed_len ? POLLIN | POLLOUT : POLLIN;
        if (poll(p->at, AT_COUNT, -1) < 0) {
            if (errno == EINTR)
                continue;
            return err_sys("wait for the sandbox");
        }
        if (p->at[AT_SIGNAL].revents)
            pass_signal(p);
        if (p->at[AT_MASTER].revents & ~POLLOUT && !copy(p->r->master, p->r->out))
            p->at[AT_MASTER].fd = -1;
        if (p->at[AT_IN].revents && p->typed_len) /* hung up, and more was typed than is read */
            p->at[AT_IN].fd = -1;
        else if (p->at[AT_IN].revents)
            take_typed(p);
        if (p->typed_len)
            give_typed(p);
        /* The dead send nothing more, but what they sent may still be on its way. */
        if (p->at[AT_END].revents && p->at[AT_MASTER].fd < 0)
            return NULL;
        if (p->at[AT_END].revents && !(p->at[AT_MASTER].revents & ~POLLOUT))
            return NULL;
    }
}

fallible relay_run(const struct relay *r)
{
    static const int passed[] = {SIGTERM, SIGINT,  SIGQUIT, SIGHUP,  SIGUSR1,
                                 SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};
    sigset_t pass, before;
    struct pump p = {.r = r};

    sigemptyset(&pass);
    for (size_t i = 0; i < ARRAY_LEN(passed); i++)
        sigaddset(&pass, passed[i]);
    if (r->master >= 0)
        TRY(fd_set_nonblocking(r->master));
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
    make_cooked(&p);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return e;
}
