// SPDX-License-Identifier: Apache-2.0
/* fault.c — makes the n-th call fail. The linker sends our objects' calls here (--wrap), and those
 * of libraries it binds in (SQLite's are the …64 ones); calls made inside libc are left alone. The
 * list is `wrapped` in the Makefile. */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "test/test.h"

struct epoll_event;
struct iovec;
struct itimerspec;
struct msghdr;
struct sockaddr;
struct pollfd;
struct rlimit;
struct stat;

static struct fault {
    atomic_uint left; /* calls until the fault; 0: disarmed */
    atomic_uint calls;
    atomic_bool fired, deep;
    char name[32], always[32];
} own_fault, *fault = &own_fault;

void *__real_mmap(void *p, size_t n, int pr, int fl, int fd, off_t at);

void fault_share(void)
{
    fault =
        __real_mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(fault != MAP_FAILED);
}

void fault_at(unsigned n)
{
    if (n) /* disarmed, it still tells whether it was fired */
        atomic_store(&fault->fired, false);
    atomic_store(&fault->calls, 0);
    atomic_store(&fault->left, n);
}

void fault_always(const char *name)
{
    strncpy(fault->always, name ? name : "", sizeof fault->always - 1);
}

void fault_deep(void)
{
    atomic_store(&fault->deep, true);
}

const char *fault_name(void)
{
    return fault->name;
}

bool fault_fired(void)
{
    return atomic_load(&fault->fired);
}

unsigned fault_calls(void)
{
    return atomic_load(&fault->calls);
}

/* Its name is whole before it is told as fired: whoever reads it may be another process. */
static bool strike_as(const char *name, const long *number, int errnum)
{
    if (fault->always[0] && strcmp(name, fault->always) == 0) {
        errno = errnum;
        return true;
    }
    if (atomic_load_explicit(&fault->left, memory_order_relaxed) == 0)
        return false;
    atomic_fetch_add(&fault->calls, 1);
    if (atomic_fetch_sub(&fault->left, 1) != 1)
        return false;
    if (number)
        snprintf(fault->name, sizeof fault->name, "%s %ld", name, *number);
    else
        snprintf(fault->name, sizeof fault->name, "%s", name);
    atomic_store(&fault->fired, true);
    errno = errnum;
    return true;
}

static bool strike(const char *name, int errnum)
{
    return strike_as(name, NULL, errnum);
}

static bool strike_deep(const char *name, int errnum)
{
    return atomic_load_explicit(&fault->deep, memory_order_relaxed) && strike(name, errnum);
}

/* Signal handlers are put back one by one, those too that cannot be: a failure has no effect. */
static bool strike_number(const char *name, long number, int errnum)
{
    if (name[0] == 's' && number == SYS_rt_sigaction)
        return false;
    return atomic_load_explicit(&fault->deep, memory_order_relaxed) &&
           strike_as(name, &number, errnum);
}

#define WRAP(type, name, fail, errnum, params, args)                                               \
    type __real_##name params;                                                                     \
    type __wrap_##name params;                                                                     \
    type __wrap_##name params                                                                      \
    {                                                                                              \
        return strike(#name, errnum) ? (fail) : __real_##name args;                                \
    }

WRAP(void *, malloc, NULL, ENOMEM, (size_t n), (n))
WRAP(void *, calloc, NULL, ENOMEM, (size_t n, size_t m), (n, m))
WRAP(void *, realloc, NULL, ENOMEM, (void *p, size_t n), (p, n))
WRAP(ssize_t, read, -1, EIO, (int fd, void *p, size_t n), (fd, p, n))
WRAP(ssize_t, write, -1, ENOSPC, (int fd, const void *p, size_t n), (fd, p, n))
WRAP(ssize_t, readv, -1, EIO, (int fd, const struct iovec *v, int n), (fd, v, n))
WRAP(ssize_t, writev, -1, ENOSPC, (int fd, const struct iovec *v, int n), (fd, v, n))
WRAP(ssize_t, pread, -1, EIO, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
WRAP(ssize_t, pwrite, -1, ENOSPC, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
WRAP(ssize_t, pread64, -1, EIO, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
WRAP(ssize_t, pwrite64, -1, ENOSPC, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
WRAP(int, accept4, -1, EMFILE, (int fd, struct sockaddr *a, unsigned *n, int fl), (fd, a, n, fl))
WRAP(int, socket, -1, EMFILE, (int d, int t, int p), (d, t, p))
WRAP(int, connect, -1, ENETUNREACH, (int fd, const struct sockaddr *a, unsigned n), (fd, a, n))
WRAP(int, bind, -1, EADDRINUSE, (int fd, const struct sockaddr *a, unsigned n), (fd, a, n))
WRAP(int, listen, -1, EADDRINUSE, (int fd, int n), (fd, n))
WRAP(ssize_t, send, -1, ECONNRESET, (int fd, const void *p, size_t n, int fl), (fd, p, n, fl))
WRAP(ssize_t, recv, -1, ECONNRESET, (int fd, void *p, size_t n, int fl), (fd, p, n, fl))
WRAP(ssize_t, sendmsg, -1, ECONNRESET, (int fd, const struct msghdr *m, int fl), (fd, m, fl))
WRAP(ssize_t, recvmsg, -1, ECONNRESET, (int fd, struct msghdr *m, int fl), (fd, m, fl))
WRAP(int, epoll_ctl, -1, ENOMEM, (int e, int op, int fd, struct epoll_event *v), (e, op, fd, v))
WRAP(int, epoll_create1, -1, EMFILE, (int fl), (fl))
WRAP(int, eventfd, -1, EMFILE, (unsigned n, int fl), (n, fl))
WRAP(int, timerfd_create, -1, EMFILE, (int c, int fl), (c, fl))
WRAP(int, timerfd_settime, -1, EINVAL,
     (int fd, int fl, const struct itimerspec *v, struct itimerspec *o), (fd, fl, v, o))
WRAP(int, signalfd, -1, EMFILE, (int fd, const void *m, int fl), (fd, m, fl))
WRAP(int, fsync, -1, EIO, (int fd), (fd))
WRAP(int, fdatasync, -1, EIO, (int fd), (fd))
WRAP(int, ftruncate, -1, ENOSPC, (int fd, off_t n), (fd, n))
WRAP(int, ftruncate64, -1, ENOSPC, (int fd, off_t n), (fd, n))
WRAP(int, rename, -1, ENOSPC, (const char *a, const char *b), (a, b))
WRAP(int, renameat, -1, ENOSPC, (int d, const char *a, int e, const char *b), (d, a, e, b))
WRAP(int, mkdirat, -1, ENOSPC, (int d, const char *p, mode_t m), (d, p, m))
WRAP(int, unlinkat, -1, EIO, (int d, const char *p, int fl), (d, p, fl))
WRAP(pid_t, fork, -1, EAGAIN, (void), ())
WRAP(int, pipe2, -1, EMFILE, (int *fds, int fl), (fds, fl))
WRAP(int, socketpair, -1, EMFILE, (int d, int t, int p, int *fds), (d, t, p, fds))
WRAP(void *, mmap, MAP_FAILED, ENOMEM, (void *p, size_t n, int pr, int fl, int fd, off_t at),
     (p, n, pr, fl, fd, at))
WRAP(int, getsockname, -1, ENOBUFS, (int fd, struct sockaddr *a, unsigned *n), (fd, a, n))
WRAP(ssize_t, sendfile, -1, EIO, (int o, int i, off_t *at, size_t n), (o, i, at, n))
WRAP(int, fstat, -1, EIO, (int fd, struct stat *st), (fd, st))

WRAP(int, mount, -1, EINVAL,
     (const char *from, const char *to, const char *type, unsigned long fl, const void *data),
     (from, to, type, fl, data))
WRAP(int, umount2, -1, EBUSY, (const char *at, int fl), (at, fl))
WRAP(int, unshare, -1, ENOSPC, (int fl), (fl))
WRAP(int, setns, -1, EPERM, (int fd, int type), (fd, type))
WRAP(int, symlinkat, -1, ENOSPC, (const char *to, int d, const char *p), (to, d, p))
WRAP(int, mknodat, -1, EPERM, (int d, const char *p, mode_t m, dev_t n), (d, p, m, n))
WRAP(int, setrlimit, -1, EPERM, (int what, const void *v), (what, v))
WRAP(int, sethostname, -1, EPERM, (const char *p, size_t n), (p, n))
WRAP(int, sys_open_tree, -1, EINVAL, (int d, const char *p, unsigned fl), (d, p, fl))
WRAP(int, sys_move_mount, -1, EINVAL, (int from, int d, const char *p), (from, d, p))
WRAP(int, sys_mount_setattr, -1, EINVAL, (int fd, void *attr), (fd, attr))
WRAP(int, sys_fsopen, -1, ENODEV, (const char *type), (type))
WRAP(int, sys_fsconfig, -1, EINVAL, (int fs, unsigned c, const char *k, const void *v, int aux),
     (fs, c, k, v, aux))
WRAP(int, sys_fsmount, -1, EPERM, (int fs, unsigned attr), (fs, attr))
WRAP(int, sys_pivot_root, -1, EINVAL, (const char *a, const char *b), (a, b))
WRAP(pid_t, sys_clone3, -1, EAGAIN, (void *args), (args))
WRAP(int, sys_close_range, -1, ENOMEM, (unsigned a, unsigned b, unsigned fl), (a, b, fl))
WRAP(int, sys_execveat, -1, ENOEXEC, (int fd, const void *v, const void *e), (fd, v, e))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t); /* garbage when not given, and then not used */
    va_end(ap);
    return strike("open", EMFILE) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    return strike("openat", EMFILE) ? -1 : __real_openat(dir, path, flags, mode);
}

/* --- with fault_deep() only --- */

#define WRAP_DEEP(type, name, fail, errnum, params, args)                                          \
    type __real_##name params;                                                                     \
    type __wrap_##name params;                                                                     \
    type __wrap_##name params                                                                      \
    {                                                                                              \
        return strike_deep(#name, errnum) ? (fail) : __real_##name args;                           \
    }

WRAP_DEEP(int, chdir, -1, EACCES, (const char *p), (p))
WRAP_DEEP(int, dup2, -1, EMFILE, (int a, int b), (a, b))
WRAP_DEEP(int, fchmod, -1, EPERM, (int fd, mode_t m), (fd, m))
WRAP_DEEP(int, fchmodat, -1, EPERM, (int d, const char *p, mode_t m, int fl), (d, p, m, fl))
WRAP_DEEP(int, fchown, -1, EPERM, (int fd, uid_t u, gid_t g), (fd, u, g))
WRAP_DEEP(int, fchownat, -1, EPERM, (int d, const char *p, uid_t u, gid_t g, int fl),
          (d, p, u, g, fl))
WRAP_DEEP(int, flock, -1, ENOLCK, (int fd, int op), (fd, op))
WRAP_DEEP(int, fstatat, -1, EIO, (int d, const char *p, struct stat *st, int fl), (d, p, st, fl))
WRAP_DEEP(ssize_t, readlinkat, -1, EIO, (int d, const char *p, char *to, size_t n), (d, p, to, n))
WRAP_DEEP(int, poll, -1, ENOMEM, (struct pollfd * p, unsigned long n, int ms), (p, n, ms))
WRAP_DEEP(pid_t, setsid, -1, EPERM, (void), ())
WRAP_DEEP(int, setgroups, -1, EPERM, (size_t n, const gid_t *g), (n, g))
WRAP_DEEP(int, setresgid, -1, EPERM, (gid_t r, gid_t e, gid_t s), (r, e, s))
WRAP_DEEP(int, setresuid, -1, EAGAIN, (uid_t r, uid_t e, uid_t s), (r, e, s))
WRAP_DEEP(int, prlimit, -1, EPERM, (pid_t p, int what, const struct rlimit *n, struct rlimit *o),
          (p, what, n, o))
WRAP_DEEP(int, sys_pidfd_kill, -1, ESRCH, (int fd, int signo), (fd, signo))

/* Those with any number of arguments: as many as the kernel takes, garbage where none were given,
 * which the sanitizer would take for a read past the caller's frame. */
#define WRAP_ANY(type, name, first, fail, errnum)                                                  \
    type __real_##name(first a, ...);                                                              \
    type __wrap_##name(first a, ...);                                                              \
    __attribute__((no_sanitize_address)) type __wrap_##name(first a, ...)                          \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, a);                                                                           \
        long v[6];                                                                                 \
        for (int i = 0; i < 6; i++)                                                                \
            v[i] = va_arg(ap, long);                                                               \
        va_end(ap);                                                                                \
        return strike_number(#name, (long)a, errnum)                                               \
                   ? (fail)                                                                        \
                   : __real_##name(a, v[0], v[1], v[2], v[3], v[4], v[5]);                         \
    }

WRAP_ANY(int, fcntl, int, -1, EMFILE)
WRAP_ANY(int, ioctl, int, -1, EPERM)
WRAP_ANY(int, prctl, int, -1, EPERM)
WRAP_ANY(long, syscall, long, -1, EPERM)
