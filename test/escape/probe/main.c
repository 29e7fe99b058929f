// SPDX-License-Identifier: Apache-2.0
/* main.c — escape-probe [control] [NAME=value ...] [PROBE ...]: one line per attempt. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/escape/probe/probe.h"

#define TIME_LIMIT_S 20

ROWS_OF(probes, struct probe)

static struct {
    int argc;
    char **argv;
    bool control;
    char row[100], said[600];
} told;

const char *probe_word(const char *name)
{
    size_t n = strlen(name);

    for (int i = 1; i < told.argc; i++)
        if (strncmp(told.argv[i], name, n) == 0 && told.argv[i][n] == '=')
            return told.argv[i] + n + 1;
    return NULL;
}

bool probe_is_control(void)
{
    return told.control;
}

const char *probe_row(void)
{
    return told.row;
}

static long mark(enum mark what, const void *a, const void *b, long c)
{
    return syscall(SYS_getpid, MARK_MAGIC, what, a, b, c);
}

void probe_deed(void)
{
    mark(MARK_DEED, NULL, NULL, 0);
}

void probe_step(void)
{
    mark(MARK_STEP, NULL, NULL, 0);
}

void probe_calm(void)
{
    mark(MARK_CALM, NULL, NULL, 0);
}

/* What is read anywhere may hold anything; the line must stay one. */
void probe_say(const char *fmt, ...)
{
    size_t len = strlen(told.said);
    va_list args;

    va_start(args, fmt);
    vsnprintf(told.said + len, sizeof told.said - len, fmt, args);
    va_end(args);
    for (char *p = told.said + len; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '.';
}

bool probe_say_file(const char *path)
{
    char text[64] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    if (read(fd, text, sizeof text - 1) > 0)
        probe_say("%s ", text);
    close(fd);
    return true;
}

static bool is_wanted(const char *name)
{
    bool any = false;

    for (int i = 1; i < told.argc; i++) {
        if (strchr(told.argv[i], '=') || strcmp(told.argv[i], "control") == 0)
            continue;
        any = true;
        if (strcmp(told.argv[i], name) == 0)
            return true;
    }
    return !any;
}

/* Each in a process of its own: seccomp may kill it, and it may leave things behind. */
static void attempt(const struct probe *p)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(TIME_LIMIT_S);
        mark(MARK_ROW, p->family, p->name, p->trace);
        snprintf(told.row, sizeof told.row, "%s/%s", p->family, p->name);
        errno = 0;
        p->try(p->data);
        if (!told.said[0])
            probe_say("%s", strerror(errno));
        printf("%s said %s\n", told.row, told.said);
        fflush(stdout);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) < 0)
        printf("%s/%s said fork or wait: %s\n", p->family, p->name, strerror(errno));
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(int argc, char **argv)
{
    const struct timespec a_moment = {0, 1000000};

    told.argc = argc;
    told.argv = argv;
    told.control = argc > 1 && strcmp(argv[1], "control") == 0;
    while (probe_word("WATCHED") && mark(MARK_WAIT, NULL, NULL, 0) != MARK_MAGIC)
        nanosleep(&a_moment, NULL);
    for (size_t i = 0; i < ROWS_LEN(probes); i++)
        if (is_wanted(ROWS_AT(probes, i)->name))
            attempt(ROWS_AT(probes, i));
    printf("end\n");
    return 0;
}
