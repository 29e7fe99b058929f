// SPDX-License-Identifier: Apache-2.0
/* runtime.c — one runtime: what it is made of, and its status. runtime_enter() alone moves that,
 * and does all that follows from it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/row.h"
#include "host/runtime/start.h"

#define NOTE_MS 1000 /* until it is written down that one runs */

/* The one table of what may follow what. A new server finds what the one before it could not note:
 * from there one that failed may run, and one that ran may have to be started. */
static const struct sm_state states[] = {
    [RUNTIME_STARTING] = {"starting", TO(RUNTIME_RUNNING) | TO(RUNTIME_PAUSED) |
                                          TO(RUNTIME_STOPPED) | TO(RUNTIME_ERROR)},
    [RUNTIME_RUNNING] = {"running", TO(RUNTIME_STARTING) | TO(RUNTIME_PAUSED) |
                                        TO(RUNTIME_STOPPED) | TO(RUNTIME_ERROR)},
    [RUNTIME_PAUSED] = {"paused", TO(RUNTIME_STARTING) | TO(RUNTIME_RUNNING) | TO(RUNTIME_STOPPED) |
                                      TO(RUNTIME_ERROR)},
    [RUNTIME_STOPPED] = {"stopped", 0},
    [RUNTIME_ERROR] = {"error", TO(RUNTIME_STARTING) | TO(RUNTIME_RUNNING) | TO(RUNTIME_PAUSED) |
                                    TO(RUNTIME_STOPPED)},
};

/* --- what it is made of --- */

void runtime_make_id(char id[RUNTIME_ID_LEN + 1])
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < RUNTIME_ID_LEN; i++, bits /= 26) {
        if (i % 8 == 0) /* 26^8 is far below 2^64: no letter is likelier than another */
            bits = rng_u64(rng_system());
        id[i] = (char)('a' + bits % 26);
    }
    id[RUNTIME_ID_LEN] = '\0';
}

void runtime_set_text(char **to, const char *text)
{
    free(*to);
    *to = text ? mem_dup_cstr(text) : NULL;
}

void runtime_set_request(struct runtime *r, struct str id)
{
    free(r->request);
    r->request = id.len ? mem_new(id.len + 1) : NULL; /* it has a bound */
    if (id.len)
        memcpy(r->request, id.p, id.len);
}

void runtime_set_detail(struct runtime *r, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    runtime_set_text(&r->detail, text);
}

struct runtime *runtime_new(struct manager *m, struct tenant *t, const char *id,
                            enum runtime_status status)
{
    struct runtime *r = mem_new(sizeof *r);

    snprintf(r->id, sizeof r->id, "%s", id);
    r->manager = m;
    r->tenant = t;
    list_init(&r->link);
    list_init(&r->order);
    list_init(&r->asks);
    list_init(&r->start.watchers);
    operation_init(&r->op);
    sm_init(&r->status, states, "runtime", status);
    r->target.id = r->id;
    return r;
}

void runtime_free(struct runtime *r)
{
    loop_timer_stop(&r->start.grace);
    loop_timer_stop(&r->note);
    idle_stop(r);
    probe_stop(r);
    await_drop(r);
    proxy_remove(r->manager->config.proxy, &r->target);
    list_del(&r->link);
    list_del(&r->order);
    list_del(&r->op.queued);
    free(r->session_id);
    free(r->image);
    free(r->detail);
    free(r->pool);
    free(r->wants);
    free(r->keys.next);
    free(r->keys.far);
    free(r->far);
    free(r->request);
    err_free(r->op.failed);
    runtime_drop_spec(r);
    free(r);
}

/* --- its status --- */

/* One that failed is there like one that is paused: it has a port, files, and can be resumed. */
bool runtime_is_live(const struct runtime *r)
{
    return r->status.now != RUNTIME_STOPPED;
}

bool runtime_is_halted(const struct runtime *r)
{
    return r->status.now == RUNTIME_PAUSED && r->sbx && r->sbx->state.now == SBX_STOPPED;
}

/* The proxy's state follows from the operation, if that says one, and from the status else. */
void runtime_tell_proxy(struct runtime *r)
{
    static const enum proxy_state of[] = {[RUNTIME_STARTING] = PROXY_STARTING,
                                          [RUNTIME_RUNNING] = PROXY_OPEN,
                                          [RUNTIME_PAUSED] = PROXY_PAUSED,
                                          [RUNTIME_STOPPED] = PROXY_GONE,
                                          [RUNTIME_ERROR] = PROXY_FAILED};
    enum proxy_state meanwhile = operation_proxy(r);
    enum proxy_state state = meanwhile                    ? meanwhile
                             : runtime_is_out_of_reach(r) ? PROXY_PAUSED
                                                          : of[r->status.now];

    if (state == PROXY_GONE)
        proxy_remove(r->manager->config.proxy, &r->target);
    else
        proxy_set_state(r->manager->config.proxy, &r->target, state);
}

/* Clients show that memory ran out, that it is gone, or that it never came. */
static enum runtime_event_status kind_of_error(const struct runtime *r)
{
    if (r->sbx && r->sbx->usage.oom_kills)
        return RUNTIME_EVENT_MEMORY;
    bool was = r->status.now == RUNTIME_RUNNING || r->status.now == RUNTIME_PAUSED;
    return was && r->lived ? RUNTIME_EVENT_DISCONNECTED : RUNTIME_EVENT_ERROR;
}

static enum runtime_event_status kind_of(const struct runtime *r, enum runtime_status to)
{
    switch (to) {
    case RUNTIME_STARTING:
        return RUNTIME_EVENT_STARTING;
    case RUNTIME_RUNNING:
        return r->op.kind == RUNTIME_START ? RUNTIME_EVENT_STARTED : RUNTIME_EVENT_READY;
    case RUNTIME_PAUSED:
        return RUNTIME_EVENT_PAUSED;
    case RUNTIME_STOPPED:
        return RUNTIME_EVENT_STOPPED;
    case RUNTIME_ERROR:
        break;
    }
    return kind_of_error(r);
}

/* Counts follow the status; what is stopped can be looked at for a while. */
static void status_move(struct runtime *r, enum runtime_status to)
{
    struct manager *m = r->manager;
    bool was = runtime_is_live(r);

    sm_move(&r->status, to, r->id);
    if (to != RUNTIME_RUNNING && to != RUNTIME_STARTING)
        runtime_claim_over(r);
    await_drop(r);
    if (to == RUNTIME_STOPPED || to == RUNTIME_ERROR)
        probe_stop(r);
    r->changed_ms = manager_now_ms(m);
    if (was != runtime_is_live(r)) {
        r->tenant->live--;
        m->live--;
    }
    if (to == RUNTIME_STOPPED) {
        list_add(&m->stopped, &r->order);
        m->stopped_count++;
    }
}

static void on_wrote(void *arg, struct err *e)
{
    struct runtime *r = arg;

    if (e)
        log_warn("a change was not written down", KV("id", r->id), KV("request_id", r->request),
                 KV_ERR(e));
    r->unsaid = e && r->status.now == RUNTIME_STOPPED; /* asked once more, it is written again */
    operation_wrote(r, e);
}

/* An operation that leads here ends when this is on disk. */
static void write_status(struct runtime *r)
{
    bool awaited = operation_awaits_row(r);

    r->op.writes += awaited;
    row_update(r, awaited ? on_wrote : NULL);
}

static void on_note(struct loop_timer *t)
{
    row_update(container_of(t, struct runtime, note), NULL);
}

/* A row that still says "starting" is begun by the next server. No answer waits for this write, and
 * a runtime that is stopped at once does without it. */
void runtime_note_running(struct runtime *r)
{
    loop_timer_start(r->manager->config.loop, &r->note, NOTE_MS, on_note);
}

void runtime_enter(struct runtime *r, enum runtime_status status, const char *why)
{
    enum runtime_event_status kind = kind_of(r, status);
    bool moved = r->status.now != status;

    loop_timer_stop(&r->note);
    if (moved)
        status_move(r, status);
    idle_watch(r);
    runtime_tell_proxy(r);
    if (r->hidden || (!moved && !why))
        return;
    start_tell_watchers(r); /* first */
    if (why)
        manager_emit(r, kind, why);
    if (r->op.kind == RUNTIME_START && status == RUNTIME_RUNNING)
        runtime_note_running(r);
    else
        write_status(r);
}

void runtime_fail(struct runtime *r, const struct err *e)
{
    r->manager->counters.failures++;
    if (err_code(e) == ERR_NO_SPACE && !runtime_is_far(r)) /* the words OpenHands looks for */
        runtime_set_detail(r,
                           "%s (Insufficient ephemeral-storage): make room in the state directory "
                           "'%s', then resume or start it again",
                           err_text(e), r->manager->config.driver->host->state_dir);
    else
        runtime_set_detail(r, "%s", err_text(e));
    runtime_enter(r, r->status.now == RUNTIME_STOPPED ? RUNTIME_STOPPED : RUNTIME_ERROR, r->detail);
}
