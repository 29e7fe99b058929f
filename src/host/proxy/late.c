// SPDX-License-Identifier: Apache-2.0
/* late.c — listeners of sandboxes that are gone: for a while they say so. Clients take 404 for what
 * it is, and a port that refuses them for a network that fails, which they try again. Whoever needs
 * the port has it at once. */
#include "host/proxy/inner.h"

static struct late_port *late_at(struct proxy *p, unsigned i)
{
    return &p->late[(p->late_first + i) % LATE_PORTS];
}

static void drop_first(struct proxy *p)
{
    http_server_unlisten(take(&late_at(p, 0)->listener));
    p->late_first = (p->late_first + 1) % LATE_PORTS;
    p->late_count--;
}

static void on_late(struct loop_timer *t)
{
    struct proxy *p = container_of(t, struct proxy, late_timer);
    uint64_t now = loop_now_ns(p->loop);

    while (p->late_count && late_at(p, 0)->until_ns <= now)
        drop_first(p);
    if (p->late_count)
        loop_timer_start(p->loop, t, (late_at(p, 0)->until_ns - now) / NS_PER_MS + 1, on_late);
}

void late_add(struct proxy *p, struct http_listener *l, uint16_t port)
{
    if (p->late_count == LATE_PORTS)
        drop_first(p);
    uint64_t until = loop_now_ns(p->loop) + p->config.late_ms * NS_PER_MS;
    *late_at(p, p->late_count++) = (struct late_port){l, until, port};
    if (!p->late_timer.loop)
        loop_timer_start(p->loop, &p->late_timer, p->config.late_ms, on_late);
}

void late_drop(struct proxy *p, uint16_t port)
{
    for (unsigned i = 0; i < p->late_count; i++)
        if (late_at(p, i)->port == port)
            http_server_unlisten(
                take(&late_at(p, i)->listener)); /* its place goes when its time has */
}

void late_drop_all(struct proxy *p)
{
    while (p->late_count)
        drop_first(p);
    loop_timer_stop(&p->late_timer);
}
