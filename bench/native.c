// SPDX-License-Identifier: Apache-2.0
/* bench/native.c — native sandboxes beside bubblewrap, crun, runc and docker, in the same run and
 * in turns, so that a neighbour's noise falls on all. "Answer" means bytes computed inside:
 * croft-guest, which is static, says its version. Needs root. Interrupted, it leaves nothing. */
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/rng.h"
#include "bench/kit/peers.h"
#include "host/launcher/box.h"
#include "host/launcher/launcher.h"
#include "host/launcher/reuse/reuse.h"

#define RUNS        200
#define DOCKER_RUNS 20

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench/native: %s: %m\n", what);
    exit(1);
}

static void must(struct err *e)
{
    if (!e)
        return;
    fprintf(stderr, "bench/native: %s\n", err_text(e));
    exit(1);
}

static uint64_t now(void)
{
    return clock_mono_ns(&clock_system);
}

/* --- tables --- */

struct column {
    const char *name;
    double ms[4096];
    unsigned n, failed;
};

static void note(struct column *c, uint64_t from)
{
    c->ms[c->n++] = (double)(now() - from) / 1e6;
}

static void count(struct column *c, double ms, struct err *e)
{
    if (e) {
        fprintf(stderr, "bench/native: %s: %s\n", c->name, err_text(e));
        c->failed++;
    } else
        c->ms[c->n++] = ms;
    err_free(e);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double at(struct column *c, double part)
{
    qsort(c->ms, c->n, sizeof *c->ms, by_size);
    return c->n ? c->ms[(unsigned)(part * (c->n - 1))] : 0;
}

static void show(struct column *c)
{
    printf("  %-44s min %7.3f  p50 %7.3f  p95 %7.3f  p99 %7.3f ms  N %4u  ok %3.0f%%\n", c->name,
           at(c, 0), at(c, .5), at(c, .95), at(c, .99), c->n, 100. * c->n / (c->n + c->failed));
}

/* Of a peer: where croft's p50 is, seen from its own. */
static void show_peer(struct column *c, struct column *ours)
{
    show(c);
    if (c->n && ours->n)
        printf("    %-42s %.4fx\n", "croft's p50 over this", at(ours, .5) / at(c, .5));
}

static void verdict(const char *what, double got, double bar, const char *unit)
{
    printf("  %-44s %.3f %s, bar %.3f: %s\n", what, got, unit, bar, got <= bar ? "held" : "MISSED");
}

/* --- our side --- */

struct bench {
    struct box_host h;
    struct peers peers;
    char state[SCRATCH_DIR + 8], croft[4096];
    int root, block;
    unsigned next;
};

static void bench_open(struct bench *b, const char *self)
{
    char dir[4096];

    must(peers_open(&b->peers, "/var/tmp"));
    snprintf(b->state, sizeof b->state, "%s/state", b->peers.scratch.dir); /* swept with it */
    snprintf(dir, sizeof dir, "%s", self);
    char *build = dirname(dirname(dir));
    snprintf(b->croft, sizeof b->croft, "%.4000s/croft", build);
    must(box_host_open(&b->h, b->state, rng_system()));
    must(box_host_many(&b->h)); /* as a launcher does */
    b->h.reuse = reuse_new(&b->h, NULL);
    b->root = open(b->peers.root, O_PATH | O_CLOEXEC); /* the same as the peers have */
    b->block = memfd_create("args", MFD_CLOEXEC);
    must(fd_write_all(b->block, str_n("--version", 10)));
    b->next = 0;
}

/* Starts one whose pid 1 answers and ends, or waits on its control connection. */
static void start(struct bench *b, struct box_spare *e, struct box *ret, int out)
{
    static const char *const pid1[] = {"croft-guest", NULL};
    struct native_request req = {.magic = NATIVE_MAGIC,
                                 .version = NATIVE_VERSION,
                                 .op = NATIVE_START,
                                 .argc = 1,
                                 .hostname = "box",
                                 .limits = {.memory_bytes = 1u << 30, .pids = 1000}};
    struct box_root root = {
        .where = "", .upper = "u", .work = "w", .lowers = &b->root, .lower_count = 1};
    struct box_spec spec = {.req = &req,
                            .roots = &root,
                            .root_count = 1,
                            .root_id = "gen-bench", /* as all that a launcher starts have one */
                            .prefix = pid1,
                            .block = b->block,
                            .fds = {-1, out, -1},
                            .fd_count = 3};
    struct box_spare mine;

    snprintf(req.id, sizeof req.id, "b%u", b->next++);
    if (!e) {
        must(box_prepare_spare(&b->h, req.id, &mine));
        e = &mine;
    }
    must(box_start(&b->h, e, &spec, ret));
}

static void finish(struct bench *b, struct box *box)
{
    siginfo_t info;

    waitid(P_PIDFD, (id_t)box->pidfd, &info, WEXITED);
    must(box_remove(&b->h, box, false));
}

static void read_answer(int fd)
{
    char answer[64];

    if (read(fd, answer, sizeof answer) < 11 || memcmp(answer, "croft-guest", 11) != 0)
        die("no answer");
}

static void cold(struct bench *b, struct column *c, struct box_spare *e)
{
    int out[2];
    struct box box;

    if (pipe2(out, O_CLOEXEC) < 0)
        die("pipe");
    uint64_t t = now();
    start(b, e, &box, out[1]);
    read_answer(out[0]);
    note(c, t);
    close(out[0]);
    close(out[1]);
    finish(b, &box);
}

/* --- peers --- */

static void whole(const struct bench *b, const char *const *argv, struct column *c)
{
    double ms = 0;
    struct err *e = peers_call(&b->peers, argv, &ms);

    count(c, ms, e);
}

/* --- the bars --- */

static void bench_cold(struct bench *b)
{
    static struct column ours = {"croft, cold: request to first answer"},
                         ready = {"croft, from a spare process"}, peers[PEERS];
    struct box_spare e;
    double ms;

    for (unsigned turn = 0; turn < RUNS; turn++) {
        cold(b, &ours, NULL);
        for (size_t i = 0; i < PEERS; i++)
            if (peers_turn(&b->peers.at[i], turn, RUNS)) {
                struct err *failed = peers_answer(&b->peers, i, &ms);
                count(&peers[i], ms, failed);
            }
        must(box_prepare_spare(&b->h, "+bench", &e));
        struct pollfd none = {.fd = -1};
        poll(&none, 1, 3); /* time for its own half: it is made off the request path */
        cold(b, &ready, &e);
    }
    show(&ours);
    show(&ready);
    for (size_t i = 0; i < PEERS; i++) {
        peers[i].name = b->peers.at[i].what;
        if (b->peers.at[i].there)
            show_peer(&peers[i], &ours);
        else
            printf("  %-44s without it: %s\n", peers[i].name, b->peers.at[i].why);
    }
    verdict("cold start", at(&ours, .5), 3, "ms");
    if (b->peers.at[PEER_BWRAP].there)
        verdict("cold start / bwrap", at(&ours, .5) / at(&peers[PEER_BWRAP], .5), 1, "x");
}

static void bench_run(struct bench *b)
{
    static struct column ours = {"croft run --bare -- true, whole process"},
                         same = {"croft run --root, whole process"},
                         peer = {"bwrap --unshare-all true, whole process"};
    const char *const run[] = {b->croft, "run", "--bare", "--discard", "--", "true", NULL};
    const char *const run_root[] = {b->croft,      "run", "--bare",       "--discard", "--root",
                                    b->peers.root, "--",  "/croft-guest", "--version", NULL};
    const char *const bwrap[] = {b->peers.at[PEER_BWRAP].program,
                                 "--unshare-all",
                                 "--ro-bind",
                                 "/usr",
                                 "/usr",
                                 "--symlink",
                                 "usr/bin",
                                 "/bin",
                                 "--symlink",
                                 "usr/lib",
                                 "/lib",
                                 "--symlink",
                                 "usr/lib64",
                                 "/lib64",
                                 "--proc",
                                 "/proc",
                                 "--dev",
                                 "/dev",
                                 "true",
                                 NULL};
    static struct column first = {"(the first makes the layers)"};
    bool beside = b->peers.at[PEER_BWRAP].there;

    setenv("CROFT_SERVER_STATE_DIR", b->state, 1);
    whole(b, run, &first);
    for (unsigned i = 0; i < RUNS; i++) {
        whole(b, run, &ours);
        whole(b, run_root, &same);
        if (beside)
            whole(b, bwrap, &peer);
    }
    show(&ours);
    show(&same);
    if (!beside)
        return;
    show_peer(&peer, &ours);
    verdict("croft run / bwrap", at(&ours, .5) / at(&peer, .5), 1.5, "x");
}

static void bench_rate(struct bench *b)
{
    enum { EACH = 150, HANDS = 2 };
    pid_t hands[HANDS];

    reuse_clear(b->h.reuse); /* each hand has its own */
    uint64_t t = now();
    for (unsigned h = 0; h < HANDS; h++) {
        hands[h] = fork();
        if (hands[h] == 0) {
            static struct column c;
            b->next = 100000 * (h + 1);
            must(box_host_forked(&b->h));
            for (unsigned i = 0; i < EACH; i++)
                cold(b, &c, NULL);
            reuse_clear(b->h.reuse);
            _exit(0);
        }
    }
    bool well = true;
    for (unsigned h = 0; h < HANDS; h++) {
        int status = 1;
        waitpid(hands[h], &status, 0);
        well &= status == 0;
    }
    double rate = EACH * HANDS / ((double)(now() - t) / 1e9);
    printf("  %-44s %.0f/s, bar 300: %s\n", "create + answer + destroy, two at a time", rate,
           !well         ? "a hand FAILED"
           : rate >= 300 ? "held"
                         : "MISSED");
}

/* --- a ready sandbox --- */

static void ask(int sock, struct native_request *req, const int *fd, struct native_reply *reply,
                int fds[2])
{
    size_t n, count;

    must(fd_send(sock, str_n(req, sizeof *req), fd, fd ? 1 : 0));
    must(fd_recv(sock, reply, sizeof *reply, &n, fds, 2, &count));
    if (reply->code) {
        fprintf(stderr, "bench/native: %s\n", reply->text);
        exit(1);
    }
}

/* Each is a whole command, as its user gives it; without docker bench_cold() said why. */
static void bench_docker_pause(struct bench *b, struct column *pause, struct column *resume)
{
    static struct column paused = {"docker pause"}, resumed = {"docker unpause"};
    double ms;

    if (!b->peers.at[PEER_DOCKER].there)
        return;
    must(docker_start_idle(&b->peers));
    for (unsigned i = 0; i < DOCKER_RUNS; i++) {
        struct err *e = docker_pause(&b->peers, true, &ms);
        count(&paused, ms, e);
        e = docker_pause(&b->peers, false, &ms);
        count(&resumed, ms, e);
    }
    show_peer(&paused, pause);
    show_peer(&resumed, resume);
}

static void bench_ready(struct bench *b)
{
    static struct column hand = {"hand-off: a byte in, a byte out of a sandbox"},
                         pause_ = {"pause, idle"}, resume = {"resume, idle"};
    static const char *const images[] = {"/"};
    struct launcher_policy policy = {
        .state = b->state, .images = images, .image_count = 1, .most = 8, .spares = 1};
    struct native_request req = {.magic = NATIVE_MAGIC,
                                 .version = NATIVE_VERSION,
                                 .op = NATIVE_START,
                                 .id = "ready",
                                 .argc = 1,
                                 .hostname = "box"};
    static struct native_reply reply;
    int sock, fds[2], end[2];
    pid_t pid;
    char byte;

    own_fd block = memfd_create("args", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    must(fd_write_all(block, str_n("action-server", 14)));
    fcntl(block, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    must(launcher_fork(&policy, &sock, &pid));
    ask(sock, &req, &block, &reply, fds);
    if (read(fds[0], &byte, 1) != 1)
        die("ready");
    for (unsigned i = 0; i < 5 * RUNS; i++) {
        uint64_t t = now();
        byte = 'p';
        if (write(fds[1], &byte, 1) != 1 || read(fds[1], &byte, 1) != 1)
            die("hand-off");
        note(&hand, t);
    }
    for (unsigned i = 0; i < RUNS; i++) {
        uint64_t t = now();
        req.op = NATIVE_PAUSE;
        ask(sock, &req, NULL, &reply, end);
        note(&pause_, t);
        t = now();
        req.op = NATIVE_RESUME;
        ask(sock, &req, NULL, &reply, end);
        note(&resume, t);
    }
    close(sock);
    waitpid(pid, NULL, 0);
    show(&hand);
    show(&pause_);
    show(&resume);
    bench_docker_pause(b, &pause_, &resume);
    verdict("hand-off", at(&hand, .5), .1, "ms");
    verdict("pause", at(&pause_, .5), 1, "ms");
    verdict("resume", at(&resume, .5), .5, "ms");
}

int main(int argc, char **argv)
{
    struct bench b;
    struct utsname u;

    (void)argc;
    if (geteuid() != 0) {
        puts("bench/native: needs root");
        return 0;
    }
    uname(&u);
    printf("  Linux %s, %ld processors\n", u.release, sysconf(_SC_NPROCESSORS_ONLN));
    bench_open(&b, argv[0]);
    bench_cold(&b);
    bench_run(&b);
    bench_rate(&b);
    bench_ready(&b);
    box_host_close(&b.h);
    must(peers_close(&b.peers));
    puts("bench/native: every start of croft's succeeded");
    return 0;
}
