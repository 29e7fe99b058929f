// SPDX-License-Identifier: Apache-2.0
/* serve_net.c — the network namespaces of those that are ended go several at a time.
 *
 * To take one down the kernel looks through all connections of the machine, once for as many as go
 * together. So we hold them open past the end of their processes, for a moment. */
#include <fcntl.h>
#include <stdio.h>

#include "base/own.h"
#include "host/launcher/serve.h"

#define LINGER_MS 200

void serve_net_let_go(struct serve *s)
{
    struct serve_net *n = &s->net;

    loop_timer_stop(&n->linger);
    while (n->count)
        own_close_p(&n->fds[--n->count]);
}

static void on_linger(struct loop_timer *t)
{
    serve_net_let_go(container_of(t, struct serve, net.linger));
}

void serve_net_hold(struct serve *s, const struct serve_box *b)
{
    struct serve_net *n = &s->net;
    char path[40];

    if (b->adopted)
        return; /* no child of ours: the number may be another's */
    if (n->count == ARRAY_LEN(n->fds))
        serve_net_let_go(s);
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)b->box.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* then it goes by itself */
    n->fds[n->count++] = fd;
    if (n->count == 1)
        loop_timer_start(s->loop, &n->linger, LINGER_MS, on_linger);
}
