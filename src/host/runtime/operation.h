// SPDX-License-Identifier: Apache-2.0
/* operation.h — what is done to a runtime: one operation at a time, and a queue of what is asked
 * next.
 *
 * Each operation is a row of the table in operation.c: where it may begin, what the backend is
 * asked, and what its answer means. An operation ends when the backend has answered and what it
 * wrote is on disk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/sm.h"
#include "base/str.h"
#include "host/proxy/proxy.h"
#include "loop/loop.h"
#include "sandbox/sandbox.h"

struct manager;
struct runtime;
struct snapshot;
struct spec;

/* RUNTIME_HALT: its processes end, its files stay; it is paused then, and a resume starts it again.
 */
enum runtime_op {
    RUNTIME_NO_OP,
    RUNTIME_START,
    RUNTIME_PAUSE,
    RUNTIME_RESUME,
    RUNTIME_HALT,
    RUNTIME_SNAPSHOT, /* by manager_snapshot() */
    RUNTIME_MEASURE,  /* then r->sbx->usage is of now */
    RUNTIME_LOOK,     /* of one elsewhere: what it is now */
    RUNTIME_FILES,    /* ask->files and ask->text; then r->sbx->report is the answer */
    RUNTIME_REMOVE,   /* it ends for good */
    RUNTIME_CLEAR,    /* behind RUNTIME_REMOVE: its files go; never asked for */
    RUNTIME_ADOPT,    /* a sandbox of the server before us; never asked for */
};

/* e is the callee's; r is NULL when there is none. */
struct runtime_ask {
    void (*done)(struct runtime_ask *ask, struct runtime *r, struct err *e);
    enum runtime_op op;
    struct list link;
    struct loop_later now; /* a callback never comes from inside the call */
    struct runtime *runtime;
    struct sbx_waiter waiter;
    struct err *error;
    struct snapshot *snapshot; /* of RUNTIME_SNAPSHOT, until it is begun */
    struct str request;        /* its id, for the log; .p NULL: none */
    enum sbx_files files;      /* of RUNTIME_FILES */
    struct str text;           /* the same; borrowed */
};

/* Any but RUNTIME_START: done when it is so, and on disk. */
void manager_ask(struct runtime *r, enum runtime_op op, struct runtime_ask *ask);

enum operation_state {
    OPERATION_NONE,
    OPERATION_NOTED,  /* its row must be on disk before the backend is asked */
    OPERATION_QUEUED, /* until the backend may be asked */
    OPERATION_CALLED, /* the backend works */
    OPERATION_WRITING /* what it did is on its way to the disk */
};

struct operation { /* under way; all zero but state: none */
    enum runtime_op kind;
    struct sm state;
    struct runtime_ask *asked; /* NULL: none waits for it any more */
    struct list queued;        /* for the launcher */
    unsigned writes;           /* on their way to the disk */
    struct err *failed;        /* the first error of the backend and the disk */
    struct spec *spec;         /* of a start */
    struct snapshot *snapshot; /* being taken */
    struct snapshot *from;     /* being started from it */
    bool retried;              /* of a start: cold after all */
    bool looks;                /* it has one of the places to look at changes */
};

/* --- for runtime/ alone --- */

void operation_init(struct operation *op);
/* Begins one without an ask; none is under way. */
void operation_begin(struct runtime *r, enum runtime_op kind);
/* The same without its first step: operation_enqueue(), or operation_settle(), is the caller's. */
void operation_open(struct runtime *r, enum runtime_op kind);
void operation_note(struct runtime *r);    /* something is written first; then: */
void operation_enqueue(struct runtime *r); /* the backend is asked as soon as it may be */
void operation_call(struct runtime *r);    /* by the queue: now */
/* The backend is not waited for any more: it is over when all it wrote is on disk. */
void operation_settle(struct runtime *r);
void operation_fail(struct runtime *r, struct err *e); /* the first counts; takes e over */
/* A write of it is on disk, or is not; r->op.writes were begun. Takes e over. */
void operation_wrote(struct runtime *r, struct err *e);
/* It is over: its ask is answered, the next one begins. */
void operation_finish(struct runtime *r);
/* Begins what the ask says. NULL and *ret_begun false: it is so already. */
fallible operation_try(struct runtime *r, struct runtime_ask *ask, bool *ret_begun);
bool operation_is_so(const struct runtime *r, enum runtime_op kind);
void runtime_clear(struct runtime *r); /* the files of one that is removed go, behind everybody */

/* The state the proxy gets while the backend works; 0: the status decides. */
enum proxy_state operation_proxy(const struct runtime *r);
bool operation_awaits_row(const struct runtime *r); /* it is over when its row is on disk */
bool operation_tells_end(const struct runtime *r); /* should the sandbox end now, its answer does */

/* --- asks.c --- */
#define NOTHING_BEGUN "nothing was begun, try again"
void runtime_ask_own(struct runtime *r, enum runtime_op op); /* by the server itself */
void runtime_refuse_all(struct runtime *r);
void runtime_next(struct runtime *r); /* what is asked next, if nothing is under way */
void runtime_answer(struct runtime_ask *ask, struct runtime *r, struct err *e);
void runtime_answer_later(struct runtime_ask *ask, struct runtime *r, struct err *e);

/* --- steps that are elsewhere --- */

/* start.c */
fallible start_call(struct sbx *s, sbx_done *done, void *arg);
bool start_answered(struct runtime *r, const struct err *e);
void start_end(struct runtime *r);

/* snapshots.c */
void snapshot_begin(struct runtime *r);
fallible snapshot_call(struct sbx *s, sbx_done *done, void *arg);
bool snapshot_answered(struct runtime *r, const struct err *e);
void snapshot_end(struct runtime *r);

/* adopt.c */
bool adopt_answered(struct runtime *r, const struct err *e);
void adopt_end(struct runtime *r);
