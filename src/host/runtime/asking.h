// SPDX-License-Identifier: Apache-2.0
/* asking.h — a request that waits for what it asked of a runtime: the same in both APIs, but for
 * the object it is answered with. */
#pragma once

#include "base/json.h"
#include "host/runtime/api.h"
#include "host/runtime/manager.h"
#include "host/runtime/runtime.h"
#include "net/server.h"

/* Writes what a runtime is answered with. */
typedef fallible runtime_put(struct http_req *req, struct jw *w, const struct runtime *r);

struct asking { /* in the arena of its request */
    struct runtime_ask ask;
    const struct runtime_api *api;
    struct http_req *req;
    runtime_put *put;      /* NULL: 204, no body */
    const struct key *key; /* of a start: */
    struct wire_start start;
    struct start_place place;
};

/* ask.done answers with what put puts, or with the error. */
fallible asking_new(const struct runtime_api *api, struct http_req *req, runtime_put *put,
                    struct asking **ret_asking);
fallible asking_start(struct asking *a); /* start.c: of a->start, for a->key */
