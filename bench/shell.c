// SPDX-License-Identifier: Apache-2.0
/* shell — commands in a live session, side by side with the same lines typed into a bare bash on a
 * pty, whose end is seen by a marker printed behind the command. */
#include "guest/shell/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "loop/loop.h"

#define ROUNDS 3000
#define TRUES  800

static void must(struct err *e)
{
    if (e) {
        fprintf(stderr, "bench/shell: %s\n", err_text(e));
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static double p50_ms(uint64_t *ns, size_t count)
{
    size_t middle = count / 2;

    qsort(ns, count, sizeof *ns, compare);
    return (double)ns[middle] / 1e6;
}

/* --- ours --- */

static void on_done(void *arg, const struct shell_result *r)
{
    if (r->status != SHELL_COMPLETED || r->meta.exit_code != 0) {
        fprintf(stderr, "bench/shell: status %d\n", (int)r->status);
        exit(1);
    }
    *(bool *)arg = true;
}

static void run_one(struct loop *loop, struct shell *s, struct str command)
{
    bool done = false;
    struct shell_request r = {.command = command, .blocking = true, .done = on_done, .arg = &done};

    must(shell_run(s, &r));
    while (!done)
        must(loop_turn(loop, -1));
}

static void time_ours(struct loop *loop, struct shell *s, struct str command, uint64_t *ns,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t start = clock_mono_ns(&clock_system);
        run_one(loop, s, command);
        ns[i] = clock_mono_ns(&clock_system) - start;
    }
}

/* --- a bare bash --- */

static int open_bare(pid_t *ret_pid)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
        ptsname_r(master, name, sizeof name) != 0)
        exit(1);
    *ret_pid = fork();
    if (*ret_pid == 0) {
        setsid();
        int slave = open(name, O_RDWR);
        ioctl(slave, TIOCSCTTY, 0);
        for (int i = 0; i < 3; i++)
            dup2(slave, i);
        setenv("PS1", "", 1);
        execl("/bin/bash", "bash", "--noediting", "--norc", "-i", (char *)NULL);
        _exit(127);
    }
    return master;
}

static void run_bare(int master, const char *command)
{
    static unsigned number;
    char line[256], want[64], seen[8192];
    size_t len = 0;
    int n = snprintf(line, sizeof line, "%s; echo \"e\"nd%u.\n", command, ++number);
    int w = snprintf(want, sizeof want, "end%u.", number);

    if (write(master, line, (size_t)n) != n)
        exit(1);
    while (!memmem(seen, len, want, (size_t)w)) { /* the echo of the line says "e"nd, not end */
        if (len > sizeof seen / 2)
            len = 0;
        ssize_t got = read(master, seen + len, sizeof seen - len);
        if (got <= 0)
            exit(1);
        len += (size_t)got;
    }
}

static void time_bare(int master, const char *command, uint64_t *ns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t start = clock_mono_ns(&clock_system);
        run_bare(master, command);
        ns[i] = clock_mono_ns(&clock_system) - start;
    }
}

int main(void)
{
    static uint64_t ns[ROUNDS];
    static const char *const env[] = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", NULL};
    struct loop *loop;
    struct shell *s;
    pid_t bare_pid;
    double ours[3], bare[3];

    must(loop_new(&clock_system, &loop));
    uint64_t start = clock_mono_ns(&clock_system);
    must(shell_new(loop, &(struct shell_config){.env = env, .cwd = "/tmp"}, &s));
    run_one(loop, s, STR("true"));
    printf("start to first result %.2f ms\n", (double)(clock_mono_ns(&clock_system) - start) / 1e6);
    int master = open_bare(&bare_pid);
    run_bare(master, "true");
    time_ours(loop, s, STR(":"), ns, 200); /* warm */
    start = clock_mono_ns(&clock_system);
    time_ours(loop, s, STR("echo hello"), ns, ROUNDS);
    double rate = ROUNDS / ((double)(clock_mono_ns(&clock_system) - start) / 1e9);
    double builtin = p50_ms(ns, ROUNDS);
    size_t late = ROUNDS * 99 / 100;
    printf("builtin p50 %.3f p99 %.3f ms\n", builtin, (double)ns[late] / 1e6);
    time_bare(master, "echo hello", ns, ROUNDS);
    printf("bare builtin p50 %.3f ms\n", p50_ms(ns, ROUNDS));
    for (int i = 0; i < 3; i++) { /* in turns: the machine's mood changes */
        time_ours(loop, s, STR("/bin/true"), ns, TRUES);
        ours[i] = p50_ms(ns, TRUES);
        time_bare(master, "/bin/true", ns, TRUES);
        bare[i] = p50_ms(ns, TRUES);
        printf("true p50 %.3f ms, bare %.3f ms\n", ours[i], bare[i]);
    }
    double ratio = (ours[0] + ours[1] + ours[2]) / (bare[0] + bare[1] + bare[2]);
    kill(bare_pid, SIGKILL);
    waitpid(bare_pid, NULL, 0);
    shell_close(s);
    while (waitpid(-1, NULL, WNOHANG) >= 0)
        must(loop_turn(loop, 100));
    must(loop_turn(loop, 0));
    loop_free(loop);
    printf("bench/shell: builtin p50 %.2f ms, true %.2fx bare bash, %.0f builtins/s\n", builtin,
           ratio, rate);
    return 0;
}
