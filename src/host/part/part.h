// SPDX-License-Identifier: Apache-2.0
/* part.h — what the server is made of: parts, a folder each, that end in their row.
 *
 *   HOST_PART(keys) = {.name = "keys", .needs = PART_NEEDS("store"), .open = keys_part_open, ...};
 *
 * A part is opened after those it needs and closed before them. Its settings are a CFG_TABLE of its
 * own, see base/cfg_table.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rows.h"

struct dialer;
struct host_slot;
struct http_req;
struct launch;
struct layout;
struct loop;
struct net;
struct route;
struct router;
struct server_config;
struct settings;

typedef void part_done(void *arg, struct err *e);

struct part_answer { /* the caller that waits for it */
    part_done *done;
    void *arg;
};

struct part_walk { /* from slot to slot, each of which may take a while */
    size_t left;
    struct part_answer answer;
};

struct host { /* what every part is lent */
    struct loop *loop;
    struct net *net;
    struct dialer *dialer;
    const struct settings *settings; /* of now: others after a reload */
    const struct server_config *config;
    const struct layout *layout;
    const struct launch *launch; /* of backend native */
    const char *url;             /* of this server, as it listens */
    bool local;                  /* it is reached from this machine alone */
    void (*on_lost)(void *host); /* no process can make or end sandboxes any more */

    /* part.c's own */
    struct host_slot *slots; /* in the order of their needs */
    size_t slot_count, open_count;
    struct part_walk begin, end;
};

struct host_part {    /* each but the name may be NULL */
    const char *name; /* by which others need it */
    const char *const *needs;
    const struct route *routes; /* owned by its state */
    size_t route_count;
    fallible (*open)(struct host *h, void **ret_state); /* the state is what the others get */
    /* The slow part of opening, after all are open; the server listens when done was called for
     * each. One after the other, in the order of opening. */
    void (*begin)(void *state, part_done *done, void *arg);
    /* h->settings are others: may they be? Nothing changes before all parts were asked. */
    fallible (*may_reload)(void *state, const struct host *h);
    void (*reload)(void *state, const struct host *h); /* and now they count */
    /* A clean end was asked for: done, without an error, when nothing of it is left to do. In the
     * order of closing. */
    void (*end)(void *state, part_done *done, void *arg);
    /* The server ends: answer every caller that waits. Called in the order of opening, while
     * clients are still connected; then each is closed. */
    void (*settle)(void *state);
    void (*close)(void *state);
    /* For the server's listener, as of a router: may this request be answered at all? */
    fallible (*auth)(void *state, struct http_req *req);
    /* Before that, and before the routes: as of a server. */
    fallible (*intercept)(void *state, struct http_req *req, const struct route **ret_route);
    void (*on_answer)(void *state, const struct http_req *req, int status, uint64_t ns);
};
#define HOST_PART(id) ROW(host_parts, struct host_part, id)
#define PART_NEEDS(...)                                                                            \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* The state of an open part; it is there, for those that need it. */
void *host_part(const struct host *h, const char *name);

/* --- for the server --- */

/* ERR_INTERNAL: one needs what is not there, or itself. */
fallible parts_open(struct host *h);
void parts_begin(struct host *h, part_done *done, void *arg);
fallible parts_reload(const struct host *h);
void parts_end(struct host *h, part_done *done, void *arg);
void parts_settle(struct host *h);
void parts_close(struct host *h); /* those that were opened */
void parts_add_routes(const struct host *h, struct router *r);
fallible parts_auth(void *host, struct http_req *req);
fallible parts_intercept(const struct host *h, struct http_req *req,
                         const struct route **ret_route);
void parts_on_answer(void *host, const struct http_req *req, int status, uint64_t ns);
/* Rows in the order of their needs, for tests and documents; NULL behind the last. To be freed. */
fallible parts_sort(const struct host_part *const *rows, size_t count,
                    const struct host_part ***ret_sorted);
