// SPDX-License-Identifier: Apache-2.0
/* events.h — what happens to runtimes, as OpenHands' clients name it: (level, status, message); and
 * how often. */
#pragma once

#include <stdint.h>

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

/* Into the log and the journal, which others follow (ops/journal.h). */
void manager_emit(struct runtime *r, enum runtime_event_status kind, const char *message);
/* The same without a runtime; request may be NULL. */
void manager_emit_for(struct manager *m, const char *key, const char *request,
                      enum runtime_event_status kind, const char *message);

/* For /metrics: it was answered after ns; its first command was; a snapshot of it was taken. */
void runtime_observe_answer(const struct runtime *r, uint64_t ns);
void runtime_observe_first(const struct runtime *r);
void runtime_observe_snapshot(const struct runtime *r, const char *kind, uint64_t ns);

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
