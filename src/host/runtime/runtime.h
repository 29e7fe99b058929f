// SPDX-License-Identifier: Apache-2.0
/* runtime.h — runtimes: sandboxes that clients asked for, by session, with rows that outlive us.
 *
 * A runtime has one operation under way and a queue of what is asked of it next. It is visible from
 * the moment it is asked for; an answer acknowledges it only when its row is on disk. Its id is the
 * sandbox's too, so that rows and the launcher's list can be joined after we were killed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/sm.h"
#include "host/proxy/proxy.h"
#include "host/runtime/operation.h"
#include "loop/loop.h"
#include "sandbox/sandbox.h"
#include "wire/runtime.h"
#include "wire/wants.h"

struct await;
struct http_call;
struct manager;
struct runtime;
struct tenant;

#define RUNTIME_ID_LEN  16
#define RUNTIME_KEY_LEN 43
#define RUNTIME_PORT    60000 /* of a command that does not say which */
#define RUNTIME_VSCODE  60001
#define RUNTIME_WORKER  12000 /* and the one after it */

enum runtime_status {
    RUNTIME_STARTING,
    RUNTIME_RUNNING,
    RUNTIME_PAUSED,
    RUNTIME_STOPPED,
    RUNTIME_ERROR
};

/* How it came to run. */
enum runtime_launch { RUNTIME_COLD, RUNTIME_WARM, RUNTIME_FORK, RUNTIME_AGAIN, RUNTIME_LAUNCHES };
extern const char *const runtime_launch_names[]; /* as metrics and the wire have them */

/* The phases of a start; nanoseconds. The sandbox's own phases follow in this order. */
enum runtime_phase {
    RUNTIME_PHASE_QUEUE, /* until the launcher was asked */
    RUNTIME_PHASE_CLAIM, /* of a warm one; 0: it was not warm */
    RUNTIME_PHASE_NAMESPACES,
    RUNTIME_PHASE_MOUNTS,
    RUNTIME_PHASE_EXEC,
    RUNTIME_PHASE_READY,
    RUNTIME_PHASE_ROW,           /* until its row was on disk, beside all of the above */
    RUNTIME_PHASE_FIRST_COMMAND, /* its first command, from request to answer */
    RUNTIME_PHASES
};
extern const char *const runtime_phase_names[RUNTIME_PHASES];

struct runtime_keys {                  /* see session_key.c */
    char session[RUNTIME_KEY_LEN + 1]; /* that clients show */
    char inner[RUNTIME_KEY_LEN + 1];   /* that the sandbox knows, and wants to be shown */
    char old[2][RUNTIME_KEY_LEN + 1];  /* from before session, until that is shown */
    bool forgets;                      /* old, though some are on their way to the row */
    char *far;                         /* inner, of another machine's making; NULL: none */
    char *next;                        /* session, as soon as it is on disk; NULL: none */
};

struct runtime_restarts {
    uint8_t count;
    bool server_died; /* the last of them: pid 1 started only that again */
    uint64_t died_ns; /* when that was seen, on the loop's clock; 0: never */
};

struct runtime_timeline {
    uint8_t launch, miss; /* enum runtime_launch; enum pool_miss: why it is not warm */
    uint32_t phase_us[RUNTIME_PHASES];
    uint32_t ready_us; /* from the request to a server that listens, of a start or a resume */
};

struct runtime_start {       /* how it started, or starts */
    struct list watchers;    /* struct runtime_ask: they wait for the row, and a little longer */
    struct loop_timer grace; /* so much longer */
    struct await *await;     /* for its image, which is being built; NULL: not */
    uint64_t begun_ns;       /* of a resume too */
    bool warm;               /* it is being claimed */
    bool counted;            /* the pool waits for that */
    bool answered;           /* the start was answered */
};

struct runtime_probe { /* see probe.c */
    struct loop_io io;
    struct loop_timer again;
    uint8_t tries;
    bool listens; /* on the published port */
};

struct runtime_idle { /* see idle.c */
    struct loop_timer timer, age;
    uint64_t since_ns;         /* its status is what it is */
    struct http_call *looking; /* inside, whether anything runs; NULL: not */
    struct buf *seen;          /* its answer */
    int seen_status;
    bool ran;      /* something did, at the last look */
    uint8_t tries; /* since its status changed */
};

struct runtime {
    char id[RUNTIME_ID_LEN + 1];
    struct manager *manager;
    struct tenant *tenant;
    struct list link, order; /* among the tenant's; among those that are stopped, oldest first */
    struct sm status;
    char *session_id, *image;
    char *detail, *pool; /* NULL: none; not from one */
    char *wants;         /* limits, host name, mounts it was started with, JSON; NULL: none */
    struct runtime_keys keys;
    uint64_t created_ms, changed_ms;
    int64_t row; /* its number among all that were started */
    uint16_t factor;
    uint16_t port;      /* of its listener, also when that is closed */
    uint16_t published; /* port inside of a command run as given; 0: our own server answers */
    bool durable;       /* its row is on disk */
    bool unsaid;        /* though not that it was stopped */
    bool hidden;        /* not found any more, to be dropped */
    bool lived;         /* its server listened once: what failed has files to go on with */
    struct runtime_restarts restarts;
    struct runtime_timeline timeline;
    struct sbx *sbx; /* NULL: none any more */
    struct proxy_target target;
    struct proxy_far *far;    /* ports of one elsewhere; NULL: none */
    struct operation op;      /* under way */
    struct list asks;         /* what comes next */
    char *request;            /* the id of the request for it, or for the last one; NULL: none */
    struct runtime_ask own;   /* what the idle policy asks, a shutdown, a request that waits */
    enum runtime_op own_next; /* and then this */
    struct runtime_start start;
    struct runtime_probe probe;
    struct runtime_idle idle;
    struct loop_timer note; /* that it runs, to its row */
    uint64_t looked_ns;     /* the last RUNTIME_LOOK */
};

/* Soon r->sbx->usage is of now, if it runs and nothing else is done to it. */
void runtime_measure(struct runtime *r);
/* Its limits, its own or of its factor; 0: none. */
fallible runtime_wants(const struct runtime *r, struct arena *a, struct wire_wants *ret);
/* The object of the wire; its text is in the arena or in r. */
fallible runtime_describe(const struct runtime *r, struct arena *a, struct wire_runtime *ret);
/* For its pod_logs where one is asked for, and not a list: the end of its log, if it failed. */
struct str runtime_last_words(const struct runtime *r, struct arena *a);
const char *runtime_key_name(const struct runtime *r);
/* Paused, and without a process: a resume starts it again. */
bool runtime_is_halted(const struct runtime *r);
/* The request it was started with, read from its row into the arena, which must live as long. The
 * runtime may be gone when that is done. */
typedef void runtime_spec_done(void *arg, struct wire_start *start, struct err *e);
void runtime_read_spec(const struct runtime *r, struct arena *a, runtime_spec_done *done,
                       void *arg);
