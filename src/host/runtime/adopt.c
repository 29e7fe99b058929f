// SPDX-License-Identifier: Apache-2.0
/* adopt.c — a new server: the rows of the server before are joined with the living sandboxes.
 *
 * A runtime that has both goes on, on the same port. An acknowledged row that never had a process
 * is started; one whose process is gone is stopped. A sandbox without a row is ended. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/row.h"
#include "host/runtime/snapshots.h"
#include "host/runtime/start.h"

#define SPEC_BYTES   (16u << 20)
#define UNKNOWN_MOST 8    /* ended at a time */
#define FAR_MS       2000 /* the longest wait for another machine before any client is answered */

struct unknown { /* a sandbox without a row */
    struct manager *m;
    struct list link;
    struct sbx *sbx;
    char id[64];
};

struct asked { /* what a runtime that may live was started with */
    struct arena arena;
    struct wire_start start;
    struct err *err; /* its row is damaged */
};

struct adopting {
    struct map asked; /* of struct asked, by the id of its runtime */
    struct map there; /* ids the backend has; values are not looked at */
    struct sbx_listed *all;
    bool new_boot;                          /* the machine was started anew */
    bool listed;                            /* otherwise each is asked for */
    unsigned waiting;                       /* runtimes not looked at yet */
    void (*done)(void *arg, struct err *e); /* NULL: it was told */
    void *arg;
    struct loop_later later;
    struct loop_timer enough;
};

/* --- unknown --- */

static void unknown_next(struct manager *m);

static void unknown_free(struct unknown *j)
{
    struct manager *m = j->m;

    m->unknown_count--;
    free(j);
    queue_leave(m);
    unknown_next(m);
}

static void on_unknown_removed(void *arg, struct sbx *s, const struct err *e)
{
    struct unknown *j = arg;

    (void)s;
    if (e)
        log_warn("an unknown sandbox stays", KV("id", j->id), KV_ERR(e));
    unknown_free(j);
}

static void unknown_remove(struct unknown *j)
{
    struct err *e = sbx_remove(j->sbx, on_unknown_removed, j);

    if (!e)
        return;
    on_unknown_removed(j, j->sbx, e);
    err_free(e);
}

/* One that cannot be stopped is being ended already: an unclaimed one dies with its server. */
static void on_unknown_stopped(void *arg, struct sbx *s, const struct err *e)
{
    if (e && s->state.now != SBX_STOPPED)
        sbx_gone(s, "%s", err_text(e));
    unknown_remove(arg);
}

static void on_unknown_adopted(void *arg, struct sbx *s, const struct err *e)
{
    struct unknown *j = arg;

    if (e || s->state.now == SBX_STOPPED) {
        unknown_remove(j);
        return;
    }
    own(err) why = sbx_stop(s, on_unknown_stopped, j);
    if (why)
        on_unknown_stopped(j, s, why);
}

static void unknown_begin(struct unknown *j)
{
    struct sbx_spec spec = {.id = j->id};
    struct err *e = sbx_create(j->m->config.driver, &spec, &j->sbx);

    list_del(&j->link);
    j->m->queue.called++;
    if (!e)
        e = sbx_adopt(j->sbx, on_unknown_adopted, j);
    if (!e)
        return;
    log_warn("an unknown sandbox stays", KV("id", j->id), KV_ERR(e));
    err_free(e);
    unknown_free(j);
}

static void unknown_next(struct manager *m)
{
    if (!list_empty(&m->unknowns))
        unknown_begin(LIST_FIRST(&m->unknowns, struct unknown, link));
}

static bool is_known(const void *arg, const char *id)
{
    const struct manager *m = arg;
    const struct runtime *r = map_get(&m->ids, str_of(id));

    return r && r->status.now != RUNTIME_STOPPED;
}

/* The log is still read if the sandbox lives, or is to be started. A server may have been killed
 * before it wrote down the end of one that is gone. */
static bool may_say_more(const void *arg, const char *id)
{
    const struct manager *m = arg;
    const struct runtime *r = map_get(&m->ids, str_of(id));

    return is_known(m, id) && (!m->adopting->listed || r->status.now == RUNTIME_STARTING ||
                               map_get(&m->adopting->there, str_of(id)));
}

static void unknown_collect(struct manager *m, const struct sbx_listed *all, size_t count)
{
    const struct sbx_survivor_calls *calls = m->config.driver->backend->survivors;

    if (calls && calls->sweep)
        calls->sweep(m->config.driver, may_say_more, m);
    for (size_t i = 0; i < count; i++) {
        if (is_known(m, all[i].id))
            continue;
        struct unknown *j = mem_new(sizeof *j);
        j->m = m;
        memcpy(j->id, all[i].id, sizeof j->id);
        list_add(&m->unknowns, &j->link);
        m->unknown_count++;
    }
    if (m->unknown_count)
        log_info("unknown sandboxes are ended", KV("count", m->unknown_count));
    for (unsigned i = 0; i < UNKNOWN_MOST; i++)
        unknown_next(m);
}

/* --- one runtime --- */

static void tell_adopted(struct adopting *a)
{
    void (*done)(void *arg, struct err *e) = take(&a->done);

    if (done)
        done(a->arg, NULL);
}

static void on_enough(struct loop_timer *t)
{
    struct adopting *a = container_of(t, struct adopting, enough);

    log_warn("the other server does not answer: its sandboxes are waited for while we serve",
             KV("runtimes", a->waiting));
    tell_adopted(a);
}

static void free_all(struct adopting *a)
{
    loop_timer_stop(&a->enough);
    loop_later_cancel(&a->later);
    MAP_EACH(slot, &a->asked) {
        struct asked *asked = slot->value;
        arena_done(&asked->arena);
        err_free(asked->err);
        free(asked);
    }
    map_done(&a->asked);
    map_done(&a->there);
    free(a->all);
    free(a);
}

void adopting_free(struct manager *m)
{
    if (m->adopting)
        free_all(take(&m->adopting));
}

static void on_all_adopted(struct loop_later *l)
{
    struct adopting *a = container_of(l, struct adopting, later);

    tell_adopted(a);
    free_all(a);
}

static void adopted_one(struct manager *m)
{
    struct adopting *a = m->adopting;

    if (--a->waiting)
        return;
    m->adopting = NULL;
    snapshots_sweep(m);
    loop_later(m->config.loop, &a->later, on_all_adopted);
}

static void open_port(struct runtime *r)
{
    if (r->target.port)
        return;
    struct err *e = proxy_add(r->manager->config.proxy, &r->target, r->port);

    if (e && err_code(e) == ERR_CONFLICT) { /* another program took it meanwhile */
        log_warn("a runtime gets another port", KV("id", r->id), KV_ERR(e));
        err_free(e);
        e = proxy_add(r->manager->config.proxy, &r->target, 0);
        r->port = r->target.port;
        row_set_port(r);
    }
    if (e)
        log_error("a runtime cannot be reached", KV("id", r->id), KV_ERR(e));
    err_free(e);
}

static void is_gone(struct runtime *r, const char *why)
{
    r->manager->counters.lost++;
    runtime_set_detail(r, "%s", why);
    runtime_enter(r, RUNTIME_STOPPED, r->detail);
}

static void begin_unborn(struct runtime *r)
{
    open_port(r);
    start_from_row(r);
}

/* The machine that has it does not answer: it may well live. A resume looks for it again. */
static void is_out_of_reach(struct runtime *r, const struct err *e)
{
    r->lived = true; /* it is not forgotten as one that never ran */
    open_port(r);
    runtime_set_detail(r, "%s", err_text(e));
    runtime_enter(r, RUNTIME_ERROR, r->detail);
}

/* Acknowledged, and never begun as far as the row says. Pid 1 is told of a claim behind the answer:
 * a launcher that was killed in between took the sandbox along. */
static bool is_unborn(const struct runtime *r)
{
    enum sbx_state now = r->sbx->state.now;

    return now == SBX_WARM || (now == SBX_STOPPED && r->status.now == RUNTIME_STARTING &&
                               r->op.spec->sbx.face != SBX_FACE_COMMAND);
}

static void lives_on(struct runtime *r, enum runtime_status status)
{
    bool reachable = status == RUNTIME_RUNNING || runtime_is_far(r); /* else when it is resumed */

    r->manager->counters.adopted++;
    open_port(r);
    own(err) e = reachable ? runtime_set_addresses(r) : NULL;
    if (e)
        log_error("a runtime cannot be reached", KV("id", r->id), KV_ERR(e));
    runtime_enter(r, status, NULL);
    if (r->published && !runtime_is_far(r))
        probe_start(r);
}

static void has_ended(struct runtime *r)
{
    open_port(r);
    if (r->status.now == RUNTIME_ERROR || r->status.now == RUNTIME_PAUSED) {
        runtime_enter(r, r->status.now, NULL);
        return;
    }
    runtime_set_detail(r, "it ended while no server was there");
    runtime_enter(r, RUNTIME_ERROR, r->detail);
}

bool adopt_answered(struct runtime *r, const struct err *e)
{
    if (e && r->manager->config.driver->lost)
        return false; /* it lives on, and its row stays as it is, for the next server */
    if (e && r->status.now == RUNTIME_STARTING)
        return true; /* acknowledged, never begun */
    if (e && runtime_is_far(r) && err_code(e) != ERR_NOT_FOUND) {
        is_out_of_reach(r, e);
        return true;
    }
    if (e) { /* no process, no files */
        is_gone(r, "its sandbox was gone when the server started");
        return true;
    }
    r->lived = !is_unborn(r); /* as far as is known */
    if (!r->lived) {          /* acknowledged, and not bound */
        r->start.warm = r->sbx->state.now == SBX_WARM;
        runtime_enter(r, RUNTIME_STARTING, NULL);
    } else if (r->sbx->state.now == SBX_RUNNING)
        lives_on(r, RUNTIME_RUNNING);
    else if (r->sbx->state.now == SBX_PAUSED)
        lives_on(r, RUNTIME_PAUSED);
    else
        has_ended(r);
    return true;
}

void adopt_end(struct runtime *r)
{
    struct manager *m = r->manager;
    bool end = m->ending && runtime_is_far(r); /* the manager's end passed it by */

    if (r->status.now == RUNTIME_STARTING) {
        begin_unborn(r);
    } else {
        runtime_drop_spec(r);
        operation_finish(r);
        runtime_clear(r); /* of one that is gone */
    }
    adopted_one(m);
    if (end)
        manager_end_one(r);
}

fallible adopt_make_spec(struct runtime *r, struct wire_start *start, const struct json *record)
{
    char image[SPEC_IMAGE];

    if (record) {
        start->image_config = json_get(record, STR("config"));
        start->no_bash = json_get_bool(record, "no_bash", false);
    }
    TRY(spec_image(start->image, image));
    return start_make_spec(r, start, image);
}

/* The sandbox as it was asked for: should it end, it can be started again. */
static fallible make_sandbox(struct runtime *r)
{
    const struct asked *asked = map_get(&r->manager->adopting->asked, str_of(r->id));
    struct wire_start start = asked->start;

    if (asked->err)
        return err_copy(asked->err);
    TRY(adopt_make_spec(r, &start, NULL));
    if (r->status.now != RUNTIME_STARTING)
        start.from = (struct str){0}; /* it has files of its own */
    struct err *e = start_new_sandbox(r, &start);
    if (!e || err_code(e) != ERR_FORBIDDEN)
        return e;
    /* A directory it has mounted is not granted any more: that is no reason to end it. */
    log_warn("a sandbox can be taken over, and not started again", KV("id", r->id), KV_ERR(e));
    err_free(e);
    r->op.spec->sbx.mount_count = 0;
    return start_new_sandbox(r, &start);
}

/* Its row has not what a stored image says of itself: that was not there yet, or has nothing to
 * say. */
static bool waited_for_image(struct runtime *r)
{
    const struct sbx_driver *d = r->manager->config.driver;
    const struct asked *asked = map_get(&r->manager->adopting->asked, str_of(r->id));

    if (!(d->caps & SBX_IS_HERE) || !d->backend->images || spec_image_is_host(str_of(r->image)))
        return false;
    if (asked->start.from.p)
        runtime_hold(r, asked->start.from);
    return !asked->start.image_config;
}

static void adopt_one(struct runtime *r)
{
    struct manager *m = r->manager;
    bool there = !m->adopting->listed || map_get(&m->adopting->there, str_of(r->id));
    bool unborn = r->status.now == RUNTIME_STARTING;

    runtime_set_hooks(r);
    if (unborn && !there && waited_for_image(r)) {
        open_port(r);
        await_new(r, NULL);
        await_begin(r);
        adopted_one(m);
        return;
    }
    own(err) e = there || unborn ? make_sandbox(r) : NULL;
    if (e)
        log_error("a runtime cannot be taken over", KV("id", r->id), KV_ERR(e));
    if (!r->sbx) {
        is_gone(r, e ? err_text(e) : "its sandbox was gone when the server started");
        adopted_one(m);
        return;
    }
    if (there) {
        if (runtime_is_far(r)) /* known by its name from now on: it may not be answered for long */
            open_port(r);
        operation_begin(r, RUNTIME_ADOPT);
        return;
    }
    begin_unborn(r);
    adopted_one(m);
}

/* --- all of them --- */

static void keep_asked(struct manager *m, const struct runtime *r, const struct store_value *row)
{
    struct asked *asked = mem_new(sizeof *asked);

    arena_init(&asked->arena, SPEC_BYTES);
    asked->err = row_spec(row, &asked->arena, &asked->start);
    map_put(&m->adopting->asked, str_of(r->id), asked);
}

static void on_row(struct manager *m, struct runtime *r, const struct store_value *row)
{
    manager_add(m, r);
    if (r->status.now != RUNTIME_STOPPED) {
        keep_asked(m, r, row);
        return;
    }
    list_add(&m->stopped, &r->order);
    m->stopped_count++;
    idle_watch(r);
}

static void on_listed(void *arg, const struct sbx_listed *all, size_t count, const struct err *e)
{
    struct manager *m = arg;
    struct adopting *a = m->adopting;

    if (e)
        log_error("sandboxes cannot be listed", KV_ERR(e));
    a->listed = !e && (m->config.driver->caps & SBX_CAN_LIST);
    a->all = mem_new((count + 1) * sizeof *a->all);
    if (count)
        memcpy(a->all, all, count * sizeof *a->all);
    for (size_t i = 0; i < count; i++)
        map_put(&a->there, str_of(a->all[i].id), &a->all[i]);
    unknown_collect(m, a->all, count);
    a->waiting = 1;
    MAP_EACH(slot, &m->tenants) {
        struct tenant *t = slot->value;
        LIST_EACH(r, &t->runtimes, struct runtime, link) {
            if (r->status.now == RUNTIME_STOPPED)
                continue;
            a->waiting++;
            adopt_one(r);
        }
    }
    if (a->waiting > 1 && !(m->config.driver->caps & SBX_IS_HERE))
        loop_timer_start(m->config.loop, &a->enough, FAR_MS, on_enough);
    adopted_one(m);
}

static void stop_all(struct manager *m)
{
    MAP_EACH(slot, &m->ids) {
        struct runtime *r = slot->value;
        if (r->status.now != RUNTIME_STOPPED)
            is_gone(r, "the machine was started anew");
    }
}

static void adopt_fail(struct manager *m, struct err *e)
{
    struct adopting *a = take(&m->adopting);

    a->done(a->arg, e);
    free_all(a);
}

static void adopt_list(struct manager *m)
{
    if (!(m->config.driver->caps & SBX_CAN_LIST)) {
        on_listed(m, NULL, 0, NULL);
        return;
    }
    struct err *e = sbx_list(m->config.driver, on_listed, m);
    if (e)
        adopt_fail(m, e);
}

static void on_snapshots(void *arg, struct err *e)
{
    struct manager *m = arg;

    if (e) {
        adopt_fail(m, err_wrap(e, "the rows of snapshots"));
        return;
    }
    if (m->adopting->new_boot && (m->config.driver->caps & SBX_IS_HERE))
        stop_all(m);
    store_note_boot(m->config.store, NULL, NULL);
    adopt_list(m);
}

static void on_rows(void *arg, struct err *e)
{
    struct manager *m = arg;

    if (e)
        adopt_fail(m, e);
    else
        snapshots_load(m, on_snapshots);
}

static void on_boot(void *arg, bool changed, struct err *e)
{
    struct manager *m = arg;

    m->adopting->new_boot = changed;
    if (e)
        adopt_fail(m, e);
    else
        row_load(m, on_row, on_rows);
}

void manager_adopt(struct manager *m, void (*done)(void *arg, struct err *e), void *arg)
{
    m->adopting = mem_new(sizeof *m->adopting);
    map_init(&m->adopting->asked);
    map_init(&m->adopting->there);
    m->adopting->done = done;
    m->adopting->arg = arg;
    store_boot_changed(m->config.store, on_boot, m);
}
