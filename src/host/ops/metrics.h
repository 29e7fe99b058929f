// SPDX-License-Identifier: Apache-2.0
/* metrics.h — numbers for Prometheus. A metric is a row of metrics_rows.c; counting is an addition.
 *
 * Labels are given in the order of the row and end in NULL: METRIC_LABELS("default", "warm"). A
 * metric has at most METRICS_SERIES combinations of labels; what comes after is counted together,
 * as "other", so no peer can make the page grow. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/own.h"

#define METRICS_SERIES 256
#define METRIC_LABELS(...)                                                                         \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

enum metric {
    METRIC_BUILD_INFO,
    METRIC_SANDBOXES,
    METRIC_START_SECONDS,
    METRIC_CLAIM_SECONDS,
    METRIC_FIRST_SECONDS,
    METRIC_CLAIMS,
    METRIC_POOL_READY,
    METRIC_POOL_TARGET,
    METRIC_POOL_STARTING,
    METRIC_POOL_MISSES,
    METRIC_ACTIONS,
    METRIC_ACTION_SECONDS,
    METRIC_EXEC_BYTES,
    METRIC_EXEC_CUT,
    METRIC_HTTP_REQUESTS,
    METRIC_HTTP_SECONDS,
    METRIC_WS_CLIENTS,
    METRIC_WS_DROPPED,
    METRIC_EVENTS,
    METRIC_EVENT_FSYNC,
    METRIC_SNAPSHOT_SECONDS,
    METRIC_SNAPSHOT_BYTES,
    METRIC_IDLE_TRANSITIONS,
    METRIC_DENIALS,
    METRIC_COUNT
};

/* METRIC_SIZES: a histogram of bytes; the other kind is of seconds. */
enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_SIZES };

struct metric_row {
    const char *name, *help;
    enum metric_type type;
    const char *const *labels; /* NULL: none */
};
extern const struct metric_row metric_rows[METRIC_COUNT];

extern const char metrics_commit[]; /* this was built from; "unknown" outside of a repository */

struct metrics;
struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);
OWNABLE(metrics)

void metrics_add(struct metrics *m, enum metric id, double n, const char *const *labels);
void metrics_set(struct metrics *m, enum metric id, double value, const char *const *labels);
void metrics_observe_ns(struct metrics *m, enum metric id, uint64_t ns, const char *const *labels);
void metrics_observe_bytes(struct metrics *m, enum metric id, uint64_t bytes,
                           const char *const *labels);
/* In the text format 0.0.4, numbers of this process (process_*) included. */
void metrics_put(const struct metrics *m, struct buf *out);
