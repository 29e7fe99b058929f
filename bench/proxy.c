// SPDX-License-Identifier: Apache-2.0
/* proxy — what the sandbox proxy adds to a small request and what it leaves of the bytes, beside
 * relays that know no HTTP and nginx, all in front of the same server on a unix socket.
 *
 * Ways are taken in turns, request by request and transfer by transfer: the machine's moods meet
 * all of them. Medians count. CPU is of the process between client and server. Then the same with
 * 5,000 sandboxes. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/kit/kit.h"
#include "host/proxy/proxy.h"
#include "net/listen.h"
#include "net/router.h"
#include "net/server.h"
#include "out/dial.h"

#define REQUESTS   4000
#define ROUNDS     31
#define MANY       5000
#define PIECE      (256u << 10)
#define MB_DEFAULT 48

static char dir[] = "/tmp/croft-bench-proxy-XXXXXX", sock_path[100];
static uint64_t bytes;
static char block[PIECE];

/* --- the server behind all of them --- */

static fallible alive(struct http_req *req)
{
    http_reply_json(req, 200, STR("{\"status\":\"ok\"}"));
    return NULL;
}

static void pour(struct http_req *req)
{
    uint64_t left = (uint64_t)(uintptr_t)req->user;

    while (left && http_reply_pending(req) < STREAM_HIGH) {
        size_t n = left < PIECE ? (size_t)left : PIECE;
        char *at = http_reply_reserve(req, n);
        if (!at)
            break;
        http_reply_commit(req, n);
        left -= n;
    }
    req->user = (void *)(uintptr_t)left;
    if (!left)
        http_reply_end(req);
}

static void on_gone(struct http_req *req)
{
    http_reply_abort(req);
}

static fallible give(struct http_req *req)
{
    req->user = (void *)(uintptr_t)bytes;
    req->on_drain = pour;
    req->on_gone = on_gone;
    bool counted = str_eq(req->path, STR("/give"));
    http_reply_begin(req, 200, STR("application/octet-stream"),
                     counted ? bytes : HTTP_LENGTH_UNKNOWN);
    pour(req);
    return NULL;
}

static fallible on_piece(struct http_req *req, struct str piece)
{
    if (!piece.len)
        http_reply_json(req, 200, STR("{}"));
    return NULL;
}

static fallible take_in(struct http_req *req)
{
    req->on_body = on_piece;
    req->on_gone = on_gone;
    return NULL;
}

static const struct route routes[] = {
    {"GET", "/alive", alive, 0, 0},
    {"GET", "/give", give, 0, 0},
    {"GET", "/stream", give, 0, 0},
    {"POST", "/take", take_in, ROUTE_STREAM, 0},
};

static pid_t child(void)
{
    pid_t pid = fork();

    kit_check(pid >= 0, "fork");
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static void open_net(struct loop **loop, struct net **net)
{
    kit_must(loop_new(&clock_system, loop));
    kit_must(net_new(*loop, net));
}

static pid_t start_server(void)
{
    char address[120];
    struct loop *loop;
    struct net *net;
    int fd;

    snprintf(sock_path, sizeof sock_path, "%s/in.sock", dir);
    snprintf(address, sizeof address, "unix:%s", sock_path);
    kit_must(listen_open(str_of(address), &fd));
    chmod(sock_path, 0666);
    pid_t pid = child();
    if (pid)
        return pid;
    open_net(&loop, &net);
    struct router *router = router_new(NULL);
    struct http_server *server;
    router_add(router, routes, ARRAY_LEN(routes), NULL);
    kit_must(http_server_new(net, &(struct http_server_config){.router = router}, &server));
    kit_must(http_server_listen(server, fd));
    kit_must(loop_run(loop));
    _exit(0);
}

/* --- ways --- */

struct way {
    const char *name;
    uint16_t port;     /* 0: straight to the unix socket */
    pid_t pid, worker; /* worker: its child that does the work; 0: none */
    int fd;            /* a connection that stays */
    struct kit_series small, down, chunked, up;
    double *relay_cpu_ms;    /* of relays that have ended */
    double cpu_down, cpu_up; /* ms of its process */
};

static int connect_way(const struct way *w)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(w->port)};
    int fd = socket(w->port ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(un.sun_path, sizeof un.sun_path, "%s", sock_path);
    kit_check(w->port ? connect(fd, (struct sockaddr *)&in, sizeof in) == 0
                      : connect(fd, (struct sockaddr *)&un, sizeof un) == 0,
              w->name);
    return fd;
}

static uint16_t open_port(int *fd)
{
    struct sockaddr_in a;
    socklen_t len = sizeof a;

    kit_must(listen_open(STR("127.0.0.1:0"), fd));
    getsockname(*fd, (struct sockaddr *)&a, &len);
    return ntohs(a.sin_port);
}

/* As many sandboxes as asked for, all the same server; the first one's port is used. */
static void start_proxy(struct way *w, unsigned count)
{
    int tell[2];

    kit_check(pipe(tell) == 0, "pipe");
    w->pid = child();
    if (w->pid) {
        close(tell[1]);
        kit_check(read(tell[0], &w->port, sizeof w->port) == sizeof w->port, "the proxy's port");
        close(tell[0]);
        return;
    }
    struct proxy_target *t = calloc(count, sizeof *t);
    struct proxy *proxy;
    struct loop *loop;
    struct net *net;
    open_net(&loop, &net);
    kit_must(proxy_new(&(struct proxy_config){.dialer = &(struct dialer){.net = net}}, &proxy));
    for (unsigned i = 0; i < count; i++) {
        char *id = malloc(20);
        snprintf(id, 20, "sandbox%u", i);
        t[i].id = id;
        t[i].state = PROXY_OPEN;
        snprintf(t[i].address.unix_path, sizeof t[i].address.unix_path, "%s", sock_path);
        kit_must(proxy_add(proxy, &t[i], 0));
    }
    kit_check(write(tell[1], &t[0].port, sizeof t[0].port) == sizeof t[0].port, "pipe");
    kit_must(loop_run(loop));
    _exit(0);
}

/* --- relays: one process per connection, no loop, no HTTP --- */

static bool copy_some(int from, int to)
{
    static char page[PIECE];
    ssize_t n = read(from, page, sizeof page);

    for (ssize_t at = 0; at < n;) {
        ssize_t put = write(to, page + at, (size_t)(n - at));
        if (put <= 0)
            return false;
        at += put;
    }
    return n > 0;
}

static bool splice_some(int from, int to, const int pipe[2])
{
    ssize_t n = splice(from, NULL, pipe[1], NULL, PIECE, SPLICE_F_MOVE);

    for (ssize_t left = n; left > 0;) {
        ssize_t put = splice(pipe[0], NULL, to, NULL, (size_t)left, SPLICE_F_MOVE);
        if (put <= 0)
            return false;
        left -= put;
    }
    return n > 0;
}

static double own_cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static _Noreturn void relay_one(int client, bool spliced, double *cpu_ms)
{
    struct way straight = {.name = "relay"};
    int pair[2] = {client, connect_way(&straight)}, pipe_fds[2];
    bool good = true;

    kit_check(pipe(pipe_fds) == 0, "pipe");
    fcntl(pipe_fds[0], F_SETPIPE_SZ, PIECE);
    while (good) {
        struct pollfd p[2] = {{pair[0], POLLIN, 0}, {pair[1], POLLIN, 0}};
        kit_check(poll(p, 2, -1) > 0, "poll");
        for (int i = 0; i < 2 && good; i++)
            if (p[i].revents)
                good = spliced ? splice_some(pair[i], pair[!i], pipe_fds)
                               : copy_some(pair[i], pair[!i]);
    }
    *cpu_ms += own_cpu_ms(); /* one at a time */
    _exit(0);
}

static void start_relay(struct way *w, bool spliced)
{
    int fd, one = 1;

    w->relay_cpu_ms = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    kit_check(w->relay_cpu_ms != MAP_FAILED, "mmap");
    w->port = open_port(&fd);
    w->pid = child();
    if (w->pid) {
        close(fd);
        return;
    }
    signal(SIGCHLD, SIG_IGN);
    fcntl(fd, F_SETFL, 0);
    for (;;) {
        int client = accept(fd, NULL, NULL);
        if (client < 0)
            _exit(1);
        setsockopt(client, IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, sizeof one);
        if (child() == 0)
            relay_one(client, spliced, w->relay_cpu_ms);
        close(client);
    }
}

static bool start_nginx(struct way *w)
{
    char path[200];
    int fd;

    w->port = open_port(&fd);
    close(fd);
    snprintf(path, sizeof path, "%s/nginx.conf", dir);
    FILE *f = fopen(path, "w");
    kit_check(f != NULL, "nginx.conf");
    fprintf(f,
            "daemon off; worker_processes 1; pid %s/pid; error_log /dev/null; user root;\n"
            "events { worker_connections 1000; }\n"
            "http { access_log off; keepalive_requests 1000000000; client_max_body_size 0;\n"
            "client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f;\n"
            "uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
            "upstream in { server unix:%s; keepalive 16; }\n"
            "server { listen 127.0.0.1:%u; location / { proxy_pass http://in;\n"
            "proxy_http_version 1.1; proxy_set_header Connection ''; proxy_buffering off;\n"
            "proxy_buffer_size 256k; proxy_buffers 8 256k; proxy_busy_buffers_size 512k; "
            "proxy_request_buffering off;\n"
            "client_body_buffer_size 256k; } } }\n",
            dir, dir, dir, dir, dir, dir, sock_path, w->port);
    fclose(f);
    w->pid = child();
    if (w->pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, 1);
        dup2(null, 2);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        execlp("nginx", "nginx", "-c", path, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 500; i++) { /* it does not tell when it listens */
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(w->port)};
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool there = connect(probe, (struct sockaddr *)&in, sizeof in) == 0;
        close(probe);
        if (there) {
            snprintf(path, sizeof path, "pgrep -P %d", w->pid);
            FILE *p = popen(path, "r");
            bool forked = p && fscanf(p, "%d", &w->worker) == 1;
            pclose(p);
            if (forked)
                return true;
        }
        if (waitpid(w->pid, NULL, WNOHANG) == w->pid)
            break;
        usleep(10000);
    }
    w->pid = 0;
    return false;
}

/* --- the client --- */

static void send_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t put = send(fd, p, n, MSG_NOSIGNAL);
        kit_check(put > 0, "send");
        p += put;
        n -= (size_t)put;
    }
}

/* Head and body, all small. */
static void read_answer(int fd)
{
    char text[4096];
    size_t len = 0;

    for (;;) {
        ssize_t n = recv(fd, text + len, sizeof text - 1 - len, 0);
        kit_check(n > 0, "recv");
        len += (size_t)n;
        text[len] = '\0';
        char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "content-length: ");
        if (end && length && len >= (size_t)(end + 4 - text) + (size_t)atol(length + 16))
            break;
    }
    kit_check(memcmp(text, "HTTP/1.1 200", 12) == 0, text);
}

static void ask_small(struct way *w)
{
    static const char request[] = "GET /alive HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n"
                                  "User-Agent: bench\r\nX-Session-API-Key: abcdef\r\n\r\n";
    double start = kit_now_ms();

    send_all(w->fd, request, sizeof request - 1);
    read_answer(w->fd);
    kit_add(&w->small, kit_now_ms() - start);
}

static void get(struct way *w, const char *path, struct kit_series *into)
{
    char request[100];
    int fd = connect_way(w);
    uint64_t got = 0;
    int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path);

    send_all(fd, request, (size_t)n);
    double start = kit_now_ms();
    while (got < bytes) { /* head and chunk heads are nothing beside it */
        ssize_t r = recv(fd, block, sizeof block, 0);
        kit_check(r > 0, w->name);
        got += (uint64_t)r;
    }
    kit_add(into, kit_now_ms() - start);
    close(fd);
}

static void put(struct way *w)
{
    char request[120];
    int fd = connect_way(w);
    int n = snprintf(request, sizeof request,
                     "POST /take HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %llu\r\n\r\n",
                     (unsigned long long)bytes);

    send_all(fd, request, (size_t)n);
    double start = kit_now_ms();
    for (uint64_t sent = 0; sent < bytes; sent += PIECE)
        send_all(fd, block, PIECE);
    read_answer(fd);
    kit_add(&w->up, kit_now_ms() - start);
    close(fd);
}

static double mb_per_s(const char *what, struct way *w, struct kit_series *s)
{
    char name[64];

    snprintf(name, sizeof name, "%s, %s", what, w->name);
    return (double)bytes / 1048.576 / kit_print(name, s);
}

static unsigned fds_of(pid_t pid)
{
    char command[100];
    unsigned n = 0;

    snprintf(command, sizeof command, "ls /proc/%d/fd | wc -l", pid);
    FILE *f = popen(command, "r");
    kit_check(f && fscanf(f, "%u", &n) == 1, "fds");
    pclose(f);
    return n;
}

enum { STRAIGHT, COPIED, SPLICED, PROXY, CROWD, NGINX, WAYS };

/* Of the process between client and server, its children included where they have ended. */
static double cpu_ms(const struct way *w)
{
    char path[64];
    unsigned long long ns = 0;

    if (w->relay_cpu_ms)
        return *(volatile double *)w->relay_cpu_ms;
    if (!w->pid)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", w->worker ? w->worker : w->pid);
    FILE *f = fopen(path, "r");
    kit_check(f && fscanf(f, "%llu", &ns) == 1, path);
    fclose(f);
    return (double)ns / 1e6;
}

/* A relay's child has the last word after the client has gone. */
static void add_cpu(struct way *w, double before, double *sum)
{
    if (w->relay_cpu_ms)
        usleep(20000);
    *sum += cpu_ms(w) - before;
}

static void measure(struct way *ways, int count)
{
    for (int i = 0; i < count; i++)
        ways[i].fd = connect_way(&ways[i]);
    for (int n = 0; n < REQUESTS; n++)
        for (int i = 0; i < count; i++)
            ask_small(&ways[i]);
    for (int n = 0; n < ROUNDS; n++)
        for (int i = 0; i < count; i++) {
            struct way *w = &ways[i];
            double before = cpu_ms(w);
            get(w, "/give", &w->down);
            add_cpu(w, before, &w->cpu_down);
            get(w, "/stream", &w->chunked);
            before = cpu_ms(w);
            put(w);
            add_cpu(w, before, &w->cpu_up);
        }
}

static double best(double a, double b)
{
    return a > b ? a : b;
}

static void report(struct way *ways, int count)
{
    double small[WAYS] = {0}, down[WAYS] = {0}, up[WAYS] = {0}, chunked[WAYS] = {0};

    for (int i = 0; i < count; i++) {
        small[i] = kit_print(ways[i].name, &ways[i].small);
        down[i] = mb_per_s("down", &ways[i], &ways[i].down);
        chunked[i] = mb_per_s("down, chunked", &ways[i], &ways[i].chunked);
        up[i] = mb_per_s("up", &ways[i], &ways[i].up);
    }
    double gb = (double)bytes * ROUNDS / 1e9;
    printf("\n%-27s %9s %9s %9s %9s %11s %11s\n", "", "small ms", "down MB/s", "chunked", "up MB/s",
           "CPU ms/GB", "up");
    for (int i = 0; i < count; i++)
        printf("%-27s %9.3f %9.0f %9.0f %9.0f %11.0f %11.0f\n", ways[i].name, small[i], down[i],
               chunked[i], up[i], ways[i].cpu_down / gb, ways[i].cpu_up / gb);
    kit_at_most("added to a small request", small[PROXY] - small[STRAIGHT], 0.1, "ms");
    kit_at_least("bytes down / the better relay", down[PROXY] / best(down[COPIED], down[SPLICED]),
                 0.8, "x");
    kit_at_least("bytes up / the better relay", up[PROXY] / best(up[COPIED], up[SPLICED]), 0.8,
                 "x");
    kit_at_most("small request, 5,000 sandboxes / 1", small[CROWD] / small[PROXY], 1.2, "x");
}

int main(int argc, char **argv)
{
    struct way ways[WAYS] = {
        {.name = "straight"},    {.name = "relay, read and write"},      {.name = "relay, splice"},
        {.name = "croft proxy"}, {.name = "croft proxy, 5,000 targets"}, {.name = "nginx"}};
    struct rlimit files;
    int count = WAYS;

    bytes = (uint64_t)(argc > 1 ? atol(argv[1]) : MB_DEFAULT) << 20;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    kit_check(mkdtemp(dir) != NULL, dir);
    chmod(dir, 0755);
    pid_t server = start_server();
    start_relay(&ways[COPIED], false);
    start_relay(&ways[SPLICED], true);
    start_proxy(&ways[PROXY], 1);
    start_proxy(&ways[CROWD], MANY);
    unsigned fds = fds_of(ways[CROWD].pid) - fds_of(ways[PROXY].pid);
    long kb = kit_status_kb(ways[CROWD].pid, "VmRSS") - kit_status_kb(ways[PROXY].pid, "VmRSS");
    if (!start_nginx(&ways[NGINX])) {
        printf("nginx is not there\n");
        count--;
    }
    measure(ways, count);
    report(ways, count);
    kit_at_most("descriptors per idle sandbox", (double)fds / (MANY - 1), 1, "");
    kit_at_most("memory per idle sandbox", (double)kb / (MANY - 1), 2, "KB");
    printf("bench/proxy: %.1f KB peak of the proxy after all transfers\n",
           (double)kit_status_kb(ways[PROXY].pid, "VmHWM"));
    if (ways[NGINX].pid) { /* killed, it would leave its worker behind */
        kill(ways[NGINX].pid, SIGTERM);
        waitpid(ways[NGINX].pid, NULL, 0);
    }
    for (int i = 0; i < NGINX; i++)
        if (ways[i].pid)
            kit_end(ways[i].pid);
    kit_end(server);
    char command[120];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    kit_shell(command);
    return 0;
}
