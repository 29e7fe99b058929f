// SPDX-License-Identifier: Apache-2.0
/* hooks.c — what a runtime is told by its sandbox and by the proxy: that it ended by itself, is
 * wanted while it is paused, or does not answer; and where the proxy finds it. */
#include "base/log.h"
#include "base/mem.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/row.h"

#define ONE_DEATH_NS                                                                               \
    (10 * NS_PER_S) /* a server's connections break before we hear of its sandbox */

/* The whole sandbox died, and not the server alone. */
static void forget_death(struct runtime *r)
{
    if (!r->restarts.died_ns ||
        loop_now_ns(r->manager->config.loop) - r->restarts.died_ns > ONE_DEATH_NS)
        return;
    r->restarts.died_ns = 0;
    r->restarts.count--;
    r->restarts.server_died = false;
}

void runtime_on_gone(void *arg, struct sbx *s)
{
    struct runtime *r = arg;

    if (operation_tells_end(r))
        return;
    forget_death(r);
    r->manager->counters.gone++;
    if (!r->op.kind)
        runtime_set_request(r, (struct str){0});
    struct err *e = err_new(ERR_CLOSED, "%s", s->failure ? s->failure : "it ended");
    runtime_fail(r, e);
    err_free(e);
    manager_check_end(r->manager);
}

void runtime_measure(struct runtime *r)
{
    if (r->status.now == RUNTIME_RUNNING && !r->op.kind && !r->own.op && list_empty(&r->asks))
        runtime_ask_own(r, RUNTIME_MEASURE);
}

static void runtime_on_wake(struct proxy_target *t)
{
    runtime_ask_own(container_of(t, struct runtime, target), RUNTIME_RESUME);
}

/* A page that is not there tells the same as a sandbox that is not: not more than one look a
 * second. */
#define LOOK_NS NS_PER_S

static void runtime_on_trouble(struct proxy_target *t)
{
    struct runtime *r = container_of(t, struct runtime, target);
    uint64_t now = loop_now_ns(r->manager->config.loop);

    if (r->status.now != RUNTIME_RUNNING || r->op.kind || now - r->looked_ns < LOOK_NS)
        return;
    r->looked_ns = now;
    runtime_ask_own(r, RUNTIME_LOOK);
}

/* Pid 1 starts it again, and tells only its log: what is seen of it is an answer that never came.
 */
static void on_server_lost(struct proxy_target *t)
{
    struct runtime *r = container_of(t, struct runtime, target);

    if (r->status.now != RUNTIME_RUNNING || r->published)
        return;
    r->restarts.count += r->restarts.count < UINT8_MAX;
    r->restarts.server_died = true;
    r->restarts.died_ns = loop_now_ns(r->manager->config.loop);
    log_warn("the server in a sandbox died under a request", KV("id", r->id),
             KV("restarts", (unsigned)r->restarts.count));
    row_update(r, NULL);
}

void runtime_set_hooks(struct runtime *r)
{
    r->target.on_lost = runtime_is_far(r) ? NULL : on_server_lost;
    r->target.park = r->manager->config.park;
    r->target.parked_of = &r->tenant->parked;
    r->target.on_wake = runtime_on_wake;
    r->target.on_trouble = runtime_is_far(r) ? runtime_on_trouble : NULL;
}

/* --- where it is --- */

/* Gives the proxy the ports that the other server publishes for it. */
static void set_far_ports(struct runtime *r)
{
    static const uint16_t ports[] = {RUNTIME_WORKER, RUNTIME_WORKER + 1, RUNTIME_VSCODE};

    r->target.far_count = 0;
    if (!r->far)
        r->far = mem_new(ARRAY_LEN(ports) * sizeof *r->far);
    r->target.far = r->far;
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        struct proxy_far *f = &r->far[r->target.far_count];
        struct err *e = sbx_expose(r->sbx, ports[i], &f->address);
        f->port = ports[i];
        r->target.far_count += e == NULL;
        err_free(e); /* it cannot be reached, and requests are told so */
    }
}

fallible runtime_set_addresses(struct runtime *r)
{
    struct sbx_info info;

    sbx_inspect(r->sbx, &info);
    r->target.address = info.address;
    if (info.session_key) {
        runtime_set_text(&r->keys.far, info.session_key);
        runtime_set_keys(r);
    }
    if (runtime_is_far(r)) {
        set_far_ports(r); /* its url leads to what answers, others to what is published there */
        return NULL;
    }
    TRY(sbx_expose(r->sbx, RUNTIME_WORKER, &r->target.inner));
    r->target.inner.tunnel_port = 0;
    return r->published ? sbx_expose(r->sbx, r->published, &r->target.address) : NULL;
}
