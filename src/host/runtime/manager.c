// SPDX-License-Identifier: Apache-2.0
/* manager.c — which runtimes there are: by id, by tenant and session. See runtime.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/row.h"
#include "host/runtime/snapshots.h"
#include "host/runtime/start.h"

#define STOPPED_MOST 1000 /* stopped runtimes that can still be looked at */

const char *const runtime_phase_names[RUNTIME_PHASES] = {
    [RUNTIME_PHASE_QUEUE] = "queue",
    [RUNTIME_PHASE_CLAIM] = "claim",
    [RUNTIME_PHASE_NAMESPACES] = "namespaces",
    [RUNTIME_PHASE_MOUNTS] = "mounts",
    [RUNTIME_PHASE_EXEC] = "exec",
    [RUNTIME_PHASE_READY] = "ready",
    [RUNTIME_PHASE_ROW] = "row",
    [RUNTIME_PHASE_FIRST_COMMAND] = "first_command",
};

const char *const runtime_launch_names[] = {[RUNTIME_COLD] = "cold",
                                            [RUNTIME_WARM] = "warm",
                                            [RUNTIME_FORK] = "fork",
                                            [RUNTIME_AGAIN] = "resume"};

fallible manager_new(const struct manager_config *config, struct manager **ret_manager)
{
    struct manager *m = mem_new(sizeof *m);

    m->config = *config;
    map_init(&m->ids);
    map_init(&m->tenants);
    list_init(&m->stopped);
    list_init(&m->line.tenants);
    list_init(&m->queue.urgent);
    list_init(&m->queue.waiting);
    list_init(&m->snapshots);
    list_init(&m->pools.all);
    list_init(&m->pools.ends);
    list_init(&m->pools.asked);
    list_init(&m->unknowns);
    list_init(&m->awaits);
    *ret_manager = m;
    return NULL;
}

void manager_reconfigure(struct manager *m, const struct manager_config *config)
{
    m->config.most = config->most;
    m->config.most_starts = config->most_starts;
    m->config.recent = config->recent;
    m->config.recent_ms = config->recent_ms;
    m->config.snapshots = config->snapshots;
    m->config.pause_after_ms = config->pause_after_ms;
    m->config.stop_after_ms = config->stop_after_ms;
    m->config.delete_after_ms = config->delete_after_ms;
    m->config.failed_after_ms = config->failed_after_ms;
    m->config.max_age_ms = config->max_age_ms;
    m->config.mounts = config->mounts; /* a launcher that lives grants no more than it did */
    m->config.mount_count = config->mount_count;
    m->config.at_exit = config->at_exit;
    m->config.rotate = config->rotate;
    m->config.per_sandbox = config->per_sandbox;
    m->config.build_wait_ms = config->build_wait_ms;
    m->config.registry_prefix = config->registry_prefix;
    m->config.park = config->park;
    MAP_EACH(slot, &m->ids) {
        struct runtime *r = slot->value;
        r->target.park = config->park;
        idle_watch(r);
    }
    recent_reconfigure(m);
}

uint64_t manager_now_ms(const struct manager *m)
{
    return clock_wall_ns(loop_clock(m->config.loop)) / NS_PER_MS;
}

uint64_t manager_mono_ns(const struct manager *m)
{
    return clock_mono_ns(loop_clock(m->config.loop));
}

/* --- tenants --- */

struct tenant *tenant_get(struct manager *m, const char *name)
{
    struct tenant *t = map_get(&m->tenants, str_of(name));

    if (t)
        return t;
    t = mem_new(sizeof *t);
    snprintf(t->name, sizeof t->name, "%s", name);
    map_init(&t->sessions);
    list_init(&t->runtimes);
    list_init(&t->line);
    list_init(&t->in_turn);
    map_put(&m->tenants, str_of(t->name), t);
    return t;
}

/* --- runtimes --- */

static void forget_session(struct runtime *r)
{
    struct map *sessions = &r->tenant->sessions;

    if (map_get(sessions, str_of(r->session_id)) == r)
        map_del(sessions, str_of(r->session_id));
}

void manager_add(struct manager *m, struct runtime *r)
{
    struct runtime *old = map_get(&r->tenant->sessions, str_of(r->session_id));

    if (old)
        forget_session(old); /* the map holds the old one's text */
    map_put(&r->tenant->sessions, str_of(r->session_id), r);
    map_put(&m->ids, str_of(r->id), r);
    list_add(&r->tenant->runtimes, &r->link);
    if (runtime_is_live(r)) {
        r->tenant->live++;
        m->live++;
    }
}

void manager_hide(struct runtime *r)
{
    struct manager *m = r->manager;

    forget_session(r);
    map_del(&m->ids, str_of(r->id));
    list_del(&r->link);
    r->hidden = true;
    m->unknown_count++;
}

void manager_drop(struct runtime *r)
{
    struct manager *m = r->manager;

    if (r->status.now == RUNTIME_STOPPED && !list_empty(&r->order))
        m->stopped_count--;
    if (runtime_is_live(r)) {
        r->tenant->live--;
        m->live--;
    }
    if (r->hidden) {
        m->unknown_count--;
        manager_check_end(m);
    } else {
        forget_session(r);
        map_del(&m->ids, str_of(r->id));
    }
    runtime_refuse_all(r);
    runtime_free(r);
}

/* --- finding --- */

static const char *name_of(const struct key *key)
{
    return key_tenant(key);
}

struct runtime *manager_find_id(const struct manager *m, const struct key *key, struct str id)
{
    struct runtime *r = map_get(&m->ids, id);

    return r && (!key || strcmp(r->tenant->name, name_of(key)) == 0) ? r : NULL;
}

struct runtime *manager_find_session(const struct manager *m, const struct key *key,
                                     struct str session_id)
{
    const struct tenant *t = map_get(&m->tenants, str_of(name_of(key)));

    return t ? map_get(&t->sessions, session_id) : NULL;
}

/* Of all tenants': the only one of that name, or KEY/NAME. */
static struct runtime *find_anybodys(const struct manager *m, struct str name)
{
    struct str rest = name, tenant;
    struct runtime *found = NULL;
    unsigned count = 0;

    if (str_cut(&rest, '/', &tenant)) {
        const struct tenant *t = map_get(&m->tenants, tenant);
        return t && str_find_char(rest, '/') < 0 ? map_get(&t->sessions, rest) : NULL;
    }
    MAP_EACH(slot, &m->tenants) {
        struct runtime *r = map_get(&((const struct tenant *)slot->value)->sessions, name);
        found = r ? r : found;
        count += r != NULL;
    }
    return count == 1 ? found : NULL;
}

struct runtime *manager_find(const struct manager *m, const struct key *key, struct str name)
{
    struct runtime *r = manager_find_id(m, key, name);

    if (r || !key)
        return r ? r : find_anybodys(m, name);
    return str_find_char(name, '/') < 0 ? manager_find_session(m, key, name) : NULL;
}

static void each_of(struct tenant *t, bool stopped, void (*fn)(void *arg, struct runtime *r),
                    void *arg)
{
    LIST_EACH(r, &t->runtimes, struct runtime, link)
        if (stopped || r->status.now != RUNTIME_STOPPED)
            fn(arg, r);
}

void manager_each(struct manager *m, const struct key *key, bool stopped,
                  void (*fn)(void *arg, struct runtime *r), void *arg)
{
    if (key) {
        struct tenant *t = map_get(&m->tenants, str_of(name_of(key)));
        if (t)
            each_of(t, stopped, fn, arg);
        return;
    }
    MAP_EACH(slot, &m->tenants)
        each_of(slot->value, stopped, fn, arg);
}

bool manager_keeps(const struct manager *m)
{
    return m->config.at_exit == AT_EXIT_KEEP;
}

bool manager_counts_each(const struct manager *m)
{
    return m->config.per_sandbox;
}

struct str manager_registry_prefix(const struct manager *m)
{
    return m->config.registry_prefix;
}

const char *runtime_key_name(const struct runtime *r)
{
    return r->tenant->name;
}

struct sbx_driver *manager_driver(const struct manager *m)
{
    return m->config.driver;
}

struct proxy *manager_proxy(const struct manager *m)
{
    return m->config.proxy;
}

/* --- the end --- */

/* Many at once: a row's end is a write like any other. */
void manager_prune(struct manager *m)
{
    if (m->stopped_count < STOPPED_MOST + STOPPED_MOST / 4)
        return;
    while (m->stopped_count > STOPPED_MOST) {
        struct runtime *old = LIST_FIRST(&m->stopped, struct runtime, order);
        if (old->op.kind || old->sbx || !list_empty(&old->asks) || old->own.op)
            return; /* the next time */
        row_delete(old);
        manager_drop(old);
    }
}

void manager_free(struct manager *m)
{
    if (!m)
        return;
    loop_later_cancel(&m->line.turn);
    loop_later_cancel(&m->queue.next);
    loop_later_cancel(&m->pools.refill);
    loop_later_cancel(&m->check_end);
    loop_timer_stop(&m->pools.refill_again);
    loop_timer_stop(&m->pools.calm);
    recent_stop(m);
    MAP_EACH(slot, &m->ids) {
        struct runtime *r = slot->value;
        r->op.from = NULL; /* it stays for the next server, which starts from it */
        runtime_free(r);
    }
    MAP_EACH(slot, &m->tenants) {
        struct tenant *t = slot->value;
        map_done(&t->sessions);
        free(t);
    }
    await_free_all(m);
    pool_free_all(m);
    adopting_free(m);
    snapshots_free(m);
    map_done(&m->tenants);
    map_done(&m->ids);
    free(m);
}

/* A backend that takes nothing over has nothing to go on with. */
static enum manager_at_exit at_exit(const struct manager *m)
{
    return m->config.driver->backend->survivors ? m->config.at_exit : AT_EXIT_DELETE;
}

/* What happens to it when the server ends; RUNTIME_NO_OP: it stays as it is. */
static enum runtime_op end_of(const struct runtime *r)
{
    enum manager_at_exit how = at_exit(r->manager);

    if (how == AT_EXIT_KEEP || r->status.now == RUNTIME_STOPPED || runtime_is_halted(r) ||
        runtime_stays_there(r))
        return RUNTIME_NO_OP;
    if (how == AT_EXIT_DELETE)
        return r->status.now == RUNTIME_PAUSED ? RUNTIME_HALT : RUNTIME_REMOVE;
    if (r->start.await) /* its image is being built: the next server goes on */
        return RUNTIME_NO_OP;
    if (r->status.now == RUNTIME_ERROR)
        return r->lived ? RUNTIME_NO_OP : RUNTIME_REMOVE;
    return r->manager->config.driver->forgets ? RUNTIME_PAUSE : RUNTIME_HALT;
}

static void on_check_end(struct loop_later *l)
{
    struct manager *m = container_of(l, struct manager, check_end);
    bool busy = m->unknown_count || pool_count(m) || m->queue.called;

    MAP_EACH(slot, &m->ids) {
        const struct runtime *r = slot->value;
        busy |= r->op.kind || (r->sbx && end_of(r));
    }
    if (busy || !m->ended)
        return;
    void (*ended)(void *arg) = m->ended;
    m->ended = NULL;
    ended(m->ended_arg);
}

void manager_check_end(struct manager *m)
{
    if (m->ended)
        loop_later(m->config.loop, &m->check_end, on_check_end);
}

void manager_end_one(struct runtime *r)
{
    enum runtime_op op = end_of(r);

    if (op)
        runtime_ask_own(r, op);
}

void manager_count_left(const struct manager *m, struct manager_left *ret)
{
    *ret = (struct manager_left){.deleted = (unsigned)(m->counters.stops - m->stops_before)};
    MAP_EACH(slot, &m->ids) {
        const struct runtime *r = slot->value;
        if (r->status.now == RUNTIME_STOPPED)
            continue;
        bool halted =
            runtime_is_halted(r) || (r->status.now == RUNTIME_ERROR && !runtime_is_out_of_reach(r));
        ret->halted += halted;
        ret->live += !halted;
        if (halted && !ret->one)
            ret->one = r->session_id;
    }
}

void manager_shutdown(struct manager *m, void (*done)(void *arg), void *arg)
{
    m->ending = true;
    m->stops_before = m->counters.stops;
    m->ended = done;
    m->ended_arg = arg;
    own(err) ending = err_new(ERR_BUSY, "the server is being stopped");
    line_refuse_all(m, ending);
    pool_drain(m);
    MAP_EACH(slot, &m->ids) {
        struct runtime *r = slot->value;
        idle_stop(r);
        probe_stop(r);
        manager_end_one(r);
    }
    manager_check_end(m);
}
