// SPDX-License-Identifier: Apache-2.0
/* proxy.h — the one way into sandboxes: HTTP from clients to the unix socket of a sandbox's server,
 * and by CONNECT through its pid 1 to ports that programs open inside.
 *
 * A target is found by a loopback listener of its own, by "/sandbox/ID/…" or by "ID.domain". The
 * forms "vscode-ID.domain" and "/sandbox/ID/work-1/…" lead to its services. Bodies stream both ways
 * in bounded memory; after an upgrade bytes are relayed.
 *
 * Answers of the proxy's own:
 * 404  no such sandbox
 * 502  no server listens inside
 * 503  paused or not started in time, with Retry-After
 * 504  no answer in time
 *
 * A connection inside may be lost under a request that must not be repeated. Then the connection
 * outside is cut too: the client sends again, and the server inside gives the answer it stored. If
 * the sandbox was ended by order, the client gets 503. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "net/stream.h"
#include "sandbox/backend.h"

struct dialer;
struct http_req;
struct proxy;
struct http_listener;
struct route;

/* Failed: it ended by itself; 502, which no client takes for a pause. */
enum proxy_state { PROXY_STARTING, PROXY_OPEN, PROXY_PAUSED, PROXY_FAILED, PROXY_GONE };
enum proxy_service { PROXY_VSCODE, PROXY_WORK_1, PROXY_WORK_2, PROXY_SERVICES };

struct proxy_far { /* a port inside a sandbox elsewhere, and the url that leads to it */
    uint16_t port;
    struct sbx_address address;
};

struct proxy_target { /* a sandbox as the proxy sees it; embedded in its owner */
    const char *id;   /* borrowed until proxy_remove */
    /* Of its server: unix_path; with tunnel_port, of pid 1's socket. Without unix_path, the url of
     * a sandbox of another server: requests then have that name, and go below its path. */
    struct sbx_address address;
    struct sbx_address inner;    /* of pid 1's socket, for CONNECT: unix_path */
    const struct proxy_far *far; /* of one elsewhere instead: what can be reached; borrowed */
    size_t far_count;
    enum proxy_state state;            /* read; changed by proxy_set_state */
    uint16_t port;                     /* of its own listener; 0: none */
    uint16_t services[PROXY_SERVICES]; /* ports inside; 0: 60001, 12000, 12001 */
    unsigned open;                     /* requests and upgraded connections under way */
    uint64_t last_ns;                  /* last byte either way, on the loop's clock */
    /* key: what clients send as X-Session-API-Key. inner_key: what goes inside in its place; NULL:
     * the same. Borrowed. A client that sends inner_key is refused inside, except by takes_old. */
    const char *key, *inner_key;
    /* Is the key sent an earlier one that is still accepted for this request? NULL: none is. */
    bool (*takes_old)(struct proxy_target *t, struct http_req *req, struct str shown);
    /* key was shown; the proxy forgets it then. May be NULL. */
    void (*on_key)(struct proxy_target *t);
    bool park; /* paused: hold requests and ask for a resume */
    /* How many requests are held for its tenant, which gets only some of the free places. Borrowed;
     * the proxy counts. NULL: not shared. */
    uint32_t *parked_of;
    void (*on_wake)(struct proxy_target *t); /* a request waits; once per pause; may be NULL */
    /* A sandbox of another server did not answer, or that server says that it is not running. May
     * be NULL. */
    void (*on_trouble)(struct proxy_target *t);
    void (*on_lost)(struct proxy_target *t); /* its server ended under a request; may be NULL */
    /* The first command was answered with 200, ns after it was asked for; the proxy forgets it
     * then. May be NULL. */
    void (*on_first)(struct proxy_target *t, uint64_t ns);

    /* the proxy's own */
    struct http_listener *listener;
    uint64_t tag; /* of requests of its listener */
    struct list link;
    struct list calls, parked; /* requests under way; held back */
    struct list relays;        /* upgraded connections */
    struct list idle;          /* unused connections to it */
    unsigned idlers, waiting;  /* in idle, in parked */
    bool woken;
    uint64_t lost_ns; /* requests from before it were that server's too */
};

enum proxy_drop { PROXY_DROP_CLIENT, PROXY_DROP_SANDBOX, PROXY_DROP_REMOVED, PROXY_DROPS };
extern const char *const proxy_drop_names[PROXY_DROPS];

struct proxy_stats {             /* since it began, but for relays */
    uint64_t output_bytes[2];    /* of commands, as encoded: in their answers; live */
    uint64_t cut;                /* action answers whose output was cut for length */
    uint64_t relays;             /* upgraded connections now */
    uint64_t drops[PROXY_DROPS]; /* of them that broke: which side did; or the sandbox went */
};

struct proxy_watch { /* for counting; each may be NULL */
    /* Every answer on listeners of ours, when it is complete. */
    void (*on_answer)(void *ctx, const struct http_req *req, int status, uint64_t ns);
    /* Every action and command that reached a sandbox; result: ok, error, refused (its server said
     * 4xx), lost (no whole answer). Both are words of a short list. */
    void (*on_action)(void *ctx, const char *action, const char *result, uint64_t ns);
    void *ctx;
};

#define PROXY_DOMAIN_MAX 253 /* characters a name has at most */

struct proxy_config { /* zero: the default */
    struct dialer *dialer;
    /* Is it a key of the API's? As a bearer it stays outside. NULL: those that begin as ours do. */
    bool (*is_key)(void *ctx, struct str secret);
    /* Do several tenants share the places to park? Else one may have them all. NULL: yes. */
    bool (*has_tenants)(void *ctx);
    void *ctx;           /* of these two */
    struct str domain;   /* "runtime.example.com", or "-runtime.example.com"; empty: not by name */
    const char *address; /* of listeners; 127.0.0.1 */
    /* Listeners get ports from this range, in turn; 0: the 12,000 below those of outgoing
     * connections, which would take them while a server restarts. */
    uint16_t port_first, port_last;
    uint8_t spare_ports;    /* 0, at most 16: opened beforehand, for targets that take any */
    bool tls;               /* the main server's connections are: X-Forwarded-Proto */
    uint32_t most_parked;   /* 1024: requests that wait for a sandbox; of one, 128; parked_of */
    uint32_t park_ms;       /* 30 s: for a resume */
    uint32_t start_ms;      /* 60 s: for a start */
    uint32_t connect_ms;    /* 10 s: to the sandbox, or to a port inside */
    uint32_t answer_ms;     /* 6 h: for the head of an answer; no limit behind it */
    uint32_t idle_ms;       /* 4 s: an unused connection to a sandbox is kept so long */
    uint32_t closed_ms;     /* 60 s: a listener says so long that its target is gone */
    uint32_t retry_after_s; /* 1: what 503 says */
};

fallible proxy_new(const struct proxy_config *config, struct proxy **ret_proxy);
void proxy_free(struct proxy *p); /* all targets are removed */
OWNABLE(proxy)
/* From now on; one at a time. */
void proxy_watch(struct proxy *p, const struct proxy_watch *watch);

/* The part "proxy", and server.domain. */
struct host;
struct settings;
struct proxy *proxy_of(const struct host *h);
struct str proxy_domain(const struct settings *s);

/* Opens its listener. Port 0: any; another: exactly that one, ERR_CONFLICT when it is taken. The
 * owner has zeroed the proxy's part of t. */
fallible proxy_add(struct proxy *p, struct proxy_target *t, uint16_t port);
/* Requests under way are answered 404 or cut, later ones for a while too; then its listener is
 * closed, or when its port is needed. Twice is fine. */
void proxy_remove(struct proxy *p, struct proxy_target *t);
void proxy_set_state(struct proxy *p, struct proxy_target *t, enum proxy_state state);
const struct proxy_stats *proxy_stats(const struct proxy *p);
struct proxy_target *proxy_find(const struct proxy *p, struct str id); /* NULL: no such */

/* For the main server's config.intercept: gives the route of a request that names a sandbox, by
 * Host or path, known or not. It owns that route. */
fallible proxy_intercept(struct proxy *p, struct http_req *req, const struct route **ret_route);
