// SPDX-License-Identifier: Apache-2.0
/* start.c — a start, from top to bottom as it happens here: is its image here, has the session a
 * runtime already, which sandbox does it get, its row and the backend side by side, the answer.
 *
 * The launcher's part is launcher/claim.c and launcher/start.c, pid 1's guest/init. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "host/build/build.h"
#include "host/runtime/asking.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/row.h"
#include "host/runtime/snapshots.h"
#include "host/runtime/start.h"

#define GRACE_MS 25   /* a start that is ready so soon is told as running */
#define CLAIM_MS 1000 /* the same of a claim, whose turn comes among a hundred */

static uint32_t us_since(const struct runtime *r, uint64_t ns)
{
    return (uint32_t)((manager_mono_ns(r->manager) - ns) / 1000);
}

/* --- 1: is its image here? --- */

/* The configuration of the image. */
static fallible take_config(struct asking *a, struct str record)
{
    struct json *tree;

    TRY(json_parse(&a->req->arena, arena_copy(&a->req->arena, record), NULL, &tree));
    a->start.image_config = json_get(tree, STR("config"));
    a->start.image_id = json_get_str(tree, "id", (struct str){0});
    a->start.no_bash = json_get_bool(tree, "no_bash", false);
    return NULL;
}

static fallible image_answered(struct asking *a, const char *record, size_t count,
                               const struct err *why)
{
    struct str image = str_first(a->start.image, 200);
    bool missing = why && (err_code(why) == ERR_NOT_FOUND || err_code(why) == ERR_INVALID);

    if (missing && builds_under_way(a->api->builds, a->start.image)) {
        if (!a->api->manager->config.build_wait_ms)
            return err_new(ERR_BUSY,
                           "image: '" STR_FMT
                           "' is being built: start it when /build_status says SUCCESS",
                           STR_ARG(image));
        a->place.builds = a->api->builds; /* it is told as starting until then */
        return manager_start(a->api->manager, &a->place);
    }
    if (missing)
        return err_new(ERR_UNPROCESSABLE,
                       "image: '" STR_FMT "' is not here; 'host' is this machine's own system, "
                       "'croft image ls' lists the others, 'croft image import' adds one",
                       STR_ARG(image));
    if (why)
        return err_wrap(err_copy(why), "image '" STR_FMT "'", STR_ARG(image));
    if (count)
        TRY(take_config(a, str_of(record)));
    return manager_start(a->api->manager, &a->place);
}

static void on_image(void *arg, const char *record, size_t count, const struct err *why)
{
    struct asking *a = arg;
    struct err *e = image_answered(a, record, count, why);

    if (e)
        http_reply_err(a->req, e);
}

static void on_asker_gone(struct http_req *req)
{
    struct asking *a = req->user;

    manager_start_give_up(a->api->manager, &a->place);
}

/* An image that is not here is refused now, and not found out by a sandbox that does not start. */
fallible asking_start(struct asking *a)
{
    struct manager *m = a->api->manager;

    a->place = (struct start_place){.ask = &a->ask, .key = a->key, .start = &a->start};
    list_init(&a->place.link);
    a->req->user = a;
    a->req->on_gone = a->req->on_hangup = on_asker_gone;
    if (start_is_there(m, &a->place) || spec_image_is_host(a->start.image) ||
        !(m->config.driver->caps & SBX_IS_HERE))
        return manager_start(m, &a->place); /* what another machine has, it knows */
    return sbx_image_ask(m->config.driver, a->start.image, on_image, a);
}

/* --- 2: its turn has come (line.c): the session's own, or room for a new one? --- */

static struct runtime *session_of(struct manager *m, const struct start_place *p)
{
    return manager_find_session(m, p->key, p->start->session_id);
}

bool start_is_there(struct manager *m, const struct start_place *p)
{
    const struct runtime *r = session_of(m, p);
    bool ending = r && r->op.kind == RUNTIME_REMOVE;

    if (r)
        LIST_EACH(next, &r->asks, struct runtime_ask, link)
            ending |= next->op == RUNTIME_REMOVE;
    return r && !ending && r->status.now != RUNTIME_STOPPED &&
           (r->status.now != RUNTIME_ERROR || runtime_is_out_of_reach(r));
}

/* One elsewhere may have been paused or ended there. */
static void use_existing(struct runtime *r, struct runtime_ask *ask)
{
    bool runs = r->status.now == RUNTIME_RUNNING && !runtime_is_far(r);

    if (runs || r->status.now == RUNTIME_STARTING)
        start_watch(r, ask);
    else
        manager_ask(r, RUNTIME_RESUME, ask);
}

static fallible start_make(struct manager *m, struct tenant *t, const struct start_place *p,
                           struct runtime **ret);
static void start_begin(struct runtime *r, const struct start_place *p);

fallible start_now(struct manager *m, const struct start_place *p)
{
    struct tenant *t = tenant_get(m, key_tenant(p->key));
    struct runtime *old = session_of(m, p), *r;

    if (start_is_there(m, p)) {
        use_existing(old, p->ask);
        return NULL;
    }
    TRY(wants_check_factor(m, p->start));
    unsigned goes = old && old->status.now == RUNTIME_ERROR; /* its place is taken */
    if (m->live - goes >= m->config.most)
        return err_new(ERR_LIMIT,
                       "%u runtimes are there, which is the most (server.most_sandboxes)",
                       m->live - goes);
    TRY(keys_admit(m->config.keys, p->key, t->live - goes));
    struct err *e = start_make(m, t, p, &r);
    if (e) {
        keys_give_back(m->config.keys, p->key);
        m->counters.refused++;
        return e;
    }
    m->counters.starts++;
    manager_add(m, r);
    if (goes)
        runtime_ask_own(old, RUNTIME_REMOVE); /* what it left goes */
    start_begin(r, p);
    return NULL;
}

/* --- 3: which sandbox? --- */

/* Above the files of a snapshot, if there is one. */
fallible start_new_sandbox(struct runtime *r, const struct wire_start *start)
{
    struct sbx_driver *d = r->manager->config.driver;

    if (!start->from.p)
        return sbx_create(d, &r->op.spec->sbx, &r->sbx);
    TRY(sbx_fork(d, start->from, &r->op.spec->sbx, &r->sbx));
    runtime_hold(r, start->from);
    return NULL;
}

fallible start_make_spec(struct runtime *r, const struct wire_start *start, const char *image)
{
    r->op.spec = mem_new(sizeof *r->op.spec);
    TRY(spec_make(r, start, image, r->op.spec));
    r->published = r->op.spec->sbx.face == SBX_FACE_COMMAND ? r->op.spec->sbx.port : 0;
    return NULL;
}

static fallible take_port_and_spec(struct runtime *r, const struct wire_start *start,
                                   const char *image)
{
    TRY(proxy_add(r->manager->config.proxy, &r->target, 0));
    r->port = r->target.port;
    return start_make_spec(r, start, image);
}

static void tell_where_from(struct runtime *r, const char *pool, enum pool_miss miss)
{
    const char *note = r->op.spec->note;

    r->timeline.miss = (uint8_t)miss;
    r->timeline.launch = r->start.warm       ? RUNTIME_WARM
                         : miss == POOL_FORK ? RUNTIME_FORK
                                             : RUNTIME_COLD;
    if (r->start.warm)
        runtime_set_detail(r, "warm: from pool '%s'%s%s", pool, note ? "; " : "", note ? note : "");
    else
        runtime_set_detail(r, "cold: %s%s%s", pool_miss_words[miss], note ? "; " : "",
                           note ? note : "");
    runtime_set_text(&r->pool, r->start.warm ? pool : NULL);
}

/* A warm one by preference; r gets its id. A pool gives it away only when nothing can fail. */
static fallible find_sandbox(struct manager *m, struct runtime *r, const struct wire_start *start,
                             const char *image)
{
    enum pool_miss miss = POOL_HIT;
    const char *pool = NULL;
    struct sbx *warm = NULL;

    if (start->from.p)
        miss = POOL_FORK;
    else if (wants_need_a_new_one(m, start))
        miss = POOL_DISK;
    else
        warm = pool_look(m, image, &pool, &miss);
    if (warm)
        memcpy(r->id, warm->id, sizeof r->id);
    else
        runtime_make_id(r->id);
    r->start.warm = warm != NULL;
    TRY(take_port_and_spec(r, start, image));
    tell_where_from(r, pool, miss);
    if (warm) {
        pool_give(m, warm);
        warm->on_gone = runtime_on_gone; /* it may end before it is claimed */
        warm->arg = r;
        r->sbx = warm;
        return NULL;
    }
    pool_missed(m, image, miss);
    return start_new_sandbox(r, start);
}

/* None yet: what can be said of the request without its image is said now. */
static fallible find_none(struct runtime *r, const struct wire_start *start, const char *image,
                          struct builds *builds)
{
    runtime_make_id(r->id);
    TRY(take_port_and_spec(r, start, image));
    runtime_drop_spec(r);
    await_new(r, builds);
    return NULL;
}

static fallible start_make(struct manager *m, struct tenant *t, const struct start_place *p,
                           struct runtime **ret)
{
    const struct wire_start *start = p->start;
    char image[SPEC_IMAGE];

    TRY(spec_image(start->image, image));
    struct runtime *r = runtime_new(m, t, "", RUNTIME_STARTING);
    r->session_id = strndup(start->session_id.p, start->session_id.len);
    r->image = strndup(start->image.p, start->image.len);
    r->factor = (uint16_t)start->resource_factor;
    r->wants = wants_text(start->wants);
    r->created_ms = r->changed_ms = manager_now_ms(m);
    rng_token(rng_system(), r->keys.session, sizeof r->keys.session);
    memcpy(r->keys.inner, r->keys.session, sizeof r->keys.inner);
    runtime_set_hooks(r);
    struct err *e =
        p->builds ? find_none(r, start, image, p->builds) : find_sandbox(m, r, start, image);
    if (e) {
        runtime_free(r);
        return e;
    }
    *ret = r;
    return NULL;
}

void runtime_drop_spec(struct runtime *r)
{
    struct spec *spec = take(&r->op.spec);

    if (spec)
        spec_done(spec);
    free(spec);
    snapshot_let_go(take(&r->op.from));
}

/* --- 4: its row and the backend, side by side --- */

static void on_row(void *arg, struct err *e)
{
    struct runtime *r = arg;

    r->timeline.phase_us[RUNTIME_PHASE_ROW] = us_since(r, r->start.begun_ns);
    if (e) {
        log_warn("a start was not written down", KV("id", r->id), KV("request_id", r->request),
                 KV_ERR(e));
        r->manager->counters.failures++;
    }
    r->durable = !e;
    start_tell_watchers(r);
    operation_wrote(r, e);
}

static void on_first(struct proxy_target *t, uint64_t ns)
{
    struct runtime *r = container_of(t, struct runtime, target);

    r->timeline.phase_us[RUNTIME_PHASE_FIRST_COMMAND] = (uint32_t)(ns / 1000);
    runtime_observe_first(r);
    runtime_note_running(r);
}

/* The first command may come as soon as the address is known, and then waits. */
static void ask_backend(struct runtime *r)
{
    r->manager->starting++;
    r->target.on_first = on_first;
    operation_enqueue(r);
}

static void start_begin(struct runtime *r, const struct start_place *p)
{
    r->start.begun_ns = manager_mono_ns(r->manager);
    r->start.counted = r->start.warm;
    r->manager->pools.claiming += r->start.warm;
    runtime_set_request(r, p->ask->request);
    operation_open(r, RUNTIME_START);
    start_watch(r, p->ask);
    r->op.writes++;
    row_insert(r, p->start, on_row); /* first: the disk works while we do */
    if (r->start.await) {
        operation_settle(r); /* its sandbox is begun when its image is there */
        return;
    }
    manager_emit(r, RUNTIME_EVENT_STARTING, "");
    ask_backend(r);
}

fallible start_call(struct sbx *s, sbx_done *done, void *arg)
{
    struct runtime *r = arg;

    r->timeline.phase_us[RUNTIME_PHASE_QUEUE] = us_since(r, r->start.begun_ns);
    return r->start.warm ? sbx_claim(s, &r->op.spec->sbx, done, arg) : sbx_start(s, done, arg);
}

/* --- 5: the backend has answered --- */

/* A warm one that was not well: the same runtime starts cold. */
static void on_unwarmed(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;

    (void)s;
    (void)e; /* told by the start, if it matters */
    r->sbx = NULL;
    own(err) why = sbx_create(r->manager->config.driver, &r->op.spec->sbx, &r->sbx);
    queue_leave(r->manager);
    if (!why)
        operation_enqueue(r);
    else if (start_answered(r, why))
        operation_settle(r);
}

static void on_unclaimed(void *arg, struct sbx *s, const struct err *e)
{
    struct runtime *r = arg;
    own(err) why = e ? err_copy(e) : sbx_remove(s, on_unwarmed, r);

    if (!why)
        return;
    queue_leave(r->manager);
    if (start_answered(r, why))
        operation_settle(r);
}

/* One that was refused before it was bound still waits, and is ended first. */
static bool start_cold_after_all(struct runtime *r, const struct err *why)
{
    struct manager *m = r->manager;
    bool waits = r->sbx && r->sbx->state.now == SBX_WARM;

    if (!r->start.warm || r->op.retried || !r->sbx || m->config.driver->lost ||
        !(waits || r->sbx->state.now == SBX_STOPPED))
        return false;
    r->op.retried = true;
    r->start.warm = false;
    runtime_claim_over(r);
    start_tell_watchers(r);
    r->timeline.launch = RUNTIME_COLD;
    r->timeline.miss = err_code(why) == ERR_GONE ? POOL_STALE : POOL_UNWELL;
    if (r->timeline.miss == POOL_STALE)
        pool_end_stale(m, r->pool);
    runtime_set_text(&r->pool, NULL);
    runtime_set_detail(r, "cold: %s: %s", pool_miss_words[r->timeline.miss], err_text(why));
    own(err) e = waits ? sbx_stop(r->sbx, on_unclaimed, r) : sbx_remove(r->sbx, on_unwarmed, r);
    m->queue.called += !e;
    return !e;
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
        r->timeline.phase_us[of[i]] += (uint32_t)(info.phase_ns[i] / 1000);
    if (r->start.warm)
        r->timeline.phase_us[RUNTIME_PHASE_CLAIM] = us_since(r, r->sbx->begun_ns);
}

/* NULL: it runs, and can be reached. */
static fallible why_not(struct runtime *r, const struct err *e)
{
    if (e)
        return err_copy(e);
    if (r->sbx->state.now == SBX_STOPPED) /* it was ready, and then not any more */
        return err_new(ERR_CLOSED, "%s", r->sbx->failure ? r->sbx->failure : "it ended");
    return runtime_set_addresses(r);
}

static void now_runs(struct runtime *r)
{
    runtime_enter(r, RUNTIME_RUNNING, "");
    if (r->published && !runtime_is_far(r)) {
        r->lived = true;
        probe_start(r);
    } else if (!r->sbx->binding)
        runtime_is_ready(r);
}

bool start_answered(struct runtime *r, const struct err *e)
{
    struct manager *m = r->manager;

    if (e && start_cold_after_all(r, e))
        return false;
    if (r->sbx)
        note_phases(r);
    if (r->start.warm && !e)
        pool_count_hit(m, r->pool);
    own(err) why = why_not(r, e);
    if (why && m->config.driver->lost) { /* its row says that it is to be started */
        start_answer_watchers(r, why);
        return false;
    }
    m->starting--;
    line_go_on(m);
    if (r->op.retried && !why) /* what cannot be started cold either was not for the pool to bear */
        pool_missed(m, r->op.spec->sbx.image ? r->op.spec->sbx.image : "host", r->timeline.miss);
    else if (r->op.retried)
        r->timeline.miss = POOL_HIT;
    if (why)
        runtime_fail(r, why); /* and that is how it is told */
    else
        now_runs(r);
    return true;
}

/* --- 6: the answer --- */

void start_answer_watchers(struct runtime *r, const struct err *e)
{
    loop_timer_stop(&r->start.grace);
    if (!e && !r->start.answered && r->op.kind == RUNTIME_START &&
        !list_empty(&r->start.watchers)) {
        r->start.answered = true;
        runtime_observe_answer(r, manager_mono_ns(r->manager) - r->start.begun_ns);
    }
    LIST_EACH(ask, &r->start.watchers, struct runtime_ask, link) {
        list_del(&ask->link);
        runtime_answer(ask, r, e ? err_copy(e) : NULL);
    }
}

static void on_grace(struct loop_timer *t)
{
    struct runtime *r = container_of(t, struct runtime, start.grace);

    start_answer_watchers(r, NULL);
    runtime_claim_over(r);
}

/* Its row and its key are on disk; a server that is about to listen is worth a moment. */
void start_tell_watchers(struct runtime *r)
{
    if (!r->durable || r->keys.next || list_empty(&r->start.watchers))
        return;
    if (r->status.now != RUNTIME_STARTING)
        start_answer_watchers(r, NULL);
    else if (!r->start.grace.loop)
        loop_timer_start(r->manager->config.loop, &r->start.grace,
                         r->start.warm ? CLAIM_MS : GRACE_MS, on_grace);
}

void start_watch(struct runtime *r, struct runtime_ask *ask)
{
    sbx_wait_over(&ask->waiter); /* for its row, not for the launcher */
    ask->op = RUNTIME_START;
    if (r->durable && !r->keys.next && r->status.now != RUNTIME_STARTING) {
        runtime_answer_later(ask, r, NULL);
        return;
    }
    list_add(&r->start.watchers, &ask->link);
    start_tell_watchers(r);
}

/* The next server knows only those that have a row. */
void manager_answer_starts(struct manager *m)
{
    own(err) lost = err_new(ERR_BUSY, "this server ends, and the start was not written down: try "
                                      "again at the next one");

    line_refuse_all(m, lost);
    MAP_EACH(slot, &m->ids) {
        struct runtime *r = slot->value;
        start_answer_watchers(r, r->durable ? NULL : lost);
    }
}

/* --- 7: the end --- */

/* It has no row, so that it was not acknowledged. */
static void undo_start(struct runtime *r)
{
    manager_hide(r);
    runtime_enter(r, RUNTIME_STOPPED, NULL);
    start_answer_watchers(r, r->op.failed);
    if (r->sbx && r->sbx->state.now == SBX_RUNNING)
        runtime_ask_own(r, RUNTIME_REMOVE); /* its turn comes below */
    if (!r->sbx) {
        manager_drop(r);
        return;
    }
    operation_finish(r);
    runtime_clear(r);
}

void runtime_claim_over(struct runtime *r)
{
    if (!r->start.counted)
        return;
    r->start.counted = false;
    loop_timer_stop(&r->start.grace);
    if (!--r->manager->pools.claiming)
        pool_claims_over(r->manager);
}

/* The pool is filled up after the waiting requests, and not beside the start of the sandbox. A
 * sandbox that hangs is not waited for. */
void start_end(struct runtime *r)
{
    r->start.warm = false;
    runtime_drop_spec(r);
    if (!r->durable) {
        undo_start(r);
        return;
    }
    start_tell_watchers(r);
    if (r->start.counted && r->sbx && r->sbx->binding)
        loop_timer_start(r->manager->config.loop, &r->start.grace, CLAIM_MS, on_grace);
    else
        runtime_claim_over(r);
    operation_finish(r);
    if (r->start.await) /* it may have been removed */
        await_begin(r);
}

void runtime_is_ready(struct runtime *r)
{
    r->timeline.ready_us = us_since(r, r->start.begun_ns);
    r->lived = true;
    manager_emit(r, RUNTIME_EVENT_READY, "");
    log_debug("timeline", KV("id", r->id), KV("request_id", r->request),
              KV("queue_us", r->timeline.phase_us[RUNTIME_PHASE_QUEUE]),
              KV("claim_us", r->timeline.phase_us[RUNTIME_PHASE_CLAIM]),
              KV("exec_us", r->timeline.phase_us[RUNTIME_PHASE_EXEC]),
              KV("ready_us", r->timeline.phase_us[RUNTIME_PHASE_READY]),
              KV("row_us", r->timeline.phase_us[RUNTIME_PHASE_ROW]));
}

/* It was told as running, and what came for it waited. */
void runtime_on_listens(void *arg, struct sbx *s)
{
    struct runtime *r = arg;
    struct sbx_info info;

    sbx_inspect(s, &info);
    r->timeline.phase_us[RUNTIME_PHASE_READY] = (uint32_t)(info.phase_ns[SBX_PHASE_READY] / 1000);
    runtime_claim_over(r);
    r->lived = true;
    if (r->status.now == RUNTIME_RUNNING && r->op.kind != RUNTIME_RESUME) /* it told the same */
        runtime_is_ready(r);
}

/* --- other beginnings --- */

/* Asked for by a resume, after it ended. */
void start_again(struct runtime *r)
{
    struct runtime_ask *ask = r->op.asked;

    r->restarts.count += r->restarts.count < UINT8_MAX;
    r->restarts.server_died = false;
    r->restarts.died_ns = 0;
    memset(r->timeline.phase_us, 0, sizeof r->timeline.phase_us);
    r->timeline.launch = RUNTIME_AGAIN;
    r->timeline.miss = POOL_HIT;
    r->start.warm = false;
    runtime_set_detail(r, "cold: it had ended and was started again");
    operation_open(r, RUNTIME_START);
    runtime_rotate_key(r);
    r->op.asked = NULL;
    runtime_enter(r, RUNTIME_STARTING, "");
    if (ask)
        start_watch(r, ask);
    ask_backend(r);
}

/* Its row was acknowledged before, by a server before us too; r->op.spec is made from it. */
void start_from_row(struct runtime *r)
{
    r->start.begun_ns = manager_mono_ns(r->manager);
    operation_open(r, RUNTIME_START);
    runtime_enter(r, RUNTIME_STARTING, "");
    ask_backend(r);
}
