// SPDX-License-Identifier: Apache-2.0
/* metrics_rows.c — every number croft gives to Prometheus. */
#include <stddef.h>

#include "host/ops/metrics.h"

#define LABELS(...) METRIC_LABELS(__VA_ARGS__)

const struct metric_row metric_rows[METRIC_COUNT] = {
    [METRIC_BUILD_INFO] = {"croft_build_info", "The version that runs; always 1.", METRIC_GAUGE,
                           LABELS("version", "libc")},
    [METRIC_SANDBOXES] = {"croft_sandboxes", "Sandboxes by backend and state.", METRIC_GAUGE,
                          LABELS("runtime", "state")},
    [METRIC_START_SECONDS] = {"croft_sandbox_start_seconds",
                              "From the request to a server that listens.", METRIC_HISTOGRAM,
                              LABELS("runtime", "launch_type")},
    [METRIC_CLAIM_SECONDS] = {"croft_sandbox_claim_seconds",
                              "From the request to an acknowledged sandbox.", METRIC_HISTOGRAM,
                              LABELS("pool", "launch_type")},
    [METRIC_FIRST_SECONDS] = {"croft_sandbox_first_command_seconds",
                              "The first command of a sandbox, from request to answer.",
                              METRIC_HISTOGRAM, LABELS("runtime", "launch_type")},
    [METRIC_CLAIMS] = {"croft_claims_total", "Starts by pool and result.", METRIC_COUNTER,
                       LABELS("pool", "result")},
    [METRIC_POOL_READY] = {"croft_pool_ready", "Warm sandboxes that can be claimed.", METRIC_GAUGE,
                           LABELS("pool")},
    [METRIC_POOL_TARGET] = {"croft_pool_target", "Warm sandboxes wanted.", METRIC_GAUGE,
                            LABELS("pool")},
    [METRIC_POOL_STARTING] = {"croft_pool_starting", "Warm sandboxes under way.", METRIC_GAUGE,
                              LABELS("pool")},
    [METRIC_POOL_MISSES] = {"croft_pool_misses_total",
                            "Starts that no warm sandbox served, and why.", METRIC_COUNTER,
                            LABELS("pool", "reason")},
    [METRIC_HTTP_REQUESTS] = {"croft_http_requests_total", "Requests answered.", METRIC_COUNTER,
                              LABELS("face", "method", "code")},
    [METRIC_HTTP_SECONDS] = {"croft_http_request_seconds", "From head to answer.", METRIC_HISTOGRAM,
                             LABELS("face", "method")},
    [METRIC_EVENTS] = {"croft_events_appended_total", "Records of the event log.", METRIC_COUNTER,
                       NULL},
    [METRIC_IDLE_TRANSITIONS] = {"croft_idle_transitions_total",
                                 "Sandboxes paused, stopped or deleted for being idle.",
                                 METRIC_COUNTER, LABELS("to")},
    [METRIC_DENIALS] = {"croft_policy_denials_total", "Requests refused by key, scope or limit.",
                        METRIC_COUNTER, LABELS("kind")},
};
