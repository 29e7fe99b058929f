// SPDX-License-Identifier: Apache-2.0
/* idle — user memory of 10,000 kept-alive connections, each idle after one request; the clients
 * are another process. Exits with 1 when one takes more than 4 KB. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/listen.h"
#include "net/router.h"
#include "net/server.h"

#define CONNECTIONS 10000
#define BAR_BYTES   4096

static void must(struct err *e)
{
    if (!e)
        return;
    fprintf(stderr, "bench/idle: %s\n", err_text(e));
    exit(1);
}

static fallible hello(struct http_req *req)
{
    http_reply(req, 200, STR("text/plain"), STR("hello"));
    return NULL;
}

static size_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%*u %lu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Opens them all, asks once on each, says so through the pipe, and waits for its end. */
static void client(const struct sockaddr_storage *addr, socklen_t len, int ready, int finish)
{
    struct str request = STR("GET / HTTP/1.1\r\nHost: bench\r\n\r\n");
    char answer[1000], c;

    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *)addr, len) < 0 ||
            send(fd, request.p, request.len, 0) < 0 || recv(fd, answer, sizeof answer, 0) < 5)
            _exit(1);
    }
    if (write(ready, "x", 1) == 1 && read(finish, &c, 1) == 0)
        _exit(0);
    _exit(1);
}

static void on_ready(struct loop_io *io)
{
    loop_stop(io->loop);
}

static struct loop *loop;
static struct net *net;
static struct http_server *server;
static struct router *router;

static int serve(void)
{
    static const struct route routes[] = {{"GET", "/", hello, 0, 0}};
    struct http_server_config sc = {.limits = {.connections = CONNECTIONS + 1}};
    int fd;

    must(loop_new(&clock_system, &loop));
    must(net_new(loop, &net));
    router = router_new(NULL);
    router_add(router, routes, 1, NULL);
    sc.router = router;
    must(http_server_new(net, &sc, &server));
    must(listen_open(STR("127.0.0.1:0"), &fd));
    must(http_server_listen(server, fd));
    return fd;
}

int main(void)
{
    struct rlimit limit = {CONNECTIONS + 100, CONNECTIONS + 100};
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    struct loop_io ready;
    int up[2], down[2], status = 1;

    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || pipe(up) < 0 || pipe(down) < 0) {
        perror("bench/idle: descriptors");
        return 1;
    }
    int fd = serve();
    getsockname(fd, (struct sockaddr *)&addr, &len);
    pid_t pid = fork();
    if (pid == 0) {
        close(down[1]);
        client(&addr, len, up[1], down[0]);
    }
    close(up[1]);
    must(loop_io_start(loop, &ready, up[0], EPOLLIN, on_ready));
    size_t heap = heap_bytes(), resident = resident_bytes();
    must(loop_run(loop));
    if (http_server_connections(server) == CONNECTIONS) {
        double n = CONNECTIONS, each = (double)(heap_bytes() - heap) / n;
        printf("bench/idle: %.0f bytes of heap, %.0f resident per idle connection (bar %d)\n", each,
               (double)(resident_bytes() - resident) / n, BAR_BYTES);
        status = each > BAR_BYTES;
    }
    close(down[1]);
    waitpid(pid, NULL, 0);
    http_server_free(server);
    net_free(net);
    loop_free(loop);
    router_free(router);
    return status;
}
