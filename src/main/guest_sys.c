// SPDX-License-Identifier: Apache-2.0
/* guest_sys.c — system calls of croft-guest as the kernel has them. libc's versions do the same at
 * ten times the size: they make up for kernels older than any that runs a sandbox, and for threads,
 * of which there are none. As in guest_libc.c, these names are found first. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KERNEL_SIGSET_BYTES (_NSIG / 8)

/* --- files --- */

/* The last argument is read even if none was given: the kernel looks only where it must be. */
int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;

    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list ap;

    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int fcntl(int fd, int what, ...)
{
    va_list ap;

    va_start(ap, what);
    unsigned long value = va_arg(ap, unsigned long);
    va_end(ap);
    return (int)syscall(SYS_fcntl, fd, what, value);
}

int fstat(int fd, struct stat *ret_st)
{
    return (int)syscall(SYS_fstat, fd, ret_st);
}

int fstatat(int dir, const char *restrict path, struct stat *restrict ret_st, int flags)
{
    return (int)syscall(SYS_newfstatat, dir, path, ret_st, flags);
}

int fchmod(int fd, mode_t mode)
{
    return (int)syscall(SYS_fchmod, fd, mode);
}

int fchown(int fd, uid_t uid, gid_t gid)
{
    return (int)syscall(SYS_fchown, fd, uid, gid);
}

int dup3(int fd, int to, int flags)
{
    return (int)syscall(SYS_dup3, fd, to, flags);
}

int pipe2(int ret_ends[2], int flags)
{
    return (int)syscall(SYS_pipe2, ret_ends, flags);
}

/* --- sockets --- */

int socket(int family, int type, int protocol)
{
    return (int)syscall(SYS_socket, family, type, protocol);
}

int socketpair(int family, int type, int protocol, int ret_ends[2])
{
    return (int)syscall(SYS_socketpair, family, type, protocol, ret_ends);
}

int accept4(int fd, struct sockaddr *restrict ret_from, socklen_t *restrict size, int flags)
{
    return (int)syscall(SYS_accept4, fd, ret_from, size, flags);
}

/* The kernel's lengths are longer than libc's; the padding behind these must be zero, as it is in
 * a message and control bytes that were initialised. */
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    return syscall(SYS_sendmsg, fd, m, flags);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    return syscall(SYS_recvmsg, fd, m, flags);
}

/* --- waiting --- */

int epoll_create1(int flags)
{
    return (int)syscall(SYS_epoll_create1, flags);
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

int epoll_wait(int epoll, struct epoll_event *ret_events, int max, int timeout_ms)
{
    return (int)syscall(SYS_epoll_wait, epoll, ret_events, max, timeout_ms);
}

int signalfd(int fd, const sigset_t *set, int flags)
{
    return (int)syscall(SYS_signalfd4, fd, set, KERNEL_SIGSET_BYTES, flags);
}

/* --- processes --- */

/* Without the locks of other threads. */
pid_t fork(void)
{
    return _Fork();
}

int getrlimit(int which, struct rlimit *ret_limit)
{
    return (int)syscall(SYS_getrlimit, which, ret_limit);
}

/* SIG_IGN and SIG_DFL: a function would need libc's way back from it. */
void (*signal(int signo, void (*what)(int)))(int)
{
    struct {
        void (*what)(int);
        unsigned long flags;
        void (*back)(void);
        unsigned long mask;
    } action = {.what = what}, before;

    if (syscall(SYS_rt_sigaction, signo, &action, &before, KERNEL_SIGSET_BYTES) < 0)
        return SIG_ERR;
    return before.what;
}
