// SPDX-License-Identifier: Apache-2.0
/* life.c — how a runtime starts, and what all operations of one share.
 *
 * An operation has two halves that run side by side, the row and the sandbox; it is done when both
 * are. The next one begins then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "host/runtime/inner.h"
#include "wire/bind.h"

static uint64_t now_ns(const struct runtime *r)
{
    return clock_mono_ns(loop_clock(r->manager->config.loop));
}

static uint32_t us_since(const struct runtime *r, uint64_t ns)
{
    return (uint32_t)((now_ns(r) - ns) / 1000);
}

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

static void tell_answered(struct runtime *r)
{
    r->answered = true;
    LIST_EACH(s, &r->manager->subscribers, struct runtime_subscriber, link)
        if (s->on_answer)
            s->on_answer(s, r, now_ns(r) - r->begun_ns);
}

/* All who wait for a start. */
static void answer_watchers(struct runtime *r, const struct err *e)
{
    loop_timer_stop(&r->grace);
    if (!e && !r->answered && r->op == RUNTIME_START && !list_empty(&r->watchers))
        tell_answered(r);
    LIST_EACH(ask, &r->watchers, struct runtime_ask, link) {
        list_del(&ask->link);
        runtime_answer(ask, r, e ? err_copy(e) : NULL);
    }
}

void runtime_claim_over(struct runtime *r)
{
    if (!r->counted)
        return;
    r->counted = false;
    loop_timer_stop(&r->grace);
    if (!--r->manager->claiming)
        pool_claims_over(r->manager);
}

static void on_grace(struct loop_timer *t)
{
    struct runtime *r = container_of(t, struct runtime, grace);

    answer_watchers(r, NULL);
    runtime_claim_over(r);
}

/* Told when the row is on disk; a server that is about to listen is worth a moment. */
static void look_at_watchers(struct runtime *r)
{
    if (!r->durable || list_empty(&r->watchers))
        return;
    if (r->status.now != RUNTIME_STARTING)
        answer_watchers(r, NULL);
    else if (!r->grace.loop)
        loop_timer_start(r->manager->config.loop, &r->grace, r->warm ? CLAIM_MS : GRACE_MS,
                         on_grace);
}

void runtime_watch(struct runtime *r, struct runtime_ask *ask)
{
    sbx_wait_over(&ask->waiter); /* for its row, not for the launcher */
    ask->op = RUNTIME_START;
    if (r->durable && r->status.now != RUNTIME_STARTING) {
        runtime_answer_later(ask, r, NULL);
        return;
    }
    list_add(&r->watchers, &ask->link);
    look_at_watchers(r);
}

/* Not even a moment's wait is left. Who has no row is nobody the next server knows. */
void manager_answer_starts(struct manager *m)
{
    own(err) lost = err_new(ERR_BUSY, "this server ends, and the start was not written down: try "
                                      "again at the next one");

    MAP_EACH(slot, &m->ids) {
        struct runtime *r = slot->value;
        answer_watchers(r, r->durable ? NULL : lost);
    }
}

/* --- the end of an operation --- */

void runtime_finish(struct runtime *r, struct err *e)
{
    struct manager *m = r->manager;
    struct runtime_ask *ask = take(&r->asked);

    r->op = RUNTIME_NO_OP;
    r->pending = 0;
    if (r->looks) {
        r->looks = false;
        r->tenant->looking--;
        m->looking--;
    }
    if (ask)
        runtime_answer(ask, r, e);
    else
        err_free(e);
    runtime_next(r);
    manager_prune(m);
    manager_check_end(m);
}

/* Who asked waits for a row now at most, and not for the launcher: should that fall silent, what it
 * did is still to be told, a new session key above all. */
void runtime_heard(struct runtime *r)
{
    if (r->asked)
        sbx_wait_over(&r->asked->waiter);
    snapshots_sweep(r->manager); /* another machine's server was not known when all were adopted */
}

/* Is that all of it? The first error of both halves is the story. */
bool runtime_half_done(struct runtime *r, unsigned half, struct err *e)
{
    r->pending &= ~half;
    if (half == PENDING_SANDBOX)
        runtime_heard(r);
    if (!r->failed)
        r->failed = e;
    else
        err_free(e);
    return !r->pending;
}

/* --- removing what is left of a sandbox --- */

static void on_removed(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;
    struct manager *m = r->manager;

    (void)s;
    if (e)
        log_warn("files of a sandbox stay", KV("id", r->id), KV("request_id", r->request),
                 KV_ERR(e));
    r->sbx = NULL;
    r->removing = false;
    queue_leave(m);
    if (!r->durable) /* it never was */
        manager_drop(r);
    else
        manager_prune(m);
    manager_check_end(m);
}

static void pass_remove(struct runtime *r)
{
    struct err *e = sbx_remove(r->sbx, on_removed, r);

    if (!e)
        return;
    log_warn("a sandbox stays", KV("id", r->id), KV("request_id", r->request), KV_ERR(e));
    err_free(e);
    r->removing = false;
    queue_leave(r->manager);
}

void runtime_remove_sandbox(struct runtime *r)
{
    if (!r->sbx || r->removing)
        return;
    r->removing = true;
    queue_wait(r, false, pass_remove);
}

/* --- start --- */

void runtime_drop_spec(struct runtime *r)
{
    if (r->spec)
        spec_done(r->spec);
    free(r->spec);
    r->spec = NULL;
    snapshot_let_go(take(&r->from));
}

static void pass_start(struct runtime *r);
static void life_started(struct runtime *r, const struct err *e);

/* A warm one that was not well: the same runtime starts cold. */
static void on_unwarmed(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;

    (void)s;
    (void)e; /* told by the start, if it matters */
    r->sbx = NULL;
    own(err) why = sbx_create(r->manager->config.driver, &r->spec->sbx, &r->sbx);
    queue_leave(r->manager);
    if (why)
        life_started(r, why);
    else
        queue_wait(r, false, pass_start);
}

static void on_unclaimed(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;
    own(err) why = e ? err_copy(e) : sbx_remove(s, on_unwarmed, r);

    if (!why)
        return;
    queue_leave(r->manager);
    life_started(r, why);
}

/* Refused before it was bound it still waits, and nobody would end it. */
static bool start_cold_after_all(struct runtime *r, const struct err *why)
{
    bool waits = r->sbx->state.now == SBX_WARM;

    if (!r->warm || r->retried || !(waits || r->sbx->state.now == SBX_STOPPED) ||
        r->manager->config.driver->lost)
        return false;
    r->retried = true;
    r->warm = false;
    runtime_claim_over(r);
    look_at_watchers(r);
    r->launch = RUNTIME_COLD;
    r->miss = err_code(why) == ERR_GONE ? POOL_STALE : POOL_UNWELL;
    if (r->miss == POOL_STALE)
        pool_end_stale(r->manager, r->pool);
    runtime_set_text(&r->pool, NULL);
    runtime_set_detail(r, "cold: %s: %s", pool_miss_words[r->miss], err_text(why));
    own(err) e = waits ? sbx_stop(r->sbx, on_unclaimed, r) : sbx_remove(r->sbx, on_unwarmed, r);
    return !e;
}

/* Nobody was told of it, or only that it could not be: it has no row. */
static void undo_start(struct runtime *r)
{
    struct err *e = take(&r->failed);

    runtime_move(r, RUNTIME_STOPPED);
    manager_hide(r);
    proxy_remove(r->manager->config.proxy, &r->target);
    answer_watchers(r, e);
    runtime_finish(r, e);
    if (!r->sbx)
        manager_drop(r);
    else if (!r->op && r->sbx->state.now == SBX_RUNNING)
        runtime_ask_own(r, RUNTIME_REMOVE);
    else if (!r->op)
        runtime_remove_sandbox(r);
}

/* The pool is filled up behind him who was waiting, and not beside what his sandbox has to do
 * before it listens; one that hangs is not waited for. */
static void end_start(struct runtime *r)
{
    r->warm = false;
    runtime_drop_spec(r);
    if (!r->durable) {
        undo_start(r);
        return;
    }
    if (r->await)
        await_begin(r);
    look_at_watchers(r);
    if (r->counted && r->sbx && r->sbx->binding)
        loop_timer_start(r->manager->config.loop, &r->grace, CLAIM_MS, on_grace);
    else
        runtime_claim_over(r);
    runtime_finish(r, take(&r->failed));
}

static void on_start_row(void *arg, struct err *e)
{
    struct runtime *r = arg;

    r->phase_us[RUNTIME_PHASE_ROW] = us_since(r, r->begun_ns);
    if (e) {
        log_warn("a start was not written down", KV("id", r->id), KV("request_id", r->request),
                 KV_ERR(e));
        r->manager->counters.failures++;
    }
    r->durable = !e;
    look_at_watchers(r);
    if (runtime_half_done(r, PENDING_ROW, e))
        end_start(r);
}

static void note_phases(struct runtime *r)
{
    static const uint8_t of[SBX_PHASES] = {[SBX_PHASE_QUEUE] = RUNTIME_PHASE_QUEUE,
                                           [SBX_PHASE_NAMESPACES] = RUNTIME_PHASE_NAMESPACES,
                                           [SBX_PHASE_MOUNTS] = RUNTIME_PHASE_MOUNTS,
                                           [SBX_PHASE_EXEC] = RUNTIME_PHASE_EXEC,
                                           [SBX_PHASE_READY] = RUNTIME_PHASE_READY};
    struct sbx_info info;

    sbx_inspect(r->sbx, &info);
    for (unsigned i = 0; i < SBX_PHASES; i++)
        r->phase_us[of[i]] += (uint32_t)(info.phase_ns[i] / 1000);
}

/* What clients show: that memory ran out, that it is gone, or that it never came. */
static enum runtime_event_status kind_of(const struct runtime *r)
{
    if (r->sbx && r->sbx->usage.oom_kills)
        return RUNTIME_EVENT_MEMORY;
    bool was = r->status.now == RUNTIME_RUNNING || r->status.now == RUNTIME_PAUSED;
    return was && r->lived ? RUNTIME_EVENT_DISCONNECTED : RUNTIME_EVENT_ERROR;
}

void runtime_fail(struct runtime *r, const struct err *e)
{
    enum runtime_event_status kind = kind_of(r);

    r->manager->counters.failures++;
    if (err_code(e) == ERR_NO_SPACE && !runtime_is_far(r)) /* the words OpenHands looks for */
        runtime_set_detail(r,
                           "%s (Insufficient ephemeral-storage): make room in the state directory "
                           "'%s', then resume or start it again",
                           err_text(e), r->manager->config.driver->host->state_dir);
    else
        runtime_set_detail(r, "%s", err_text(e));
    if (r->status.now != RUNTIME_ERROR && r->status.now != RUNTIME_STOPPED)
        runtime_move(r, RUNTIME_ERROR);
    proxy_set_state(r->manager->config.proxy, &r->target, PROXY_FAILED);
    manager_emit(r, kind, r->detail);
    row_update(r, NULL);
}

static void on_note(struct loop_timer *t)
{
    row_update(container_of(t, struct runtime, note), NULL);
}

/* That there was a process: a row that still says "starting" is begun by the next server. Nobody
 * waits for it, and of one that is stopped at once nobody needs it. */
static void note_running(struct runtime *r)
{
    loop_timer_start(r->manager->config.loop, &r->note, NOTE_MS, on_note);
}

static void on_first(struct proxy_target *t, uint64_t ns)
{
    struct runtime *r = container_of(t, struct runtime, target);

    r->phase_us[RUNTIME_PHASE_FIRST_COMMAND] = (uint32_t)(ns / 1000);
    LIST_EACH(s, &r->manager->subscribers, struct runtime_subscriber, link)
        if (s->on_first)
            s->on_first(s, r);
    note_running(r);
}

void runtime_is_ready(struct runtime *r)
{
    r->ready_us = us_since(r, r->begun_ns);
    r->lived = true;
    manager_emit(r, RUNTIME_EVENT_READY, "");
    log_debug("timeline", KV("id", r->id), KV("request_id", r->request),
              KV("queue_us", r->phase_us[RUNTIME_PHASE_QUEUE]),
              KV("claim_us", r->phase_us[RUNTIME_PHASE_CLAIM]),
              KV("exec_us", r->phase_us[RUNTIME_PHASE_EXEC]),
              KV("ready_us", r->phase_us[RUNTIME_PHASE_READY]),
              KV("row_us", r->phase_us[RUNTIME_PHASE_ROW]));
}

/* It was told as running, and what came for it waited. */
void runtime_on_listens(void *arg, struct sbx *s)
{
    struct runtime *r = arg;
    struct sbx_info info;

    sbx_inspect(s, &info);
    r->phase_us[RUNTIME_PHASE_READY] = (uint32_t)(info.phase_ns[SBX_PHASE_READY] / 1000);
    runtime_claim_over(r);
    r->lived = true;
    if (r->status.now == RUNTIME_RUNNING && r->op != RUNTIME_RESUME) /* which has told the same */
        runtime_is_ready(r);
}

/* What cannot be started cold either was not for the warm one to bear. */
static void judge_warm(struct runtime *r, bool well)
{
    if (well)
        pool_missed(r->manager, r->spec->sbx.image ? r->spec->sbx.image : "host", r->miss);
    else
        r->miss = POOL_HIT;
}

static void life_started(struct runtime *r, const struct err *e)
{
    own(err) why = e ? err_copy(e) : NULL;

    if (!why && r->sbx->state.now == SBX_STOPPED) /* it was ready, and then not any more */
        why = err_new(ERR_CLOSED, "%s", r->sbx->failure ? r->sbx->failure : "it ended");
    if (!why)
        why = runtime_set_addresses(r);
    if (why && r->manager->config.driver->lost) { /* its row says that it is to be started */
        answer_watchers(r, why);
        return;
    }
    r->manager->starting--;
    if (r->retried && (r->miss == POOL_UNWELL || r->miss == POOL_STALE))
        judge_warm(r, !why);
    if (why) {
        runtime_fail(r, why);
        look_at_watchers(r);
    } else {
        runtime_move(r, RUNTIME_RUNNING);
        proxy_set_state(r->manager->config.proxy, &r->target, PROXY_OPEN);
        look_at_watchers(r); /* who waits is told before all others */
        manager_emit(r, RUNTIME_EVENT_STARTED, "");
        if (r->published && !runtime_is_far(r)) {
            r->lived = true;
            probe_start(r);
        } else if (!r->sbx->binding)
            runtime_is_ready(r);
        note_running(r);
    }
    if (runtime_half_done(r, PENDING_SANDBOX, NULL)) /* what failed is told as the status */
        end_start(r);
}

static void on_started(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;

    if (e && start_cold_after_all(r, e))
        return;
    queue_leave(r->manager);
    note_phases(r);
    if (r->warm)
        r->phase_us[RUNTIME_PHASE_CLAIM] = us_since(r, s->begun_ns);
    if (r->warm && !e)
        pool_count_hit(r->manager, r->pool);
    life_started(r, e);
}

static void pass_start(struct runtime *r)
{
    uint32_t later_ms = gate_shell_later(r->manager, now_ns(r));

    r->phase_us[RUNTIME_PHASE_QUEUE] = us_since(r, r->begun_ns);
    if (r->warm)
        r->spec->sbx.later_ms = later_ms;
    r->sbx->late = r->miss == POOL_EMPTY && later_ms > BIND_ALONE_MS;
    struct err *e = r->warm ? sbx_claim(r->sbx, &r->spec->sbx, on_started, r)
                            : sbx_start(r->sbx, on_started, r);
    if (!e)
        return;
    on_started(r, r->sbx, e);
    err_free(e);
}

/* The first command may come as soon as anybody knows of it, and waits then. */
static void ask_launcher(struct runtime *r)
{
    r->target.on_first = on_first;
    queue_wait(r, r->warm, pass_start);
}

static void begin_sandbox(struct runtime *r)
{
    manager_emit(r, RUNTIME_EVENT_STARTING, "");
    ask_launcher(r);
}

void runtime_begin(struct runtime *r, const struct wire_start *start, struct runtime_ask *ask)
{
    r->op = RUNTIME_START;
    r->pending = r->await ? PENDING_ROW : PENDING_ROW | PENDING_SANDBOX;
    r->begun_ns = now_ns(r);
    r->manager->starting += !r->await;
    r->counted = r->warm;
    r->manager->claiming += r->warm;
    runtime_set_request(r, ask->request);
    runtime_watch(r, ask);
    bool awaits = r->await;
    row_insert(r, start, on_start_row);
    if (!awaits)
        begin_sandbox(r);
}

/* --- again, after it ended by itself --- */

static void again_written(struct runtime *r, unsigned half)
{
    bool all = runtime_half_done(r, half, NULL);

    r->durable = !(r->pending & (PENDING_ROW | PENDING_KEY));
    look_at_watchers(r);
    if (all)
        end_start(r);
}

static void on_again_row(void *arg, struct err *e)
{
    struct runtime *r = arg;

    if (e)
        log_warn("a restart was not written down", KV("id", r->id), KV("request_id", r->request),
                 KV_ERR(e));
    err_free(e); /* its row says that it failed: the next server starts from there */
    again_written(r, PENDING_ROW);
}

/* Who asked may have a key that was changed, or an error, and not the old key as if it were new. */
static void on_again_key(void *arg, struct err *e)
{
    struct runtime *r = arg;

    runtime_rotated(r, e);
    if (e)
        answer_watchers(r, e);
    err_free(e);
    again_written(r, PENDING_KEY);
}

void runtime_begin_again(struct runtime *r)
{
    r->begun_ns = now_ns(r);
    r->restarts += r->restarts < UINT8_MAX;
    r->server_died = false;
    r->died_ns = 0;
    r->manager->starting++;
    memset(r->phase_us, 0, sizeof r->phase_us);
    r->launch = RUNTIME_AGAIN;
    r->miss = POOL_HIT;
    runtime_set_detail(r, "cold: it had ended and was started again");
    runtime_move(r, RUNTIME_STARTING);
    r->warm = false;
    proxy_set_state(r->manager->config.proxy, &r->target, PROXY_STARTING);
    if (runtime_rotate_key(r, on_again_key))
        r->durable = false; /* until it is known which key it has */
    struct runtime_ask *ask = take(&r->asked);
    if (ask)
        runtime_watch(r, ask);
    manager_emit(r, RUNTIME_EVENT_STARTING, "");
    ask_launcher(r); /* it is not warm */
    row_update(r, on_again_row);
}

/* A row that was acknowledged before, by a server before us too; r->spec is made from it. */
void runtime_begin_from_row(struct runtime *r)
{
    r->op = RUNTIME_START;
    r->pending = PENDING_ROW | PENDING_SANDBOX;
    r->begun_ns = now_ns(r);
    r->manager->starting++;
    proxy_set_state(r->manager->config.proxy, &r->target, PROXY_STARTING);
    manager_emit(r, RUNTIME_EVENT_STARTING, "");
    ask_launcher(r);
    row_update(r, on_again_row);
}
