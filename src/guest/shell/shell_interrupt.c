// SPDX-License-Identifier: Apache-2.0
/* shell_interrupt.c — C-c, until it has reached a process.
 *
 * The terminal sends the signal to its foreground processes. At that moment there may be none, or
 * one that has not come to its program yet: so we look again. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/shell/shell_inner.h"

#define STATUS_MAX         65536
#define INTERRUPT_CHECK_MS 100
#define INTERRUPTS_MAX     20u

pid_t shell_foreground(const struct shell *s)
{
    pid_t group = -1;

    return ioctl(s->master, TIOCGPGRP, &group) == 0 ? group : -1;
}

static void read_status(pid_t pid, struct buf *into)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    err_free(fd_read_file(path, into));
}

/* Is SIGINT in one of these sets of a process's status, eight characters each? If that cannot be
 * read, it is. */
static bool has_sigint(struct str status, const char *sets)
{
    bool has = false;

    for (; *sets && !has; sets += 8) {
        ptrdiff_t at = str_find(status, str_n(sets, 8));
        struct str digit = at < 0 ? (struct str){0} : str_from(status, (size_t)at + 8 + 15);
        has = !digit.len || str_digit(digit.p[0]) & 1u << (SIGINT - 1);
    }
    return has;
}

/* A process that has no opinion on SIGINT and is alive never got it: the signal came between fork
 * and exec, when the child still had bash's handler, and bash's name. One that had its own name by
 * then got it, and is about to end: its run-time has put back what was before. */
static bool missed_interrupt(const struct shell *s, pid_t pid)
{
    own_done(buf) b = {.limit_bytes = STATUS_MAX};

    read_status(pid, &b);
    return !str_starts(buf_str(&b), str_of(s->interrupted_name)) &&
           !has_sigint(buf_str(&b), "SigBlk:\tSigIgn:\tSigCgt:\t");
}

/* The kernel sends the signal of a C-c before its echo, so the report may overtake that. A look at
 * the slave waits until what we typed has been dealt with. */
void shell_await_echo(struct shell *s)
{
    struct pollfd slave = {.fd = s->slave, .events = POLLIN};

    if (s->keys_typed)
        poll(&slave, 1, 0);
}

/* Has not come to it yet. A bash that finds a line and the signal at once in `read` would take the
 * line, be interrupted, and give the line to the next `read`. */
static bool owes_interrupt(pid_t pid)
{
    own_done(buf) b = {.limit_bytes = STATUS_MAX};

    read_status(pid, &b);
    return has_sigint(buf_str(&b), "SigPnd:\tShdPnd:\t");
}

static void on_interrupt_check(struct loop_timer *t)
{
    struct shell *s = container_of(t, struct shell, interrupt);

    if (s->command.now != CMD_RUNNING || s->interrupts == INTERRUPTS_MAX)
        return;
    pid_t group = shell_foreground(s);
    if (group != s->interrupted || missed_interrupt(s, group)) {
        shell_interrupt_now(s);
    } else if (group == getpgid(s->report_pid)) {
        shell_await_echo(s);
        if (!s->probed && !owes_interrupt(s->report_pid)) {
            shell_type(s, shell_script_probe); /* it has a prompt, but no hook any more */
            s->probed = true;
        }
        s->interrupts++; /* or it is between two jobs of a loop */
        loop_timer_start(s->loop, t, INTERRUPT_CHECK_MS, on_interrupt_check);
    }
}

/* A C-c between the end of a job and bash taking the terminal back reaches no process, and a loop
 * of short jobs runs on. So it is typed again if another job is then in the foreground.
 *
 * A program that only takes its time to end is left alone. */
void shell_interrupt_now(struct shell *s)
{
    own_done(buf) b = {.limit_bytes = STATUS_MAX};

    s->interrupts++;
    s->keys_typed = true;
    s->probed = false;
    s->interrupted = shell_foreground(s);
    read_status(s->interrupted, &b);
    snprintf(s->interrupted_name, sizeof s->interrupted_name, STR_FMT, STR_ARG(buf_str(&b)));
    shell_type(s, STR("\003"));
    loop_timer_start(s->loop, &s->interrupt, INTERRUPT_CHECK_MS, on_interrupt_check);
}
