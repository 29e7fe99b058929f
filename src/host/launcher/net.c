// SPDX-License-Identifier: Apache-2.0
/* net.c — what stays for a moment: network namespaces that go wait for others, see
 * box_net_let_go(), and copies of layers for the next sandbox, see layer_cache.c. */
#include "base/clock.h"
#include "host/launcher/inner.h"

#define LINGER_MS 200
#define CACHE_MS  1000
#define NEXT_MS   1 /* one at a time: each takes a while, and others wait for us */

static void on_linger(struct loop_timer *t)
{
    struct launcher *l = container_of(t, struct launcher, linger);

    l->lingers = false;
    box_net_let_go(&l->host);
}

void launcher_net_linger(struct launcher *l)
{
    if (!l->host.net_count || l->lingers)
        return;
    l->lingers = true;
    loop_timer_start(l->loop, &l->linger, LINGER_MS, on_linger);
}

static void on_cache_age(struct loop_timer *t)
{
    struct launcher *l = container_of(t, struct launcher, cache_age);
    uint64_t now = clock_mono_ns(&clock_system), while_ns = CACHE_MS * NS_PER_MS;
    bool more = false;
    bool dropped = layer_cache_tidy(&l->host, now > while_ns ? now - while_ns : 0, &more);

    if (more)
        loop_timer_start(l->loop, t, dropped ? NEXT_MS : CACHE_MS, on_cache_age);
}

void launcher_layers_linger(struct launcher *l)
{
    if (l->host.layer_cache && !l->cache_age.loop)
        loop_timer_start(l->loop, &l->cache_age, CACHE_MS, on_cache_age);
}

void launcher_net_hold(struct launcher_box *b)
{
    if (!b->adopted) /* no child of ours: the number may be another's */
        box_net_hold(&b->launcher->host, &b->box);
}
