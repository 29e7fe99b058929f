// SPDX-License-Identifier: Apache-2.0
/* signal.c — signals by signalfd, children by pidfd. */
#include <errno.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/inner.h"

static void on_signalfd(struct loop_io *io)
{
    struct loop *l = io->loop;
    struct signalfd_siginfo info;

    while (read(l->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        l->signal_next = l->signals.next;
        while (l->signal_next != &l->signals) { /* a callback may stop any of them */
            struct loop_signal *s = container_of(l->signal_next, struct loop_signal, link);
            l->signal_next = s->link.next;
            if (s->signo == (int)info.ssi_signo)
                s->fn(s);
        }
    }
    l->signal_next = NULL;
}

fallible loop_signal_start(struct loop *l, struct loop_signal *s, int signo,
                           void (*fn)(struct loop_signal *s))
{
    sigset_t set = l->signal_set;

    if (l->signal_fd < 0)
        sigemptyset(&set);
    sigaddset(&set, signo);
    int fd = signalfd(l->signal_fd, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_sys("signalfd");
    if (l->signal_fd < 0) {
        struct err *e = loop_io_start(l, &l->signal_io, fd, EPOLLIN, on_signalfd);
        if (e) {
            own_close(fd);
            return e;
        }
        l->signal_fd = fd;
    }
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    l->signal_set = set;
    *s = (struct loop_signal){.fn = fn, .loop = l, .signo = signo};
    list_add(&l->signals, &s->link);
    return NULL;
}

void loop_signal_stop(struct loop_signal *s)
{
    if (!s->loop)
        return;
    if (s->loop->signal_next == &s->link)
        s->loop->signal_next = s->link.next;
    s->loop = NULL;
    list_del(&s->link);
}

static void on_child_readable(struct loop_io *io)
{
    struct loop_child *c = container_of(io, struct loop_child, io);
    siginfo_t info = {0};

    if (waitid(P_PIDFD, (id_t)io->fd, &info, WEXITED | WNOHANG) < 0) {
        info.si_code =
            CLD_EXITED; /* another waiter reaped it: the status is gone, the fact is not */
        info.si_status = -1;
    } else if (info.si_pid == 0) {
        return;
    }
    c->code = info.si_code;
    c->status = info.si_status;
    loop_child_stop(c);
    c->fn(c);
}

fallible loop_child_start(struct loop *l, struct loop_child *c, pid_t pid, int pidfd,
                          void (*fn)(struct loop_child *c))
{
    own_fd fd = pidfd >= 0 ? pidfd : (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd < 0)
        return err_sys("pidfd_open %d", (int)pid);
    *c = (struct loop_child){.fn = fn, .pid = pid};
    TRY(loop_io_start(l, &c->io, fd, EPOLLIN, on_child_readable));
    take_fd(&fd);
    return NULL;
}

void loop_child_stop(struct loop_child *c)
{
    if (!c->io.loop)
        return;
    loop_io_stop(&c->io);
    own_close(c->io.fd);
}
