// SPDX-License-Identifier: Apache-2.0
/* notify.c — see notify.h. */
#include "host/ops/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cfg.h"
#include "base/fd.h"
#include "base/own.h"

#define FIRST_FD 3 /* by convention */

static fallible notify_number(const char *const *envp, const char *name, long max, long *ret_value)
{
    const char *text = cfg_env_get(envp, name);
    char *end;

    *ret_value = 0;
    if (!text || !*text)
        return NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || value < 0 || value > max)
        return err_new(ERR_INVALID, "%s '%.40s': a number up to %ld is expected", name, text, max);
    *ret_value = value;
    return NULL;
}

fallible notify_listen_fds(const char *const *envp, int fds[NOTIFY_FDS_MAX], size_t *ret_count)
{
    long pid, count;
    int listens = 0;
    socklen_t size = sizeof listens;

    *ret_count = 0;
    TRY(notify_number(envp, "LISTEN_PID", 1L << 30, &pid));
    if (pid != getpid()) /* of a parent: not for us */
        return NULL;
    TRY(notify_number(envp, "LISTEN_FDS", NOTIFY_FDS_MAX, &count));
    for (int i = 0; i < (int)count; i++) {
        int fd = FIRST_FD + i;
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return err_sys("descriptor %d of LISTEN_FDS", fd);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 || !listens)
            return err_new(ERR_INVALID,
                           "descriptor %d of LISTEN_FDS does not listen; "
                           "ListenStream= and Accept=no are expected",
                           fd);
        TRY(fd_set_nonblocking(fd));
        fds[i] = fd;
    }
    *ret_count = (size_t)count;
    return NULL;
}

fallible notify_send(const char *const *envp, const char *lines)
{
    const char *path = cfg_env_get(envp, "NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    if (!path || !*path)
        return NULL;
    size_t n = strlen(path);
    if ((*path != '/' && *path != '@') || n >= sizeof to.sun_path)
        return err_new(ERR_INVALID, "NOTIFY_SOCKET '%.120s': a path or @name is expected", path);
    memcpy(to.sun_path, path, n);
    if (*path == '@')
        to.sun_path[0] = '\0';
    own_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_sys("make a socket");
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (const struct sockaddr *)&to, size) < 0)
        return err_sys("tell the service manager at '%s'", path);
    return NULL;
}

unsigned notify_watchdog_ms(const char *const *envp)
{
    long usec = 0;

    err_free(notify_number(envp, "WATCHDOG_USEC", 1L << 40, &usec)); /* nonsense: none is set */
    return (unsigned)(usec / 2000);
}
