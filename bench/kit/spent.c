// SPDX-License-Identifier: Apache-2.0
/* spent.c — see spent.h. */
#include "bench/kit/spent.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

static double of_thread(pid_t pid, const char *thread)
{
    char path[80];
    own_done(buf) text;

    buf_init(&text, 4096);
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid, thread);
    err_free(fd_read_file(path, &text)); /* a thread that ended meanwhile */
    return (double)strtoull(buf_cstr(&text), NULL, 10) / 1e6;
}

static double of_process(pid_t pid)
{
    char path[40];
    double ms = 0;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = pid > 0 ? opendir(path) : NULL;
    for (struct dirent *d; dir && (d = readdir(dir));)
        if (d->d_name[0] != '.')
            ms += of_thread(pid, d->d_name);
    if (dir)
        closedir(dir);
    return ms;
}

/* The one child of the server. */
static pid_t launcher_of(pid_t server)
{
    char path[60];
    own_done(buf) text;

    buf_init(&text, 4096);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)server, (int)server);
    err_free(fd_read_file(path, &text)); /* a kernel without it: 0 */
    return (pid_t)strtol(buf_cstr(&text), NULL, 10);
}

/* user, nice, system; not idle, not waiting; interrupts. */
static double of_machine(void)
{
    own_done(buf) text;
    unsigned long long v[7] = {0};

    buf_init(&text, 1u << 20);
    err_free(fd_read_file("/proc/stat", &text)); /* then it is 0 */
    const char *at = buf_cstr(&text);
    for (at += *at ? 3 : 0; *at == ' ';)
        at++;
    for (size_t i = 0; i < 7; i++) {
        char *end;
        v[i] = strtoull(at, &end, 10);
        at = end;
    }
    return (double)(v[0] + v[1] + v[2] + v[5] + v[6]) * 1e3 / (double)sysconf(_SC_CLK_TCK);
}

void spent_look(pid_t server, struct spent *ret)
{
    struct timespec t = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    *ret = (struct spent){.server = of_process(server),
                          .launcher = of_process(launcher_of(server)),
                          .bench = (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6,
                          .machine = of_machine()};
}

struct spent spent_since(pid_t server, const struct spent *before, double count)
{
    struct spent now;

    spent_look(server, &now);
    return (struct spent){.server = (now.server - before->server) / count,
                          .launcher = (now.launcher - before->launcher) / count,
                          .bench = (now.bench - before->bench) / count,
                          .machine = (now.machine - before->machine) / count};
}

void spent_say(const struct spent *each, char *text, size_t size)
{
    double rest = each->machine - each->server - each->launcher - each->bench;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    snprintf(text, size,
             "a start and stop takes %.1f ms of a processor: server %.2f, launcher %.2f, bench "
             "%.2f, the rest (sandboxes, kernel, whoever else runs) %.2f; %ld processors have %ld "
             "ms a second",
             each->machine, each->server, each->launcher, each->bench, rest, processors,
             processors * 1000);
}
