// SPDX-License-Identifier: Apache-2.0
/* bench/abuse.c — one sandbox misbehaves: how much longer do its neighbour (a command through HTTP)
 * and the launcher (a question) take to answer than in quiet? Quiet is the same abuser paused, in
 * many short turns: where a process happens to run changes an answer of 15 us to one of 60. Needs
 * root.
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
#include "host/bench/scratch.h"
#include "host/launcher/launcher.h"

#define FUSE_MS 500 /* for a bomb to go off */
#define SPAN_MS 200
#define TURNS   8
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
    bool awaited; /* its request is not answered before the end */
} abuses[] = {
    {"fork", "bomb() { bomb | bomb & }; (bomb) >/dev/null 2>&1 &"},
    {"memory", "(while :; do tail /dev/zero; done) >/dev/null 2>&1 &"},
    {"tmpfs", "(while :; do cat /dev/zero >/dev/shm/full; done) >/dev/null 2>&1 &"},
    {"descriptors", "(while :; do for i in {10..1000}; do eval exec $i'<'/; done; done) "
                    ">/dev/null 2>&1 &"},
    {"inodes", "(while :; do : >/tmp/f$((i++)); done) >/dev/null 2>&1 &"},
    {"output", "yes &"},
    {"awaited", "yes", .awaited = true},
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

static void ask_only(struct kit_guest *g, const char *command)
{
    char body[200], request[400];
    int n = snprintf(body, sizeof body,
                     "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"%s\","
                     "\"blocking\":true},\"timeout\":600}}",
                     command);

    n = snprintf(request, sizeof request,
                 "POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 "Content-Length: %d\r\n\r\n%s",
                 n, body);
    kit_check(write(g->fd, request, (size_t)n) == n, "request");
}

struct answers {
    struct kit_series neighbour, launcher;
};

static void measure(int sock, struct kit_guest *g, double span_ms, struct answers *a)
{
    for (double begin = kit_now_ms(); kit_now_ms() - begin < span_ms;) {
        double t = kit_now_ms();
        kit_run(g, ":", 60);
        kit_add(&a->neighbour, kit_now_ms() - t);
        t = kit_now_ms();
        ask(sock, NATIVE_INSPECT, "neighbour", NULL);
        kit_add(&a->launcher, kit_now_ms() - t);
    }
}

static void compare(const char *abuse, const char *who, struct kit_series *quiet,
                    struct kit_series *loud)
{
    char what[64];

    snprintf(what, sizeof what, "quiet: %s", who);
    double before = kit_print(what, quiet);
    snprintf(what, sizeof what, "%s: %s", abuse, who);
    double after = kit_print(what, loud);
    snprintf(what, sizeof what, "%s: %s, times quiet", abuse, who);
    kit_at_most(what, after / before, BAR, "x");
    free(quiet->ms);
    free(loud->ms);
}

static void abuse(int sock, struct kit_guest *neighbour, size_t i)
{
    struct kit_guest g;
    struct answers fuse = {0}, quiet = {0}, loud = {0};

    open_guest(sock, "abuser", &g);
    if (abuses[i].awaited)
        ask_only(&g, abuses[i].command);
    else
        kit_run(&g, abuses[i].command, 60);
    measure(sock, neighbour, FUSE_MS, &fuse);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        measure(sock, neighbour, SPAN_MS, &loud);
        ask(sock, NATIVE_PAUSE, "abuser", NULL);
        measure(sock, neighbour, SPAN_MS, &quiet);
        ask(sock, NATIVE_RESUME, "abuser", NULL);
    }
    close_guest(sock, "abuser", &g);
    compare(abuses[i].name, "neighbour", &quiet.neighbour, &loud.neighbour);
    compare(abuses[i].name, "launcher", &quiet.launcher, &loud.launcher);
    free(fuse.neighbour.ms);
    free(fuse.launcher.ms);
}

static bool is_asked_for(const char *name, int argc, char **argv)
{
    bool asked = argc < 2;

    for (int i = 1; i < argc; i++)
        asked |= strcmp(argv[i], name) == 0;
    return asked;
}

int main(int argc, char **argv)
{
    static const char *const images[] = {NULL};
    struct scratch scratch;
    char state[SCRATCH_DIR + 8];
    struct kit_guest neighbour;
    int sock;
    pid_t pid;

    if (geteuid() != 0) {
        printf("bench/abuse: needs root\n");
        return 0;
    }
    must(scratch_open(&scratch, "/var/tmp"));
    snprintf(state, sizeof state, "%s/state", scratch.dir);
    struct launcher_policy policy = {
        .state = state, .images = images, .image_count = 1, .most = 4, .spares = 1};
    must(launcher_fork(&policy, &sock, &pid));
    open_guest(sock, "neighbour", &neighbour);
    for (size_t i = 0; i < sizeof abuses / sizeof *abuses; i++)
        if (is_asked_for(abuses[i].name, argc, argv))
            abuse(sock, &neighbour, i);
    close_guest(sock, "neighbour", &neighbour);
    close(sock);
    waitpid(pid, NULL, 0);
    must(scratch_close(&scratch));
    return 0;
}
