// SPDX-License-Identifier: Apache-2.0
/* api.h — the Runtime API: the routes that OpenHands' clients know. Thin: each is a function of
 * runtime.h and the object it answers with. */
#pragma once

#include "host/keys/keys.h"
#include "host/part/part.h"
#include "host/proxy/proxy.h"
#include "net/router.h"

struct builds;
struct http_client;
struct manager;

/* The part "runtime": what the routes below, and those of /croft/v1, work with. */
struct runtime_api {
    struct host *host;
    struct keys *keys;
    struct manager *manager;
    struct builds *builds;
    struct http_client *client;
    char domain[PROXY_DOMAIN_MAX + 8]; /* with the port clients come by, if they must say it */
    struct part_answer begun, ended;   /* to the caller that waits for it */
};

#define RUNTIME_ROUTES 14
extern const struct route runtime_routes[RUNTIME_ROUTES];
