// SPDX-License-Identifier: Apache-2.0
/* bench.c — see bench.h. */
#include "host/bench/bench.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/own.h"
#include "host/launcher/launcher.h"

#define WAIT_MS 30000
#define SEALS   (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

extern char **environ;

static const struct bench_row no_rows[BENCH_ROWS] = {
    [BENCH_START] = {.what = "start, until a server listens inside"},
    [BENCH_PAUSE] = {.what = "pause", .bar_ms = 1},
    [BENCH_RESUME] = {.what = "resume", .bar_ms = 0.5},
    [BENCH_REMOVE] = {.what = "end and remove"},
    [BENCH_COMMAND] = {.what = "croft run -- true, exec to exit",
                       .peer = "bwrap --unshare-all -- true, the same",
                       .bar_ratio = 1.5},
    [BENCH_PEER] = {.what = "bwrap --unshare-all -- true, the same"},
};

static double now_ms(void)
{
    return (double)clock_mono_ns(&clock_system) / 1e6;
}

static void note(struct bench_row *r, double begin_ms)
{
    r->ms[r->count++] = now_ms() - begin_ms;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_at(const struct bench_row *r, double part)
{
    return r->count ? r->ms[(size_t)(part * (double)(r->count - 1) + 0.5)] : 0;
}

void bench_done(struct bench *b)
{
    for (size_t i = 0; i < BENCH_ROWS; i++)
        free(b->rows[i].ms);
}

/* --- through the launcher --- */

static fallible ask(int sock, enum native_op op, const int *fds, size_t count, int ret_fds[2])
{
    static struct native_reply reply; /* large */
    struct native_request req = {.magic = NATIVE_MAGIC,
                                 .version = NATIVE_VERSION,
                                 .op = op,
                                 .id = "bench",
                                 .hostname = "bench",
                                 .argc = 1};
    size_t n = 0, got = 0;

    TRY(fd_send(sock, str_n(&req, sizeof req), fds, count));
    TRY(fd_wait(sock, POLLIN, WAIT_MS));
    TRY(fd_recv(sock, &reply, sizeof reply, &n, ret_fds, 2, &got));
    if (n != sizeof reply)
        return err_new(ERR_CLOSED, "the launcher is gone");
    if (reply.code)
        return err_recode(err_new(ERR_INTERNAL, "%.*s", NATIVE_TEXT_MAX, reply.text),
                          (enum err_code)(reply.code - 1));
    return NULL;
}

static fallible ask_timed(int sock, enum native_op op, struct bench_row *r)
{
    int fds[2] = {-1, -1};
    double begin = now_ms();

    TRY(ask(sock, op, NULL, 0, fds));
    note(r, begin);
    return NULL;
}

static fallible start(int sock, int block, struct bench_row *r)
{
    int fds[2] = {-1, -1};
    char byte;
    double begin = now_ms();

    TRY(ask(sock, NATIVE_START, &block, 1, fds));
    own_fd ready = fds[0], control = fds[1];
    TRY(fd_wait(ready, POLLIN, WAIT_MS));
    if (read(ready, &byte, 1) != 1)
        return err_new(ERR_CLOSED, "the server inside ended at once");
    (void)control;
    note(r, begin);
    return NULL;
}

static fallible one_life(int sock, int block, bool can_pause, struct bench *b)
{
    struct err *e = start(sock, block, &b->rows[BENCH_START]);

    if (!e && can_pause)
        e = ask_timed(sock, NATIVE_PAUSE, &b->rows[BENCH_PAUSE]);
    if (!e && can_pause)
        e = ask_timed(sock, NATIVE_RESUME, &b->rows[BENCH_RESUME]);
    if (!e)
        return ask_timed(sock, NATIVE_REMOVE, &b->rows[BENCH_REMOVE]);
    int fds[2] = {-1, -1};
    err_free(ask(sock, NATIVE_REMOVE, NULL, 0, fds)); /* what went wrong is told already */
    return e;
}

static fallible make_block(int *ret_fd)
{
    own_fd fd = memfd_create("block", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return err_sys("make a memory file");
    TRY(fd_write_all(fd, str_n("action-server", sizeof "action-server")));
    if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        return err_sys("seal a memory file");
    *ret_fd = take_fd(&fd);
    return NULL;
}

/* The first life makes the layers of this machine's system, which happens once: it is not counted.
 */
static fallible run_lives(int sock, const struct bench_plan *plan, struct bench *b)
{
    bool can_pause = geteuid() == 0;
    own_fd block = -1;

    TRY(make_block(&block));
    TRY(one_life(sock, block, can_pause, b));
    for (size_t i = 0; i < BENCH_ROWS; i++)
        b->rows[i].count = 0;
    double begin = now_ms();
    for (unsigned i = 0; i < plan->runs; i++) {
        struct err *e = one_life(sock, block, can_pause, b);
        b->rows[BENCH_START].failed += e != NULL;
        if (e && err_code(e) == ERR_CLOSED)
            return e;
        err_free(e);
    }
    b->lives_per_s = plan->runs / ((now_ms() - begin) / 1e3);
    return NULL;
}

static fallible bench_lives(const struct bench_plan *plan, struct bench *b)
{
    static const char *const images[] = {NULL};
    struct launcher_policy policy = {
        .state = plan->state, .images = images, .image_count = 1, .most = 4, .embryos = 2};
    int sock;
    pid_t pid;

    TRY(launcher_fork(&policy, &sock, &pid));
    struct err *e = run_lives(sock, plan, b);
    close(sock);
    waitpid(pid, NULL, 0);
    return e;
}

/* --- whole processes --- */

static void run_whole(const char *const *argv, struct bench_row *r)
{
    pid_t pid;
    int status = 0;
    double begin = now_ms();

    if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0) {
        r->failed++;
        return;
    }
    waitpid(pid, &status, 0);
    if (status)
        r->failed++;
    else
        note(r, begin);
}

/* In turns, so that a neighbour's noise falls on both. */
static void bench_commands(const struct bench_plan *plan, struct bench *b)
{
    const char *const ours[] = {plan->self, "run", "--bare", "--discard", "--", "true", NULL};
    const char *const peer[] = {"bwrap",     "--unshare-all", "--ro-bind", "/usr",      "/usr",
                                "--symlink", "usr/bin",       "/bin",      "--symlink", "usr/lib",
                                "/lib",      "--symlink",     "usr/lib64", "/lib64",    "--proc",
                                "/proc",     "--dev",         "/dev",      "true",      NULL};
    struct bench_row *p = &b->rows[BENCH_PEER];

    setenv("CROFT_SERVER_STATE_DIR", plan->state, 1);
    run_whole(peer, p); /* is there one? */
    bool has_peer = p->count == 1;
    p->count = p->failed = 0;
    for (unsigned i = 0; i < plan->runs; i++) {
        run_whole(ours, &b->rows[BENCH_COMMAND]);
        if (has_peer)
            run_whole(peer, p);
    }
}

fallible bench_run(const struct bench_plan *plan, struct bench *ret_bench)
{
    struct bench b = {.lives_per_s = 0};

    memcpy(b.rows, no_rows, sizeof no_rows);
    for (size_t i = 0; i < BENCH_ROWS; i++)
        b.rows[i].ms = mem_new((plan->runs + 1) * sizeof *b.rows[i].ms);
    plan->progress(plan->arg, "sandboxes, one after the other");
    struct err *e = bench_lives(plan, &b);
    if (e) {
        bench_done(&b);
        return e;
    }
    plan->progress(plan->arg, "whole commands, beside bwrap where it is installed");
    bench_commands(plan, &b);
    for (size_t i = 0; i < BENCH_ROWS; i++)
        qsort(b.rows[i].ms, b.rows[i].count, sizeof *b.rows[i].ms, by_size);
    *ret_bench = b;
    return NULL;
}
