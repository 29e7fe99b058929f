// SPDX-License-Identifier: Apache-2.0
/* fork.c — snapshot and fork through the launcher: 10,000 files, 500 MB that a sandbox made; cp -a
 * of the same beside it.
 *
 * A stopped sandbox is frozen in place; of one that runs, what it changed is copied. A fork is
 * ready when its server listens. Needs root. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "bench/kit/kit.h"
#include "host/bench/scratch.h"
#include "host/launcher/launcher.h"

#define DIRS  100
#define FILES 100 /* in each */
#define BYTES (50u << 10)
#define RUNS  15

static void fill(int upper)
{
    static char data[BYTES];
    char path[64];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    for (int d = 0; d < DIRS; d++) {
        snprintf(path, sizeof path, "d%d", d);
        kit_check(mkdirat(upper, path, 0755) == 0, path);
        for (int f = 0; f < FILES; f++) {
            snprintf(path, sizeof path, "d%d/f%d", d, f);
            own_fd fd = openat(upper, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
            kit_check(fd >= 0, path);
            kit_must(fd_write_all(fd, str_n(data, sizeof data)));
        }
    }
}

static int sock, block;

static pid_t ask(enum native_op op, const char *id, const char *snapshot, int fds[2])
{
    struct native_request req = {
        .magic = NATIVE_MAGIC, .version = NATIVE_VERSION, .op = op, .argc = 1, .hostname = "box"};
    static struct native_reply reply;
    size_t n, count;

    fds[0] = fds[1] = -1;
    snprintf(req.id, sizeof req.id, "%s", id);
    snprintf(req.snapshot, sizeof req.snapshot, "%s", snapshot);
    kit_must(fd_send(sock, str_n(&req, sizeof req), &block, op == NATIVE_START));
    kit_must(fd_recv(sock, &reply, sizeof reply, &n, fds, 2, &count));
    if (reply.code)
        kit_must(err_new(ERR_INTERNAL, "%s", reply.text));
    return reply.pid;
}

static void tell(enum native_op op, const char *id, const char *snapshot)
{
    int fds[2];

    ask(op, id, snapshot, fds);
}

/* Gives when the launcher answered; waits until the server listens. */
static double start(const char *id, const char *from, uint64_t since, const char *must_have)
{
    int fds[2];
    char byte, path[64];
    pid_t pid = ask(NATIVE_START, id, from, fds);
    double answered = kit_ms_since(since);

    kit_check(read(fds[0], &byte, 1) == 1, "ready");
    snprintf(path, sizeof path, "/proc/%d/root/%s", (int)pid, must_have);
    kit_check(access(path, R_OK) == 0, path);
    close(fds[0]);
    close(fds[1]);
    return answered;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double print(const char *what, double *ms)
{
    qsort(ms, RUNS, sizeof *ms, by_value);
    printf("  %-34s min %6.2f  p50 %6.2f  p90 %6.2f  max %6.2f ms\n", what, ms[0], ms[RUNS / 2],
           ms[RUNS * 9 / 10], ms[RUNS - 1]);
    return ms[RUNS / 2];
}

static double run_all(int upper)
{
    double snap[RUNS], fork[RUNS], ready[RUNS];
    char name[32];

    fill(upper);
    for (int i = 0; i < RUNS; i++) {
        snprintf(name, sizeof name, "s%d", i);
        uint64_t t = clock_mono_ns(&clock_system);
        tell(NATIVE_SNAPSHOT, "a", name);
        snap[i] = kit_ms_since(t);
        fork[i] = start("b", name, t, "d99/f99");
        ready[i] = kit_ms_since(t);
        tell(NATIVE_REMOVE, "b", "");
    }
    printf("%d files, %d MB, N=%d, stopped source, on 1 to %d layers\n", DIRS * FILES,
           DIRS * FILES / 1000 * 50, RUNS, RUNS);
    print("snapshot", snap);
    double both = print("snapshot + fork", fork);
    print("snapshot + fork, server listens", ready);
    start("a", "", clock_mono_ns(&clock_system), "d99/f99");
    uint64_t t = clock_mono_ns(&clock_system);
    tell(NATIVE_SNAPSHOT, "a", "running");
    printf("  running source, nothing new: snapshot %.2f ms\n", kit_ms_since(t));
    start("c", "s0", clock_mono_ns(&clock_system), "d99/f99");
    printf("bench/fork: snapshot and fork %.2f ms (bar 20: %s)\n", both,
           both <= 20 ? "met" : "MISSED");
    return both;
}

static void run_cp(const char *scratch, double both_ms)
{
    char command[300];

    snprintf(command, sizeof command, "cp -a %s/state/snap/layers %s/copy", scratch, scratch);
    uint64_t t = clock_mono_ns(&clock_system);
    kit_shell(command);
    double ms = kit_ms_since(t);
    printf("  cp -a of the same %.0f ms; snapshot and fork over this %.4fx\n", ms, both_ms / ms);
}

static void run_copy(const char *state)
{
    char path[200];

    snprintf(path, sizeof path, "%s/box/c/upper", state);
    own_fd upper = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    kit_check(upper >= 0 && mkdirat(upper, "more", 0755) == 0, path);
    own_fd more = openat(upper, "more", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fill(more);
    uint64_t t = clock_mono_ns(&clock_system);
    tell(NATIVE_SNAPSHOT, "c", "copied");
    printf("  running source, all of it new: snapshot %.0f ms\n", kit_ms_since(t));
}

int main(void)
{
    struct scratch scratch;
    char dir[SCRATCH_DIR + 8], path[SCRATCH_DIR + 32];
    static const char *const images[] = {NULL};
    struct launcher_policy policy = {
        .state = dir, .images = images, .image_count = 1, .most = 8, .spares = 2};
    pid_t pid;

    if (geteuid() != 0) {
        printf("fork: skipped, needs root\n");
        return 0;
    }
    kit_must(scratch_open(&scratch, "/var/tmp"));
    snprintf(dir, sizeof dir, "%s/state", scratch.dir);
    block = memfd_create("args", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    kit_must(fd_write_all(block, str_n("action-server", 14)));
    fcntl(block, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    kit_must(launcher_fork(&policy, &sock, &pid));
    start("a", "", clock_mono_ns(&clock_system), "usr");
    tell(NATIVE_KILL, "a", "");
    snprintf(path, sizeof path, "%s/box/a/upper", dir);
    own_fd upper = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    kit_check(upper >= 0, path);
    double both = run_all(upper);
    run_cp(scratch.dir, both);
    run_copy(dir);
    close(sock);
    waitpid(pid, NULL, 0);
    kit_must(scratch_close(&scratch));
    return 0;
}
