// SPDX-License-Identifier: Apache-2.0
/* queue.c — the launcher queue: bounds what the launcher has to do at once.
 *
 * The launcher works on one request at a time and its socket holds a few dozen; with one more it
 * and the server would wait for each other. Claims, stops, pauses go before starts, starts before
 * the pool. */
#include "host/runtime/inner.h"

/* Another machine works on many at once, and each waits for it alone. */
unsigned queue_most(const struct manager *m)
{
    return m->config.driver->caps & SBX_IS_HERE ? LAUNCHER_MOST : LAUNCHER_FAR_MOST;
}

bool queue_enter(struct runtime *r, bool urgent)
{
    struct manager *m = r->manager;

    if (m->queue.called < queue_most(m) && list_empty(&m->queue.urgent) &&
        (urgent || list_empty(&m->queue.waiting))) {
        m->queue.called++;
        return true;
    }
    list_add(urgent ? &m->queue.urgent : &m->queue.waiting, &r->op.queued);
    return false;
}

bool queue_try(struct manager *m)
{
    /* Half of it stays free for people. */
    if (m->queue.called >= queue_most(m) / 2 || !list_empty(&m->queue.urgent) ||
        !list_empty(&m->queue.waiting) || m->line.count)
        return false;
    m->queue.called++;
    return true;
}

static void on_queue_next(struct loop_later *l)
{
    struct manager *m = container_of(l, struct manager, queue.next);

    while (m->queue.called < queue_most(m)) {
        struct list *first = !list_empty(&m->queue.urgent) ? &m->queue.urgent : &m->queue.waiting;
        if (list_empty(first))
            break;
        struct runtime *r = LIST_FIRST(first, struct runtime, op.queued);
        list_del(&r->op.queued);
        m->queue.called++;
        operation_call(r);
    }
    pool_end_next(m);
    pool_trim(m);
    pool_refill(m);
    manager_check_end(m);
}

void queue_leave(struct manager *m)
{
    m->queue.called--;
    loop_later(m->config.loop, &m->queue.next, on_queue_next);
}
