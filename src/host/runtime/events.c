// SPDX-License-Identifier: Apache-2.0
/* events.c — see events.h. */
#include "host/runtime/events.h"

#include "base/log.h"
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

void manager_subscribe(struct manager *m, struct runtime_subscriber *s)
{
    list_add(&m->subscribers, &s->link);
}

void manager_unsubscribe(struct runtime_subscriber *s)
{
    list_del(&s->link);
}

static void events_emit(struct manager *m, struct runtime_event *event)
{
    const struct runtime *r = event->runtime;
    /* On the way there, and there: the second is enough for most. */
    bool passing = event->kind == RUNTIME_EVENT_STARTING || event->kind == RUNTIME_EVENT_STARTED;
    enum log_level level = passing ? LOG_DEBUG : LOG_INFO;

    event->level = kinds[event->kind].level;
    event->status = kinds[event->kind].status;
    event->message = event->message ? event->message : "";
    event->wall_ms = manager_now_ms(m);
    const struct log_kv fields[] = {KV("id", r ? r->id : ""),
                                    KV("session", r ? r->session_id : ""),
                                    KV("key", event->key),
                                    KV("status", event->status),
                                    KV("request_id", event->request),
                                    KV("message", event->message),
                                    {0}};
    if (log_enabled(level))
        log_event(level, "runtime", fields);
    LIST_EACH(s, &m->subscribers, struct runtime_subscriber, link)
        s->fn(s, event);
}

void manager_emit(struct runtime *r, enum runtime_event_status kind, const char *message)
{
    struct runtime_event event = {.message = message,
                                  .kind = kind,
                                  .runtime = r,
                                  .key = r->tenant->name,
                                  .request = r->request};

    events_emit(r->manager, &event);
}

void manager_emit_for(struct manager *m, const char *key, const char *request,
                      enum runtime_event_status kind, const char *message)
{
    struct runtime_event event = {.message = message, .kind = kind, .key = key, .request = request};

    events_emit(m, &event);
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
                                   .at_launcher = m->at_launcher};
    MAP_EACH(slot, &m->ids) {
        unsigned now = ((const struct runtime *)slot->value)->status.now;
        ret->starting += now == RUNTIME_STARTING;
        ret->running += now == RUNTIME_RUNNING;
        ret->paused += now == RUNTIME_PAUSED;
        ret->error += now == RUNTIME_ERROR;
    }
    ret->waiting = m->line_count;
    for (const struct list *l = m->waiting.next; l != &m->waiting; l = l->next)
        ret->waiting++;
    for (const struct list *l = m->urgent.next; l != &m->urgent; l = l->next)
        ret->waiting++;
}
