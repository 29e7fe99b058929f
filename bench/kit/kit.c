// SPDX-License-Identifier: Apache-2.0
/* kit.c — figures, and programs on a pty; see kit.h. */
#include "bench/kit/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"

_Noreturn void kit_die(const char *what)
{
    fprintf(stderr, "bench: %s: %m\n", what);
    exit(1);
}

void kit_must(struct err *e)
{
    if (!e)
        return;
    fprintf(stderr, "bench: %s\n", err_text(e));
    exit(1);
}

void kit_check(bool ok, const char *what)
{
    if (!ok)
        kit_die(what);
}

void kit_shell(const char *command)
{
    kit_check(system(command) == 0, command); /* NOLINT(cert-env33-c): our own words */
}

double kit_ms_since(uint64_t start_ns)
{
    return (double)(clock_mono_ns(&clock_system) - start_ns) / 1e6;
}

double kit_now_ms(void)
{
    return (double)clock_mono_ns(&clock_system) / 1e6;
}

/* --- figures --- */

void kit_add(struct kit_series *s, double ms)
{
    if (s->count == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 256;
        s->ms = realloc(s->ms, s->cap * sizeof *s->ms);
        if (!s->ms)
            kit_die("memory");
    }
    s->ms[s->count++] = ms;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double at(const struct kit_series *s, size_t percent)
{
    size_t i = s->count * percent / 100;

    return s->ms[i < s->count ? i : s->count - 1];
}

double kit_print(const char *name, struct kit_series *s)
{
    qsort(s->ms, s->count, sizeof *s->ms, by_value);
    printf("  %-34s min %8.3f  p50 %8.3f  p95 %8.3f  p99 %8.3f ms  N %zu\n", name, at(s, 0),
           at(s, 50), at(s, 95), at(s, 99), s->count);
    return at(s, 50);
}

static void print_bar(const char *what, double got, const char *sign, double bar, const char *unit,
                      bool pass)
{
    printf("  %-34s %.3f%s  bar %s %.3f%s  %s\n", what, got, unit, sign, bar, unit,
           pass ? "PASS" : "MISS");
}

void kit_at_most(const char *what, double got, double bar, const char *unit)
{
    print_bar(what, got, "<=", bar, unit, got <= bar);
}

void kit_at_least(const char *what, double got, double bar, const char *unit)
{
    print_bar(what, got, ">=", bar, unit, got >= bar);
}

/* --- a program on a pty --- */

int kit_pty(const char *const *argv, pid_t *ret_pid)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
        ptsname_r(master, name, sizeof name) != 0)
        kit_die("pty");
    *ret_pid = fork();
    if (*ret_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setsid();
        int slave = open(name, O_RDWR);
        ioctl(slave, TIOCSCTTY, 0);
        for (int i = 0; i < 3; i++)
            dup2(slave, i);
        setenv("PS1", "", 1);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    return master;
}

void kit_type(int master, const char *line)
{
    static unsigned number;
    char text[300], want[64], seen[8192];
    size_t len = 0;
    int n = snprintf(text, sizeof text, "%s; echo \"e\"nd%u.\n", line, ++number);
    int w = snprintf(want, sizeof want, "end%u.", number);

    if (write(master, text, (size_t)n) != n)
        kit_die("type");
    while (!memmem(seen, len, want, (size_t)w)) { /* the echo of the line says "e"nd, not end */
        if (len > sizeof seen / 2)
            len = 0;
        ssize_t got = read(master, seen + len, sizeof seen - len);
        if (got <= 0)
            kit_die("the bash on a pty ended");
        len += (size_t)got;
    }
}

void kit_end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
