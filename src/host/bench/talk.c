// SPDX-License-Identifier: Apache-2.0
/* talk.c — see talk.h. Answers have a Content-Length, as JSON of ours always has. */
#include "host/bench/talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

#define ANSWER_MAX  (1u << 20)
#define REQUEST_MAX 4096
#define PIECE       16384

static fallible talk_join(struct talk *t, int family, const void *address, socklen_t len)
{
    own_fd fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    *t = (struct talk){.fd = -1};
    buf_init(&t->in, ANSWER_MAX);
    if (fd < 0 || connect(fd, address, len) < 0)
        return err_sys("connect to a server");
    if (family == AF_INET && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0)
        return err_sys("set TCP_NODELAY");
    t->fd = take_fd(&fd);
    return NULL;
}

fallible talk_tcp(struct talk *t, uint16_t port)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return talk_join(t, AF_INET, &in, sizeof in);
}

fallible talk_unix(struct talk *t, const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof un.sun_path)
        return err_new(ERR_INVALID, "socket '%.200s': longer than %zu letters", path,
                       sizeof un.sun_path - 1);
    memcpy(un.sun_path, path, strlen(path));
    return talk_join(t, AF_UNIX, &un, sizeof un);
}

void talk_close(struct talk *t)
{
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
    buf_done(&t->in);
}

fallible talk_send(struct talk *t, const char *method, const char *target, const char *key,
                   const char *body)
{
    char text[REQUEST_MAX];
    int n = snprintf(text, sizeof text,
                     "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s%sContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     method, target, key ? "X-Session-API-Key: " : "", key ? key : "",
                     key ? "\r\n" : "", body ? strlen(body) : 0, body ? body : "");

    if (n >= (int)sizeof text)
        return err_new(ERR_TOO_LARGE, "%s %.200s: a request of %d bytes", method, target, n);
    buf_reset(&t->in);
    if (send(t->fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        return err_sys("%s %.200s", method, target);
    return NULL;
}

/* The length of the body that the head promises; false: it promises none. */
static bool body_length(struct str head, uint64_t *ret_bytes)
{
    struct str line, name;

    while (head.len) {
        str_cut(&head, '\n', &line);
        if (str_cut(&line, ':', &name) && str_eq_nocase(name, STR("content-length")))
            return str_to_u64(str_trim(line), ret_bytes);
    }
    return false;
}

fallible talk_read(struct talk *t, bool *ret_whole)
{
    char *at = buf_reserve(&t->in, PIECE);
    ssize_t n = at ? recv(t->fd, at, PIECE, MSG_DONTWAIT) : -1;
    uint64_t length, status = 0;

    *ret_whole = false;
    if (!at)
        return buf_check(&t->in);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return NULL;
    if (n < 0)
        return err_sys("read an answer");
    if (n == 0)
        return err_new(ERR_CLOSED, "the server closed the connection");
    buf_commit(&t->in, (size_t)n);
    struct str all = buf_str(&t->in);
    ptrdiff_t end = str_find(all, STR("\r\n\r\n"));
    if (end < 0)
        return NULL;
    if (!body_length(str_first(all, (size_t)end), &length))
        return err_new(ERR_UPSTREAM, "an answer without Content-Length");
    t->body = str_from(all, (size_t)end + 4);
    if (t->body.len < length)
        return NULL;
    *ret_whole = true;
    if (!str_to_u64(str_first(str_from(all, sizeof "HTTP/1.1"), 3), &status) || status >= 300)
        return err_new(ERR_UPSTREAM, "the server answered %d: %.*s", (int)status,
                       (int)(t->body.len < 200 ? t->body.len : 200), t->body.p);
    t->status = (int)status;
    return NULL;
}

fallible talk_ask(struct talk *t, const char *method, const char *target, const char *key,
                  const char *body)
{
    bool whole = false;

    TRY(talk_send(t, method, target, key, body));
    while (!whole) {
        TRY_WRAP(fd_wait(t->fd, POLLIN, TALK_WAIT_MS), "%s %.200s", method, target);
        TRY_WRAP(talk_read(t, &whole), "%s %.200s", method, target);
    }
    return NULL;
}
