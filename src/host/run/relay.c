// SPDX-License-Identifier: Apache-2.0
/* relay.c — see relay.h. */
#include "host/run/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

#define CHUNK     (64u << 10)
#define UNREAD_MS 1000 /* for a terminal to take something, once we were told to end and it did */

enum { AT_END, AT_SIGNAL, AT_IN, AT_MASTER, AT_OUT, AT_COUNT };

struct pump {
    const struct relay *r;
    int signals, out;
    bool raw;
    bool told;  /* to end */
    bool ended; /* it did */
    bool mute;  /* nothing comes any more, or the reader is gone */
    struct termios before;
    struct pollfd at[AT_COUNT];
    char typed[4096]; /* and not yet taken: a sandbox that does not read its input still has its
                         output heard */
    size_t typed_len;
    char *said; /* and not yet shown: a reader that is slow must not keep signals from the relay */
    size_t said_from, said_len;
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
    p->raw = tcsetattr(p->r->in, TCSANOW, &t) == 0;
}

/* A terminal says EIO when its last process has gone. */
static void take_said(struct pump *p)
{
    ssize_t n = read(p->r->master, p->said, CHUNK);

    p->said_from = 0;
    p->said_len = n > 0 ? (size_t)n : 0;
    p->mute = n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

static void give_said(struct pump *p)
{
    ssize_t n = write(p->out, p->said + p->said_from, p->said_len);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) { /* the reader has gone: the sandbox will notice by itself */
        p->mute = true;
        n = (ssize_t)p->said_len;
    }
    p->said_from += (size_t)n;
    p->said_len -= (size_t)n;
}

static void make_cooked(struct pump *p)
{
    if (p->raw)
        tcsetattr(p->r->in, TCSANOW, &p->before);
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

    if (n < 0) /* the other side is gone, or has not read yet */
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
    p->told |= s.ssi_signo == SIGTERM || s.ssi_signo == SIGHUP || s.ssi_signo == SIGINT ||
               s.ssi_signo == SIGQUIT;
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

/* One side is read when the other has taken what it got. */
static void look_out(struct pump *p)
{
    bool hear = !p->said_len, type = p->typed_len;

    p->at[AT_END].fd = p->ended ? -1 : p->r->end >= 0 ? p->r->end : p->r->pidfd;
    p->at[AT_IN].events = type ? 0 : POLLIN;
    p->at[AT_MASTER].fd = p->mute || (!hear && !type) ? -1 : p->r->master;
    p->at[AT_MASTER].events = (short)((hear ? POLLIN : 0) | (type ? POLLOUT : 0));
    p->at[AT_OUT].fd = hear ? -1 : p->out;
}

static void pass_bytes(struct pump *p)
{
    short master = p->at[AT_MASTER].revents;

    if (p->said_len && p->at[AT_OUT].revents)
        give_said(p);
    else if (!p->said_len && master & ~POLLOUT)
        take_said(p);
    if (p->at[AT_IN].revents && (p->typed_len || p->ended)) /* hung up, or it is not read */
        p->at[AT_IN].fd = -1;
    else if (p->at[AT_IN].revents)
        take_typed(p);
    if (master & POLLHUP)
        p->typed_len = 0;
    if (p->typed_len)
        give_typed(p);
}

/* The sandbox has ended, but its output may still be on its way. We wait for it, unless croft run
 * is to end too and its output is not read. */
static fallible relay_pump(struct pump *p, bool *ret_unread)
{
    for (;;) {
        look_out(p);
        int wait = !p->ended ? -1 : !p->said_len ? 0 : p->told ? UNREAD_MS : -1;
        int n = poll(p->at, AT_COUNT, wait);
        if (n < 0 && errno != EINTR)
            return err_sys("wait for the sandbox");
        if (n < 0)
            continue;
        *ret_unread = p->said_len;
        if (n == 0)
            return NULL;
        if (p->at[AT_SIGNAL].revents)
            pass_signal(p);
        if (p->at[AT_END].revents)
            p->ended = true;
        pass_bytes(p);
    }
}

/* The same terminal, opened once more: flags of this description are not seen by other processes.
 */
static fallible open_out(const struct relay *r, int *ret_fd)
{
    char path[64];

    if (r->master < 0)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", r->out);
    *ret_fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (*ret_fd >= 0)
        return NULL;
    *ret_fd =
        fcntl(r->out, F_DUPFD_CLOEXEC, 3); /* another process's: the caller sets croft run's back */
    if (*ret_fd < 0)
        return err_sys("copy the terminal's descriptor");
    return fd_set_nonblocking(*ret_fd);
}

static sigset_t passed_signals(void)
{
    static const int passed[] = {SIGTERM, SIGINT,  SIGQUIT, SIGHUP,  SIGUSR1,
                                 SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};
    sigset_t pass;

    sigemptyset(&pass);
    for (size_t i = 0; i < ARRAY_LEN(passed); i++)
        sigaddset(&pass, passed[i]);
    return pass;
}

void relay_hold(sigset_t *ret_before)
{
    sigset_t pass = passed_signals();

    sigprocmask(SIG_BLOCK, &pass, ret_before);
}

fallible relay_run(const struct relay *r, bool *ret_unread)
{
    static _Thread_local char said[CHUNK];
    sigset_t pass = passed_signals();
    struct pump p = {.r = r, .said = said};
    own_fd out = -1;

    if (r->master >= 0)
        TRY(fd_set_nonblocking(r->master));
    TRY(open_out(r, &out));
    own_fd signals = signalfd(-1, &pass, SFD_CLOEXEC);
    if (signals < 0)
        return err_sys("watch signals");
    p.signals = signals;
    p.out = out;
    p.at[AT_END].events = POLLIN;
    p.at[AT_SIGNAL] = (struct pollfd){signals, POLLIN, 0};
    p.at[AT_IN] = (struct pollfd){r->master >= 0 ? r->in : -1, POLLIN, 0};
    p.at[AT_OUT].events = POLLOUT;
    copy_size(r);
    make_raw(&p);
    struct err *e = relay_pump(&p, ret_unread);
    make_cooked(&p);
    sigprocmask(SIG_SETMASK, r->before, NULL);
    return e;
}
