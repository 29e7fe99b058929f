// SPDX-License-Identifier: Apache-2.0
/* bench.c — see bench.h. */
#include "host/bench/bench.h"

#include <fcntl.h>
#include <poll.h>
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
#include "host/tree/tree.h"

#define WAIT_MS    30000
#define SEALS      (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

#define SNAPSHOTS  10
#define TREE_DIRS  20
#define TREE_FILES 50 /* in each */
#define FILE_BYTES (50u << 10)

static const struct bench_row no_rows[BENCH_ROWS] = {
    [BENCH_START] = {.what = "start, until a server listens inside"},
    [BENCH_REMOVE] = {.what = "end and remove"},
    [BENCH_PAUSE] = {.what = "pause", .bar_ms = 1},
    [BENCH_PAUSE_DOCKER] = {.what = "docker pause", .peer = "docker", .of = BENCH_PAUSE},
    [BENCH_RESUME] = {.what = "resume", .bar_ms = 0.5},
    [BENCH_RESUME_DOCKER] = {.what = "docker unpause", .peer = "docker", .of = BENCH_RESUME},
    [BENCH_COMMAND] = {.what = "croft run -- true, exec to exit"},
    [BENCH_COMMAND_BWRAP] = {.what = "bwrap --unshare-all -- true, the same",
                             .peer = "bwrap",
                             .of = BENCH_COMMAND,
                             .bar_ratio = 1.5},
    [BENCH_ANSWER] = {.what = "croft run --root, exec to an answer"},
    [BENCH_SNAPSHOT] = {.what = "snapshot of 1,000 files, 50 MB"},
    [BENCH_SNAPSHOT_CP] = {.what = "cp -a of the same", .peer = "cp", .of = BENCH_SNAPSHOT},
};

static double now_ms(void)
{
    return (double)clock_mono_ns(&clock_system) / 1e6;
}

static void bench_add(struct bench_row *r, double ms)
{
    if (r->count < r->room)
        r->ms[r->count++] = ms;
}

static void bench_note(struct bench_row *r, double begin_ms)
{
    bench_add(r, now_ms() - begin_ms);
}

void bench_count(struct bench_row *r, double ms, struct err *e)
{
    if (e)
        r->failed++;
    else
        bench_add(r, ms);
    err_free(e);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void bench_sort(struct bench_row *r)
{
    qsort(r->ms, r->count, sizeof *r->ms, by_size);
}

double bench_at(const struct bench_row *r, double part)
{
    return r->count ? r->ms[(size_t)(part * (double)(r->count - 1) + 0.5)] : 0;
}

double bench_ratio(const struct bench *b, const struct bench_row *r)
{
    const struct bench_row *ours = &b->rows[r->of];

    return r->peer && r->count && ours->count ? bench_at(ours, .5) / bench_at(r, .5) : 0;
}

void bench_done(struct bench *b)
{
    for (size_t i = 0; i < BENCH_ROWS; i++)
        free(b->rows[i].ms);
}

static void bench_init(struct bench *b, unsigned runs)
{
    *b = (struct bench){.lives_per_s = 0};
    memcpy(b->rows, no_rows, sizeof no_rows);
    for (size_t i = 0; i < BENCH_ROWS; i++) {
        b->rows[i].room = (runs > SNAPSHOTS ? runs : SNAPSHOTS) + 1;
        b->rows[i].ms = mem_new(b->rows[i].room * sizeof *b->rows[i].ms);
    }
}

/* --- through the launcher --- */

static struct native_request bench_request(enum native_op op)
{
    return (struct native_request){.magic = NATIVE_MAGIC,
                                   .version = NATIVE_VERSION,
                                   .op = op,
                                   .id = "bench",
                                   .hostname = "bench",
                                   .argc = op == NATIVE_START};
}

/* block: of a start, which brings back two descriptors; NULL: none of both. */
static fallible bench_ask(int sock, const struct native_request *req, const int *block,
                          int ret_fds[2])
{
    static struct native_reply reply; /* large */
    int none[2] = {-1, -1};
    size_t n = 0, got = 0;

    TRY(fd_send(sock, str_n(req, sizeof *req), block, block ? 1 : 0));
    TRY(fd_wait(sock, POLLIN, WAIT_MS));
    TRY(fd_recv(sock, &reply, sizeof reply, &n, ret_fds ? ret_fds : none, 2, &got));
    if (n != sizeof reply)
        return err_new(ERR_CLOSED, "the launcher is gone");
    if (reply.code)
        return err_recode(err_new(ERR_INTERNAL, "%.*s", NATIVE_TEXT_MAX, reply.text),
                          (enum err_code)(reply.code - 1));
    return NULL;
}

static fallible bench_tell(int sock, enum native_op op)
{
    struct native_request req = bench_request(op);

    return bench_ask(sock, &req, NULL, NULL);
}

static fallible tell_timed(int sock, enum native_op op, struct bench_row *r)
{
    double begin = now_ms();

    TRY(bench_tell(sock, op));
    bench_note(r, begin);
    return NULL;
}

static fallible bench_start(int sock, int block)
{
    struct native_request req = bench_request(NATIVE_START);
    int fds[2] = {-1, -1};
    char byte;

    TRY(bench_ask(sock, &req, &block, fds));
    own_fd ready = fds[0], control = fds[1];
    TRY(fd_wait(ready, POLLIN, WAIT_MS));
    if (read(ready, &byte, 1) != 1)
        return err_new(ERR_CLOSED, "the server inside ended at once");
    (void)control;
    return NULL;
}

static fallible one_life(int sock, int block, bool can_pause, struct bench *b)
{
    double begin = now_ms();
    struct err *e = bench_start(sock, block);

    if (!e)
        bench_note(&b->rows[BENCH_START], begin);
    if (!e && can_pause)
        e = tell_timed(sock, NATIVE_PAUSE, &b->rows[BENCH_PAUSE]);
    if (!e && can_pause)
        e = tell_timed(sock, NATIVE_RESUME, &b->rows[BENCH_RESUME]);
    if (!e)
        return tell_timed(sock, NATIVE_REMOVE, &b->rows[BENCH_REMOVE]);
    err_free(bench_tell(sock, NATIVE_REMOVE)); /* what went wrong is told already */
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
        .state = plan->state, .images = images, .image_count = 1, .most = 4, .spares = 2};
    int sock;
    pid_t pid;

    TRY(launcher_fork(&policy, &sock, &pid));
    struct err *e = run_lives(sock, plan, b);
    close(sock);
    waitpid(pid, NULL, 0);
    return e;
}

/* --- whole processes --- */

static void run_whole(const struct peers *p, const char *const *argv, struct bench_row *r)
{
    double ms = 0;
    struct err *e = peers_call(p, argv, &ms);

    bench_count(r, ms, e);
}

static void bench_commands(const struct bench_plan *plan, struct peers *p, struct bench *b)
{
    const char *const ours[] = {plan->self, "run", "--bare", "--discard", "--", "true", NULL};
    const struct peer *bwrap = &p->at[PEER_BWRAP];
    const char *const peer[] = {
        bwrap->program, "--unshare-all", "--ro-bind", "/usr", "/usr",      "--symlink", "usr/bin",
        "/bin",         "--symlink",     "usr/lib",   "/lib", "--symlink", "usr/lib64", "/lib64",
        "--proc",       "/proc",         "--dev",     "/dev", "true",      NULL};

    for (unsigned i = 0; i < plan->runs; i++) {
        run_whole(p, ours, &b->rows[BENCH_COMMAND]);
        if (bwrap->there)
            run_whole(p, peer, &b->rows[BENCH_COMMAND_BWRAP]);
    }
}

static void bench_answers(const struct bench_plan *plan, struct peers *p, struct bench *b)
{
    const char *const ours[] = {plan->self, "run", "--bare",       "--discard", "--root",
                                p->root,    "--",  "/croft-guest", "--version", NULL};

    for (unsigned turn = 0; turn < plan->runs; turn++) {
        double ms = 0;
        struct err *e = peers_ask(p, ours, &ms);
        bench_count(&b->rows[BENCH_ANSWER], ms, e);
        for (size_t i = 0; i < PEERS; i++)
            if (peers_turn(&p->at[i], turn, plan->runs)) {
                e = peers_answer(p, i, &ms);
                bench_count(&b->rows[BENCH_ANSWER_PEER + i], ms, e);
            }
    }
}

static void bench_docker_pause(const struct bench_plan *plan, struct peers *p, struct bench *b)
{
    unsigned runs = plan->runs < PEERS_LEAST ? plan->runs : PEERS_LEAST;

    if (!p->at[PEER_DOCKER].there)
        return;
    struct err *e = docker_start_idle(p);
    if (e) {
        bench_count(&b->rows[BENCH_PAUSE_DOCKER], 0, e);
        return;
    }
    for (unsigned i = 0; i < runs; i++) {
        double ms = 0;
        e = docker_pause(p, true, &ms);
        bench_count(&b->rows[BENCH_PAUSE_DOCKER], ms, e);
        e = docker_pause(p, false, &ms);
        bench_count(&b->rows[BENCH_RESUME_DOCKER], ms, e);
    }
}

/* --- snapshots --- */

static fallible bench_fill(const char *path)
{
    static char data[FILE_BYTES];
    own_fd here = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), tree = -1;
    char name[32];

    if (here < 0)
        return err_sys("open '%s'", path);
    TRY(fd_make_dirs(here, STR("files"), 0755, &tree));
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    for (unsigned i = 0; i < TREE_DIRS * TREE_FILES; i++) {
        own_fd dir = -1;
        snprintf(name, sizeof name, "d%u", i / TREE_FILES);
        TRY(fd_make_dirs(tree, str_of(name), 0755, &dir));
        snprintf(name, sizeof name, "f%u", i % TREE_FILES);
        own_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0)
            return err_sys("make '%s'", name);
        TRY(fd_write_all(fd, str_n(data, sizeof data)));
    }
    return NULL;
}

static fallible take_snapshot(int sock, unsigned i)
{
    struct native_request req = bench_request(NATIVE_SNAPSHOT);

    snprintf(req.snapshot, sizeof req.snapshot, "bench-%u", i);
    return bench_ask(sock, &req, NULL, NULL);
}

static fallible bench_copy(const struct peers *p, const char *to, double *ret_ms)
{
    char cp[PEERS_PATH], from[PEERS_PATH];
    const char *const argv[] = {cp, "-a", from, to, NULL};

    snprintf(from, sizeof from, "%s/files", p->scratch.dir);
    if (!peers_find("cp", cp))
        return err_new(ERR_NOT_FOUND, "'cp' is not installed");
    return peers_call(p, argv, ret_ms);
}

/* Of a sandbox that has run; what it "wrote" is put into its upper layer from outside. */
static fallible run_snapshots(int sock, const struct peers *p, struct bench *b)
{
    char to[PEERS_PATH];
    own_fd block = -1;
    double ms = 0;

    TRY(make_block(&block));
    TRY(bench_start(sock, block));
    TRY(bench_tell(sock, NATIVE_KILL));
    TRY(bench_fill(p->scratch.dir));
    snprintf(to, sizeof to, "%s/state/box/bench/u", p->scratch.dir);
    TRY(bench_fill(to));
    for (unsigned i = 0; i < SNAPSHOTS; i++) {
        double begin = now_ms();
        struct err *e = take_snapshot(sock, i);
        bench_count(&b->rows[BENCH_SNAPSHOT], now_ms() - begin, e);
        snprintf(to, sizeof to, "%s/copy", p->scratch.dir);
        e = bench_copy(p, to, &ms);
        bench_count(&b->rows[BENCH_SNAPSHOT_CP], ms, e);
        TRY(tree_remove(AT_FDCWD, to));
    }
    return NULL;
}

/* With a state of their own: snapshots outlive a bench that is killed, a scratch does not. */
static fallible bench_snapshots(const struct peers *p, struct bench *b)
{
    char state[PEERS_PATH];
    const char *const images[] = {p->root};
    struct launcher_policy policy = {
        .state = state, .images = images, .image_count = 1, .most = 4, .spares = 1};
    int sock;
    pid_t pid;

    snprintf(state, sizeof state, "%s/state", p->scratch.dir);
    TRY(launcher_fork(&policy, &sock, &pid));
    struct err *e = run_snapshots(sock, p, b);
    close(sock);
    waitpid(pid, NULL, 0);
    return e;
}

/* --- all of it --- */

static fallible bench_measure(const struct bench_plan *plan, struct peers *p, struct bench *b)
{
    for (size_t i = 0; i < PEERS; i++) {
        b->peers[i] = p->at[i];
        b->rows[BENCH_ANSWER_PEER + i].what = p->at[i].what;
        b->rows[BENCH_ANSWER_PEER + i].peer = p->at[i].name;
        b->rows[BENCH_ANSWER_PEER + i].of = BENCH_ANSWER;
    }
    setenv("CROFT_SERVER_STATE_DIR", plan->state, 1); /* croft run's */
    plan->progress(plan->arg, "sandboxes, one after the other");
    TRY(bench_lives(plan, b));
    plan->progress(plan->arg, "docker pause");
    bench_docker_pause(plan, p, b);
    plan->progress(plan->arg, "whole commands");
    bench_commands(plan, p, b);
    plan->progress(plan->arg, "answers from inside, all peers in turns");
    bench_answers(plan, p, b);
    plan->progress(plan->arg, "snapshots");
    return bench_snapshots(p, b);
}

fallible bench_run(const struct bench_plan *plan, struct bench *ret_bench)
{
    struct peers p;

    plan->progress(plan->arg, "looking for peers, starting a dockerd if there is one");
    TRY(peers_open(&p, plan->tmp));
    bench_init(ret_bench, plan->runs);
    struct err *e = bench_measure(plan, &p, ret_bench);
    struct err *left = peers_close(&p);
    if (!e)
        e = left;
    else
        err_free(left);
    for (size_t i = 0; i < BENCH_ROWS; i++)
        bench_sort(&ret_bench->rows[i]);
    if (e)
        bench_done(ret_bench);
    return e;
}
