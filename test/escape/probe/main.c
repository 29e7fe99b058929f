// SPDX-License-Identifier: Apache-2.0
/* main.c — escape-probe [control] [NAME=value ...] [PROBE ...]: one line per attempt. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/escape/probe/probe.h"

#define TIME_LIMIT_S 20

ROWS_OF(probes, struct probe)

static struct {
    int argc;
    char **argv;
    bool control;
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

enum probe_result probe_refused(char *note, size_t size)
{
    snprintf(note, size, "%s", strerror(errno));
    return PROBE_REFUSED;
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
    static const char *const words[] = {"refused", "OPEN", "absent"};
    char note[200] = "";
    int status;

    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(TIME_LIMIT_S);
        enum probe_result r = p->try(p->data, note, sizeof note);
        if (told.control && r == PROBE_REFUSED)
            r = PROBE_ABSENT; /* shut for everybody on this machine */
        printf("%s/%s %s %s\n", p->family, p->name, words[r], note);
        fflush(stdout);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        printf("%s/%s lost fork or wait: %s\n", p->family, p->name, strerror(errno));
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        printf("%s/%s refused killed by the filter\n", p->family, p->name);
    else if (WIFSIGNALED(status))
        printf("%s/%s lost signal %d\n", p->family, p->name, WTERMSIG(status));
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(int argc, char **argv)
{
    told.argc = argc;
    told.argv = argv;
    told.control = argc > 1 && strcmp(argv[1], "control") == 0;
    for (size_t i = 0; i < ROWS_LEN(probes); i++)
        if (is_wanted(ROWS_AT(probes, i)->name))
            attempt(ROWS_AT(probes, i));
    printf("end\n");
    return 0;
}
