// SPDX-License-Identifier: Apache-2.0
/* wire.c — see wire.h. */
#include "test/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/program.h"
#include "test/test.h"

#define ARGS_MAX   32
#define DEADLINE_S 110 /* hang guard only, and before the runner's */

void wire_at(struct wire *w, const char *url)
{
    const char *colon = strrchr(url, ':');

    *w = (struct wire){.pid = w->pid};
    snprintf(w->url, sizeof w->url, "%s", url);
    if (strncmp(w->url, "unix:", 5) == 0)
        snprintf(w->path, sizeof w->path, "%s", w->url + 5);
    else if (colon)
        w->port = (uint16_t)atoi(colon + 1);
}

void wire_start_log(struct wire *w, const char *program, const char *const *args, int log)
{
    const char *argv[ARGS_MAX] = {test_program(program)};
    char url[sizeof w->url];
    int out[2];
    size_t n = 0;

    for (size_t i = 0; args[i]; i++) {
        CHECK(i + 2 < ARGS_MAX);
        argv[i + 1] = args[i];
    }
    CHECK(pipe2(out, O_CLOEXEC) == 0);
    w->pid = program_start(
        &(struct program){.argv = argv, .fds = (int[]){-1, out[1], log}, .fd_count = 3});
    close(out[1]);
    while (n + 1 < sizeof url && read(out[0], url + n, 1) == 1 && url[n] != '\n')
        n++;
    if (n == 0)
        FAIL("%s ended before it listened", program);
    url[n] = '\0';
    close(out[0]);
    wire_at(w, url);
}

void wire_start(struct wire *w, const char *program, const char *const *args)
{
    wire_start_log(w, program, args, -1);
}

int wire_stop(struct wire *w)
{
    return program_stop(w->pid);
}

int wire_connect(const struct wire *w)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(w->port)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct timeval deadline = {.tv_sec = test_slow() * DEADLINE_S};
    bool local = w->path[0] != '\0';
    int fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (local)
        memcpy(un.sun_path, w->path,
               sizeof un.sun_path < sizeof w->path ? sizeof un.sun_path - 1 : sizeof w->path);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    int r = local ? connect(fd, (struct sockaddr *)&un, sizeof un)
                  : connect(fd, (struct sockaddr *)&in, sizeof in);
    if (r < 0)
        FAIL("connect %s: %m", w->url);
    return fd;
}

void wire_send(int fd, struct str bytes)
{
    while (bytes.len) {
        ssize_t n = send(fd, bytes.p, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return; /* refused early; what it answered can still be read */
        CHECK(n > 0 || errno == EINTR);
        bytes = str_from(bytes, n > 0 ? (size_t)n : 0);
    }
}

/* False at the end of the stream. */
static bool read_more(int fd, struct buf *into)
{
    size_t room = into->limit_bytes - into->len, most = room < 65536 ? room : 65536;
    char *to = most ? buf_reserve(into, most) : NULL; /* also of an answer in pieces */

    CHECK(to != NULL);
    ssize_t n;
    do /* a process that was stopped and goes on gets EINTR, for there is a time limit */
        n = recv(fd, to, most, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == ECONNRESET)
        return false;
    if (n < 0)
        FAIL("no answer: %m (%zu bytes came)", into->len);
    buf_commit(into, (size_t)n);
    return n > 0;
}

void wire_read_to_end(int fd, struct buf *into)
{
    while (read_more(fd, into))
        ;
}

void wire_read_answer(int fd, struct buf *into)
{
    for (;;) {
        ptrdiff_t end = str_find(buf_str(into), STR("\r\n\r\n"));
        ptrdiff_t at = str_find(buf_str(into), STR("content-length: "));
        if (end >= 0) {
            CHECK(at >= 0 && at < end);
            size_t length = strtoul(into->p + at + 16, NULL, 10);
            if (into->len >= (size_t)end + 4 + length)
                return;
        }
        CHECK(read_more(fd, into));
    }
}

void wire_exchange(const struct wire *w, struct str bytes, struct buf *into)
{
    int fd = wire_connect(w);

    wire_send(fd, bytes);
    wire_read_to_end(fd, into);
    close(fd);
}
