// SPDX-License-Identifier: Apache-2.0
/* inner.h — for the files of the proxy alone. */
#pragma once

#include "base/map.h"
#include "host/proxy/name.h"
#include "host/proxy/proxy.h"
#include "net/http.h"
#include "net/server.h"
#include "net/url.h"
#include "out/dial.h"
#include "out/retry.h"

#define IDLE_PER_TARGET   8   /* unused connections to one sandbox */
#define PARKED_PER_TARGET 128 /* so that one sandbox does not take the room of all */
#define SPARE_CALLS       64  /* kept for the next requests */
#define SPARE_PORTS       16  /* opened before a start waits for one, */
#define SPARE_MS          3   /* and so long after one was taken */
#define CLOSED_PORTS      256 /* of sandboxes that are gone, which say so */

struct proxy_port {
    struct http_listener *listener;
    uint64_t tag; /* has no target yet: a request gets the answer for one that is gone */
    uint16_t port;
};

struct closed_port {
    struct http_listener *listener; /* NULL: a new target needed its port */
    uint64_t until_ns;
    uint16_t port;
};

struct proxy {
    struct proxy_config config;
    struct proxy_watch watch;
    struct net *net;
    struct loop *loop;
    struct http_server *server; /* of all listeners */
    struct map by_id, by_tag;
    struct list targets;
    uint64_t last_tag;
    uint16_t next_port;
    struct proxy_port ports[SPARE_PORTS]; /* without a target yet */
    unsigned port_count;
    struct loop_timer more_ports;
    struct closed_port closed[CLOSED_PORTS]; /* a ring, oldest first */
    unsigned closed_first, closed_count;
    struct loop_timer closed_timer;
    uint32_t parked;
    struct call *spare;
    unsigned spare_count;
    struct buf scratch; /* heads are put together here */
    struct proxy_stats stats;
};

enum call_state {
    CALL_WAIT,   /* for the sandbox */
    CALL_DIAL,   /* for a connection */
    CALL_TUNNEL, /* for pid 1 to reach the port inside */
    CALL_HEAD,   /* for the answer */
    CALL_BODY,
};

/* How a request is counted. COUNT_SHELL: not as an action, but as a command. */
enum count_kind { COUNT_NOTHING, COUNT_ACTION, COUNT_RUN, COUNT_SHELL, COUNT_LIVE };

struct call { /* one request and its answer */
    struct proxy *p;
    struct proxy_target *target;
    struct http_req *req;
    struct list link;
    struct call *next_spare;
    struct dial *dial;
    struct stream *stream; /* to the sandbox; NULL: not yet */
    struct loop_timer timer;
    struct str head;   /* of the request, as it goes in; in its arena */
    struct str prefix; /* taken off the path */
    struct http_body in;
    size_t scanned;
    uint64_t begun_ns; /* of a first command; 0: it is none, or not well */
    uint64_t asked_ns, taken_ns;
    const char *action, *result; /* as they are counted; NULL: not known yet */
    uint8_t kind, marked;        /* enum count_kind; of the mark of an answer that was cut */
    bool look, output, may_be_cut, whole;
    unsigned interim;
    struct attempts dials; /* on a full backlog */
    uint16_t inside;       /* port; 0: the sandbox's server */
    uint8_t state;
    bool parked, reused, retried;
    bool answered; /* a byte came from inside */
    bool body_ended, keep_alive, half_closed;
};

/* call.c: takes the request over. */
fallible call_take(struct proxy *p, struct proxy_target *t, struct http_req *req, uint16_t inside,
                   const struct proxy_name *name);
void call_cut(struct call *c, struct err *e); /* answers e if that is still possible */
void call_free_spares(struct proxy *p);
void call_open(struct call *c, struct stream *s, bool reused); /* up.c has a connection */
void call_fail(struct call *c, struct err *e);
/* Lets go of everything but the request, which is given back to be answered. */
struct http_req *call_end(struct call *c);

/* wait.c: requests whose sandbox cannot take them yet. */
void call_go_on(struct call *c);           /* its target's state changed */
void call_resumed(struct proxy_target *t); /* for calls that were under way */
void call_set_timer(struct call *c, uint32_t ms);
void call_unpark(struct call *c);                                              /* if it is */
void call_reply_later(struct proxy *p, struct http_req *req, const char *why); /* 503 */
/* The processes that it was sent to were ended by order, or those that follow do not run yet. */
bool call_is_put_off(const struct call *c);
/* The request waits as a new one, or is told to come back. One that must not be repeated is told to
 * come back: its answer went with the processes, and its client alone can send it again. */
void call_put_off(struct call *c, bool again);

/* count.c: sees what passes; each call costs a comparison when nothing is counted. */
void count_begin(struct call *c);
void count_asked(struct call *c, struct str piece);
void count_head(struct call *c, const struct http_head *h);
void count_answered(struct call *c, struct str piece);
void count_end(const struct call *c);

/* up.c: connections to sandboxes */
/* Is it elsewhere, and where? False: it is here. */
bool up_is_far(const struct call *c, struct url *ret_url);
void up_connect(struct call *c);
void up_keep(struct call *c); /* for the next one; takes c->stream */
void up_drop_idle(struct proxy_target *t);

/* closed_port.c */
void closed_port_add(struct proxy *p, struct http_listener *l, uint16_t port); /* takes l over */
void closed_port_drop(struct proxy *p, uint16_t port);                         /* if it is one */
void closed_ports_drop_all(struct proxy *p);

/* head.c: heads as they go in and come out. */
fallible head_to_sandbox(const struct call *c, const struct proxy_name *name, struct str *ret_head);
/* The same for a sandbox of another server: its url is known only now. */
fallible head_to_far(const struct call *c, struct str *head);
void head_to_client(const struct call *c, const struct http_head *h);
struct str head_of_upgrade(const struct call *c, const struct http_head *h); /* 101; in scratch */

/* relay.c: both streams are taken over. */
void relay_start(struct proxy *p, struct proxy_target *t, struct stream *client,
                 struct stream *inside);
void relay_close_all(struct proxy_target *t);
