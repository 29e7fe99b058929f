// SPDX-License-Identifier: Apache-2.0
/* jupyter — a cell "1+1" in an ipykernel, by our client and by a bare jupyter_client with a kernel
 * of its own; in turns, so that both see the same machine. Medians. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bench/kit/kit.h"
#include "guest/jupyter/kernel.h"
#include "loop/loop.h"
#include "net/stream.h"

#define PYTHON "/usr/bin/python3"
#define ROUNDS (size_t)20
#define BLOCK  (size_t)25

struct ours {
    struct loop *loop;
    struct kernel *kernel;
    bool done;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench/jupyter: %s\n", what);
    exit(1);
}

static void must(struct err *e)
{
    if (e)
        die(err_text(e));
}

static void on_done(void *owner, const struct kernel_result *r)
{
    struct ours *o = owner;

    if (r->failed)
        die(err_text(r->failed));
    if (!str_eq(r->content, STR("2")))
        die("a cell answered something else than 2");
    o->done = true;
}

static double our_cell_ms(struct ours *o)
{
    struct kernel_cell cell = {.code = STR("1+1"), .cwd = STR("/"), .done = on_done, .owner = o};
    uint64_t start = clock_mono_ns(&clock_system);

    o->done = false;
    must(kernel_run(o->kernel, &cell, NULL));
    while (!o->done)
        must(loop_turn(o->loop, -1));
    return (double)(clock_mono_ns(&clock_system) - start) / 1e6;
}

static FILE *start_peer(pid_t *ret_pid)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        die("socketpair");
    *ret_pid = fork();
    if (*ret_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 0);
        dup2(ends[1], 1);
        execl(PYTHON, PYTHON, "-P", "bench/jupyter.py", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return fdopen(ends[0], "r+");
}

/* One line of the peer; its numbers go to out. */
static void peer_cells(FILE *peer, struct kit_series *out)
{
    char line[BLOCK * 16], *at = line;

    fprintf(peer, "%zu\n", BLOCK);
    fflush(peer);
    if (!fgets(line, sizeof line, peer))
        die("jupyter_client gave up");
    for (size_t i = 0; i < BLOCK; i++)
        kit_add(out, strtod(at, &at));
}

int main(void)
{
    extern char **environ;
    struct kit_series ours = {0}, theirs = {0};
    struct ours o = {0};
    struct net *net;
    pid_t pid;
    char line[64];

    if (system(PYTHON " -c 'import ipykernel, jupyter_client' 2>/dev/null")) {
        puts("bench/jupyter: skipped, apt install python3-ipykernel python3-jupyter-client");
        return 0;
    }
    must(loop_new(&clock_system, &o.loop));
    must(net_new(o.loop, &net));
    struct kernel_config config = {
        .net = net, .rng = rng_system(), .python = PYTHON, .env = environ, .skills = true};
    must(kernel_new(&config, &o.kernel));
    printf("first cell, start included: %.0f ms\n", our_cell_ms(&o));
    FILE *peer = start_peer(&pid);
    if (!fgets(line, sizeof line, peer))
        die("jupyter_client did not start");
    for (size_t r = 0; r < ROUNDS; r++) {
        peer_cells(peer, &theirs);
        for (size_t i = 0; i < BLOCK; i++)
            kit_add(&ours, our_cell_ms(&o));
    }
    double our = kit_print("cell 1+1", &ours), their = kit_print("by jupyter_client", &theirs);
    kit_at_most("cell to jupyter_client", our / their, 1.2, "x");
    printf("bench/jupyter: %.1f ms per cell, %.2fx jupyter_client\n", our, our / their);
    fclose(peer);
    waitpid(pid, NULL, 0);
    kernel_free(o.kernel);
    net_free(net);
    loop_free(o.loop);
    return 0;
}
