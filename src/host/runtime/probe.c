// SPDX-License-Identifier: Apache-2.0
/* probe.c — does a command that is run as given listen on its port?
 *
 * Nothing tells that of a foreign program, so it is connected to: a few times after its start, each
 * wait twice the one before, and from then on when the runtime is looked at. */
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/start.h"
#include "net/listen.h"

#define FIRST_MS 10u
#define TRIES    10 /* 10 s in all */

static void probe_begin(struct runtime *r);

static void on_again(struct loop_timer *t)
{
    probe_begin(container_of(t, struct runtime, probe.again));
}

static void is_silent(struct runtime *r)
{
    if (r->probe.tries < TRIES)
        loop_timer_start(r->manager->config.loop, &r->probe.again, FIRST_MS << r->probe.tries++,
                         on_again);
}

static void hang_up(struct runtime *r)
{
    if (!r->probe.io.loop)
        return;
    loop_io_stop(&r->probe.io);
    own_close(r->probe.io.fd);
}

/* Pid 1 says "HTTP/1.1 200" when it is connected. */
static void on_answer(struct loop_io *io)
{
    struct runtime *r = container_of(io, struct runtime, probe.io);
    char head[16] = "";
    ssize_t n = read(io->fd, head, sizeof head - 1);

    hang_up(r);
    if (n <= 0 || !str_starts(str_of(head), STR("HTTP/1.1 200"))) {
        is_silent(r);
        return;
    }
    r->probe.listens = true;
    if (r->status.now == RUNTIME_RUNNING &&
        r->start.begun_ns) /* else it was ready for another server */
        runtime_is_ready(r);
}

static fallible probe_ask(struct runtime *r, int fd)
{
    own_fd mine = fd;
    char line[80];
    unsigned port = r->published;

    snprintf(line, sizeof line, "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", port,
             port);
    TRY(fd_set_nonblocking(mine));
    TRY(fd_write_all(mine, str_of(line)));
    TRY(loop_io_start(r->manager->config.loop, &r->probe.io, mine, EPOLLIN, on_answer));
    take_fd(&mine);
    return NULL;
}

/* The socket of pid 1 on this machine: it is connected at once, or cannot be now. */
static fallible probe_dial(const struct runtime *r, int *ret_fd)
{
    struct sockaddr_storage addr;
    socklen_t len;

    TRY(addr_unix(str_of(r->target.address.unix_path), &addr, &len));
    return connect_start(&addr, len, ret_fd);
}

static void probe_begin(struct runtime *r)
{
    int fd;
    own(err) e = probe_dial(r, &fd);

    if (!e)
        e = probe_ask(r, fd);
    if (e)
        is_silent(r);
}

void probe_start(struct runtime *r)
{
    probe_stop(r);
    r->probe.listens = false;
    r->probe.tries = 0;
    probe_begin(r);
}

void probe_look(struct runtime *r)
{
    if (runtime_is_silent(r) && !r->probe.io.loop && !r->probe.again.loop)
        probe_begin(r);
}

void probe_stop(struct runtime *r)
{
    loop_timer_stop(&r->probe.again);
    hang_up(r);
}
