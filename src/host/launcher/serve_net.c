// SPDX-License-Identifier: Apache-2.0
/* serve_net.c — what stays for a moment: network namespaces that go wait for others, see
 * box_net_let_go(), and copies of layers for the next sandbox, see box_kept.c. */
#include "base/clock.h"
#include "host/launcher/serve.h"

#define LINGER_MS 200
#define KEPT_MS   1000
#define NEXT_MS   1 /* one at a time: each takes a while, and others wait for us */

static void on_linger(struct loop_timer *t)
{
    struct serve *s = container_of(t, struct serve, linger);

    s->lingers = false;
    box_net_let_go(&s->host);
}

void serve_net_linger(struct serve *s)
{
    if (!s->host.net_count || s->lingers)
        return;
    s->lingers = true;
    loop_timer_start(s->loop, &s->linger, LINGER_MS, on_linger);
}

static void on_kept(struct loop_timer *t)
{
    struct serve *s = container_of(t, struct serve, kept);
    uint64_t now = clock_mono_ns(&clock_system), while_ns = KEPT_MS * NS_PER_MS;
    bool more = false;
    bool dropped = box_kept_tidy(&s->host, now > while_ns ? now - while_ns : 0, &more);

    if (more)
        loop_timer_start(s->loop, t, dropped ? NEXT_MS : KEPT_MS, on_kept);
}

void serve_kept_linger(struct serve *s)
{
    if (s->host.kept && !s->kept.loop)
        loop_timer_start(s->loop, &s->kept, KEPT_MS, on_kept);
}

void serve_net_hold(struct serve_box *b)
{
    if (!b->adopted) /* no child of ours: the number may be another's */
        box_net_hold(&b->serve->host, &b->box);
}
