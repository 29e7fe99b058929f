// SPDX-License-Identifier: Apache-2.0
/* bind.c — the host's connection: a byte is answered by a byte, and once a claim comes. Its end
 * ends a sandbox that still waits for its claim: none can come any more. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "guest/init/inner.h"

#define EXIT_UNBOUND 1

static fallible bind_command(struct init *in)
{
    struct init_config *c = in->config;

    c->exec = true;
    if (in->bound.user[0])
        TRY(init_parse_user(c, in->bound.user));
    if (in->bound.cwd[0])
        c->cwd = in->bound.cwd;
    return init_start_command(in);
}

/* fds: what we are bound to, and where a command's output goes. */
static fallible be_bound(struct init *in, int fds[2])
{
    struct init_config *c = in->config;

    TRY(wire_bind_read(fds[0], &in->bound));
    c->await = false;
    c->argv = (const char *const *)in->bound.argv;
    c->env = (const char *const *)in->bound.env;
    if (!in->bound.command)
        init_take_key(c, in->bound.env);
    if (fds[1] >= 0 && (dup2(fds[1], STDOUT_FILENO) < 0 || dup2(fds[1], STDERR_FILENO) < 0))
        return err_sys("dup2");
    return in->bound.command ? bind_command(in) : init_begin(in);
}

static void give_up(struct init *in, struct err *e)
{
    if (e)
        log_error("the claim failed", KV_ERR(e));
    err_free(e);
    in->exit_code = EXIT_UNBOUND;
    loop_stop(in->loop);
}

void init_on_control(struct loop_io *io)
{
    struct init *in = container_of(io, struct init, control_io);
    char bytes[64];
    int fds[2] = {-1, -1};
    size_t n = 0, count = 0;
    struct err *e = fd_recv(io->fd, bytes, sizeof bytes, &n, fds, 2, &count);

    if (e ? err_errno(e) != EAGAIN : n == 0) {
        loop_io_stop(io);
        if (in->config->await)
            give_up(in, NULL);
    }
    err_free(e);
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == 'p' && send(io->fd, "P", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
            break; /* a host that does not read needs no answer */
        if (bytes[i] != BIND_BYTE || !count || !in->config->await)
            continue;
        loop_io_stop(io); /* its end, which comes with the claim, is no news */
        if ((e = be_bound(in, fds)))
            give_up(in, e);
    }
    own_close(fds[0]);
    own_close(fds[1]);
}
