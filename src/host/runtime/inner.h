// SPDX-License-Identifier: Apache-2.0
/* inner.h — the manager and its tenants, for the files of runtime/, included by no other. */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "host/keys/keys.h"
#include "host/runtime/events.h"
#include "host/runtime/manager.h"
#include "host/runtime/pool_inner.h"
#include "host/runtime/runtime.h"
#include "host/store/store.h"

/* Requests the launcher has at once. Its socket holds 26; a few more come past the queue: questions
 * (4), builds (4), the ends of what does not listen. */
#define LAUNCHER_MOST     16
#define LAUNCHER_FAR_MOST 1024 /* of sandboxes elsewhere: calls under way */

struct tenant {
    char name[KEY_NAME_SIZE];
    struct map sessions; /* of struct runtime; stopped ones too until they are replaced */
    struct list runtimes;
    struct list line;    /* its starts in line */
    struct list in_turn; /* among the tenants that have some */
    unsigned live;       /* not stopped */
    unsigned looking;    /* of its runtimes whose changes are being read */
    uint32_t parked;     /* requests that wait for one of them; the proxy counts */
};

struct line {                 /* see line.c */
    struct list tenants;      /* that have starts in line, in turn */
    unsigned count;           /* starts */
    struct sbx_waiter waiter; /* for all of them */
    struct loop_later turn;
};

struct queue {                   /* see queue.c */
    unsigned called;             /* requests the launcher has now */
    struct list urgent, waiting; /* operations */
    struct loop_later next;
};

struct manager {
    struct manager_config config;
    struct map ids, tenants;
    struct list stopped; /* oldest first */
    unsigned stopped_count, live, looking;
    unsigned starting; /* that the backend has not answered */
    struct list awaits;
    int64_t last_row;

    struct line line;
    struct queue queue;
    struct pools pools;
    struct list snapshots;
    bool swept; /* unwanted snapshots of the server before us */

    struct runtime_counters counters;

    struct list unknowns; /* sandboxes without rows, being ended */
    unsigned unknown_count;
    struct adopting *adopting;
    bool ending;
    uint64_t stops_before; /* that it was */
    void (*ended)(void *arg);
    void *ended_arg;
    struct loop_later check_end;
};

/* --- manager.c --- */
struct tenant *tenant_get(struct manager *m, const char *name); /* made when it is new */
/* Found from now on, instead of the session's old one. */
void manager_add(struct manager *m, struct runtime *r);
void manager_drop(struct runtime *r);  /* forgets it and frees it */
void manager_prune(struct manager *m); /* forgets the oldest of those that were stopped */
/* Not found any more, until it is dropped. */
void manager_hide(struct runtime *r);
void manager_check_end(struct manager *m);
void manager_end_one(struct runtime *r); /* of a manager that is ending: unless it is to stay */
uint64_t manager_now_ms(const struct manager *m);
uint64_t manager_mono_ns(const struct manager *m);
void adopting_free(struct manager *m); /* adopt.c: of one that ends amid it */

/* --- runtime.c --- */
struct runtime *runtime_new(struct manager *m, struct tenant *t, const char *id,
                            enum runtime_status status);
void runtime_free(struct runtime *r); /* of one that was never added */
/* Moves its status. Counts, the proxy, requests that wait for a start, an event with the reason,
 * and the row follow. why NULL: no event; and no row, if it has this status already. */
void runtime_enter(struct runtime *r, enum runtime_status status, const char *why);
void runtime_fail(struct runtime *r, const struct err *e); /* it is in error, and why */
void runtime_tell_proxy(struct runtime *r);
void runtime_note_running(struct runtime *r); /* to its row, soon */
bool runtime_is_live(const struct runtime *r);
void runtime_set_text(char **to, const char *text);
void runtime_set_request(struct runtime *r, struct str id);
void runtime_set_detail(struct runtime *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void runtime_make_id(char id[RUNTIME_ID_LEN + 1]);

/* --- queue.c --- */
/* May its operation be called now? If not, operation_call() comes as soon as it may. */
bool queue_enter(struct runtime *r, bool urgent);
/* For the pools: only when nothing else waits. */
bool queue_try(struct manager *m);
void queue_leave(struct manager *m);
unsigned queue_most(const struct manager *m);

/* Its sandbox is another machine's: what was known of it may have changed there. */
static inline bool runtime_is_far(const struct runtime *r)
{
    return !(r->manager->config.driver->caps & SBX_IS_HERE);
}

/* It could not be asked for when this server started: it may well live, as it was. */
static inline bool runtime_is_out_of_reach(const struct runtime *r)
{
    return runtime_is_far(r) && r->status.now == RUNTIME_ERROR && r->lived && r->sbx &&
           r->sbx->state.now == SBX_CREATED;
}

/* Our own end is no reason to end it. */
static inline bool runtime_stays_there(const struct runtime *r)
{
    return (runtime_is_far(r) && r->op.kind == RUNTIME_ADOPT) ||
           (runtime_is_far(r) && r->status.now == RUNTIME_PAUSED) || runtime_is_out_of_reach(r);
}
