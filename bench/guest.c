// SPDX-License-Identifier: Apache-2.0
/* bench/guest.c — how fast croft-guest answers after exec, and what an idle one weighs. The client
 * connects to a socket that is listening already, so nothing polls: the first byte of the answer
 * stops the clock. Beside it in the same run: a bare static program, and a FastAPI hello. */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "bench/kit/kit.h"
#include "net/listen.h"

#define RUNS      200
#define PEER_RUNS 5
#define CROWD     20
#define BAR_BYTES 409600
#define BAR_MS    1.0
#define BAR_PSS   150

extern char **environ;

static void must(struct err *e)
{
    if (!e)
        return;
    fprintf(stderr, "bench/guest: %s\n", err_text(e));
    exit(1);
}

struct place {
    char dir[32], address[48];
    struct sockaddr_storage addr;
    socklen_t len;
    int fd; /* listens */
};

static void place_open(struct place *p)
{
    strcpy(p->dir, "/tmp/bench-guest-XXXXXX");
    if (!mkdtemp(p->dir))
        kit_die("mkdtemp");
    snprintf(p->address, sizeof p->address, "unix:%s/s", p->dir);
    must(listen_open(str_of(p->address), &p->fd));
    must(addr_unix(str_of(p->address + 5), &p->addr, &p->len));
}

static void place_close(struct place *p)
{
    listen_close(p->fd);
    rmdir(p->dir);
}

/* exec with descriptor 3 = fd, its output dropped when quiet. posix_spawn is vfork underneath: the
 * size of this process is not part of the figure. */
static pid_t start(const char *const *argv, int fd, bool quiet)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    if (fd >= 0)
        posix_spawn_file_actions_adddup2(&actions, fd, 3);
    if (quiet)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv, environ))
        kit_die(argv[0]);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* An init ends those below it. */
static void end(pid_t pid)
{
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
}

static void ask(const struct place *p)
{
    static const char request[] = "GET /alive HTTP/1.1\r\nhost: x\r\n\r\n";
    char answer[512];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (const struct sockaddr *)&p->addr, p->len) < 0)
        kit_die("connect");
    if (write(fd, request, sizeof request - 1) < 0)
        kit_die("write");
    ssize_t n = read(fd, answer, sizeof answer);
    if (n < 15 || memcmp(answer, "HTTP/1.1 200 OK", 15) != 0)
        kit_die("no answer");
    close(fd);
}

/* A fresh socket each time: an answer can only come from the process just started. */
static double answer_ms(const char *const *argv, bool quiet)
{
    struct place p;

    place_open(&p);
    double began = kit_now_ms();
    pid_t pid = start(argv, p.fd, quiet);
    ask(&p);
    double ms = kit_now_ms() - began;
    end(pid);
    place_close(&p);
    return ms;
}

static double exit_ms(const char *const *argv)
{
    double began = kit_now_ms();
    pid_t pid = start(argv, -1, false);

    waitpid(pid, NULL, 0);
    return kit_now_ms() - began;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double pss_kb(pid_t pid)
{
    char path[64], line[128];
    unsigned kb = 0;

    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        kit_die(path);
    while (fgets(line, sizeof line, f) && sscanf(line, "Pss: %u kB", &kb) != 1)
        ;
    fclose(f);
    return kb;
}

/* The process and all below it. */
static double tree_pss_kb(pid_t pid)
{
    char path[64], line[256] = "";
    double kb = pss_kb(pid);

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        kit_die(path);
    if (!fgets(line, sizeof line, f))
        line[0] = '\0';
    fclose(f);
    char *save = NULL;
    for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
        kb += tree_pss_kb((pid_t)atoi(word));
    return kb;
}

/* The median of a crowd from one file, each of which has answered once. */
static double crowd_pss_kb(const char *const *argv)
{
    struct place places[CROWD];
    pid_t pids[CROWD];
    double kb[CROWD];

    for (int i = 0; i < CROWD; i++) {
        place_open(&places[i]);
        pids[i] = start(argv, places[i].fd, false);
        if (pids[i] < 0)
            kit_die("start");
        ask(&places[i]);
    }
    for (int i = 0; i < CROWD; i++)
        kb[i] = tree_pss_kb(pids[i]);
    for (int i = 0; i < CROWD; i++) {
        end(pids[i]);
        place_close(&places[i]);
    }
    qsort(kb, CROWD, sizeof *kb, by_value);
    return kb[CROWD / 2];
}

/* The least a process can be: static, musl, ends at once. */
static const char *build_floor(const char *dir)
{
    static char path[64];
    char command[256];

    snprintf(path, sizeof path, "%s/true", dir);
    snprintf(command, sizeof command,
             "echo 'int main(void){return 0;}' | musl-gcc -O2 -static -no-pie -x c - -o %s", path);
    return system(command) == 0 ? path : "/bin/true";
}

/* The same document from FastAPI on uvicorn, on the same kind of socket. */
static const char peer_text[] = "import uvicorn\n"
                                "from fastapi import FastAPI\n"
                                "app = FastAPI()\n"
                                "@app.get('/alive')\n"
                                "async def alive():\n"
                                "    return {'status': 'ok'}\n"
                                "uvicorn.run(app, fd=3, log_level='error', access_log=False)\n";

static void bench_peer(double guest_ms)
{
    const char *const argv[] = {"/usr/bin/python3", "-c", peer_text, NULL};
    struct kit_series peers = {0};

    if (access("/usr/lib/python3/dist-packages/uvicorn", R_OK) < 0 ||
        access("/usr/lib/python3/dist-packages/fastapi", R_OK) < 0) {
        printf("  FastAPI is not installed: python3-fastapi python3-uvicorn\n");
        return;
    }
    for (int i = 0; i < PEER_RUNS; i++)
        kit_add(&peers, answer_ms(argv, true));
    double peer = kit_print("FastAPI hello, to first answer", &peers);
    printf("  croft-guest answers %.0f times as fast\n", peer / guest_ms);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/bench-floor-XXXXXX", program[512];
    struct kit_series guests = {0}, floors = {0}, inits = {0};
    struct stat st;

    (void)argc;
    setenv("LOG_LEVEL", "warn", 1); /* of the servers: their greeting is not part of the figure */
    snprintf(program, sizeof program, "%s/../croft-guest", dirname(argv[0]));
    if (stat(program, &st) < 0 || !mkdtemp(dir))
        kit_die(program);
    const char *bare = build_floor(dir);
    const char *const guest_argv[] = {program, "fd:3", NULL};
    const char *const init_argv[] = {program, "init",          "--listen-fd", "3",
                                     "--",    "action-server", NULL};
    const char *const floor_argv[] = {bare, NULL};
    answer_ms(guest_argv, false); /* into the page cache */
    for (int i = 0; i < RUNS; i++) {
        kit_add(&floors, exit_ms(floor_argv));
        kit_add(&guests, answer_ms(guest_argv, false));
        kit_add(&inits, answer_ms(init_argv, false));
    }
    double floor = kit_print("bare static program, exec to end", &floors);
    double guest = kit_print("croft-guest, to first answer", &guests);
    kit_print("below its own init, the same", &inits);
    bench_peer(guest);
    double pss = crowd_pss_kb(guest_argv), all = crowd_pss_kb(init_argv);
    if (strcmp(bare, "/bin/true") != 0)
        unlink(bare);
    rmdir(dir);
    kit_at_most("file", (double)st.st_size, BAR_BYTES, " bytes");
    kit_at_most("exec to first answer, p50", guest, BAR_MS, " ms");
    kit_at_most("idle, one of 20, PSS", pss, BAR_PSS, " KB");
    printf("  %-34s %.0f KB\n", "with init and forker, PSS", all);
    printf("bench/guest: %lld bytes, exec to first answer %.2f ms p50 (%.1fx a bare exec), "
           "%.0f KB PSS, %.0f with init\n",
           (long long)st.st_size, guest, guest / floor, pss, all);
    return 0;
}
