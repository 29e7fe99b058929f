// SPDX-License-Identifier: Apache-2.0
/* bytes.c — a large file of a sandbox, by the server's proxy and by a relay that only reads and
 * writes. Both stand in front of the same socket, and take turns. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/bench/bars_inner.h"

#define FILE_BYTES (256ull << 20)
#define PIECE      (256u << 10)
#define ROUNDS     9

struct relay {
    pid_t pid; /* 0: none */
    uint16_t port;
};

/* --- the relay: a connection at a time --- */

static bool pass_some(int from, int to, char *page)
{
    ssize_t n = read(from, page, PIECE);

    return n > 0 && !fd_write_all(to, str_n(page, (size_t)n));
}

static void relay_one(int client, const char *path, char *page)
{
    struct talk inside;
    struct err *e = talk_unix(&inside, path);

    err_free(e); /* the client sees that nothing comes */
    while (!e) {
        struct pollfd p[2] = {{.fd = client, .events = POLLIN},
                              {.fd = inside.fd, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 || (p[0].revents && !pass_some(client, inside.fd, page)) ||
            (p[1].revents && !pass_some(inside.fd, client, page)))
            break;
    }
    talk_close(&inside);
}

static _Noreturn void relay_all(int listener, const char *path)
{
    char *page = malloc(PIECE);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    while (page) {
        own_fd client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            break;
        relay_one(client, path, page);
    }
    _exit(1);
}

static fallible relay_open(struct relay *r, const char *path)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    own_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof in) < 0 || listen(fd, 4) < 0 ||
        getsockname(fd, (struct sockaddr *)&in, &len) < 0)
        return err_sys("listen for the relay");
    r->port = ntohs(in.sin_port);
    r->pid = fork();
    if (r->pid == 0)
        relay_all(fd, path);
    if (r->pid < 0)
        return err_sys("fork the relay");
    return NULL;
}

static void relay_close(struct relay *r)
{
    if (r->pid <= 0)
        return;
    kill(r->pid, SIGKILL);
    while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* --- the client --- */

/* The answer ends with its connection. */
static fallible take_file(uint16_t port, const char *key)
{
    static const char ask[] =
        "GET /download_files?path=/workspace/large HTTP/1.1\r\n"
        "Host: 127.0.0.1\r\nConnection: close\r\nX-Session-API-Key: %s\r\n\r\n";
    own_free char *page = malloc(PIECE);
    struct talk t;
    char text[300];
    uint64_t got = 0;
    ssize_t n = -1;

    if (!page)
        return err_no_memory();
    TRY(talk_tcp(&t, port));
    snprintf(text, sizeof text, ask, key);
    struct err *e = fd_write_all(t.fd, str_of(text));
    while (!e && (n = recv(t.fd, page, PIECE, 0)) > 0)
        got += (uint64_t)n;
    if (!e && n < 0)
        e = err_sys("read the file");
    if (!e && got < FILE_BYTES)
        e = err_new(ERR_UPSTREAM, "%llu bytes of the file came", (unsigned long long)got);
    talk_close(&t);
    return e;
}

static fallible bytes_measure(const struct life *l, const struct relay *relay,
                              const struct bars_plan *plan, struct bars *b,
                              struct bench_row *rows[2])
{
    const uint16_t ports[2] = {l->port, relay->port};
    double first = lives_now_ms();

    bars_say(plan, "a large file, through the proxy and a relay, in turns");
    for (unsigned i = 0; i % 2 || bars_go_on(first, i, 6, 2 * ROUNDS); i++) {
        double begin = lives_now_ms();
        struct err *e = take_file(ports[i % 2], l->key);
        if (e && !b->failure[0])
            snprintf(b->failure, sizeof b->failure, "%s: %s", rows[i % 2]->what, err_text(e));
        bench_count(rows[i % 2], lives_now_ms() - begin, e);
    }
    return NULL;
}

fallible bars_bytes(const struct life *l, struct talk *inside, const char *path,
                    const struct bars_plan *plan, struct bars *b, struct bench_row *ret_rows[2])
{
    struct relay relay = {.pid = 0};

    ret_rows[0] = bars_add_row(b, "256 MB of it through the proxy", ROUNDS);
    ret_rows[1] = bars_add_row(b, "  through a bare relay", ROUNDS);
    TRY(talk_ask(inside, "POST", "/execute_action", l->key,
                 LIVES_ACTION("truncate -s 256M /workspace/large")));
    struct err *e = relay_open(&relay, path);
    if (!e)
        e = bytes_measure(l, &relay, plan, b, ret_rows);
    relay_close(&relay);
    return e;
}
