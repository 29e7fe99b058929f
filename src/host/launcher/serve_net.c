// SPDX-License-Identifier: Apache-2.0
/* serve_net.c — network namespaces that go wait for others, for a moment; see box_net_let_go(). */
#include "host/launcher/serve.h"

#define LINGER_MS 200

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

void serve_net_hold(struct serve_box *b)
{
    if (!b->adopted) /* no child of ours: the number may be another's */
        box_net_hold(&b->serve->host, &b->box);
}
