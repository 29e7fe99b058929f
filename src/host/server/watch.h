// SPDX-License-Identifier: Apache-2.0
/* watch.h — what a server notes of itself: numbers, the journal, who asked for what. */
#pragma once

#include "base/err.h"
#include "host/runtime/events.h"
#include "net/server.h"

struct journal;
struct loop;
struct manager;
struct metrics;
struct runtime_api;

struct watch {
    struct metrics *metrics;
    struct journal *journal;
    struct runtime_subscriber events;
};

/* dir: where the journal is, and keep_bytes how much of it is kept; a journal that cannot be opened
 * is an error: it is the audit. */
fallible watch_open(struct watch *w, struct loop *loop, int dir, uint64_t keep_bytes,
                    struct manager *m, struct runtime_api *api);
void watch_close(struct watch *w); /* before the manager */
/* Of proxy_config; ctx is the runtime_api. What a sandbox refuses is not a refusal of ours. */
void watch_sandbox_answer(void *ctx, const struct http_req *req, int status, uint64_t ns);
void watch_action(void *ctx, const char *action, const char *result, uint64_t ns);
/* Of the main listener. */
void watch_answer(const struct runtime_api *f, const struct http_req *req, int status, uint64_t ns);
