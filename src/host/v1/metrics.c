// SPDX-License-Identifier: Apache-2.0
/* metrics.c — the page for Prometheus: counts of others are read when it is asked for. */
#include <stdio.h>

#include "host/keys/keys.h"
#include "host/ops/metrics.h"
#include "host/proxy/proxy.h"
#include "host/runtime/api.h"
#include "host/runtime/events.h"
#include "host/runtime/pool.h"
#include "host/runtime/manager.h"
#include "host/runtime/runtime.h"
#include "host/v1/inner.h"
#include "host/watch/watch.h"
#include "net/server.h"

#define PAGE_BYTES (16u << 20)

/* The image of a start may have no pool: then the name is empty. */
static void set_misses(struct metrics *m, const char *pool, const uint64_t *misses)
{
    uint64_t missed = 0;

    for (size_t i = 0; i < POOL_MISSES; i++) {
        if (i == POOL_HIT)
            continue;
        missed += misses[i];
        metrics_set(m, METRIC_POOL_MISSES, (double)misses[i],
                    METRIC_LABELS(pool, pool_miss_names[i]));
    }
    metrics_set(m, METRIC_CLAIMS, (double)missed, METRIC_LABELS(pool, "miss"));
}

static void set_pool_gauges(void *arg, const struct pool_info *info)
{
    struct metrics *m = arg;
    char name[POOL_NAME_MAX + 1];

    if (!info->wire.p && info->image.p)
        return; /* they come and go: one row has them all */
    snprintf(name, sizeof name, STR_FMT, STR_ARG(info->name));
    const char *const labels[] = {name, NULL};
    metrics_set(m, METRIC_POOL_READY, info->ready, labels);
    metrics_set(m, METRIC_POOL_TARGET, info->target, labels);
    metrics_set(m, METRIC_POOL_STARTING, info->making, labels);
    metrics_set(m, METRIC_CLAIMS, (double)info->hits, METRIC_LABELS(name, "hit"));
    set_misses(m, name, info->misses);
}

static void set_passed(struct metrics *m, const struct proxy_stats *s)
{
    metrics_set(m, METRIC_EXEC_BYTES, (double)s->output_bytes[0], METRIC_LABELS("answer"));
    metrics_set(m, METRIC_EXEC_BYTES, (double)s->output_bytes[1], METRIC_LABELS("live"));
    metrics_set(m, METRIC_EXEC_CUT, (double)s->cut, METRIC_LABELS("answer"));
    metrics_set(m, METRIC_WS_CLIENTS, (double)s->relays, METRIC_LABELS("sandbox"));
    for (size_t i = 0; i < PROXY_DROPS; i++)
        metrics_set(m, METRIC_WS_DROPPED, (double)s->drops[i], METRIC_LABELS(proxy_drop_names[i]));
}

static void set_all(struct metrics *m, const struct manager *of, const struct runtime_gauges *g)
{
    const struct runtime_counters *c = manager_counters(of);
    const struct {
        const char *name;
        unsigned n;
    } states[] = {{"starting", g->starting}, {"running", g->running}, {"paused", g->paused},
                  {"error", g->error},       {"stopped", g->stopped}, {"warm", g->warm}};

    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        metrics_set(m, METRIC_SANDBOXES, states[i].n,
                    METRIC_LABELS(manager_driver(of)->backend->name, states[i].name));
    metrics_set(m, METRIC_IDLE_TRANSITIONS, (double)c->idle_pauses, METRIC_LABELS("paused"));
    metrics_set(m, METRIC_IDLE_TRANSITIONS, (double)c->idle_stops, METRIC_LABELS("stopped"));
    metrics_set(m, METRIC_IDLE_TRANSITIONS, (double)c->idle_deletes, METRIC_LABELS("deleted"));
}

/* --- each sandbox --- */

struct each {
    struct buf *out;
    bool memory; /* else processor time */
};

static void put_one(void *arg, struct runtime *r)
{
    const struct each *x = arg;
    const struct sbx_usage *u = r->sbx ? &r->sbx->usage : NULL;

    if (!u || !u->cpu_ns || r->status.now != RUNTIME_RUNNING)
        return; /* it was not measured yet */
    if (x->memory)
        buf_addf(x->out, "croft_sandbox_memory_bytes{sandbox=\"%s\"} %llu\n", r->id,
                 (unsigned long long)u->memory_bytes);
    else
        buf_addf(x->out, "croft_sandbox_cpu_seconds_total{sandbox=\"%s\"} %.6f\n", r->id,
                 (double)u->cpu_ns / 1e9);
}

static void measure_one(void *arg, struct runtime *r)
{
    (void)arg;
    runtime_measure(r);
}

/* The page is open to all, which sandboxes there are is not. It does not wait: what it has of each
 * is of the time before. */
static void put_each(struct http_req *req, struct buf *out)
{
    const struct runtime_api *f = v1_api(req);
    const struct key *key;
    struct err *e = keys_check(f->keys, req, KEY_RUNTIME | KEY_READ, &key);

    if (e) {
        err_free(e); /* the rest of the page needs no key */
        return;
    }
    buf_addf(out, "# HELP croft_sandbox_cpu_seconds_total Processor time of a sandbox.\n"
                  "# TYPE croft_sandbox_cpu_seconds_total counter\n");
    manager_each(f->manager, v1_whose(key), false, put_one, &(struct each){out, false});
    buf_addf(out, "# HELP croft_sandbox_memory_bytes Memory of a sandbox.\n"
                  "# TYPE croft_sandbox_memory_bytes gauge\n");
    manager_each(f->manager, v1_whose(key), false, put_one, &(struct each){out, true});
    manager_each(f->manager, v1_whose(key), false, measure_one, NULL);
}

fallible v1_handle_metrics(struct http_req *req)
{
    own_done(buf) out;
    const struct v1 *v = req->owner;
    struct manager *m = v->api->manager;
    struct metrics *metrics = v->watch->metrics;
    struct runtime_gauges g;
    struct pool_info recent;

    buf_init(&out, PAGE_BYTES);
    manager_gauges(m, &g);
    set_all(metrics, m, &g);
    pool_each(m, set_pool_gauges, metrics);
    pool_sum_recent(m, &recent);
    set_pool_gauges(metrics, &recent);
    set_misses(metrics, "", pool_misses_of_none(m));
    set_passed(metrics, proxy_stats(manager_proxy(m)));
    metrics_put(metrics, &out);
    if (manager_counts_each(m))
        put_each(req, &out);
    TRY(buf_check(&out));
    http_reply(req, 200, STR("text/plain; version=0.0.4; charset=utf-8"), buf_str(&out));
    return NULL;
}
