// SPDX-License-Identifier: Apache-2.0
/* api.h — the Runtime API: the routes that OpenHands' clients know. Thin: each is a function of
 * runtime.h and the object it answers with. */
#pragma once

#include "host/keys/keys.h"
#include "net/router.h"

struct builds;
struct journal;
struct manager;
struct metrics;

/* What the routes below and those of /croft/v1 work with: their owner. */
struct runtime_api {
    struct keys *keys;
    struct manager *manager;
    struct builds *builds;
    struct journal *journal; /* NULL: none */
    struct metrics *metrics; /* NULL: none */
};

extern const struct route runtime_routes[];
extern const size_t runtime_route_count;
