// SPDX-License-Identifier: Apache-2.0
/* listen.c — see listen.h. No resolver is asked: a name other than "localhost" is refused, so a
 * foreign DNS never decides where a server listens. */
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

#define BACKLOG          4096
#define LOCAL_PORT_RANGE 51 /* IP_LOCAL_PORT_RANGE, which older headers lack */

bool addr_numeric(struct str host, uint16_t port, struct sockaddr_storage *ret, socklen_t *ret_len)
{
    char text[64];

    if (str_eq_nocase(host, STR("localhost")))
        host = STR("127.0.0.1");
    if (host.len >= sizeof text)
        return false;
    memcpy(text, host.p, host.len);
    text[host.len] = '\0';
    *ret = (struct sockaddr_storage){0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        *ret_len = sizeof *v4;
        return true;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
        return false;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    *ret_len = sizeof *v6;
    return true;
}

fallible addr_unix(struct str path, struct sockaddr_storage *ret, socklen_t *ret_len)
{
    struct sockaddr_un *un = (struct sockaddr_un *)ret;

    if (path.len == 0 || path.len >= sizeof un->sun_path || memchr(path.p, '\0', path.len))
        return err_new(ERR_INVALID, "socket path '" STR_FMT "' must have 1 to %zu bytes",
                       STR_ARG(str_first(path, 80)), sizeof un->sun_path - 1);
    *ret = (struct sockaddr_storage){0};
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path.p, path.len);
    *ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len + 1);
    return NULL;
}

/* "host:port" or "[v6]:port". */
static fallible parse_tcp(struct str address, struct sockaddr_storage *ret, socklen_t *ret_len)
{
    struct str host = address, port = {NULL, 0};
    uint64_t number = 0;

    for (size_t i = address.len; i-- > 0;)
        if (address.p[i] == ':') {
            host = str_first(address, i);
            port = str_from(address, i + 1);
            break;
        }
    if (!port.p || !str_to_u64(port, &number) || number > 65535)
        return err_new(ERR_INVALID,
                       "listen address '" STR_FMT
                       "' needs a port from 0 to 65535, as in 127.0.0.1:3000",
                       STR_ARG(str_first(address, 80)));
    if (str_starts(host, STR("[")) && str_ends(host, STR("]")))
        host = str_n(host.p + 1, host.len - 2);
    if (!host.len || !addr_numeric(host, (uint16_t)number, ret, ret_len))
        return err_new(ERR_INVALID,
                       "listen address '" STR_FMT
                       "' needs a numeric host or localhost, as in 127.0.0.1:3000",
                       STR_ARG(str_first(address, 80)));
    return NULL;
}

/* A socket file on which no server answers is left over from a crash and may be replaced. */
static fallible remove_stale(const struct sockaddr_storage *addr, socklen_t len)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)addr;
    struct stat st;

    if (lstat(un->sun_path, &st) < 0)
        return NULL;
    if (!S_ISSOCK(st.st_mode))
        return err_new(ERR_CONFLICT, "'%s' exists and is not a socket", un->sun_path);
    own_fd probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return err_sys("socket");
    if (connect(probe, (const struct sockaddr *)addr, len) == 0 || errno == EAGAIN)
        return err_new(ERR_CONFLICT, "another server answers on '%s'", un->sun_path);
    if (errno == ECONNREFUSED)
        unlink(un->sun_path);
    return NULL;
}

static fallible open_socket(const struct sockaddr_storage *addr, socklen_t len, struct str address,
                            int *ret_fd)
{
    int one = 1;
    own_fd fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_sys("socket");
    if (addr->ss_family == AF_UNIX)
        TRY(remove_stale(addr, len));
    else
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (addr->ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    bool bound = bind(fd, (const struct sockaddr *)addr, len) == 0;
    if (!bound || listen(fd, BACKLOG) < 0) {
        struct err *e = err_sys("listen on " STR_FMT, STR_ARG(str_first(address, 108)));
        if (bound && addr->ss_family == AF_UNIX)
            unlink(((const struct sockaddr_un *)addr)->sun_path);
        return e;
    }
    *ret_fd = take_fd(&fd);
    return NULL;
}

static fallible check_inherited(int fd)
{
    int listening = 0;
    socklen_t len = sizeof listening;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) < 0)
        return err_sys("descriptor %d", fd);
    if (!listening)
        return err_new(ERR_INVALID, "descriptor %d is not a listening socket", fd);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return err_sys("descriptor %d", fd);
    return fd_set_nonblocking(fd);
}

fallible listen_open(struct str address, int *ret_fd)
{
    struct sockaddr_storage addr;
    socklen_t len;
    uint64_t fd;

    if (str_starts(address, STR("fd:"))) {
        if (!str_to_u64(str_from(address, 3), &fd) || fd > 1 << 20)
            return err_new(ERR_INVALID, "'" STR_FMT "' is not fd:NUMBER",
                           STR_ARG(str_first(address, 80)));
        TRY(check_inherited((int)fd));
        *ret_fd = (int)fd;
        return NULL;
    }
    if (str_starts(address, STR("unix:")))
        TRY(addr_unix(str_from(address, 5), &addr, &len));
    else
        TRY(parse_tcp(address, &addr, &len));
    return open_socket(&addr, len, address, ret_fd);
}

fallible listen_name(int fd, bool tls, char *out, size_t size)
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;
    char host[INET6_ADDRSTRLEN];

    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return err_sys("getsockname");
    const char *scheme = tls ? "https" : "http";
    if (addr.ss_family == AF_UNIX) {
        snprintf(out, size, "unix:%s", ((struct sockaddr_un *)&addr)->sun_path);
    } else if (addr.ss_family == AF_INET6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&addr;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(out, size, "%s://[%s]:%u", scheme, host, ntohs(v6->sin6_port));
    } else {
        struct sockaddr_in *v4 = (struct sockaddr_in *)&addr;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(out, size, "%s://%s:%u", scheme, host, ntohs(v4->sin_port));
    }
    return NULL;
}

bool listen_is_loopback(int fd)
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;

    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return false;
    if (addr.ss_family == AF_INET)
        return ntohl(((struct sockaddr_in *)&addr)->sin_addr.s_addr) >> 24 == 127;
    if (addr.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&addr)->sin6_addr);
    return addr.ss_family == AF_UNIX;
}

/* On a listening unix socket the kernel's "peer" is the process that called listen. */
static bool made_here(int fd)
{
    struct ucred maker;
    socklen_t len = sizeof maker;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &len) == 0 && maker.pid == getpid();
}

void listen_close(int fd)
{
    struct sockaddr_storage addr = {0};
    struct sockaddr_un *un = (struct sockaddr_un *)&addr;
    socklen_t len = sizeof addr;

    if (fd < 0)
        return;
    if (getsockname(fd, (struct sockaddr *)&addr, &len) == 0 && addr.ss_family == AF_UNIX &&
        un->sun_path[0] && made_here(fd))
        unlink(un->sun_path);
    own_close(fd);
}

/* Keeps the kernel from giving our own end the port that we connect to. If no server listens there
 * yet, we would be connected to ourselves, and that server could not listen.
 *
 * Kernels before 6.3 cannot, and ignore it: see is_itself(). */
static void avoid_itself(int fd, const struct sockaddr_storage *addr)
{
    unsigned port = ntohs(((const struct sockaddr_in *)addr)->sin_port); /* in6 has it there too */
    uint32_t range = port < 46000 ? 46000 | 60999u << 16 : 32768 | 45999u << 16;

    if (port >= 32768)
        setsockopt(fd, IPPROTO_IP, LOCAL_PORT_RANGE, &range, sizeof range);
}

/* Checks after the fact, for other ranges and older kernels. The port is free again once closed. */
static bool is_itself(int fd, const struct sockaddr_storage *addr, socklen_t len)
{
    static const struct linger none = {.l_onoff = 1};
    struct sockaddr_storage own;
    socklen_t own_len = sizeof own;

    if (getsockname(fd, (struct sockaddr *)&own, &own_len) < 0 || own_len != len ||
        memcmp(&own, addr, len) != 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    errno = ECONNREFUSED;
    return true;
}

fallible connect_start(const struct sockaddr_storage *addr, socklen_t len, int *ret_fd)
{
    int one = 1;
    own_fd fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_sys("socket");
    if (addr->ss_family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        avoid_itself(fd, addr);
    }
    if ((connect(fd, (const struct sockaddr *)addr, len) < 0 && errno != EINPROGRESS) ||
        is_itself(fd, addr, len))
        return err_sys("connect");
    *ret_fd = take_fd(&fd);
    return NULL;
}
