// SPDX-License-Identifier: Apache-2.0
/* closed_port.c — listeners of sandboxes that are gone: for a while they answer 404.
 *
 * A client takes 404 for what it is, and tries again at a port that refuses it. A new target that
 * needs the port has it at once. */
#include "host/proxy/inner.h"

static struct closed_port *closed_port_at(struct proxy *p, unsigned i)
{
    return &p->closed[(p->closed_first + i) % CLOSED_PORTS];
}

static void closed_port_drop_first(struct proxy *p)
{
    http_server_unlisten(take(&closed_port_at(p, 0)->listener));
    p->closed_first = (p->closed_first + 1) % CLOSED_PORTS;
    p->closed_count--;
}

static void on_closed_port_due(struct loop_timer *t)
{
    struct proxy *p = container_of(t, struct proxy, closed_timer);
    uint64_t now = loop_now_ns(p->loop);

    while (p->closed_count && closed_port_at(p, 0)->until_ns <= now)
        closed_port_drop_first(p);
    if (p->closed_count)
        loop_timer_start(p->loop, t, (closed_port_at(p, 0)->until_ns - now) / NS_PER_MS + 1,
                         on_closed_port_due);
}

void closed_port_add(struct proxy *p, struct http_listener *l, uint16_t port)
{
    if (p->closed_count == CLOSED_PORTS)
        closed_port_drop_first(p);
    uint64_t until = loop_now_ns(p->loop) + p->config.closed_ms * NS_PER_MS;
    *closed_port_at(p, p->closed_count++) = (struct closed_port){l, until, port};
    if (!p->closed_timer.loop)
        loop_timer_start(p->loop, &p->closed_timer, p->config.closed_ms, on_closed_port_due);
}

void closed_port_drop(struct proxy *p, uint16_t port)
{
    for (unsigned i = 0; i < p->closed_count; i++)
        if (closed_port_at(p, i)->port == port)
            http_server_unlisten(
                take(&closed_port_at(p, i)->listener)); /* its place goes when its time has */
}

void closed_ports_drop_all(struct proxy *p)
{
    while (p->closed_count)
        closed_port_drop_first(p);
    loop_timer_stop(&p->closed_timer);
}
