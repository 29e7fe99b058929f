// SPDX-License-Identifier: Apache-2.0
/* change.c — what is done to a runtime that there is: pause, resume, stop; what is asked of it
 * next. */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/own.h"
#include "host/runtime/inner.h"

static uint64_t now_ns(const struct runtime *r)
{
    return clock_mono_ns(loop_clock(r->manager->config.loop));
}

/* --- pause and resume --- */

/* It ended meanwhile: why is the story, and not that it cannot be paused then. */
static fallible story_of(struct runtime *r, const struct err *e)
{
    if (r->sbx->state.now != SBX_STOPPED)
        return err_copy(e);
    struct err *why = r->sbx->failure ? err_new(ERR_CONFLICT, "%s", r->sbx->failure) : err_copy(e);
    if (r->status.now != RUNTIME_ERROR)
        runtime_fail(r, why);
    return err_wrap(why, "runtime '%s' has ended", r->id);
}

static void on_half_row(void *arg, struct err *e)
{
    struct runtime *r = arg;

    if (runtime_half_done(r, PENDING_ROW, e))
        runtime_finish(r, take(&r->failed));
}

static void on_paused(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;

    (void)s;
    queue_leave(r->manager);
    if (!e) {
        r->manager->counters.pauses++;
        runtime_move(r, RUNTIME_PAUSED);
        manager_emit(r, RUNTIME_EVENT_PAUSED, "its processes stand still until it is resumed");
        row_update(r, on_half_row);
    } else if (r->sbx->state.now != SBX_STOPPED)
        proxy_set_state(r->manager->config.proxy, &r->target, PROXY_OPEN);
    if (e)
        r->pending &= ~(unsigned)PENDING_ROW;
    if (runtime_half_done(r, PENDING_SANDBOX, e ? story_of(r, e) : NULL))
        runtime_finish(r, take(&r->failed));
}

static void pass_pause(struct runtime *r)
{
    struct err *e = sbx_pause(r->sbx, on_paused, r);

    if (!e)
        return;
    on_paused(r, r->sbx, e);
    err_free(e);
}

static void on_half_key(void *arg, struct err *e)
{
    struct runtime *r = arg;

    runtime_rotated(r, e);
    if (runtime_half_done(r, PENDING_KEY, e))
        runtime_finish(r, take(&r->failed));
}

static void tell_resumed(struct runtime *r)
{
    r->manager->counters.resumes++;
    runtime_move(r, RUNTIME_RUNNING);
    r->ready_us = (uint32_t)((now_ns(r) - r->begun_ns) / 1000);
    manager_emit(r, RUNTIME_EVENT_READY, "");
    runtime_rotate_key(r, on_half_key);
}

static void on_resumed(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;

    (void)s;
    queue_leave(r->manager);
    if (!e) {
        err_free(runtime_set_addresses(r));   /* of one that was adopted paused; it runs now */
        if (r->status.now != RUNTIME_RUNNING) /* else it was only asked after */
            tell_resumed(r);
        proxy_set_state(r->manager->config.proxy, &r->target, PROXY_OPEN);
        row_update(r, on_half_row);
    }
    if (e && r->status.now == RUNTIME_RUNNING && r->sbx->state.now == SBX_PAUSED) {
        runtime_move(r, RUNTIME_PAUSED); /* or nobody can tell: then it is to be asked for again */
        proxy_set_state(r->manager->config.proxy, &r->target, PROXY_PAUSED);
        row_update(r, NULL);
    }
    if (e)
        r->pending &= ~(unsigned)PENDING_ROW;
    if (runtime_half_done(r, PENDING_SANDBOX, e ? story_of(r, e) : NULL))
        runtime_finish(r, take(&r->failed));
}

static void pass_resume(struct runtime *r)
{
    struct err *e = sbx_resume(r->sbx, on_resumed, r);

    if (!e)
        return;
    on_resumed(r, r->sbx, e);
    err_free(e);
}

/* --- halt: its processes end, its files stay --- */

#define HALTED "its processes were ended, its files are kept"

static void on_halted(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;
    bool dead = !e || s->state.now == SBX_STOPPED;

    queue_leave(r->manager);
    if (dead) {
        r->manager->counters.pauses++;
        runtime_set_detail(r, HALTED);
        if (r->status.now == RUNTIME_PAUSED)
            idle_watch(r);
        else
            runtime_move(r, RUNTIME_PAUSED);
        manager_emit(r, RUNTIME_EVENT_PAUSED, HALTED);
        row_update(r, on_half_row);
    } else {
        proxy_set_state(r->manager->config.proxy, &r->target,
                        s->state.now == SBX_PAUSED ? PROXY_PAUSED : PROXY_OPEN);
        r->pending &= ~(unsigned)PENDING_ROW;
    }
    if (runtime_half_done(r, PENDING_SANDBOX, dead ? NULL : err_copy(e)))
        runtime_finish(r, take(&r->failed));
}

static void pass_halt(struct runtime *r)
{
    struct err *e = sbx_stop(r->sbx, on_halted, r);

    if (!e)
        return;
    on_halted(r, r->sbx, e); /* it ended meanwhile, or there is nobody to ask */
    err_free(e);
}

/* --- measure --- */

static void on_measured(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;

    (void)s;
    queue_leave(r->manager);
    runtime_finish(r, e ? err_copy(e) : NULL);
}

static void pass_measure(struct runtime *r)
{
    struct err *e = sbx_measure(r->sbx, on_measured, r);

    if (!e)
        return;
    on_measured(r, r->sbx, e);
    err_free(e);
}

/* --- look: of one elsewhere, whether it was paused or resumed there --- */

static void on_looked(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;
    struct proxy *proxy = r->manager->config.proxy;

    queue_leave(r->manager);
    if (s->state.now == SBX_PAUSED && r->status.now == RUNTIME_RUNNING) {
        runtime_set_detail(r, "it was paused at the other server");
        runtime_move(r, RUNTIME_PAUSED);
        proxy_set_state(proxy, &r->target, PROXY_PAUSED);
        manager_emit(r, RUNTIME_EVENT_PAUSED, r->detail);
        row_update(r, NULL);
    } else if (s->state.now == SBX_RUNNING && r->status.now == RUNTIME_PAUSED) {
        err_free(runtime_set_addresses(r)); /* it runs, so it has one */
        runtime_move(r, RUNTIME_RUNNING);
        proxy_set_state(proxy, &r->target, PROXY_OPEN);
        manager_emit(r, RUNTIME_EVENT_READY, "");
        row_update(r, NULL);
    }
    runtime_finish(r, e ? err_copy(e) : NULL);
}

static void pass_look(struct runtime *r)
{
    own(err) e = sbx_look(r->sbx, on_looked, r);

    if (e)
        on_looked(r, r->sbx, e);
}

/* --- its changes --- */

static void pass_files(struct runtime *r)
{
    struct err *e = r->asked ? sbx_files(r->sbx, r->asked->files, r->asked->text, on_measured, r)
                             : err_new(ERR_CLOSED, "nobody asks any more");

    if (!e)
        return;
    on_measured(r, r->sbx, e);
    err_free(e);
}

/* What is mounted cannot be taken away from under its processes. */
static fallible may_work_on_files(const struct runtime *r)
{
    bool back = r->asked->files == SBX_FILES_ROLLBACK;

    if (!r->sbx || r->status.now == RUNTIME_STARTING || r->status.now == RUNTIME_STOPPED)
        return err_new(ERR_CONFLICT, "sandbox '%s' is %s: it has no files to look at", r->id,
                       sm_name(&r->status));
    if (back && r->sbx->state.now != SBX_STOPPED)
        return err_new(ERR_CONFLICT,
                       "sandbox '%s' has processes that use its files: stop it first ('croft stop' "
                       "keeps the files), then roll back, then resume",
                       r->id);
    return NULL;
}

/* A tenant has no more places than it leaves free, so that each that comes finds one: of four the
 * first may have two, the second one, and there is one for a third. */
static fallible take_place(struct runtime *r)
{
    struct manager *m = r->manager;
    struct tenant *t = r->tenant;

    if (r->asked->files == SBX_FILES_ROLLBACK)
        return NULL;
    if (keys_any(m->config.keys) && t->looking + m->looking >= SBX_LOOKS_AT_ONCE)
        return err_new(ERR_BUSY,
                       "the changes of as many sandboxes are being looked at as may be at once, "
                       "%u of them of key '%s': try again",
                       t->looking, t->name);
    t->looking++;
    m->looking++;
    r->looks = true;
    return NULL;
}

/* --- remove --- */

static void end_remove(struct runtime *r)
{
    struct err *e = take(&r->failed);

    if (e && r->sbx && r->sbx->state.now != SBX_STOPPED && r->sbx->state.now != SBX_CREATED) {
        runtime_finish(r, e); /* it lives: nothing is said that is not so */
        return;
    }
    runtime_finish(r, e);
    runtime_remove_sandbox(r);
}

static void on_remove_row(void *arg, struct err *e)
{
    struct runtime *r = arg;

    r->unsaid = e != NULL; /* who asks once more has it written */
    if (runtime_half_done(r, PENDING_ROW, e))
        end_remove(r);
}

static void sandbox_ended(struct runtime *r)
{
    own_free char *was = r->status.now == RUNTIME_ERROR ? take(&r->detail) : NULL;

    if (r->status.now != RUNTIME_STOPPED) {
        runtime_move(r, RUNTIME_STOPPED);
        runtime_set_detail(r, "it was stopped, its files are gone%s%s",
                           was ? "; before that: " : "", was ? was : "");
        r->manager->counters.stops++;
        manager_emit(r, RUNTIME_EVENT_STOPPED, r->detail);
    }
    if (r->durable)
        row_update(r, on_remove_row);
    else
        r->pending &= ~(unsigned)PENDING_ROW;
}

static void on_ended(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;

    queue_leave(r->manager);
    bool dead = !e || s->state.now == SBX_STOPPED;
    if (dead)
        sandbox_ended(r);
    else
        r->pending &= ~(unsigned)PENDING_ROW;
    if (runtime_half_done(r, PENDING_SANDBOX, dead ? NULL : err_copy(e)))
        end_remove(r);
}

static void pass_remove(struct runtime *r)
{
    struct err *e = sbx_stop(r->sbx, on_ended, r);

    if (!e)
        return;
    on_ended(r, r->sbx, e); /* it ended meanwhile, or there is nobody to ask */
    err_free(e);
}

static void begin_remove(struct runtime *r)
{
    r->pending = PENDING_ROW | PENDING_SANDBOX;
    proxy_remove(r->manager->config.proxy, &r->target);
    if (r->sbx && (r->sbx->state.now == SBX_RUNNING || r->sbx->state.now == SBX_PAUSED ||
                   r->sbx->state.now == SBX_WARM)) {
        queue_wait(r, true, pass_remove);
        return;
    }
    sandbox_ended(r);
    if (runtime_half_done(r, PENDING_SANDBOX, NULL))
        end_remove(r);
}

/* --- what is asked next --- */

/* It has ended, and a resume starts it like a new one. */
static bool has_ended(const struct runtime *r)
{
    return r->sbx && (r->status.now == RUNTIME_ERROR || runtime_is_halted(r));
}

static fallible may_resume(const struct runtime *r)
{
    if (r->manager->ending)
        return err_new(ERR_BUSY, "the server is being stopped");
    TRY(runtime_check_mounts(r));
    if (!has_ended(r))
        return NULL;
    TRY(start_check_queue(r->manager));
    return keys_admit_again(r->manager->config.keys, str_of(r->tenant->name));
}

static fallible may_begin(const struct runtime *r, enum runtime_op op)
{
    if (op == RUNTIME_HALT && r->manager->config.driver->forgets)
        return err_new(ERR_UNSUPPORTED,
                       "the server of sandbox '%s' keeps no files of what is stopped: pause or "
                       "delete it",
                       r->id);
    return op == RUNTIME_RESUME ? may_resume(r) : NULL;
}

/* False: not as it is now. */
static bool change_proceed(struct runtime *r, enum runtime_op op, unsigned now)
{
    if (op == RUNTIME_LOOK)
        queue_wait(r, true, pass_look);
    else if (op == RUNTIME_REMOVE)
        begin_remove(r);
    else if (op == RUNTIME_PAUSE && now == RUNTIME_RUNNING) {
        proxy_set_state(r->manager->config.proxy, &r->target, PROXY_PAUSED);
        queue_wait(r, true, pass_pause);
    } else if (op == RUNTIME_HALT && (now == RUNTIME_RUNNING || now == RUNTIME_PAUSED)) {
        proxy_set_state(r->manager->config.proxy, &r->target, PROXY_PAUSED);
        queue_wait(r, true, pass_halt);
    } else if (op == RUNTIME_RESUME && now == RUNTIME_PAUSED && !runtime_is_halted(r))
        queue_wait(r, true, pass_resume);
    else if (op == RUNTIME_RESUME && now == RUNTIME_RUNNING) {
        sbx_found_paused(r->sbx); /* or so it seems to who asks for it */
        queue_wait(r, true, pass_resume);
    } else if (op == RUNTIME_RESUME && has_ended(r))
        runtime_begin_again(r);
    else if (op == RUNTIME_MEASURE && !runtime_is_halted(r) &&
             (now == RUNTIME_RUNNING || now == RUNTIME_PAUSED))
        queue_wait(r, r->asked != &r->own, pass_measure); /* a page of many is nobody in a hurry */
    else if (op == RUNTIME_SNAPSHOT && (now == RUNTIME_RUNNING || now == RUNTIME_PAUSED))
        runtime_begin_snapshot(r, take(&r->asked->snapshot));
    else
        return false;
    return true;
}

static fallible not_now(const struct runtime *r, enum runtime_op op)
{
    return err_new(ERR_CONFLICT, "runtime '%s' is %s: it cannot be %s", r->id, sm_name(&r->status),
                   op == RUNTIME_PAUSE      ? "paused"
                   : op == RUNTIME_HALT     ? "stopped"
                   : op == RUNTIME_SNAPSHOT ? "kept as a snapshot"
                   : op == RUNTIME_MEASURE  ? "measured"
                                            : "resumed");
}

#define NOT_BEGUN "nothing was begun, try again"

/* NULL and false: there is nothing to do, which is fine. */
static fallible change_begin(struct runtime *r, enum runtime_op op, bool *ret_begun)
{
    unsigned now = r->status.now;
    bool same =
        (op == RUNTIME_REMOVE && now == RUNTIME_STOPPED && !r->unsaid && (!r->sbx || r->durable)) ||
        (op == RUNTIME_PAUSE && now == RUNTIME_PAUSED) ||
        (op == RUNTIME_HALT && runtime_is_halted(r)) ||
        (op == RUNTIME_RESUME && now == RUNTIME_RUNNING && !runtime_is_far(r)) ||
        (op == RUNTIME_LOOK && now != RUNTIME_RUNNING && now != RUNTIME_PAUSED);

    *ret_begun = false;
    if (same)
        return NULL;
    if (r->asked != &r->own)
        TRY(sbx_check_silent(r->manager->config.driver, NOT_BEGUN));
    if (op == RUNTIME_FILES) {
        struct err *e = may_work_on_files(r);
        if (!e)
            e = take_place(r);
        *ret_begun = !e;
        if (!e) {
            r->op = op;
            queue_wait(r, true, pass_files);
        }
        return e;
    }
    TRY(may_begin(r, op));
    *ret_begun = true;
    if (op == RUNTIME_RESUME)
        r->begun_ns = now_ns(r);
    r->op = op;
    r->pending = PENDING_ROW | PENDING_SANDBOX;
    if (change_proceed(r, op, now))
        return NULL;
    r->op = RUNTIME_NO_OP;
    r->pending = 0;
    *ret_begun = false;
    return not_now(r, op);
}

void runtime_next(struct runtime *r)
{
    while (!r->op && !list_empty(&r->asks)) {
        struct runtime_ask *ask = LIST_FIRST(&r->asks, struct runtime_ask, link);
        bool begun;

        list_del(&ask->link);
        r->asked = ask;
        runtime_set_request(r, ask->request);
        struct err *e = change_begin(r, ask->op, &begun);
        if (begun && !e)
            continue; /* it may have ended at once */
        r->asked = NULL;
        runtime_drop_snapshot(ask);
        runtime_answer_later(ask, r, e);
    }
}

/* Of one that is dropped. */
void runtime_refuse_all(struct runtime *r)
{
    LIST_EACH(ask, &r->asks, struct runtime_ask, link) {
        list_del(&ask->link);
        runtime_drop_snapshot(ask);
        runtime_answer(ask, NULL, err_new(ERR_NOT_FOUND, "runtime '%s' is gone", r->id));
    }
}

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

/* While the one before is not done the newest waits, but nothing takes the place of a stop. */
void runtime_ask_own(struct runtime *r, enum runtime_op op)
{
    if (r->own.op) {
        r->own_next = r->own_next == RUNTIME_REMOVE ? RUNTIME_REMOVE : op;
        return;
    }
    r->own.done = on_own;
    manager_ask(r, op, &r->own);
}

/* What is under way goes on without him; what is not is not begun for nobody. */
static void on_give_up(struct sbx_waiter *w)
{
    struct runtime_ask *ask = container_of(w, struct runtime_ask, waiter);
    struct runtime *r = ask->runtime;
    bool begun = r->asked == ask;

    if (begun)
        r->asked = NULL;
    else
        list_del(&ask->link);
    runtime_drop_snapshot(ask);
    runtime_answer(ask, r,
                   sbx_check_silent(r->manager->config.driver,
                                    begun ? "what was asked may be done when it answers again, "
                                            "look then or ask once more"
                                          : NOT_BEGUN));
}

/* Behind what does not go on there is nothing to wait for. */
static fallible may_wait(struct runtime *r, struct runtime_ask *ask)
{
    struct sbx_driver *d = r->manager->config.driver;

    if (ask == &r->own)
        return NULL;
    if (r->op)
        TRY(sbx_check_silent(d, NOT_BEGUN));
    return sbx_wait(d, &ask->waiter, on_give_up);
}

void manager_ask(struct runtime *r, enum runtime_op op, struct runtime_ask *ask)
{
    struct err *e = may_wait(r, ask);

    ask->op = op;
    ask->runtime = r;
    if (e) {
        runtime_drop_snapshot(ask);
        runtime_answer_later(ask, r, e);
        return;
    }
    list_add(&r->asks, &ask->link);
    runtime_next(r);
}
