// SPDX-License-Identifier: Apache-2.0
/* idle.c — what nobody uses is paused, then stopped, then removed.
 *
 * A timer per runtime, set for the earliest time something may be due; when it fires, what happened
 * meanwhile is looked at. Use costs nothing: the proxy notes the last byte of each target anyway.
 */
#include "base/log.h"
#include "host/runtime/inner.h"

static uint64_t idle_ms(const struct runtime *r)
{
    uint64_t now = loop_now_ns(r->manager->config.loop);
    uint64_t last = r->target.last_ns > r->since_ns ? r->target.last_ns : r->since_ns;

    if (r->target.open)
        return 0;
    return now > last ? (now - last) / NS_PER_MS : 0;
}

static uint64_t sooner(uint64_t a, uint64_t b) /* 0: never */
{
    return !a ? b : !b ? a : a < b ? a : b;
}

/* How long it may be idle as it is. */
static uint64_t allowed_ms(const struct runtime *r)
{
    const struct manager_config *c = &r->manager->config;

    switch ((enum runtime_status)r->status.now) {
    case RUNTIME_RUNNING:
        return sooner(sooner(c->pause_after_ms, c->stop_after_ms), c->delete_after_ms);
    case RUNTIME_PAUSED:
        return runtime_is_halted(r) ? c->delete_after_ms
                                    : sooner(c->stop_after_ms, c->delete_after_ms);
    case RUNTIME_ERROR:
    case RUNTIME_STOPPED:
        return c->delete_after_ms;
    case RUNTIME_STARTING:
        break;
    }
    return 0;
}

/* What is due first of what may still be done to it. */
static enum runtime_op due(const struct runtime *r)
{
    const struct manager_config *c = &r->manager->config;
    uint64_t allowed = allowed_ms(r);

    if (r->status.now == RUNTIME_RUNNING && allowed == c->pause_after_ms)
        return RUNTIME_PAUSE;
    if ((r->status.now == RUNTIME_RUNNING || r->status.now == RUNTIME_PAUSED) &&
        !runtime_is_halted(r) && allowed == c->stop_after_ms)
        return RUNTIME_HALT;
    return RUNTIME_STOP;
}

static void act(struct runtime *r)
{
    static const char *const words[] = {
        [RUNTIME_PAUSE] = "pause", [RUNTIME_HALT] = "stop", [RUNTIME_STOP] = "delete"};
    enum runtime_op op = due(r);

    if (r->status.now == RUNTIME_STOPPED) {
        row_delete(r->manager, r->id);
        manager_drop(r);
        return;
    }
    log_info("idle", KV("id", r->id), KV("was", sm_name(&r->status)), KV("then", words[op]));
    runtime_ask_own(r, op);
}

static void on_idle(struct loop_timer *t)
{
    struct runtime *r = container_of(t, struct runtime, idle);
    uint64_t allowed = allowed_ms(r), idle = idle_ms(r);

    if (!allowed)
        return;
    bool busy = r->op || r->removing || r->hidden || !list_empty(&r->asks);
    if (idle < allowed || busy) {
        loop_timer_start(r->manager->config.loop, &r->idle, idle < allowed ? allowed - idle : 1000,
                         on_idle);
        return;
    }
    act(r);
}

void idle_watch(struct runtime *r)
{
    uint64_t allowed = allowed_ms(r);

    r->since_ns = loop_now_ns(r->manager->config.loop);
    if (allowed && !r->manager->ending)
        loop_timer_start(r->manager->config.loop, &r->idle, allowed, on_idle);
    else
        loop_timer_stop(&r->idle);
}

void idle_stop(struct runtime *r)
{
    loop_timer_stop(&r->idle);
}
