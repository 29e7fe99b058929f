// SPDX-License-Identifier: Apache-2.0
/* asks.c — asks of a runtime wait their turn; each is answered once. */
#include "base/log.h"
#include "base/own.h"
#include "host/runtime/inner.h"
#include "host/runtime/snapshots.h"

/* --- answers --- */

void runtime_answer(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    sbx_wait_over(&ask->waiter);
    ask->op = RUNTIME_NO_OP;
    ask->done(ask, r, e);
}

static void on_answer_now(struct loop_later *l)
{
    struct runtime_ask *ask = container_of(l, struct runtime_ask, now);

    runtime_answer(ask, ask->runtime, take(&ask->error));
}

void runtime_answer_later(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    sbx_wait_over(&ask->waiter);
    ask->runtime = r;
    ask->error = e;
    loop_later(r->manager->config.loop, &ask->now, on_answer_now);
}

/* --- turns --- */

void runtime_next(struct runtime *r)
{
    while (!r->op.kind && !list_empty(&r->asks)) {
        struct runtime_ask *ask = LIST_FIRST(&r->asks, struct runtime_ask, link);
        bool begun;

        list_del(&ask->link);
        runtime_set_request(r, ask->request);
        struct err *e = operation_try(r, ask, &begun);
        if (begun)
            continue; /* it may have ended at once */
        runtime_drop_snapshot(ask);
        runtime_answer_later(ask, r, e);
    }
}

/* An operation that runs goes on. One that waits is dropped. */
static void on_give_up(struct sbx_waiter *w)
{
    struct runtime_ask *ask = container_of(w, struct runtime_ask, waiter);
    struct runtime *r = ask->runtime;
    bool begun = r->op.asked == ask;

    if (begun)
        r->op.asked = NULL;
    else
        list_del(&ask->link);
    runtime_drop_snapshot(ask);
    runtime_answer(ask, r,
                   sbx_check_silent(r->manager->config.driver,
                                    begun ? "what was asked may be done when it answers again, "
                                            "look then or ask once more"
                                          : NOTHING_BEGUN));
}

/* Behind an operation that does not go on there is nothing to wait for. */
static fallible may_wait(struct runtime *r, struct runtime_ask *ask)
{
    struct sbx_driver *d = r->manager->config.driver;

    if (ask == &r->own)
        return NULL;
    if (r->op.kind)
        TRY(sbx_check_silent(d, NOTHING_BEGUN));
    return sbx_wait(d, &ask->waiter, on_give_up);
}

void manager_ask(struct runtime *r, enum runtime_op op, struct runtime_ask *ask)
{
    bool gone = op == RUNTIME_REMOVE && operation_is_so(r, op); /* its files may be on their way */
    struct err *e = gone ? NULL : may_wait(r, ask);

    ask->op = op;
    ask->runtime = r;
    if (gone || e) {
        runtime_drop_snapshot(ask);
        runtime_answer_later(ask, r, e);
        return;
    }
    list_add(&r->asks, &ask->link);
    runtime_next(r);
}

/* Its runtime is dropped. */
void runtime_refuse_all(struct runtime *r)
{
    LIST_EACH(ask, &r->asks, struct runtime_ask, link) {
        list_del(&ask->link);
        runtime_drop_snapshot(ask);
        runtime_answer(ask, NULL, err_new(ERR_NOT_FOUND, "runtime '%s' is gone", r->id));
    }
}

/* --- what the server asks itself --- */

static void on_own(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    enum runtime_op next = r ? r->own_next : RUNTIME_NO_OP;

    (void)ask;
    if (e)
        log_warn("runtime not changed", KV("id", r ? r->id : "?"), KV_ERR(e));
    if (e && r)
        r->target.woken = false; /* if it was to be: the next request asks again */
    err_free(e);
    if (!next)
        return;
    r->own_next = RUNTIME_NO_OP;
    runtime_ask_own(r, next);
}

/* While the one before is not done the newest waits, but nothing takes the place of a removal. */
void runtime_ask_own(struct runtime *r, enum runtime_op op)
{
    if (r->own.op) {
        r->own_next = r->own_next == RUNTIME_REMOVE ? RUNTIME_REMOVE : op;
        return;
    }
    r->own.done = on_own;
    manager_ask(r, op, &r->own);
}
