// SPDX-License-Identifier: Apache-2.0
/* idle.c — a runtime that is not used is paused, then stopped; one that does not run is removed.
 *
 * A timer per runtime, set for the earliest time something may be due; when it fires, what happened
 * meanwhile is looked at. Use costs nothing: the proxy notes the last byte of each target anyway.
 * A command run as given is a process that runs: as long as it does its sandbox is in use. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/row.h"
#include "out/client.h"
#include "wire/shells.h"

#define SEEN_BYTES (64u << 10)
#define SEEN_MS    5000

#define AGAIN_MS   2000 /* should what is begun fail; doubled each time */
#define AGAIN_MOST 5    /* times */

static uint64_t idle_ms(const struct runtime *r)
{
    uint64_t now = loop_now_ns(r->manager->config.loop);
    uint64_t last = r->target.last_ns > r->idle.since_ns ? r->target.last_ns : r->idle.since_ns;

    if (r->target.open)
        return 0;
    return now > last ? (now - last) / NS_PER_MS : 0;
}

static uint64_t idle_sooner(uint64_t a, uint64_t b) /* 0: never */
{
    return !a ? b : !b ? a : a < b ? a : b;
}

static bool can_pause(const struct runtime *r)
{
    return r->manager->config.driver->caps & SBX_CAN_PAUSE;
}

/* 0: never, or it cannot be done here. */
static uint64_t pause_after_ms(const struct runtime *r)
{
    return can_pause(r) ? r->manager->config.pause_after_ms : 0;
}

/* Until its processes end and its files stay; 0: never, or the backend keeps no files. */
static uint64_t stop_after_ms(const struct runtime *r)
{
    const struct manager_config *c = &r->manager->config;

    return c->driver->forgets ? 0 : c->stop_after_ms;
}

/* How long it may be idle as it is. */
static uint64_t allowed_ms(const struct runtime *r)
{
    const struct manager_config *c = &r->manager->config;

    switch ((enum runtime_status)r->status.now) {
    case RUNTIME_RUNNING:
        if (r->published)
            return 0;
        return idle_sooner(pause_after_ms(r), stop_after_ms(r));
    case RUNTIME_PAUSED:
        return runtime_is_halted(r) ? c->delete_after_ms
                                    : idle_sooner(stop_after_ms(r), c->delete_after_ms);
    case RUNTIME_ERROR:
        return r->lived ? c->delete_after_ms : idle_sooner(c->failed_after_ms, c->delete_after_ms);
    case RUNTIME_STOPPED:
        return c->delete_after_ms;
    case RUNTIME_STARTING:
        break;
    }
    return 0;
}

/* The operation that is due next. */
static enum runtime_op idle_due(const struct runtime *r)
{
    uint64_t allowed = allowed_ms(r);

    if (r->status.now == RUNTIME_RUNNING && allowed == pause_after_ms(r))
        return RUNTIME_PAUSE;
    if ((r->status.now == RUNTIME_RUNNING || r->status.now == RUNTIME_PAUSED) &&
        !runtime_is_halted(r) && allowed == stop_after_ms(r))
        return RUNTIME_HALT;
    return RUNTIME_REMOVE;
}

static void on_idle(struct loop_timer *t);

static void look_again(struct runtime *r, uint64_t after_ms)
{
    loop_timer_start(r->manager->config.loop, &r->idle.timer, after_ms, on_idle);
}

/* Should it fail, the timer tries it again. Otherwise its new status sets the timer anew. */
static void idle_act(struct runtime *r)
{
    static const char *const words[] = {
        [RUNTIME_PAUSE] = "pause", [RUNTIME_HALT] = "stop", [RUNTIME_REMOVE] = "delete"};
    enum runtime_op op = idle_due(r);
    struct runtime_counters *c = &r->manager->counters;

    if (r->status.now == RUNTIME_STOPPED) {
        row_delete(r);
        manager_drop(r);
        return;
    }
    log_info("idle", KV("id", r->id), KV("was", sm_name(&r->status)), KV("then", words[op]));
    if (!r->idle.tries)
        ++*(op == RUNTIME_PAUSE  ? &c->idle_pauses
            : op == RUNTIME_HALT ? &c->idle_stops
                                 : &c->idle_deletes);
    look_again(r, (uint64_t)AGAIN_MS << r->idle.tries);
    if (r->idle.tries < AGAIN_MOST)
        r->idle.tries++;
    runtime_ask_own(r, op);
}

/* --- a process that runs is use too, in the background and though nobody is connected --- */

static void on_seen_head(struct http_call *call, const struct http_head *head)
{
    struct runtime *r = http_call_owner(call);

    r->idle.seen_status = head->status;
}

static void on_seen_body(struct http_call *call, struct str piece)
{
    struct runtime *r = http_call_owner(call);

    buf_add(r->idle.seen, piece);
}

static void forget_seen(struct runtime *r)
{
    r->idle.looking = NULL;
    buf_done(r->idle.seen);
    free(r->idle.seen);
    r->idle.seen = NULL;
}

static void say_silent(const struct runtime *r, const struct err *e)
{
    log_warn("a sandbox does not say whether anything runs in it, and is taken for used",
             KV("id", r->id), KV_ERR(e));
}

/* NULL and *ret_known false: it answers, but not to this: it is another's server. */
static fallible seen_running(const struct runtime *r, bool *ret_known, bool *ret_runs)
{
    struct json *body = NULL;
    own_done(arena) a = {0};

    *ret_known = *ret_runs = false;
    if (r->idle.seen_status >= 500)
        return err_new(ERR_UPSTREAM, "it answered with %d", r->idle.seen_status);
    arena_init(&a, SEEN_BYTES * 4);
    own(err) e =
        r->idle.seen_status == 200 ? json_parse(&a, buf_str(r->idle.seen), NULL, &body) : NULL;
    *ret_known = body != NULL;
    *ret_runs = body && wire_anything_runs(body);
    return NULL;
}

/* One that does not answer may be busy, and counts as used. One that answers and cannot say is idle
 * after a second period. */
static void on_seen(struct http_call *call, struct err *e)
{
    struct runtime *r = http_call_owner(call);
    uint64_t allowed = allowed_ms(r);
    bool known = true, runs = true;

    if (!e)
        e = seen_running(r, &known, &runs);
    if (e) {
        say_silent(r, e);
        known = runs = true;
    }
    err_free(e);
    forget_seen(r);
    if (!allowed)
        return;
    if (runs || r->idle.ran) /* it ended since the last look: its idle time begins now */
        r->idle.since_ns = loop_now_ns(r->manager->config.loop);
    r->idle.ran = runs;
    if (idle_ms(r) < allowed || r->op.kind || (!known && idle_ms(r) < 2 * allowed))
        look_again(r, allowed);
    else
        idle_act(r);
}

static bool look_inside(struct runtime *r)
{
    static const struct http_call_events events = {
        .on_head = on_seen_head, .on_body = on_seen_body, .on_done = on_seen};
    const struct http_header key = {STR("X-Session-API-Key"),
                                    str_of(r->keys.far ? r->keys.far : r->keys.inner)};
    char url[sizeof r->target.address.url + 20];

    snprintf(url, sizeof url, "%s/croft/v1/shells",
             runtime_is_far(r) ? r->target.address.url : "http://localhost");
    const struct http_call_spec spec = {.method = STR("GET"),
                                        .url = str_of(url),
                                        .unix_path = str_of(r->target.address.unix_path),
                                        .headers = &key,
                                        .header_count = 1,
                                        .total_ms = SEEN_MS,
                                        .max_body_bytes = SEEN_BYTES};

    if (r->status.now != RUNTIME_RUNNING || !r->manager->config.client)
        return false; /* nothing runs */
    own(err) e = http_call_start(r->manager->config.client, &spec, &events, r, &r->idle.looking);
    if (e) {
        say_silent(r, e);
        look_again(r, allowed_ms(r));
        return true;
    }
    r->idle.seen_status = 0;
    r->idle.seen = mem_new(sizeof *r->idle.seen);
    buf_init(r->idle.seen, SEEN_BYTES);
    return true;
}

static void on_idle(struct loop_timer *t)
{
    struct runtime *r = container_of(t, struct runtime, idle.timer);
    uint64_t allowed = allowed_ms(r), idle = idle_ms(r);

    if (!allowed || r->idle.looking)
        return;
    bool busy = r->op.kind || r->hidden || !list_empty(&r->asks);
    if (idle < allowed || busy) {
        look_again(r, idle < allowed ? allowed - idle : 1000);
        return;
    }
    if (!look_inside(r))
        idle_act(r);
}

/* --- age: for how long one may run, whoever uses it --- */

#define AGE_AGAIN_MS 60000 /* should the pause fail */

static void on_age(struct loop_timer *t)
{
    struct runtime *r = container_of(t, struct runtime, idle.age);
    bool pauses = can_pause(r);

    if (r->op.kind || r->hidden || !list_empty(&r->asks)) {
        loop_timer_start(r->manager->config.loop, t, 1000, on_age);
        return;
    }
    if (r->status.now != RUNTIME_RUNNING || (!pauses && r->manager->config.driver->forgets))
        return;
    log_info("it has run as long as it may", KV("id", r->id), KV("setting", "idle.max_age"));
    ++*(pauses ? &r->manager->counters.idle_pauses : &r->manager->counters.idle_stops);
    loop_timer_start(r->manager->config.loop, t, AGE_AGAIN_MS, on_age);
    runtime_ask_own(r, pauses ? RUNTIME_PAUSE : RUNTIME_HALT);
}

static void watch_age(struct runtime *r)
{
    uint64_t most = r->manager->config.max_age_ms, now = manager_now_ms(r->manager);
    uint64_t age = now > r->changed_ms ? now - r->changed_ms : 0; /* over restarts of the server */

    if (r->status.now == RUNTIME_RUNNING && most && !r->manager->ending)
        loop_timer_start(r->manager->config.loop, &r->idle.age, age < most ? most - age : 1,
                         on_age);
    else
        loop_timer_stop(&r->idle.age);
}

void idle_watch(struct runtime *r)
{
    uint64_t allowed = allowed_ms(r);

    watch_age(r);
    r->idle.since_ns = loop_now_ns(r->manager->config.loop);
    r->idle.tries = 0;
    if (allowed && !r->manager->ending)
        loop_timer_start(r->manager->config.loop, &r->idle.timer, allowed, on_idle);
    else
        loop_timer_stop(&r->idle.timer);
}

void idle_stop(struct runtime *r)
{
    loop_timer_stop(&r->idle.timer);
    loop_timer_stop(&r->idle.age);
    if (!r->idle.looking)
        return;
    http_call_cancel(r->idle.looking);
    forget_seen(r);
}
