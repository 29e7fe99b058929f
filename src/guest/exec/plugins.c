// SPDX-License-Identifier: Apache-2.0
/* plugins.c — see plugin.h. */
#include <stdlib.h>
#include <string.h>

#include "base/cfg.h"
#include "base/log.h"
#include "base/mem.h"
#include "guest/exec/inner.h"
#include "guest/exec/plugin.h"
#include "net/router.h"
#include "net/server.h"
#include "wire/api.h"

#define DEFAULT_INIT_S 120

ROWS_OF(plg_plugins, struct plugin_kind)

struct plugins {
    struct loop_timer deadline;
    uint64_t limit_s;
    size_t count;
    struct plugin *at;
};

static struct plugins *plugins_of(const struct exec *e);

static const char *const status_words[] = {"pending", "starting", "ready", "failed"};

struct plugin *plugin_find(const struct exec *e, const char *name)
{
    const struct plugins *all = plugins_of(e);

    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->at[i].kind->name, name) == 0)
            return &all->at[i];
    return NULL;
}

static void start_what_may(const struct plugins *all);

static void plugins_settle(struct plugin *p, enum plugin_status status)
{
    struct plugins *all = plugins_of(p->exec);
    bool was_starting = p->status < PLUGIN_READY;

    p->status = status;
    if (was_starting && --p->exec->starting > 0) {
        start_what_may(all);
    } else if (was_starting) {
        loop_timer_stop(&all->deadline);
        if (!p->exec->server)
            loop_stop(p->exec->loop); /* exec.c waits for this */
    }
}

void plugin_ready(struct plugin *p)
{
    if (p->status == PLUGIN_STARTING)
        plugins_settle(p, PLUGIN_READY);
}

void plugin_fail(struct plugin *p, struct err *why)
{
    if (p->status == PLUGIN_FAILED) {
        err_free(why);
        return;
    }
    log_warn("plugin failed", KV("name", p->kind->name), KV_ERR(why));
    p->why = why;
    plugins_settle(p, PLUGIN_FAILED);
}

static void start_one(struct plugin *p)
{
    const struct plugin *base = p->kind->needs ? plugin_find(p->exec, p->kind->needs) : NULL;

    if (p->kind->needs && !base) {
        plugin_fail(p, err_new(ERR_INVALID, "needs '%s': name it in --plugins", p->kind->needs));
    } else if (base && base->status == PLUGIN_FAILED) {
        plugin_fail(p, err_new(ERR_INVALID, "needs '%s', which failed: %s", p->kind->needs,
                               err_text(base->why)));
    } else if (!base || base->status == PLUGIN_READY) {
        p->status = PLUGIN_STARTING;
        struct err *why = p->kind->start(p);
        if (why)
            plugin_fail(p, why);
    }
}

static void start_what_may(const struct plugins *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->at[i].status == PLUGIN_PENDING)
            start_one(&all->at[i]);
}

static void on_deadline(struct loop_timer *t)
{
    struct plugins *all = container_of(t, struct plugins, deadline);

    for (size_t i = 0; i < all->count; i++)
        if (all->at[i].status < PLUGIN_READY)
            plugin_fail(&all->at[i], err_new(ERR_TIMEOUT, "not ready after %u s; see %s",
                                             (unsigned)all->limit_s, "INIT_PLUGIN_TIMEOUT"));
}

static fallible find_kind(const char *name, const struct plugin_kind **ret_kind)
{
    own_done(buf) known;

    buf_init(&known, 1024);
    for (size_t i = 0; i < ROWS_LEN(plg_plugins); i++) {
        *ret_kind = ROWS_AT(plg_plugins, i);
        if (strcmp((*ret_kind)->name, name) == 0)
            return NULL;
        buf_addf(&known, " %s", (*ret_kind)->name);
    }
    return err_new(ERR_INVALID, "Plugin %.80s not found; there are:" STR_FMT, name,
                   STR_ARG(buf_str(&known)));
}

static void plugins_want(struct exec *e, const struct plugin_kind *kind)
{
    struct plugins *all = plugins_of(e);

    if (plugin_find(e, kind->name))
        return; /* named twice */
    all->at[all->count++] = (struct plugin){.kind = kind, .exec = e};
    e->starting++;
}

/* As named; or all that are lazy, what others need first. */
static fallible plugins_choose(struct exec *e)
{
    const char *const *names = e->config->plugins;
    const struct plugin_kind *kind;
    bool lazy = !names || !*names;

    for (; names && *names; names++) {
        TRY(find_kind(*names, &kind));
        plugins_want(e, kind);
    }
    for (size_t i = 0; lazy && i < 2 * ROWS_LEN(plg_plugins); i++) {
        kind = ROWS_AT(plg_plugins, i % ROWS_LEN(plg_plugins));
        if (kind->lazy && !kind->needs == (i < ROWS_LEN(plg_plugins)))
            plugins_want(e, kind);
    }
    return NULL;
}

static fallible plugins_start(struct exec *e, void *state)
{
    struct plugins *all = state;
    const char *limit = cfg_env_get(e->config->envp, "INIT_PLUGIN_TIMEOUT");
    uint64_t limit_s = DEFAULT_INIT_S;

    if (limit && *limit && (!str_to_u64(str_of(limit), &limit_s) || limit_s > 86400))
        return err_new(ERR_INVALID, "INIT_PLUGIN_TIMEOUT is '%.40s': seconds, up to 86400", limit);
    all->at = mem_new(ROWS_LEN(plg_plugins) * sizeof *all->at);
    all->limit_s = limit_s;
    TRY(plugins_choose(e));
    loop_timer_start(e->loop, &all->deadline, limit_s * 1000, on_deadline);
    start_what_may(all);
    return NULL;
}

/* A lazy one starts with its first use; the part that uses it says whether it is busy. */
static bool plugins_are_busy(const void *state)
{
    const struct plugins *all = state;

    for (size_t i = 0; i < all->count; i++)
        if (!all->at[i].kind->lazy)
            return true;
    return false;
}

bool plugin_is_lazy(const char *name)
{
    const struct plugin_kind *kind;
    own(err) e = find_kind(name, &kind);

    return !e && kind->lazy;
}

static void plugins_close(struct exec *e, void *state)
{
    struct plugins *all = state;

    (void)e;
    for (size_t i = 0; i < all->count; i++) {
        struct plugin *p = &all->at[i];
        if (p->kind->close && p->status != PLUGIN_PENDING)
            p->kind->close(p);
        err_free(p->why);
    }
    loop_timer_stop(&all->deadline);
    free(all->at);
    *all = (struct plugins){0};
}

static fallible handle_plugins(struct http_req *req)
{
    const struct plugins *all = req->owner;
    struct jw *w = http_reply_writer(req);

    JW_ARRAY(w, NULL)
        for (size_t i = 0; i < all->count; i++)
            wire_put_state(w, str_of(all->at[i].kind->name), status_words[all->at[i].status],
                           all->at[i].why ? err_text(all->at[i].why) : NULL);
    http_reply_written(req, 200);
    return NULL;
}

static void plugins_add_routes(struct exec *e, void *state)
{
    static const struct route routes[] = {{"GET", "/croft/v1/plugins", handle_plugins}};

    router_add(e->router, routes, ARRAY_LEN(routes), state);
}

EXEC_PART(plugins) = {.state_bytes = sizeof(struct plugins),
                      .add_routes = plugins_add_routes,
                      .start = plugins_start,
                      .close = plugins_close,
                      .is_busy = plugins_are_busy};

static struct plugins *plugins_of(const struct exec *e)
{
    return exec_part_state(e, &exec_parts_plugins);
}
