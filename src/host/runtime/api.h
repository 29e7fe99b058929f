// SPDX-License-Identifier: Apache-2.0
/* api.h — the Runtime API: the routes that OpenHands' clients know. Thin: each is a function of
 * runtime.h and the object it answers with. */
#pragma once

#include "host/keys/keys.h"
#include "net/router.h"

struct journal;
struct manager;
struct metrics;

/* req->app of the runtime face. */
struct runtime_face {
    struct face face; /* first: other folders' routes find their own there */
    struct manager *manager;
    struct journal *journal; /* NULL: none */
    struct metrics *metrics; /* NULL: none */
};

extern const struct route runtime_routes[];
extern const size_t runtime_route_count;
