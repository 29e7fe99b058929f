// SPDX-License-Identifier: Apache-2.0
/* names.c — what sandboxes have in the directory of sockets: two sockets and a log each, the
 * server's alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/inner.h"
#include "host/launcher/names.h"

void launcher_socket_name(const char *id, enum launcher_name kind, char out[LAUNCHER_SOCKET_NAME])
{
    snprintf(out, LAUNCHER_SOCKET_NAME, "%s.%c", id, kind);
}

static void names_drop(const struct launcher *l, const char *id, enum launcher_name kind)
{
    char name[LAUNCHER_SOCKET_NAME];

    launcher_socket_name(id, kind, name);
    unlinkat(l->sockets, name, 0); /* not there: nothing to do */
}

void launcher_drop_sockets(const struct launcher *l, const char *id)
{
    names_drop(l, id, LAUNCHER_NAME_SERVER);
    names_drop(l, id, LAUNCHER_NAME_CONNECT);
}

void launcher_drop_log(const struct launcher *l, const char *id)
{
    names_drop(l, id, LAUNCHER_NAME_LOG);
}

/* Connecting takes the right to write to the socket: it is the server's alone. */
fallible launcher_address(const struct launcher *l, const char *id, enum launcher_name kind,
                          struct sockaddr_un *ret)
{
    char name[LAUNCHER_SOCKET_NAME];

    launcher_socket_name(id, kind, name);
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", l->sockets, name);
    return n < (int)sizeof ret->sun_path ? NULL
                                         : err_new(ERR_INTERNAL, "a socket's name is too long");
}

static bool is_servers_own(const struct launcher *l)
{
    return l->policy->server == 0 || l->host.user;
}

/* bind() in dir, then under its name in the directory of sockets: it is the server's before it can
 * be seen. */
static fallible listen_in(const struct launcher *l, int type, int dir, const char *at,
                          const char *name, int *ret_fd)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    own_fd fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", dir, at);
    mode_t before = umask(0177); /* to change it afterwards would write its inode once more */
    int made = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&a, sizeof a);
    umask(before);
    if (made < 0)
        return err_sys("make socket '%s'", name);
    if (!is_servers_own(l) &&
        fchownat(dir, at, l->policy->server, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("give socket '%s' to the server", name);
    if (listen(fd, 128) < 0)
        return err_sys("listen at '%s'", name);
    if (dir != l->sockets && renameat(dir, at, l->sockets, name) < 0)
        return err_sys("put socket '%s' in place", name);
    *ret_fd = take_fd(&fd);
    return NULL;
}

fallible launcher_listen(const struct launcher *l, int type, const char *name, int *ret_fd)
{
    return listen_in(l, type, l->sockets, name, name, ret_fd);
}

/* A sandbox's sockets are made in its own directory if that is in the same mount, and moved. These
 * directories lie apart, while in one directory every new inode would pass by all that were deleted
 * there lately (box_host_spread()). */
fallible launcher_listen_at(const struct launcher *l, int dir, const char *id,
                            enum launcher_name kind, int *ret_fd)
{
    char name[LAUNCHER_SOCKET_NAME];

    launcher_socket_name(id, kind, name);
    int where = l->sockets_near ? dir : l->sockets;
    const char *at = l->sockets_near ? "socket" : name;
    struct err *e = listen_in(l, SOCK_STREAM, where, at, name, ret_fd);
    if (!e || err_errno(e) != EADDRINUSE)
        return e;
    err_free(e);
    unlinkat(where, at, 0); /* of one that is gone, which could not be removed then */
    return listen_in(l, SOCK_STREAM, where, at, name, ret_fd);
}

fallible launcher_open_log(const struct launcher *l, int dir, bool again, const char *id,
                           int *ret_fd)
{
    bool near = l->sockets_near && !again;
    char name[LAUNCHER_SOCKET_NAME];

    launcher_socket_name(id, LAUNCHER_NAME_LOG, name);
    own_fd fd = openat(near ? dir : l->sockets, near ? "log" : name,
                       O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || (!is_servers_own(l) && fchown(fd, l->policy->server, (gid_t)-1) < 0) ||
        (near && renameat(dir, "log", l->sockets, name) < 0))
        return err_sys("make its log");
    *ret_fd = take_fd(&fd);
    return NULL;
}
