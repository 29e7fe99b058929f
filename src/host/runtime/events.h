// SPDX-License-Identifier: Apache-2.0
/* events.h — what happens to runtimes, as OpenHands' clients name it: (level, status, message); and
 * how often. */
#pragma once

#include <stdint.h>

#include "base/list.h"
#include "base/str.h"

struct manager;
struct runtime;

enum runtime_event_status {
    RUNTIME_EVENT_STARTING, /* "STATUS$STARTING_RUNTIME" */
    RUNTIME_EVENT_STARTED,
    RUNTIME_EVENT_READY,
    RUNTIME_EVENT_PAUSED, /* upstream has no word for it: told as STATUS$STOPPED */
    RUNTIME_EVENT_STOPPED,
    RUNTIME_EVENT_ERROR,
    RUNTIME_EVENT_DISCONNECTED,
    RUNTIME_EVENT_MEMORY,
    RUNTIME_EVENT_BUILDING, /* of an image that a start will want: there is no runtime yet */
    RUNTIME_EVENTS
};

struct runtime_event {
    const char *level;  /* "info", "error" */
    const char *status; /* "STATUS$READY" */
    const char *message;
    enum runtime_event_status kind;
    uint64_t wall_ms;
    const struct runtime
        *runtime;              /* as it is now; NULL: there is none, see RUNTIME_EVENT_BUILDING */
    const char *key, *request; /* whose it is; the id of who asked, or NULL */
};

struct runtime_subscriber { /* the caller's */
    void (*fn)(struct runtime_subscriber *s, const struct runtime_event *event);
    void (*on_first)(struct runtime_subscriber *s, const struct runtime *r); /* command; or NULL */
    /* Who asked for it is being told that it is there, so long after he did; or NULL. */
    void (*on_answer)(struct runtime_subscriber *s, const struct runtime *r, uint64_t ns);
    /* One was taken, of a sandbox that was "running" or "stopped", whose files were copied or
     * frozen where they are; or NULL. */
    void (*on_snapshot)(struct runtime_subscriber *s, const char *kind, uint64_t ns,
                        uint64_t copied_bytes);
    struct list link;
};
void manager_subscribe(struct manager *m, struct runtime_subscriber *s);
void manager_unsubscribe(struct runtime_subscriber *s);
void manager_emit(struct runtime *r, enum runtime_event_status kind, const char *message);
/* Of what a key does before it has a runtime; request may be NULL. */
void manager_emit_for(struct manager *m, const char *key, const char *request,
                      enum runtime_event_status kind, const char *message);

struct runtime_counters {
    uint64_t starts, hits, stops, pauses, resumes, failures, refused, adopted, lost;
    uint64_t gone; /* ended by themselves */
    uint64_t idle_pauses, idle_stops, idle_deletes;
};
const struct runtime_counters *manager_counters(const struct manager *m);
/* By status, and starts that wait. */
struct runtime_gauges {
    unsigned live, starting, stopped, waiting, warm, at_launcher, running, paused, error;
};
void manager_gauges(const struct manager *m, struct runtime_gauges *ret);
