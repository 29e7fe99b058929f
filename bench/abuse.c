// SPDX-License-Identifier: Apache-2.0
/* bench/abuse.c — one sandbox misbehaves: how much longer do its neighbour (a command through HTTP)
 * and the launcher (a question) take to answer than in quiet? Quiet and abuse in turns. Needs root.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "bench/kit/kit.h"
#include "host/launcher/launcher.h"
#include "host/tree/tree.h"

#define SPAN_MS 1000 /* long enough for a bomb to go off */
#define BAR     3.0

static void must(struct err *e)
{
    if (!e)
        return;
    fprintf(stderr, "bench/abuse: %s\n", err_text(e));
    exit(1);
}

static const struct {
    const char *name, *command;
} abuses[] = {
    {"fork", "bomb() { bomb | bomb & }; (bomb) >/dev/null 2>&1 &"},
    {"memory", "(while :; do tail /dev/zero; done) >/dev/null 2>&1 &"},
    {"tmpfs", "(while :; do cat /dev/zero >/dev/shm/full; done) >/dev/null 2>&1 &"},
    {"descriptors", "(while :; do for i in {10..1000}; do eval exec $i'<'/; done; done) "
                    ">/dev/null 2>&1 &"},
    {"inodes", "(while :; do : >/tmp/f$((i++)); done) >/dev/null 2>&1 &"},
    {"output", "yes &"},
    {"processor", "(for i in 1 2 3 4; do while :; do :; done & done) >/dev/null 2>&1 &"},
};

static int ask(int sock, enum native_op op, const char *id, const int *block)
{
    static struct native_reply reply;
    struct native_request req = {.magic = NATIVE_MAGIC,
                                 .version = NATIVE_VERSION,
                                 .op = op,
                                 .argc = op == NATIVE_START ? 1 : 0,
                                 .envc = op == NATIVE_START ? 1 : 0,
                                 .hostname = "box",
                                 .limits = {.memory_bytes = 256u << 20, .pids = 200}};
    int fds[2] = {-1, -1};
    size_t n, count = 0;
    char byte;

    snprintf(req.id, sizeof req.id, "%s", id);
    must(fd_send(sock, str_n(&req, sizeof req), block, block ? 1 : 0));
    must(fd_recv(sock, &reply, sizeof reply, &n, fds, 2, &count));
    if (reply.code) {
        fprintf(stderr, "bench/abuse: %s\n", reply.text);
        exit(1);
    }
    if (op == NATIVE_START && read(fds[0], &byte, 1) != 1)
        kit_die("start");
    if (count > 1)
        close(fds[1]);
    return fds[0];
}

static void open_guest(int sock, const char *id, struct kit_guest *g)
{
    own_fd block = memfd_create("args", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    must(fd_write_all(block, str_n("action-server\0PATH=/usr/bin:/bin", 33)));
    fcntl(block, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    close(ask(sock, NATIVE_START, id, &block));
    *g = (struct kit_guest){.answer_cap = 4u << 20, .answer = malloc(4u << 20)};
    g->fd = ask(sock, NATIVE_CONNECT, id, NULL);
    fcntl(g->fd, F_SETFL, 0); /* it comes as the loop wants it: never waiting */
    kit_run(g, "true", 60);
}

static void close_guest(int sock, const char *id, struct kit_guest *g)
{
    close(g->fd);
    free(g->answer);
    ask(sock, NATIVE_REMOVE, id, NULL);
}

static void measure(int sock, struct kit_guest *g, const char *name, double ret_p50[2])
{
    struct kit_series neighbour = {0}, launcher = {0};
    char label[64];

    for (double begin = kit_now_ms(); kit_now_ms() - begin < SPAN_MS;) {
        double t = kit_now_ms();
        kit_run(g, ":", 60);
        kit_add(&neighbour, kit_now_ms() - t);
        t = kit_now_ms();
        ask(sock, NATIVE_INSPECT, "neighbour", NULL);
        kit_add(&launcher, kit_now_ms() - t);
    }
    snprintf(label, sizeof label, "%s: neighbour's command", name);
    ret_p50[0] = kit_print(label, &neighbour);
    snprintf(label, sizeof label, "%s: launcher's answer", name);
    ret_p50[1] = kit_print(label, &launcher);
    free(neighbour.ms);
    free(launcher.ms);
}

static void abuse(int sock, struct kit_guest *neighbour, size_t i)
{
    struct kit_guest g;
    double quiet[2], loud[2];
    char what[64];

    measure(sock, neighbour, "quiet", quiet);
    open_guest(sock, "abuser", &g);
    kit_run(&g, abuses[i].command, 60);
    measure(sock, neighbour, abuses[i].name, loud);
    close_guest(sock, "abuser", &g);
    snprintf(what, sizeof what, "%s: neighbour, times quiet", abuses[i].name);
    kit_at_most(what, loud[0] / quiet[0], BAR, "x");
    snprintf(what, sizeof what, "%s: launcher, times quiet", abuses[i].name);
    kit_at_most(what, loud[1] / quiet[1], BAR, "x");
}

int main(void)
{
    static const char *const images[] = {NULL};
    char state[] = "/var/tmp/bench-abuse-XXXXXX";
    struct kit_guest neighbour;
    int sock;
    pid_t pid;

    if (geteuid() != 0 || !mkdtemp(state)) {
        printf("bench/abuse: needs root\n");
        return 0;
    }
    struct launcher_policy policy = {
        .state = state, .images = images, .image_count = 1, .most = 4, .embryos = 1};
    must(launcher_fork(&policy, &sock, &pid));
    open_guest(sock, "neighbour", &neighbour);
    for (size_t i = 0; i < sizeof abuses / sizeof *abuses; i++)
        abuse(sock, &neighbour, i);
    close_guest(sock, "neighbour", &neighbour);
    close(sock);
    waitpid(pid, NULL, 0);
    own_fd dir = open("/var/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    must(tree_remove(dir, state + strlen("/var/tmp/")));
    return 0;
}
