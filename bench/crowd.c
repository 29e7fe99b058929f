// SPDX-License-Identifier: Apache-2.0
/* bench/crowd.c — many idle native sandboxes, each with a server that listens, before the first
 * command: what one takes and where that is, and what one more costs when there are many. Memory
 * is looked at twice: while servers wait, and when the unused ones have ended (guest/init).
 *
 * CROFT_BENCH_CROWD=5000 says how many (100), CROFT_BENCH_V2=1 leaves v1's control groups out. It
 * looks at the memory of the whole machine: run it alone. Needs root. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "bench/kit/kit.h"
#include "host/launcher/launcher.h"
#include "host/tree/tree.h"

#define MOST   6000
#define PROBES 40 /* more are started and removed at each size of the crowd */
#define SPARES 4

struct crowd {
    char state[64];
    int sock, block;
    pid_t launcher;
    unsigned n;
    int control[MOST];
    pid_t pid; /* of the last one */
};

/* --- the machine's memory --- */

/* Those before COUNTED_END are memory that cannot be taken back, and have names.
 *
 * The first is the kernel's own figure. It leaves out half of what it could take back, up to some
 * 160 MB: on a fresh machine half of every cached file and inode seems to be lost. */
enum {
    AVAILABLE,
    SLAB,
    TABLES,
    STACKS,
    PERCPU,
    COUNTED_END,
    ANON = COUNTED_END,
    RECLAIMABLE,
    VMALLOC, /* stacks included */
    SHMEM,
    CACHED,
    BUFFERS,
    FREE,
    FIELDS
};
static const char *const fields[FIELDS] = {[AVAILABLE] = "MemAvailable",
                                           [SLAB] = "SUnreclaim",
                                           [TABLES] = "PageTables",
                                           [STACKS] = "KernelStack",
                                           [PERCPU] = "Percpu",
                                           [ANON] = "AnonPages",
                                           [RECLAIMABLE] = "SReclaimable",
                                           [VMALLOC] = "VmallocUsed",
                                           [SHMEM] = "Shmem",
                                           [CACHED] = "Cached",
                                           [BUFFERS] = "Buffers",
                                           [FREE] = "MemFree"};

struct memory {
    double kb[FIELDS];
};

/* The number after "name:" in a file of lines; 0: not there. */
static double read_kb(const char *path, const char *name)
{
    own_done(buf) text;
    struct str rest, line, word;
    uint64_t kb = 0;

    buf_init(&text, 1u << 16);
    kit_must(fd_read_file(path, &text));
    rest = buf_str(&text);
    for (bool more = true; more && !kb;) {
        more = str_cut(&rest, '\n', &line);
        str_cut(&line, ':', &word);
        line = str_trim(line);
        if (!str_eq(word, str_of(name)))
            continue;
        str_cut(&line, ' ', &word);
        str_to_u64(word, &kb);
    }
    return (double)kb;
}

static struct memory look(void)
{
    struct memory m;

    for (size_t i = 0; i < FIELDS; i++)
        m.kb[i] = read_kb("/proc/meminfo", fields[i]);
    return m;
}

/* What is neither free nor can be taken back, up to a number that stays the same. */
static double lost_kb(const struct memory *m)
{
    const double *kb = m->kb;

    return kb[SHMEM] - kb[FREE] - kb[CACHED] - kb[BUFFERS] - kb[RECLAIMABLE];
}

static double slab_kb(const struct memory *m)
{
    return m->kb[SLAB] + m->kb[RECLAIMABLE];
}

/* --- the kernel's caches: which of them grew --- */

#define CACHES     400
#define CACHES_TOP 40

struct cache {
    char name[40];
    double kb;
};

struct caches {
    struct cache of[CACHES];
    size_t count;
    double kb; /* of all */
};

/* Lines "name active total size by-slab pages … : slabdata active slabs …", after two of headings.
 */
static void look_at_caches(struct caches *c)
{
    own_done(buf) text;
    struct str rest, line;

    c->count = 0;
    c->kb = 0;
    buf_init(&text, 1u << 20);
    kit_must(fd_read_file("/proc/slabinfo", &text));
    rest = buf_str(&text);
    while (str_cut(&rest, '\n', &line) && c->count < CACHES) {
        struct cache *at = &c->of[c->count];
        char copy[200];
        unsigned long long pages, slabs;
        snprintf(copy, sizeof copy, STR_FMT, STR_ARG(line));
        if (sscanf(copy, "%39s %*u %*u %*u %*u %llu : %*s %*u %*u %*u : %*s %*u %llu", at->name,
                   &pages, &slabs) != 3)
            continue;
        at->kb = (double)pages * (double)slabs * (double)sysconf(_SC_PAGESIZE) / 1024;
        c->kb += at->kb;
        c->count++;
    }
}

static int by_kb(const void *a, const void *b)
{
    double x = ((const struct cache *)a)->kb, y = ((const struct cache *)b)->kb;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* in_slab: what they are said to have grown by; more than they have is in pages of its own. */
static void show_caches(const struct caches *was, double in_slab_kb, unsigned n)
{
    static struct caches now;

    look_at_caches(&now);
    double alone = in_slab_kb - (now.kb - was->kb);
    for (size_t i = 0; i < now.count; i++)
        for (size_t k = 0; k < was->count; k++)
            if (strcmp(now.of[i].name, was->of[k].name) == 0)
                now.of[i].kb -= was->of[k].kb;
    qsort(now.of, now.count, sizeof *now.of, by_kb);
    printf("  of one, kB by cache:");
    for (size_t i = 0; i < now.count && i < CACHES_TOP; i++)
        printf(" %s %.1f", now.of[i].name, now.of[i].kb / n);
    printf("; in none of them %.1f\n", alone / n);
}

static double anon_kb(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    return read_kb(path, "Anonymous");
}

static unsigned count_fds(pid_t pid)
{
    char path[64];
    unsigned n = 0;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    kit_check(d, path);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

/* --- the crowd --- */

static void crowd_open(struct crowd *c, unsigned most)
{
    static const char *const images[] = {NULL}; /* the machine's own system */
    static const char args[] = "action-server";

    strcpy(c->state, "/var/tmp/bench-crowd-XXXXXX");
    kit_check(mkdtemp(c->state), "mkdtemp");
    c->block = memfd_create("args", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    kit_must(fd_write_all(c->block, str_n(args, sizeof args)));
    fcntl(c->block, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    struct launcher_policy policy = {
        .state = c->state, .images = images, .image_count = 1, .most = most, .spares = SPARES};
    kit_must(launcher_fork(&policy, &c->sock, &c->launcher));
}

static pid_t ask(const struct crowd *c, enum native_op op, unsigned id, const int *fd, int fds[2])
{
    struct native_request req = {.magic = NATIVE_MAGIC,
                                 .version = NATIVE_VERSION,
                                 .op = op,
                                 .argc = op == NATIVE_START,
                                 .hostname = "box"};
    static struct native_reply reply;
    size_t n, count;

    snprintf(req.id, sizeof req.id, "c%u", id);
    kit_must(fd_send(c->sock, str_n(&req, sizeof req), fd, fd ? 1 : 0));
    kit_must(fd_recv(c->sock, &reply, sizeof reply, &n, fds, 2, &count));
    if (!reply.code)
        return reply.pid;
    fprintf(stderr, "bench: %s\n", reply.text);
    exit(1);
}

/* Until its server listens; its control connection stays: one descriptor each on this side. */
static int start(struct crowd *c, unsigned id, struct kit_series *s)
{
    int fds[2];
    char byte;
    uint64_t t = clock_mono_ns(&clock_system);

    c->pid = ask(c, NATIVE_START, id, &c->block, fds);
    kit_check(read(fds[0], &byte, 1) == 1, "ready");
    kit_add(s, kit_ms_since(t));
    close(fds[0]);
    return fds[1];
}

static void grow(struct crowd *c, unsigned to, struct kit_series *s)
{
    for (; c->n < to; c->n++)
        c->control[c->n] = start(c, c->n, s);
}

static void rest(int ms)
{
    poll(NULL, 0, ms);
}

struct costs {
    double start, claim, cpu;
};

static double ran_ms(pid_t pid)
{
    char path[64], text[64] = "";
    unsigned long long ns = 0;

    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 1 || sscanf(text, "%llu", &ns) != 1)
        kit_die(path);
    return (double)ns / 1e6;
}

/* 0: none. */
static pid_t child_of(pid_t pid)
{
    char path[64], text[64] = "";

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    kit_check(fd >= 0 && read(fd, text, sizeof text - 1) >= 0, path);
    return atoi(text);
}

/* The last one's server rests last. */
static void await_rest(const struct crowd *c)
{
    uint64_t began = clock_mono_ns(&clock_system);

    while (child_of(c->pid) && kit_ms_since(began) < 10000)
        rest(50);
    kit_check(!child_of(c->pid), "a server does not rest");
    rest(1000); /* the kernel gives memory back later */
}

/* One more, from a spare as a warm pool would have it; and a word with one of those there. */
static struct costs probe(struct crowd *c)
{
    struct kit_series starts = {.count = 0}, claims = {.count = 0}, cpus = {.count = 0};
    int none[2];
    char name[64];
    pid_t last = c->pid;

    for (unsigned i = 0; i < PROBES; i++) {
        rest(20);
        double before = ran_ms(c->launcher);
        int control = start(c, MOST + i, &starts);
        rest(20); /* the next spare is part of the price */
        kit_add(&cpus, ran_ms(c->launcher) - before + ran_ms(c->pid) + ran_ms(child_of(c->pid)));
        ask(c, NATIVE_REMOVE, MOST + i, NULL, none);
        close(control);
        rest(5);
        uint64_t t = clock_mono_ns(&clock_system);
        char byte = 'p';
        int to = c->control[(c->n - 1) * (size_t)i / PROBES];
        kit_check(write(to, &byte, 1) == 1 && read(to, &byte, 1) == 1, "claim");
        kit_add(&claims, kit_ms_since(t));
    }
    snprintf(name, sizeof name, "start, %u live", c->n);
    struct costs cost = {.start = kit_print(name, &starts)};
    snprintf(name, sizeof name, "start, %u live, cpu", c->n);
    cost.cpu = kit_print(name, &cpus);
    snprintf(name, sizeof name, "claim, %u live", c->n);
    cost.claim = kit_print(name, &claims);
    free(starts.ms);
    free(claims.ms);
    free(cpus.ms);
    c->pid = last;
    return cost;
}

static void crowd_close(struct crowd *c)
{
    uint64_t t = clock_mono_ns(&clock_system);

    close(c->sock); /* ends them all */
    waitpid(c->launcher, NULL, 0);
    printf("  %-34s %.3f ms each\n", "end and removal of all", kit_ms_since(t) / c->n);
    for (unsigned i = 0; i < c->n; i++)
        close(c->control[i]);
    close(c->block);
    kit_must(tree_remove(AT_FDCWD, c->state));
}

/* --- what is the kernel's price --- */

/* A network namespace of its own is the dearest thing a sandbox has; nothing of ours is in it. */
static void show_floor(void)
{
    enum { MANY = 200 };
    int pipes[2];
    char byte;

    kit_check(pipe2(pipes, O_CLOEXEC) == 0, "pipe");
    static struct caches caches;
    look_at_caches(&caches);
    struct memory before = look();
    pid_t pid = fork();
    if (pid == 0) {
        for (unsigned i = 0; i < MANY; i++)
            if (unshare(CLONE_NEWNET) < 0 || open("/proc/self/ns/net", O_RDONLY) < 0)
                _exit(1);
        _exit(write(pipes[1], "x", 1) == 1 && poll(NULL, 0, -1));
    }
    close(pipes[1]);
    kit_check(read(pipes[0], &byte, 1) == 1, "network namespaces");
    struct memory after = look();
    printf("  %-34s %.0f kB of SUnreclaim each\n", "network namespaces alone",
           (after.kb[SLAB] - before.kb[SLAB]) / MANY);
    show_caches(&caches, slab_kb(&after) - slab_kb(&before), MANY);
    close(pipes[0]);
    kit_end(pid);
}

/* A group that counts memory holds a table of every file system that was ever mounted at once on
 * this machine since it was started: after a crowd of 5,000 all groups are dearer. */
static void show_group_floor(void)
{
    enum { MANY = 200 };
    char path[64];
    double before = read_kb("/proc/meminfo", "SUnreclaim"), after;

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/memory/croft-bench-%u", i);
        if (mkdir(path, 0755) < 0)
            return; /* not counted by v1 here */
    }
    after = read_kb("/proc/meminfo", "SUnreclaim");
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/memory/croft-bench-%u", i);
        rmdir(path);
    }
    printf("  %-34s %.0f kB of SUnreclaim each\n", "memory groups alone", (after - before) / MANY);
}

/* With the unified hierarchy in the place of all others, for us alone. */
static void leave_v1_out(void)
{
    own_done(buf) have;

    buf_init(&have, 4096);
    kit_check(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                  mount("/sys/fs/cgroup/unified", "/sys/fs/cgroup", NULL, MS_BIND, NULL) == 0,
              "mount the unified hierarchy alone");
    kit_must(fd_read_file("/sys/fs/cgroup/cgroup.controllers", &have));
    struct str words = str_trim(buf_str(&have));
    printf("  v1 groups left out; v2 has '" STR_FMT "' here: %s\n", STR_ARG(words),
           str_find(words, STR("memory")) >= 0 ? "limits are there"
                                               : "no limit of any kind is in these figures");
}

/* --- the bars --- */

static void show_memory(const struct crowd *c, const struct memory *was, bool v1)
{
    struct memory now = look();
    unsigned n = c->n - 1;
    pid_t server = child_of(c->pid);
    double own = anon_kb(c->pid) + (server ? anon_kb(server) : 0), counted = own;

    printf("  of one, kB, %s:", server ? "its server waits" : "its server rests");
    for (size_t i = AVAILABLE + 1; i < FIELDS; i++)
        printf(" %s %.0f", fields[i], (now.kb[i] - was->kb[i]) / n);
    printf(" (its own %.0f)\n", own);
    for (size_t i = AVAILABLE + 1; i < COUNTED_END; i++)
        counted += (now.kb[i] - was->kb[i]) / n;
    if (server) {
        printf("  %-34s %.3f MB counted\n", "memory of one, its server waits", counted / 1024);
        return;
    }
    double bar = v1 ? .6 : .4;
    printf("  %-34s %.3f MB\n", "memory of one, by MemAvailable",
           (was->kb[AVAILABLE] - now.kb[AVAILABLE]) / n / 1024);
    kit_at_most("memory of one, machine-wide", (lost_kb(&now) - lost_kb(was)) / n / 1024, bar,
                " MB");
    kit_at_most("memory of one, counted", counted / 1024, bar, " MB");
}

static void bench(unsigned n, bool v1)
{
    static const unsigned marks[] = {10, 100, 1000, 5000};
    static struct crowd c;
    static struct caches caches;
    struct kit_series starts = {.count = 0};
    struct costs few = {0}, all = {0};

    crowd_open(&c, n + 1);
    unsigned own_fds = count_fds(getpid());
    grow(&c, 1, &starts); /* what is made once */
    rest(200);
    struct memory was = look();
    look_at_caches(&caches);
    for (size_t i = 0; i < ARRAY_LEN(marks) && marks[i] <= n; i++) {
        grow(&c, marks[i], &starts);
        all = probe(&c);
        if (i == 0)
            few = all;
    }
    grow(&c, n, &starts);
    rest(200);
    kit_print("start, one after the other", &starts);
    show_memory(&c, &was, v1);
    await_rest(&c);
    show_memory(&c, &was, v1);
    struct memory now = look();
    show_caches(&caches, slab_kb(&now) - slab_kb(&was), n - 1);
    kit_at_most("descriptors of one, launcher", (double)count_fds(c.launcher) / n, 3, "");
    kit_at_most("descriptors of one, server", (double)(count_fds(getpid()) - own_fds) / n, 1, "");
    kit_at_most("start against few", all.start / few.start, 1.2, "x");
    kit_at_most("cpu of a start against few", all.cpu / few.cpu, 1.2, "x");
    kit_at_most("claim against few", all.claim / few.claim, 1.2, "x");
    crowd_close(&c);
    free(starts.ms);
}

int main(void)
{
    const char *many = getenv("CROFT_BENCH_CROWD");
    unsigned n = many ? (unsigned)atoi(many) : 100;
    bool v1 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) < 0;
    struct utsname u;

    if (geteuid() != 0) {
        puts("bench/crowd: needs root");
        return 0;
    }
    kit_check(n >= 10 && n <= MOST, "CROFT_BENCH_CROWD wants 10 to 6000");
    uname(&u);
    printf("  Linux %s, %ld processors, %u sandboxes\n", u.release, sysconf(_SC_NPROCESSORS_ONLN),
           n);
    show_floor();
    show_group_floor();
    if (v1 && getenv("CROFT_BENCH_V2")) {
        leave_v1_out();
        v1 = false;
    }
    bench(n, v1);
    puts("bench/crowd: every start succeeded");
    return 0;
}
