// SPDX-License-Identifier: Apache-2.0
/* operation.c — the table of what can be done to a runtime, and how one of these is carried out.
 *
 * begin, queue, call, answer, write, end: each function below is one of these steps, for all. */
#include "host/runtime/operation.h"

#include "base/log.h"
#include "base/own.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/snapshots.h"
#include "host/runtime/start.h"

static const struct sm_state states[] = {
    [OPERATION_NONE] = {"none", TO(OPERATION_NOTED) | TO(OPERATION_QUEUED) | TO(OPERATION_WRITING)},
    [OPERATION_NOTED] = {"noted", TO(OPERATION_QUEUED) | TO(OPERATION_WRITING)},
    [OPERATION_QUEUED] = {"queued", TO(OPERATION_CALLED)},
    [OPERATION_CALLED] = {"called", TO(OPERATION_QUEUED) | TO(OPERATION_WRITING)},
    [OPERATION_WRITING] = {"writing", TO(OPERATION_NONE)},
};

/* --- pause, resume, halt: what the backend's answer means --- */

/* If it ended meanwhile, the answer says why it ended. */
static void fail_with_its_end(struct runtime *r, const struct err *e)
{
    if (r->sbx->state.now != SBX_STOPPED) {
        operation_fail(r, err_copy(e));
        return;
    }
    struct err *why = r->sbx->failure ? err_new(ERR_CONFLICT, "%s", r->sbx->failure) : err_copy(e);
    if (r->status.now != RUNTIME_ERROR)
        runtime_fail(r, why);
    operation_fail(r, err_wrap(why, "runtime '%s' has ended", r->id));
}

static bool pause_answered(struct runtime *r, const struct err *e)
{
    if (e) {
        fail_with_its_end(r, e);
        return true;
    }
    r->manager->counters.pauses++;
    runtime_enter(r, RUNTIME_PAUSED, "its processes stand still until it is resumed");
    return true;
}

/* It has ended, and a resume starts it like a new one. */
static bool has_ended(const struct runtime *r)
{
    return r->sbx && (r->status.now == RUNTIME_ERROR || runtime_is_halted(r));
}

static fallible resume_may(struct runtime *r)
{
    if (r->manager->ending)
        return err_new(ERR_BUSY, "the server is being stopped");
    TRY(runtime_check_mounts(r));
    if (!has_ended(r))
        return NULL;
    return keys_admit_again(r->manager->config.keys, str_of(r->tenant->name));
}

static void resume_begin(struct runtime *r)
{
    r->start.begun_ns = manager_mono_ns(r->manager);
    if (has_ended(r)) {
        start_again(r);
        return;
    }
    if (r->status.now == RUNTIME_RUNNING)
        sbx_found_paused(r->sbx); /* elsewhere; or so it seems to the client */
    operation_enqueue(r);
}

static bool resume_answered(struct runtime *r, const struct err *e)
{
    if (e) {
        if (r->status.now == RUNTIME_RUNNING && r->sbx->state.now == SBX_PAUSED)
            runtime_enter(r, RUNTIME_PAUSED, NULL); /* it is to be asked for again */
        fail_with_its_end(r, e);
        return true;
    }
    err_free(runtime_set_addresses(r)); /* of one that was adopted paused; it runs now */
    if (r->status.now == RUNTIME_RUNNING)
        return true; /* it was only asked after */
    r->manager->counters.resumes++;
    r->timeline.ready_us = (uint32_t)((manager_mono_ns(r->manager) - r->start.begun_ns) / 1000);
    runtime_rotate_key(r);
    runtime_enter(r, RUNTIME_RUNNING, "");
    return true;
}

static fallible halt_may(struct runtime *r)
{
    if (!r->manager->config.driver->forgets)
        return NULL;
    return err_new(ERR_UNSUPPORTED,
                   "the server of sandbox '%s' keeps no files of what is stopped: pause or delete "
                   "it",
                   r->id);
}

/* One that ended meanwhile is what was asked for. */
static bool halt_answered(struct runtime *r, const struct err *e)
{
    if (e && r->sbx->state.now != SBX_STOPPED) {
        operation_fail(r, err_copy(e));
        return true;
    }
    r->manager->counters.pauses++;
    runtime_set_detail(r, "its processes were ended, its files are kept");
    runtime_enter(r, RUNTIME_PAUSED, r->detail);
    return true;
}

/* --- questions --- */

static bool question_answered(struct runtime *r, const struct err *e)
{
    operation_fail(r, e ? err_copy(e) : NULL);
    return true;
}

/* One elsewhere may have been paused or resumed there. */
static bool look_answered(struct runtime *r, const struct err *e)
{
    if (r->sbx->state.now == SBX_PAUSED && r->status.now == RUNTIME_RUNNING) {
        runtime_set_detail(r, "it was paused at the other server");
        runtime_enter(r, RUNTIME_PAUSED, r->detail);
    } else if (r->sbx->state.now == SBX_RUNNING && r->status.now == RUNTIME_PAUSED) {
        err_free(runtime_set_addresses(r)); /* it runs, so it has one */
        runtime_enter(r, RUNTIME_RUNNING, "");
    }
    return question_answered(r, e);
}

/* Files cannot be rolled back under its processes. */
static fallible files_check(const struct runtime *r)
{
    bool back = r->op.asked->files == SBX_FILES_ROLLBACK;

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
static fallible files_may(struct runtime *r)
{
    struct manager *m = r->manager;
    struct tenant *t = r->tenant;

    TRY(files_check(r));
    if (r->op.asked->files == SBX_FILES_ROLLBACK)
        return NULL;
    if (keys_any(m->config.keys) && t->looking + m->looking >= SBX_LOOKS_AT_ONCE)
        return err_new(ERR_BUSY,
                       "the changes of as many sandboxes are being looked at as may be at once, "
                       "%u of them of key '%s': try again",
                       t->looking, t->name);
    t->looking++;
    m->looking++;
    r->op.looks = true;
    return NULL;
}

static fallible files_call(struct sbx *s, sbx_done *done, void *arg)
{
    const struct runtime_ask *ask = ((struct runtime *)arg)->op.asked;

    return ask ? sbx_files(s, ask->files, ask->text, done, arg)
               : err_new(ERR_CLOSED, "nobody asks any more");
}

static void files_end(struct runtime *r)
{
    if (r->op.looks) {
        r->tenant->looking--;
        r->manager->looking--;
    }
    operation_finish(r);
}

/* --- remove, then clear --- */

static bool remove_answered(struct runtime *r, const struct err *e)
{
    if (e && r->sbx->state.now != SBX_STOPPED) {
        operation_fail(r, err_copy(e)); /* it lives: nothing is said that is not so */
        return true;
    }
    if (r->status.now != RUNTIME_STOPPED) { /* else its row does not say so yet */
        own_free char *was = r->status.now == RUNTIME_ERROR ? take(&r->detail) : NULL;
        runtime_set_detail(r, "it was stopped, its files are gone%s%s",
                           was ? "; before that: " : "", was ? was : "");
        r->manager->counters.stops++;
    }
    runtime_enter(r, RUNTIME_STOPPED, r->detail);
    return true;
}

static void remove_begin(struct runtime *r)
{
    const unsigned lives = TO(SBX_RUNNING) | TO(SBX_PAUSED) | TO(SBX_WARM);

    if (r->sbx && (lives & TO(r->sbx->state.now)))
        operation_enqueue(r);
    else if (remove_answered(r, NULL))
        operation_settle(r);
}

/* One without a sandbox may be forgotten as soon as its operation is over. */
static void remove_end(struct runtime *r)
{
    bool left = r->sbx != NULL;

    runtime_drop_spec(r);
    operation_finish(r);
    if (left)
        runtime_clear(r);
}

void runtime_clear(struct runtime *r)
{
    const unsigned ended = TO(SBX_CREATED) | TO(SBX_STOPPED);

    if (r->sbx && (ended & TO(r->sbx->state.now)) && !r->op.kind &&
        r->status.now == RUNTIME_STOPPED)
        operation_begin(r, RUNTIME_CLEAR);
}

/* From here on the sandbox is the backend's alone. */
static fallible clear_call(struct sbx *s, sbx_done *done, void *arg)
{
    struct runtime *r = arg;

    TRY(sbx_remove(s, done, arg));
    r->sbx = NULL;
    return NULL;
}

static bool clear_answered(struct runtime *r, const struct err *e)
{
    if (e)
        log_warn("files of a sandbox stay", KV("id", r->id), KV("request_id", r->request),
                 KV_ERR(e));
    return true;
}

static void clear_end(struct runtime *r)
{
    if (r->durable || r->sbx)
        operation_finish(r);
    else
        manager_drop(r); /* it was never acknowledged */
}

/* --- the table --- */

#define STARTING TO(RUNTIME_STARTING)
#define RUNNING  TO(RUNTIME_RUNNING)
#define PAUSED   TO(RUNTIME_PAUSED)
#define STOPPED  TO(RUNTIME_STOPPED)
#define ERROR    TO(RUNTIME_ERROR)
#define HALTED   TO(RUNTIME_ERROR + 1) /* one that is paused, and without a process */
#define ANY      (STARTING | RUNNING | PAUSED | HALTED | STOPPED | ERROR)

static const struct operation_row {
    const char *verb;
    unsigned from, already;     /* where it may begin; where there is nothing to do */
    enum proxy_state meanwhile; /* until the backend has answered; 0: as the status says */
    bool writes_row;            /* over when the row has the status that it led to */
    fallible (*call)(struct sbx *s, sbx_done *done, void *arg);
    /* False: it goes on, and enqueues itself again; or the next server goes on with it. */
    bool (*answered)(struct runtime *r, const struct err *e);
    fallible (*may)(struct runtime *r); /* refused here and now? */
    void (*begin)(struct runtime *r);   /* NULL: operation_enqueue() */
    void (*end)(struct runtime *r);     /* NULL: operation_finish() */
} rows[] = {
    /* clang-format off */
    [RUNTIME_START] = {"started", 0, 0, 0, true, start_call, start_answered, .end = start_end},
    [RUNTIME_PAUSE] = {"paused", RUNNING, PAUSED | HALTED, PROXY_PAUSED, true,
                       sbx_pause, pause_answered},
    [RUNTIME_RESUME] = {"resumed", RUNNING | PAUSED | HALTED | ERROR, 0, 0, true,
                        sbx_resume, resume_answered, resume_may, resume_begin},
    [RUNTIME_HALT] = {"stopped", RUNNING | PAUSED, HALTED, PROXY_PAUSED, true,
                      sbx_stop, halt_answered, halt_may},
    [RUNTIME_REMOVE] = {"removed", ANY, 0, PROXY_GONE, true,
                        sbx_stop, remove_answered, .begin = remove_begin, .end = remove_end},
    [RUNTIME_CLEAR] = {"cleared", 0, 0, PROXY_GONE, false,
                       clear_call, clear_answered, .end = clear_end},
    [RUNTIME_ADOPT] = {"taken over", 0, 0, PROXY_PAUSED, false,
                       sbx_adopt, adopt_answered, .end = adopt_end},
    [RUNTIME_SNAPSHOT] = {"kept as a snapshot", RUNNING | PAUSED | HALTED, 0, 0, false,
                          snapshot_call, snapshot_answered, .begin = snapshot_begin,
                          .end = snapshot_end},
    [RUNTIME_MEASURE] = {"measured", RUNNING | PAUSED, 0, 0, false,
                         sbx_measure, question_answered},
    [RUNTIME_LOOK] = {"looked at", RUNNING | PAUSED | HALTED, STARTING | STOPPED | ERROR, 0, false,
                      sbx_look, look_answered},
    [RUNTIME_FILES] = {"looked at", ANY, 0, 0, false,
                       files_call, question_answered, files_may, .end = files_end},
    /* clang-format on */
};

static const struct operation_row *row_of(const struct runtime *r)
{
    return &rows[r->op.kind];
}

/* --- the steps --- */

void operation_init(struct operation *op)
{
    list_init(&op->queued);
    sm_init(&op->state, states, "operation", OPERATION_NONE);
}

/* Instead of the one under way, if there is one. */
void operation_open(struct runtime *r, enum runtime_op kind)
{
    if (r->op.state.now != OPERATION_NONE)
        sm_move(&r->op.state, OPERATION_NONE, r->id);
    r->op.kind = kind;
    runtime_tell_proxy(r);
}

void operation_begin(struct runtime *r, enum runtime_op kind)
{
    operation_open(r, kind);
    if (row_of(r)->begin)
        row_of(r)->begin(r);
    else
        operation_enqueue(r);
}

/* Before starts in the launcher's queue? A claim goes before other starts; what is left of one that
 * was removed, and a page of many measures, are in no hurry. */
static bool is_urgent(const struct runtime *r)
{
    switch (r->op.kind) {
    case RUNTIME_START:
        return r->start.warm;
    case RUNTIME_CLEAR:
        return false;
    case RUNTIME_MEASURE:
        return r->op.asked != &r->own;
    default:
        return true;
    }
}

void operation_enqueue(struct runtime *r)
{
    sm_move(&r->op.state, OPERATION_QUEUED, r->id);
    if (queue_enter(r, is_urgent(r)))
        operation_call(r);
}

void operation_note(struct runtime *r)
{
    sm_move(&r->op.state, OPERATION_NOTED, r->id);
}

static void on_answered(void *arg, struct sbx *s, const struct err *e);

void operation_call(struct runtime *r)
{
    sm_move(&r->op.state, OPERATION_CALLED, r->id);
    own(err) e = row_of(r)->call(r->sbx, on_answered, r);
    if (e)
        on_answered(r, r->sbx, e);
}

/* From now on the ask waits for the disk at most: should the backend fall silent, it is still
 * answered, with a new session key above all. */
static void stop_waiting_for_backend(struct runtime *r)
{
    if (r->op.asked)
        sbx_wait_over(&r->op.asked->waiter);
    snapshots_sweep(r->manager); /* another machine's server was not known when all were adopted */
}

static void on_answered(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;

    (void)s;
    queue_leave(r->manager);
    stop_waiting_for_backend(r);
    if (row_of(r)->answered(r, e))
        operation_settle(r);
}

static void check_end(struct runtime *r)
{
    if (r->op.state.now != OPERATION_WRITING || r->op.writes)
        return;
    if (row_of(r)->end)
        row_of(r)->end(r);
    else
        operation_finish(r);
}

void operation_settle(struct runtime *r)
{
    sm_move(&r->op.state, OPERATION_WRITING, r->id);
    runtime_tell_proxy(r);
    check_end(r);
}

void operation_fail(struct runtime *r, struct err *e)
{
    if (r->op.failed)
        err_free(e);
    else
        r->op.failed = e;
}

void operation_wrote(struct runtime *r, struct err *e)
{
    r->op.writes--;
    operation_fail(r, e);
    check_end(r);
}

void operation_finish(struct runtime *r)
{
    struct manager *m = r->manager;
    struct runtime_ask *ask = r->op.asked;
    struct err *e = r->op.failed;

    sm_move(&r->op.state, OPERATION_NONE, r->id);
    r->op = (struct operation){.state = r->op.state};
    list_init(&r->op.queued);
    runtime_tell_proxy(r);
    if (ask)
        runtime_answer(ask, r, e);
    else
        err_free(e);
    runtime_next(r);
    manager_prune(m);
    manager_check_end(m);
}

/* --- what others ask of it --- */

enum proxy_state operation_proxy(const struct runtime *r)
{
    bool over = !r->op.kind || r->op.state.now == OPERATION_WRITING;

    return over ? 0 : row_of(r)->meanwhile;
}

bool operation_awaits_row(const struct runtime *r)
{
    return r->op.kind && row_of(r)->writes_row;
}

/* Questions do not look at whether it ended, and of other operations what is missing may be the
 * row. */
bool operation_tells_end(const struct runtime *r)
{
    return (r->op.state.now == OPERATION_QUEUED || r->op.state.now == OPERATION_CALLED) &&
           (row_of(r)->writes_row || r->op.kind == RUNTIME_CLEAR || r->op.kind == RUNTIME_ADOPT);
}

/* --- what is asked --- */

static unsigned condition_of(const struct runtime *r)
{
    return runtime_is_halted(r) ? HALTED : TO(r->status.now);
}

/* There is nothing to do, which is fine. */
bool operation_is_so(const struct runtime *r, enum runtime_op kind)
{
    if (kind == RUNTIME_REMOVE)
        return r->status.now == RUNTIME_STOPPED && !r->unsaid && (!r->sbx || r->durable);
    if (kind == RUNTIME_RESUME)
        return r->status.now == RUNTIME_RUNNING && !runtime_is_far(r);
    return rows[kind].already & condition_of(r);
}

static fallible operation_may(struct runtime *r, enum runtime_op kind)
{
    const struct operation_row *row = &rows[kind];

    if (row->may)
        TRY(row->may(r));
    if ((row->from & condition_of(r)) &&
        (kind != RUNTIME_RESUME || r->status.now != RUNTIME_ERROR || r->sbx))
        return NULL;
    return err_new(ERR_CONFLICT, "runtime '%s' is %s: it cannot be %s", r->id, sm_name(&r->status),
                   row->verb);
}

fallible operation_try(struct runtime *r, struct runtime_ask *ask, bool *ret_begun)
{
    *ret_begun = false;
    if (operation_is_so(r, ask->op))
        return NULL;
    if (ask != &r->own)
        TRY(sbx_check_silent(r->manager->config.driver, NOTHING_BEGUN));
    r->op.asked = ask;
    struct err *e = operation_may(r, ask->op);
    if (e) {
        r->op.asked = NULL;
        return e;
    }
    *ret_begun = true;
    operation_begin(r, ask->op);
    return NULL;
}
