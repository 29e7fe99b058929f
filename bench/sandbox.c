// SPDX-License-Identifier: Apache-2.0
/* bench/sandbox.c — what the launcher does with a sandbox, and whole commands, beside the peers
 * that are installed: bubblewrap, crun, runc and a dockerd of its own.
 *
 * Everything is measured from outside, through the launcher's messages and by whole processes. What
 * fails counts as a failure, not as a time. Peers take part in turns, slow ones less often.
 * CROFT_BENCH_RUNS says how often each thing is done (100). */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/own.h"
#include "bench/kit/kit.h"
#include "bench/kit/peers.h"
#include "host/launcher/launcher.h"
#include "host/tree/tree.h"

#define RUNS       100
#define WAIT_MS    30000
#define SEALS      (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

#define SNAPSHOTS  10
#define TREE_DIRS  20
#define TREE_FILES 50 /* in each */
#define FILE_BYTES (50u << 10)

enum {
    BENCH_START,  /* request to a server that listens inside */
    BENCH_REMOVE, /* a running one, with all it left */
    BENCH_PAUSE,  /* idle */
    BENCH_PAUSE_DOCKER,
    BENCH_RESUME,
    BENCH_RESUME_DOCKER,
    BENCH_COMMAND, /* croft run -- true, exec to exit */
    BENCH_COMMAND_BWRAP,
    BENCH_ANSWER,      /* croft run, exec to the answer of a static program inside */
    BENCH_ANSWER_PEER, /* one row for each peer */
    BENCH_SNAPSHOT = BENCH_ANSWER_PEER + PEERS,
    BENCH_SNAPSHOT_CP,
    BENCH_ROWS
};

struct row {
    const char *what;
    const char *peer; /* that did it; NULL: croft */
    int of;           /* of a peer: the row of croft's that does the same */
    double *ms;       /* sorted when all is done */
    size_t count, failed, room;
    double bar_ms;    /* of the p50; 0: none */
    double bar_ratio; /* of a peer: croft's p50 over its own at most; 0: none */
};

struct bench {
    struct row rows[BENCH_ROWS];
    double lives_per_s; /* start, answer, remove, one after the other */
    struct peer peers[PEERS];
};

struct bench_plan {
    char state[SCRATCH_DIR + 16]; /* where sandboxes are kept meanwhile */
    char self[PEERS_PATH];        /* path of croft */
    unsigned runs;
};

static const struct row no_rows[BENCH_ROWS] = {
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

static void bench_add(struct row *r, double ms)
{
    if (r->count < r->room)
        r->ms[r->count++] = ms;
}

static void bench_note(struct row *r, double begin_ms)
{
    bench_add(r, kit_now_ms() - begin_ms);
}

static void bench_count(struct row *r, double ms, struct err *e)
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

static void bench_sort(struct row *r)
{
    qsort(r->ms, r->count, sizeof *r->ms, by_size);
}

static double bench_at(const struct row *r, double part)
{
    return r->count ? r->ms[(size_t)(part * (double)(r->count - 1) + 0.5)] : 0;
}

static double bench_ratio(const struct bench *b, const struct row *r)
{
    const struct row *ours = &b->rows[r->of];

    return r->peer && r->count && ours->count ? bench_at(ours, .5) / bench_at(r, .5) : 0;
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

static fallible tell_timed(int sock, enum native_op op, struct row *r)
{
    double begin = kit_now_ms();

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
    double begin = kit_now_ms();
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
    double begin = kit_now_ms();
    for (unsigned i = 0; i < plan->runs; i++) {
        struct err *e = one_life(sock, block, can_pause, b);
        b->rows[BENCH_START].failed += e != NULL;
        if (e && err_code(e) == ERR_CLOSED)
            return e;
        err_free(e);
    }
    b->lives_per_s = plan->runs / ((kit_now_ms() - begin) / 1e3);
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

static void run_whole(const struct peers *p, const char *const *argv, struct row *r)
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
        double begin = kit_now_ms();
        struct err *e = take_snapshot(sock, i);
        bench_count(&b->rows[BENCH_SNAPSHOT], kit_now_ms() - begin, e);
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
    puts("sandboxes, one after the other");
    TRY(bench_lives(plan, b));
    puts("docker pause");
    bench_docker_pause(plan, p, b);
    puts("whole commands");
    bench_commands(plan, p, b);
    puts("answers from inside, all peers in turns");
    bench_answers(plan, p, b);
    puts("snapshots");
    return bench_snapshots(p, b);
}

/* --- what it prints --- */

static double bench_success(const struct row *r)
{
    return (double)r->count / (double)(r->count + r->failed);
}

static bool was_tried(const struct row *r)
{
    return r->count || r->failed;
}

static void put_bars(const struct bench *b, const struct row *r)
{
    double ratio = bench_ratio(b, r);

    if (ratio > 0)
        printf("  %8.4fx", ratio);
    if (ratio > 0 && r->bar_ratio > 0)
        printf("  bar %.1fx: %s", r->bar_ratio, ratio <= r->bar_ratio ? "held" : "missed");
    if (r->bar_ms > 0 && r->count)
        printf("             bar %.1f ms: %s", r->bar_ms,
               bench_at(r, .5) <= r->bar_ms ? "held" : "missed");
}

static void put_head(const struct utsname *u)
{
    printf("Linux %s, %d processors, %s\n\n", u->release, get_nprocs(),
           geteuid() == 0 ? "root" : "not root");
    printf("%-40s %8s %8s %8s %8s %5s %5s  croft/peer\n", "milliseconds", "min", "p50", "p95",
           "p99", "N", "ok");
}

static void put_figures(const struct row *r)
{
    printf("%s%-*s %8.3f %8.3f %8.3f %8.3f %5zu %4.0f%%", r->peer ? "  " : "", r->peer ? 38 : 40,
           r->what, bench_at(r, 0), bench_at(r, .5), bench_at(r, .95), bench_at(r, .99), r->count,
           100 * bench_success(r));
}

static void put_text(const struct bench *b, const struct utsname *u)
{
    put_head(u);
    for (size_t i = 0; i < BENCH_ROWS; i++) {
        const struct row *r = &b->rows[i];
        if (!was_tried(r))
            continue;
        put_figures(r);
        put_bars(b, r);
        putchar('\n');
    }
    for (size_t i = 0; i < PEERS; i++)
        if (!b->peers[i].there)
            printf("without %s: %s\n", b->peers[i].name, b->peers[i].why);
}

static void bench_find_self(char self[PEERS_PATH])
{
    ssize_t n = readlink("/proc/self/exe", self, PEERS_PATH - 16);

    kit_check(n > 0, "find croft");
    self[n] = '\0';
    for (unsigned up = 0; up < 2; up++) /* build/bench/sandbox */
        *strrchr(self, '/') = '\0';
    strncat(self, "/croft", 7);
}

int main(void)
{
    const char *runs = getenv("CROFT_BENCH_RUNS");
    struct bench_plan plan = {.runs = runs ? (unsigned)atoi(runs) : RUNS};
    static struct bench b;
    struct utsname u;
    struct peers p;

    setvbuf(stdout, NULL, _IOLBF, 0);
    bench_find_self(plan.self);
    puts("looking for peers, starting a dockerd if there is one");
    kit_must(peers_open(&p, "/var/tmp"));
    snprintf(plan.state, sizeof plan.state, "%s/lives", p.scratch.dir);
    bench_init(&b, plan.runs);
    struct err *e = bench_measure(&plan, &p, &b), *left = peers_close(&p);
    kit_must(e);
    kit_must(left);
    for (size_t i = 0; i < BENCH_ROWS; i++)
        bench_sort(&b.rows[i]);
    uname(&u);
    put_text(&b, &u);
    printf("bench/sandbox: %.0f lives a second, one after the other\n", b.lives_per_s);
    return 0;
}
