// SPDX-License-Identifier: Apache-2.0
/* events.c — see events.h. */
#include "host/runtime/events.h"

#include "base/log.h"
#include "host/ops/journal.h"
#include "host/ops/metrics.h"
#include "host/runtime/inner.h"

static const struct {
    const char *level, *status;
} kinds[RUNTIME_EVENTS] = {
    [RUNTIME_EVENT_STARTING] = {"info", "STATUS$STARTING_RUNTIME"},
    [RUNTIME_EVENT_STARTED] = {"info", "STATUS$RUNTIME_STARTED"},
    [RUNTIME_EVENT_READY] = {"info", "STATUS$READY"},
    [RUNTIME_EVENT_PAUSED] = {"info", "STATUS$STOPPED"},
    [RUNTIME_EVENT_STOPPED] = {"info", "STATUS$STOPPED"},
    [RUNTIME_EVENT_ERROR] = {"error", "STATUS$ERROR"},
    [RUNTIME_EVENT_DISCONNECTED] = {"error", "STATUS$ERROR_RUNTIME_DISCONNECTED"},
    [RUNTIME_EVENT_MEMORY] = {"error", "STATUS$ERROR_MEMORY"},
    [RUNTIME_EVENT_BUILDING] = {"info", "STATUS$BUILDING_RUNTIME"},
};

/* --- what is told --- */

static void events_log(const struct journal_note *n, enum runtime_event_status kind)
{
    /* On the way there, and there: the second is enough for most. */
    bool passing = kind == RUNTIME_EVENT_STARTING || kind == RUNTIME_EVENT_STARTED;
    enum log_level level = passing ? LOG_DEBUG : LOG_INFO;
    const struct log_kv fields[] = {KV("id", n->sandbox),
                                    KV("session", n->session),
                                    KV("key", n->tenant),
                                    KV("status", n->status),
                                    KV("request_id", n->request),
                                    KV("message", n->message),
                                    {0}};

    if (log_enabled(level))
        log_event(level, "runtime", fields);
}

static void events_emit(const struct manager *m, enum runtime_event_status kind,
                        struct journal_note n)
{
    n.kind = JOURNAL_STATUS;
    n.level = str_of(kinds[kind].level);
    n.status = str_of(kinds[kind].status);
    events_log(&n, kind);
    if (m->config.journal)
        journal_add(m->config.journal, &n);
}

void manager_emit_for(struct manager *m, const char *key, const char *request,
                      enum runtime_event_status kind, const char *message)
{
    events_emit(m, kind,
                (struct journal_note){
                    .tenant = str_of(key), .request = str_of(request), .message = str_of(message)});
}

static void observe_start(const struct runtime *r);

void manager_emit(struct runtime *r, enum runtime_event_status kind, const char *message)
{
    if (kind == RUNTIME_EVENT_READY)
        observe_start(r);
    events_emit(r->manager, kind,
                (struct journal_note){.tenant = str_of(r->tenant->name),
                                      .sandbox = str_of(r->id),
                                      .session = str_of(r->session_id),
                                      .request = str_of(r->request),
                                      .message = str_of(message)});
}

/* --- what is counted --- */

static const char *backend_of(const struct runtime *r)
{
    return manager_driver(r->manager)->backend->name;
}

static void runtime_observe(const struct runtime *r, enum metric id, uint64_t ns,
                            const char *const *labels)
{
    if (r->manager->config.metrics)
        metrics_observe_ns(r->manager->config.metrics, id, ns, labels);
}

static void observe_start(const struct runtime *r)
{
    bool resume = r->op.kind == RUNTIME_RESUME;

    runtime_observe(
        r, METRIC_START_SECONDS, (uint64_t)r->timeline.ready_us * 1000,
        METRIC_LABELS(backend_of(r),
                      runtime_launch_names[resume ? RUNTIME_AGAIN : r->timeline.launch]));
}

void runtime_observe_answer(const struct runtime *r, uint64_t ns)
{
    runtime_observe(
        r, METRIC_CLAIM_SECONDS, ns,
        METRIC_LABELS(r->pool ? r->pool : "", runtime_launch_names[r->timeline.launch]));
}

void runtime_observe_first(const struct runtime *r)
{
    runtime_observe(r, METRIC_FIRST_SECONDS,
                    (uint64_t)r->timeline.phase_us[RUNTIME_PHASE_FIRST_COMMAND] * 1000,
                    METRIC_LABELS(backend_of(r), runtime_launch_names[r->timeline.launch]));
}

void runtime_observe_snapshot(const struct runtime *r, const char *kind, uint64_t ns)
{
    runtime_observe(r, METRIC_SNAPSHOT_SECONDS, ns, METRIC_LABELS(kind, "create"));
    if (r->manager->config.metrics)
        metrics_observe_bytes(r->manager->config.metrics, METRIC_SNAPSHOT_BYTES,
                              r->sbx->copied_bytes, METRIC_LABELS(kind, "create"));
}

const struct runtime_counters *manager_counters(const struct manager *m)
{
    return &m->counters;
}

void manager_gauges(const struct manager *m, struct runtime_gauges *ret)
{
    *ret = (struct runtime_gauges){.live = m->live,
                                   .stopped = m->stopped_count,
                                   .warm = pool_count(m),
                                   .at_launcher = m->queue.called};
    MAP_EACH(slot, &m->ids) {
        unsigned now = ((const struct runtime *)slot->value)->status.now;
        ret->starting += now == RUNTIME_STARTING;
        ret->running += now == RUNTIME_RUNNING;
        ret->paused += now == RUNTIME_PAUSED;
        ret->error += now == RUNTIME_ERROR;
    }
    ret->waiting = m->line.count;
    for (const struct list *l = m->queue.waiting.next; l != &m->queue.waiting; l = l->next)
        ret->waiting++;
    for (const struct list *l = m->queue.urgent.next; l != &m->queue.urgent; l = l->next)
        ret->waiting++;
}
