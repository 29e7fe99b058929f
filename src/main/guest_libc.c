// SPDX-License-Identifier: Apache-2.0
/* guest_libc.c — small versions of what libc does at length: these names are found first, so the
 * large ones, and all of stdio behind them, stay out of croft-guest. */
#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/dtoa.h"
#include "base/dtoa_slow.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/rng.h"
#include "loop/inner.h"

int vsnprintf(char *restrict out, size_t size, const char *restrict fmt, va_list ap)
{
    return format_text(out, size, fmt, ap);
}

int snprintf(char *restrict out, size_t size, const char *restrict fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = format_text(out, size, fmt, ap);
    va_end(ap);
    return n;
}

double strtod(const char *restrict text, char **restrict ret_end)
{
    return dtoa_slow_read(text, ret_end);
}

void dtoa_power(int exp10, uint64_t ret_high_low[2])
{
    dtoa_slow_power(exp10, ret_high_low);
}

/* Not by the kernel's page of code and data, which lies apart from all else: two or three pages of
 * tables lead there, in every sandbox, and the loop looks once a turn. */
int clock_gettime(clockid_t which, struct timespec *ret_time)
{
    return (int)syscall(SYS_clock_gettime, which, ret_time);
}

/* --- sorting: as fast as libc's to a factor, at a tenth of the size --- */

static void swap_bytes(char *a, char *b, size_t n)
{
    for (; n; n--, a++, b++) {
        char c = *a;
        *a = *b;
        *b = c;
    }
}

/* Lets the item sink until no child of it is larger. */
static void libc_sift(char *base, size_t at, size_t count, size_t size,
                      int (*compare)(const void *, const void *))
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && compare(base + child * size, base + (child + 1) * size) < 0)
            child++;
        if (compare(base + at * size, base + child * size) >= 0)
            return;
        swap_bytes(base + at * size, base + child * size, size);
    }
}

void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    for (size_t i = count / 2; i--;)
        libc_sift(base, i, count, size, compare);
    while (count > 1) {
        count--;
        swap_bytes(base, (char *)base + count * size, size);
        libc_sift(base, 0, count, size, compare);
    }
}

/* --- libc tells every thread of these, and asks many places for that --- */

int setuid(uid_t uid)
{
    return (int)syscall(SYS_setuid, uid);
}

int setgid(gid_t gid)
{
    return (int)syscall(SYS_setgid, gid);
}

int setgroups(size_t count, const gid_t *groups)
{
    return (int)syscall(SYS_setgroups, count, groups);
}

/* --- what is asked of these here is less --- */

char *mkdtemp(char *path) /* by real chance: libc's letters are made of the time */
{
    int failed;

    do
        rng_token(rng_system(), path + strlen(path) - 6, 7);
    while ((failed = mkdir(path, 0700)) && errno == EEXIST);
    return failed ? NULL : path;
}

/* What programs end by; each behind its number. */
char *strsignal(int signo)
{
    static const char words[] = "\1Hangup\0\2Interrupt\0\3Quit\0\4Illegal instruction\0"
                                "\6Aborted\0\7Bus error\0\10Arithmetic exception\0\11Killed\0"
                                "\13Segmentation fault\0\15Broken pipe\0\17Terminated\0"
                                "\37Bad system call\0";

    const char *w = words;
    while (*w && *w != signo)
        w += strlen(w) + 1;
    return (char *)(*w ? w + 1 : "another");
}

int atoi(const char *text) /* names of processes: digits */
{
    int n = 0;

    while (*text)
        n = 10 * n + *text++ - '0';
    return n;
}

/* --- no threads: a guest forks --- */

fallible loop_work(struct loop *l, struct loop_work *w, void (*run)(struct loop_work *w),
                   void (*done)(struct loop_work *w))
{
    (void)l, (void)w, (void)run, (void)done;
    return err_new(ERR_UNSUPPORTED, "the guest has no threads");
}

void loop_forbid_threads(struct loop *l)
{
    (void)l;
}

void loop_workers_end(struct loop *l)
{
    (void)l;
}

void loop_on_wake(struct loop_io *io)
{
    uint64_t count;
    ssize_t ignored = read(io->fd, &count, sizeof count);
    (void)ignored;
}

/* What assert calls in musl; the prototype is that of its assert.h. */
_Noreturn void __assert_fail(const char *what, const char *file, int line, const char *function);
_Noreturn void __assert_fail(const char *what, const char *file, int line, const char *function)
{
    fd_print(STDERR_FILENO, "%s:%d: %s: %s\n", file, line, function, what);
    abort();
}
