// SPDX-License-Identifier: Apache-2.0
/* transfer — a large file up and down through HTTP on loopback, beside `cp` of the same file.
 *
 * The server runs in a child with nothing else in it, so its peak memory is its own; the client is
 * bare system calls. Files lie beside the program; each figure is the median of rounds taken in
 * turns with cp, the target removed before each. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/rng.h"
#include "bench/kit/kit.h"
#include "guest/transfer/transfer.h"
#include "net/file.h"
#include "net/router.h"
#include "net/server.h"

#define ROUNDS     5
#define PIECE      (256u << 10)
#define DEFAULT_MB 1024
#define PEAK_KB    8192 /* of the whole server, whatever the size of the file */
#define BOUNDARY   "0f1e2d3c4b5a69788796a5b4c3d2e1f0" /* as long as clients make it */

static char dir[600];
static uint64_t file_bytes = (uint64_t)DEFAULT_MB << 20;

static void must(struct err *e, const char *what)
{
    if (!e)
        return;
    fprintf(stderr, "bench/transfer: %s: %s\n", what, err_text(e));
    exit(1);
}

static void must_be(bool good, const char *what)
{
    if (!good)
        must(err_sys("%s", what), "failed");
}

static double now_s(void)
{
    return kit_now_ms() / 1000;
}

/* --- the server --- */

static fallible give_plain(struct http_req *req)
{
    int fd = open("source", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys("open");
    return file_reply(req, fd, STR("source"), STR("application/octet-stream"), false);
}

static void on_term(struct loop_signal *s)
{
    loop_stop(s->loop);
}

static _Noreturn void serve(int listener, int report)
{
    static const struct route plain[] = {{"GET", "/plain", give_plain, 0, 0}};
    struct transfer t = {.work_dir = dir, .root_fd = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};
    struct loop *loop;
    struct net *net;
    struct http_server *server;
    struct loop_signal term = {0};
    struct router *router = router_new(NULL);
    struct rusage use;

    must(loop_new(&clock_system, &loop), "loop");
    must(net_new(loop, &net), "net");
    transfer_add_routes(router, &t);
    router_add(router, plain, 1, &t);
    must(http_server_new(net, &(struct http_server_config){.router = router}, &server), "server");
    must(http_server_listen(server, listener), "listen");
    must(loop_signal_start(loop, &term, SIGTERM, on_term), "signal");
    must(loop_run(loop), "run");
    getrusage(RUSAGE_SELF, &use);
    dprintf(report, "%ld\n", use.ru_maxrss);
    _exit(0);
}

/* --- the client --- */

static int dial(uint16_t port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must_be(fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0, "connect");
    return fd;
}

static char piece[PIECE];

/* All of one to the other, as a client that has a file or wants one; gives how much it was. */
static uint64_t pump(int from, int to)
{
    uint64_t total = 0;

    for (ssize_t got; (got = read(from, piece, sizeof piece)) > 0; total += (uint64_t)got)
        must(fd_write_all(to, str_n(piece, (size_t)got)), "write");
    return total;
}

static void push(int fd)
{
    int in = open("source", O_RDONLY | O_CLOEXEC);

    pump(in, fd);
    close(in);
}

static int open_copy(void)
{
    return open("copy", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static double upload_s(uint16_t port)
{
    char head[800], form[300], tail[] = "\r\n--" BOUNDARY "--\r\n", answer[2000];
    int fd = dial(port);
    int form_len = snprintf(form, sizeof form,
                            "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"file\"; "
                            "filename=\"copy\"\r\n\r\n");
    unsigned long long body = file_bytes + (uint64_t)form_len + strlen(tail);
    int n = snprintf(head, sizeof head,
                     "POST /upload_file?destination=%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                     "Content-Type: multipart/form-data; boundary=" BOUNDARY
                     "\r\nContent-Length: %llu\r\n"
                     "\r\n",
                     dir, body);

    unlink("copy");
    double start = now_s();
    must(fd_write_all(fd, str_n(head, (size_t)n)), "send");
    must(fd_write_all(fd, str_n(form, (size_t)form_len)), "send");
    push(fd);
    must(fd_write_all(fd, str_of(tail)), "send");
    ssize_t got = read(fd, answer, sizeof answer);
    double s = now_s() - start;
    struct stat st;
    must_be(got > 15 && memcmp(answer, "HTTP/1.1 200 OK", 15) == 0, "answer");
    must_be(stat("copy", &st) == 0 && (uint64_t)st.st_size == file_bytes, "copy");
    close(fd);
    return s;
}

static double download_s(uint16_t port, const char *target)
{
    char head[800];
    int fd = dial(port),
        n = snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                     target);

    unlink("copy");
    int out = open_copy();
    double start = now_s();
    must(fd_write_all(fd, str_n(head, (size_t)n)), "send");
    uint64_t total = pump(fd, out);
    double s = now_s() - start;
    must_be(total > file_bytes, "whole");
    close(fd);
    close(out);
    return s;
}

static double cp_s(void)
{
    unlink("copy");
    double start = now_s();
    must_be(system("cp --reflink=never source copy") == 0, "cp");
    return now_s() - start;
}

/* --- processor time, which says more than the clock on a machine that others use --- */

static double cpu_of(pid_t pid)
{
    char path[64], text[1024];
    unsigned long user = 0, sys = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *p = strrchr(text, ')');
    if (!p || sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys) != 2)
        return 0;
    return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

static double cpu_of_children(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* --- putting it together --- */

static void make_source(void)
{
    int fd = open("source", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    static char noise[1u << 20];
    struct rng_fixed r;
    struct rng *rng = rng_fixed_init(&r, 1);

    rng->fill(rng, noise, sizeof noise);
    for (uint64_t n = 0; n < file_bytes; n += sizeof noise)
        must(fd_write_all(fd, str_n(noise, sizeof noise)), "source");
    close(fd);
}

static void enter_dir(void)
{
    char exe[512];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

    exe[n > 0 ? n : 0] = '\0';
    snprintf(dir, sizeof dir, "%s/transfer-data.%d", dirname(exe), (int)getpid());
    must_be(mkdir(dir, 0700) == 0 && chdir(dir) == 0, dir);
}

static void leave_dir(void)
{
    unlink("source");
    unlink("copy");
    rmdir(dir);
}

static uint16_t listen_here(int *ret_fd)
{
    struct sockaddr_in addr = {0};
    socklen_t len = sizeof addr;

    must(listen_open(STR("127.0.0.1:0"), ret_fd), "listen");
    must_be(getsockname(*ret_fd, (struct sockaddr *)&addr, &len) == 0, "port");
    return ntohs(addr.sin_port);
}

/* The same bytes through a bare socket: what is possible. */
static double bare_s(void)
{
    int listener;
    uint16_t port = listen_here(&listener);

    unlink("copy");
    double start = now_s();
    pid_t pid = fork();
    if (pid == 0) {
        push(dial(port));
        _exit(0);
    }
    must_be(fcntl(listener, F_SETFL, 0) == 0, "listener");
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), out = open_copy();
    uint64_t total = pump(fd, out);
    double s = now_s() - start;
    must_be(total == file_bytes, "whole");
    waitpid(pid, NULL, 0);
    close(listener);
    close(fd);
    close(out);
    return s;
}

struct figures {
    struct kit_series cp, bare, up, zip, plain;
    double cpu_cp, cpu_up, cpu_zip; /* s, of all rounds */
};

/* In turns: the machine's mood changes. */
static void take_round(struct figures *f, pid_t pid, uint16_t port)
{
    char target[700];

    snprintf(target, sizeof target, "/download_files?path=%s/source", dir);
    double before = cpu_of_children();
    kit_add(&f->cp, cp_s() * 1000);
    f->cpu_cp += cpu_of_children() - before;
    kit_add(&f->bare, bare_s() * 1000);
    before = cpu_of(pid);
    kit_add(&f->up, upload_s(port) * 1000);
    double between = cpu_of(pid);
    kit_add(&f->zip, download_s(port, target) * 1000);
    f->cpu_up += between - before;
    f->cpu_zip += cpu_of(pid) - between;
    kit_add(&f->plain, download_s(port, "/plain") * 1000);
}

static void print(struct figures *f, long peak_kb)
{
    double gb = (double)file_bytes / 1e9 * ROUNDS;

    printf("  %llu MB\n", (unsigned long long)(file_bytes >> 20));
    double cp = kit_print("cp", &f->cp);
    kit_print("a bare socket, into a file", &f->bare);
    double up = cp / kit_print("upload", &f->up), zip = cp / kit_print("download, zip", &f->zip);
    kit_print("download, as it is", &f->plain);
    printf("  by the best rounds: bare socket %.2fx cp, upload %.2fx, zip %.2fx, as it is %.2fx\n",
           f->cp.ms[0] / f->bare.ms[0], f->cp.ms[0] / f->up.ms[0], f->cp.ms[0] / f->zip.ms[0],
           f->cp.ms[0] / f->plain.ms[0]);
    printf("  processor s/GB: cp %.2f, server at upload %.2f, at download %.2f\n", f->cpu_cp / gb,
           f->cpu_up / gb, f->cpu_zip / gb);
    kit_at_least("upload to cp", up, 0.6, "x");
    kit_at_least("download to cp", zip, 0.6, "x");
    kit_at_most("peak memory", (double)peak_kb, PEAK_KB, " KB");
    printf("bench/transfer: upload %.2fx cp, download %.2fx cp, peak %ld KB\n", up, zip, peak_kb);
}

int main(int argc, char **argv)
{
    struct figures f = {0};
    int listener, report[2];
    char peak[32] = "";

    if (argc > 1)
        file_bytes = (uint64_t)atoi(argv[1]) << 20;
    log_setup(2, LOG_WARN, LOG_TEXT);
    enter_dir();
    uint16_t port = listen_here(&listener);
    must_be(pipe(report) == 0, "pipe");
    pid_t pid = fork();
    if (pid == 0)
        serve(listener, report[1]);
    make_source();
    for (int i = 0; i < ROUNDS; i++)
        take_round(&f, pid, port);
    kill(pid, SIGTERM);
    must_be(read(report[0], peak, sizeof peak - 1) > 0, "peak");
    waitpid(pid, NULL, 0);
    leave_dir();
    print(&f, atol(peak));
    return 0;
}
