// SPDX-License-Identifier: Apache-2.0
/* pool.c — see pool.h. */
#include "host/runtime/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "host/runtime/inner.h"
#include "host/runtime/start.h"

#define REFILL_PAUSE_MS 200 /* after a failure; doubled each time, up to: */
#define REFILL_MAX_MS   30000
#define REFILL_MOST     4  /* being made at once: more would only stand in each other's way */
#define CALM_MS         10 /* what was claimed last has the processors for its first command */
#define STREAM_MS       50 /* claims that come so long without a pause go on */

struct warm { /* a sandbox of a pool */
    struct pool *pool;
    struct sbx *sbx;
    struct list link;
    bool ready, ending;
};

const char *const pool_miss_words[POOL_MISSES] = {
    [POOL_HIT] = "",
    [POOL_NO_POOL] = "no pool has this image",
    [POOL_EMPTY] = "the pool is empty",
    [POOL_COLD] = "this backend keeps nothing warm",
    [POOL_FORK] = "it goes on from a snapshot",
    [POOL_DISK] = "it has a disk limit of its own",
    [POOL_UNWELL] = "the warm sandbox was not well",
    [POOL_STALE] = "the image of this name is another now",
};

const char *const pool_miss_names[POOL_MISSES] = {
    [POOL_HIT] = "",          [POOL_NO_POOL] = "image", [POOL_EMPTY] = "empty",
    [POOL_COLD] = "backend",  [POOL_FORK] = "snapshot", [POOL_DISK] = "disk",
    [POOL_UNWELL] = "unwell", [POOL_STALE] = "stale",
};

bool pool_can_be(const struct manager *m)
{
    return m->config.driver->caps & SBX_CAN_CLAIM;
}

static void free_pool(struct pool *p)
{
    list_del(&p->link);
    free(p->image);
    free(p->wire);
    free(p);
}

/* --- ending one --- */

static void forget_warm(struct warm *w)
{
    struct pool *p = w->pool;
    struct manager *m = p->manager;

    list_del(&w->link);
    if (w->ready)
        p->ready--;
    else
        p->making--;
    free(w);
    if (p->closed && !p->ready && !p->making)
        free_pool(p);
    manager_check_end(m);
}

static void on_warm_removed(void *arg, struct sbx *s, const struct err *e)
{
    struct warm *w = arg;
    struct manager *m = w->pool->manager;

    (void)s;
    if (e)
        log_warn("files of a warm sandbox stay", KV_ERR(e));
    queue_leave(m);
    forget_warm(w);
    pool_refill(m);
}

static void remove_warm(struct warm *w)
{
    struct err *e = sbx_remove(w->sbx, on_warm_removed, w);

    if (!e)
        return;
    log_warn("a warm sandbox stays", KV("id", w->sbx->id), KV_ERR(e));
    err_free(e);
    queue_leave(w->pool->manager);
    forget_warm(w);
}

static void on_warm_stopped(void *arg, struct sbx *s, const struct err *e)
{
    (void)s;
    (void)e; /* removing it tells */
    remove_warm(arg);
}

/* It counts as being made until it is gone: the machine carries it so long. */
static void end_warm(struct warm *w)
{
    struct pool *p = w->pool;

    if (w->ending)
        return;
    w->ending = true;
    list_del(&w->link);
    if (w->ready) {
        w->ready = false;
        p->ready--;
        p->making++;
    }
    list_add(&p->manager->pools.ends, &w->link);
    pool_end_next(p->manager);
}

/* A pool that is drained has more of them than the launcher's socket holds. */
void pool_end_next(struct manager *m)
{
    while (m->queue.called < LAUNCHER_MOST && !list_empty(&m->pools.ends)) {
        struct warm *w = LIST_FIRST(&m->pools.ends, struct warm, link);
        list_del(&w->link);
        list_add(&m->pools.asked, &w->link);
        m->queue.called++;
        own(err) e = sbx_stop(w->sbx, on_warm_stopped, w);
        if (e)
            remove_warm(w);
    }
}

/* --- making one --- */

static void on_refill_again(struct loop_timer *t)
{
    pool_refill(container_of(t, struct manager, pools.refill_again));
}

static void refill_later(struct manager *m)
{
    uint64_t ms = (uint64_t)REFILL_PAUSE_MS
                  << (m->pools.refill_fails < 8 ? m->pools.refill_fails : 8);

    m->pools.refill_fails++;
    loop_timer_start(m->config.loop, &m->pools.refill_again,
                     ms < REFILL_MAX_MS ? ms : REFILL_MAX_MS, on_refill_again);
}

/* A pool that no setting names may not hold up the others. */
static void not_made(struct pool *p)
{
    p->failed++;
    if (pool_is_recent(p))
        pool_close(p);
    else
        refill_later(p->manager);
}

static void on_warm_gone(void *arg, struct sbx *s)
{
    struct warm *w = arg;

    if (!w->ready || w->ending)
        return; /* its start, or its end, is told */
    log_warn("a warm sandbox ended", KV("id", s->id), KV("why", s->failure ? s->failure : "?"));
    w->pool->failed++;
    end_warm(w);
}

static void on_warm_started(void *arg, struct sbx *s, const struct err *e)
{
    struct warm *w = arg;
    struct pool *p = w->pool;
    struct manager *m = p->manager;

    m->pools.refilling--;
    queue_leave(m);
    if (e) {
        log_warn("no warm sandbox", KV("pool", p->name), KV_ERR(e));
        not_made(p);
        m->queue.called++;
        remove_warm(w);
        return;
    }
    (void)s;
    m->pools.refill_fails = 0;
    p->made++;
    p->making--;
    p->ready++;
    w->ready = true;
    list_del(&w->link);
    list_add(&p->sandboxes, &w->link);
    if (p->closed || m->ending)
        end_warm(w);
}

static bool make_warm(struct pool *p)
{
    struct manager *m = p->manager;
    char id[RUNTIME_ID_LEN + 1];
    struct warm *w = mem_new(sizeof *w);
    struct sbx_spec spec = {.id = id,
                            .image = strcmp(p->image, "host") == 0 ? NULL : p->image,
                            .warm = true,
                            .limits = m->config.limits,
                            .on_gone = on_warm_gone,
                            .arg = w};

    runtime_make_id(id);
    w->pool = p;
    list_init(&w->link);
    struct err *e = sbx_create(m->config.driver, &spec, &w->sbx);
    if (!e)
        e = sbx_start(w->sbx, on_warm_started, w); /* of a new one nothing is under way */
    if (e) {
        log_warn("no warm sandbox", KV("pool", p->name), KV_ERR(e));
        err_free(e);
        free(w);
        queue_leave(m);
        not_made(p);
        return false;
    }
    list_add(&m->pools.asked, &w->link);
    p->making++;
    m->pools.refilling++;
    return true;
}

/* A pool is filled when no claim came for a moment, or when little of it is left. Beside a stream
 * of claims without pauses one sandbox is made at a time; beside many claims at once none.
 *
 * Behind a claim comes the next one or a first command, and a sandbox that is made meanwhile takes
 * the launcher and a processor from them. */
unsigned pool_pace(const struct manager *m, unsigned ready, unsigned want, uint64_t now_ns)
{
    if (m->pools.claiming > REFILL_MOST)
        return 0;
    if (!m->pools.busy_ns || ready <= want / 4)
        return REFILL_MOST;
    return now_ns - m->pools.busy_ns >= STREAM_MS * NS_PER_MS;
}

/* The pool that is furthest from its target goes first. */
static struct pool *pool_neediest(struct manager *m)
{
    struct pool *found = NULL;
    unsigned most = 0;
    uint64_t now = manager_mono_ns(m);

    LIST_EACH(p, &m->pools.all, struct pool, link) {
        unsigned have = p->ready + p->making;
        unsigned want = p->target < p->ceiling ? p->target : p->ceiling;
        if (p->closed || have >= want || want - have <= most ||
            m->pools.refilling >= pool_pace(m, p->ready, want, now))
            continue;
        most = want - have;
        found = p;
    }
    return found;
}

static void on_refill(struct loop_later *l)
{
    struct manager *m = container_of(l, struct manager, pools.refill);
    struct pool *p;

    if (m->pools.refill_again.loop || m->ending || !pool_can_be(m))
        return;
    while (m->live + pool_count(m) < m->config.most && (p = pool_neediest(m)) && queue_try(m))
        if (!make_warm(p)) {
            pool_refill(m); /* of another one, or after a pause */
            return;
        }
}

static void on_calm(struct loop_timer *t)
{
    struct manager *m = container_of(t, struct manager, pools.calm);

    if (m->pools.claiming)
        return; /* the end of that looks again */
    m->pools.busy_ns = 0;
    pool_refill(m);
}

void pool_claims_over(struct manager *m)
{
    if (!m->ending)
        loop_timer_start(m->config.loop, &m->pools.calm, CALM_MS, on_calm);
    pool_refill(m);
}

void pool_refill(struct manager *m)
{
    if (!m->ending && !list_empty(&m->pools.all))
        loop_later(m->config.loop, &m->pools.refill, on_refill);
}

/* --- taking one --- */

static struct pool *pool_of(struct manager *m, const char *image)
{
    struct pool *other = NULL;

    LIST_EACH(p, &m->pools.all, struct pool, link)
        if (!p->closed && strcmp(p->image, image) == 0) {
            if (p->ready)
                return p;
            other = p;
        }
    return other;
}

struct sbx *pool_look(struct manager *m, const char *image, const char **ret_pool,
                      enum pool_miss *ret_miss)
{
    struct pool *p = pool_of(m, image);

    *ret_miss = !pool_can_be(m) ? POOL_COLD : !p ? POOL_NO_POOL : !p->ready ? POOL_EMPTY : POOL_HIT;
    if (*ret_miss != POOL_HIT)
        return NULL;
    *ret_pool = p->name;
    return LIST_FIRST(&p->sandboxes, struct warm, link)->sbx;
}

void pool_missed(struct manager *m, const char *image, enum pool_miss miss)
{
    struct pool *p = pool_of(m, image);

    ++*(p ? &p->misses[miss] : &m->pools.misses[miss]);
    if (p)
        p->used_ns = manager_mono_ns(m);
    if (p && pool_is_recent(p))
        m->pools.recent.misses[miss]++;
    if (m->live + pool_count(m) >= m->config.most)
        recent_close(m, NULL); /* there is no room for them */
    else if (!p && miss == POOL_NO_POOL)
        recent_saw(m, image);
    pool_refill(m);
}

const uint64_t *pool_misses_of_none(const struct manager *m)
{
    return m->pools.misses;
}

void pool_give(struct manager *m, struct sbx *warm)
{
    struct warm *w = warm->arg;
    struct pool *p = w->pool;

    list_del(&w->link);
    p->ready--;
    p->used_ns = manager_mono_ns(m);
    if (!m->pools.busy_ns)
        m->pools.busy_ns = p->used_ns;
    free(w); /* its sandbox is the runtime's from here on */
    pool_refill(m);
}

static struct pool *pool_find(const struct manager *m, struct str name)
{
    LIST_EACH(p, &m->pools.all, struct pool, link)
        if (!p->closed && str_eq(str_of(p->name), name))
            return p;
    return NULL;
}

void pool_count_hit(struct manager *m, const char *name)
{
    struct pool *p = pool_find(m, str_of(name));

    if (p)
        p->hits++;
    if (p && pool_is_recent(p))
        m->pools.recent.hits++;
}

/* --- configuration --- */

/* As many as the launcher may be asked for now; pool_trim() has the rest. */
static void end_newest(struct pool *p, unsigned keep)
{
    while (p->ready > keep && p->manager->queue.called < LAUNCHER_MOST)
        end_warm(container_of(p->sandboxes.prev, struct warm, link));
}

void pool_trim(struct manager *m)
{
    LIST_EACH(p, &m->pools.all, struct pool, link)
        end_newest(p, p->closed ? 0 : p->target < p->ceiling ? p->target : p->ceiling);
}

void pool_end_stale(struct manager *m, const char *name)
{
    struct pool *p = pool_find(m, str_of(name));

    if (p)
        end_newest(p, 0);
}

void pool_close(struct pool *p)
{
    p->closed = true;
    end_newest(p, 0);
    if (!p->ready && !p->making)
        free_pool(p);
}

void pool_set_size(struct pool *p, unsigned target, unsigned ceiling)
{
    p->target = target;
    p->ceiling = ceiling;
    end_newest(p, target < ceiling ? target : ceiling);
    pool_refill(p->manager);
}

static fallible pool_check(const struct pool_config *c)
{
    struct str name = c->wire.name;

    if (!name.len || name.len > POOL_NAME_MAX)
        return err_new(ERR_UNPROCESSABLE, "pool: a name has 1 to %d characters", POOL_NAME_MAX);
    if (c->target > c->ceiling || c->ceiling > POOL_MOST)
        return err_new(ERR_UNPROCESSABLE,
                       "pool." STR_FMT
                       ": target %u, ceiling %u: wanted target <= ceiling <= %d; set "
                       "'ceiling' (--ceiling) too, which is the first target if nobody said",
                       STR_ARG(name), c->target, c->ceiling, POOL_MOST);
    return NULL;
}

fallible pool_change(struct manager *m, struct str name, const struct json *change)
{
    struct pool *p = pool_find(m, name);

    if (!p)
        return err_new(ERR_NOT_FOUND, "pool '" STR_FMT "' not found",
                       STR_ARG(str_first(name, POOL_NAME_MAX)));
    int64_t target = p->target, ceiling = -1;
    TRY(json_take_int(change, "target", 0, POOL_MOST, &target));
    TRY(json_take_int(change, "ceiling", 0, POOL_MOST, &ceiling));
    if (ceiling < 0) /* not said: it follows */
        ceiling = target > p->ceiling ? target : p->ceiling;
    struct pool_config c = {
        .wire.name = str_of(p->name), .target = (unsigned)target, .ceiling = (unsigned)ceiling};
    TRY(pool_check(&c));
    pool_set_size(p, c.target, c.ceiling);
    return NULL;
}

struct pool *pool_new(struct manager *m, struct str name, const char *image)
{
    struct pool *p = mem_new(sizeof *p);

    p->manager = m;
    memcpy(p->name, name.p, name.len);
    p->image = mem_dup_cstr(image);
    list_init(&p->sandboxes);
    list_add(&m->pools.all, &p->link);
    return p;
}

static fallible pool_read(const struct pool_config *config, struct buf *text,
                          char image[SPEC_IMAGE])
{
    struct jw w;

    jw_init(&w, text, JW_WEB);
    wire_put_warm_config(&w, &config->wire);
    TRY(pool_check(config));
    TRY_WRAP(buf_check(text), "pool." STR_FMT, STR_ARG(config->wire.name));
    return err_wrap(spec_image(config->wire.image, image), "pool." STR_FMT,
                    STR_ARG(config->wire.name));
}

fallible pool_may(struct manager *m, const struct pool_config *config)
{
    own_done(buf) text;
    char image[SPEC_IMAGE];

    buf_init(&text, 1u << 20);
    (void)m;
    return pool_read(config, &text, image);
}

fallible pool_set(struct manager *m, const struct pool_config *config)
{
    struct pool *p = pool_find(m, config->wire.name);
    own_done(buf) text;
    char image[SPEC_IMAGE];

    buf_init(&text, 1u << 20);
    TRY(pool_read(config, &text, image));
    if (p && strcmp(p->image, image) != 0) {
        pool_close(p); /* what it holds is of no use to the new one */
        p = NULL;
    }
    if (!p)
        p = pool_new(m, config->wire.name, image);
    free(p->wire);
    p->wire = strndup(text.p, text.len);
    recent_close(m, image);
    pool_set_size(p, config->target, config->ceiling);
    return NULL;
}

bool pool_remove(struct manager *m, struct str name)
{
    struct pool *p = pool_find(m, name);

    if (p)
        pool_close(p);
    return p != NULL;
}

void pool_each(struct manager *m, void (*fn)(void *arg, const struct pool_info *info), void *arg)
{
    LIST_EACH(p, &m->pools.all, struct pool, link) {
        struct pool_info info = {.name = str_of(p->name),
                                 .image = str_of(p->image),
                                 .wire = p->wire ? str_of(p->wire) : (struct str){0},
                                 .target = p->target,
                                 .ceiling = p->ceiling,
                                 .ready = p->ready,
                                 .making = p->making,
                                 .hits = p->hits,
                                 .made = p->made,
                                 .failed = p->failed};
        memcpy(info.misses, p->misses, sizeof info.misses);
        if (!p->closed)
            fn(arg, &info);
    }
}

unsigned pool_count(const struct manager *m)
{
    unsigned n = 0;

    LIST_EACH(p, &m->pools.all, const struct pool, link)
        n += p->ready + p->making;
    return n;
}

void pool_drain(struct manager *m)
{
    loop_timer_stop(&m->pools.refill_again);
    loop_timer_stop(&m->pools.calm);
    recent_stop(m);
    LIST_EACH(p, &m->pools.all, struct pool, link)
        pool_close(p);
}

static void free_warm(struct list *all)
{
    LIST_EACH(w, all, struct warm, link) {
        list_del(&w->link);
        free(w);
    }
}

void pool_free_all(struct manager *m)
{
    free_warm(&m->pools.ends);
    free_warm(&m->pools.asked);
    LIST_EACH(p, &m->pools.all, struct pool, link) {
        free_warm(&p->sandboxes);
        free_pool(p);
    }
}
