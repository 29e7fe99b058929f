// SPDX-License-Identifier: Apache-2.0
/* queue.c — the launcher queue: bounds what the launcher has to do at once.
 *
 * The launcher works on one request at a time and its socket holds a few dozen; with one more it
 * and the server would wait for each other. Claims, stops, pauses go before starts, starts before
 * the pool. */
#include "host/runtime/inner.h"
#include "wire/bind.h"

#define FEW           2                /* come at once: there are processors for their shells too */
#define PACE_NS       (10 * NS_PER_MS) /* and for one more so often */
#define MEMORY        10               /* of them that count later */
#define LATER_MS      250
#define LATER_EACH_MS 2

/* Another machine works on many at once, and each waits for it alone. */
unsigned queue_most(const struct manager *m)
{
    return m->config.driver->caps & SBX_IS_HERE ? LAUNCHER_MOST : LAUNCHER_FAR_MOST;
}

bool queue_enter(struct runtime *r, bool urgent)
{
    struct manager *m = r->manager;

    if (m->at_launcher < queue_most(m) && list_empty(&m->urgent) &&
        (urgent || list_empty(&m->waiting))) {
        m->at_launcher++;
        return true;
    }
    list_add(urgent ? &m->urgent : &m->waiting, &r->op.queued);
    return false;
}

bool queue_try(struct manager *m)
{
    /* Half of it stays free for people. */
    if (m->at_launcher >= queue_most(m) / 2 || !list_empty(&m->urgent) ||
        !list_empty(&m->waiting) || m->line_count)
        return false;
    m->at_launcher++;
    return true;
}

static void on_queue_next(struct loop_later *l)
{
    struct manager *m = container_of(l, struct manager, queue_next);

    while (m->at_launcher < queue_most(m)) {
        struct list *first = !list_empty(&m->urgent) ? &m->urgent : &m->waiting;
        if (list_empty(first))
            break;
        struct runtime *r = LIST_FIRST(first, struct runtime, op.queued);
        list_del(&r->op.queued);
        m->at_launcher++;
        operation_call(r);
    }
    pool_end_next(m);
    pool_trim(m);
    pool_refill(m);
    manager_check_end(m);
}

void queue_leave(struct manager *m)
{
    m->at_launcher--;
    loop_later(m->config.loop, &m->queue_next, on_queue_next);
}

static unsigned gate_crowd(const struct manager *m)
{
    unsigned busy = m->at_launcher - m->refilling;

    return busy > m->claiming ? busy : m->claiming;
}

bool gate_is_crowded(const struct manager *m, uint64_t now_ns)
{
    return gate_crowd(m) > FEW || m->crowd_ns > now_ns + FEW * PACE_NS;
}

/* A bash takes three times the processor that a claim does, and most of that in the kernel, where
 * nothing preempts it. So it starts when the claim is told, which is a moment later, and not beside
 * the row's way to the disk; or with the first command, should that come before. Of a hundred at
 * once the first would have their shells, which nobody uses yet, before the last are told. Who
 * comes in a crowd need not find it here: where there is no time to answer there is none to ask. So
 * they are counted by their pace too. */
uint32_t gate_shell_later(struct manager *m, uint64_t now_ns)
{
    uint64_t most = now_ns + MEMORY * PACE_NS;

    m->crowd_ns = (m->crowd_ns > now_ns ? m->crowd_ns : now_ns) + PACE_NS;
    if (m->crowd_ns > most)
        m->crowd_ns = most;
    if (!gate_is_crowded(m, now_ns))
        return BIND_ALONE_MS;
    uint64_t ms = LATER_MS + (uint64_t)gate_crowd(m) * LATER_EACH_MS;
    return ms < BIND_LATER_MAX ? (uint32_t)ms : BIND_LATER_MAX;
}
