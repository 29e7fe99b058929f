// SPDX-License-Identifier: Apache-2.0
/* pools.c — see pools.h. */
#include "host/runtime/pools.h"

#include "host/config/settings.h"
#include "host/runtime/pool.h"
#include "host/runtime/manager.h"
#include "host/runtime/runtime.h"

#define POOLS_MOST 64

struct named_pool { /* [pool.NAME] */
    struct str name;
    struct str image, working_dir;
    struct json *command, *environment; /* array, object; NULL: not set */
    uint64_t target, ceiling;
    int64_t run_as_user, run_as_group, fs_group; /* -1: not set */
};

static const struct cfg_row rows[] = {
    CFG_STR(named_pool, image, "image", "host", "Image of the sandboxes kept ready."),
    CFG_UINT(named_pool, target, "target", 2, "Sandboxes kept ready.", .max = 10000),
    CFG_UINT(named_pool, ceiling, "ceiling", 0,
             "Most that target may be raised to while the server runs; 0 is target.", .max = 10000),
    CFG_LIST(named_pool, command, "command", NULL,
             "Command that clients are told to start them with."),
    CFG_DICT(named_pool, environment, "environment", NULL,
             "Variables that clients are told to start them with."),
    CFG_STR(named_pool, working_dir, "working_dir", NULL,
            "Directory that clients are told to start them in."),
    CFG_INT(named_pool, run_as_user, "run_as_user", -1,
            "User id that clients are told to ask for; -1 is none.", .min = -1, .max = 65535),
    CFG_INT(named_pool, run_as_group, "run_as_group", -1,
            "Group id that clients are told to ask for; -1 is none.", .min = -1, .max = 65535),
    CFG_INT(named_pool, fs_group, "fs_group", -1,
            "Group of files that clients are told to ask for; -1 is none.", .min = -1,
            .max = 65535),
};

static fallible pool_check(const struct cfg *c, const struct cfg_named *n)
{
    struct named_pool *p = n->into;

    p->name = n->name;
    if (!p->ceiling)
        p->ceiling = p->target;
    if (p->ceiling < p->target) {
        struct str key = arena_printf(c->arena, "pool." STR_FMT ".ceiling", STR_ARG(n->name));
        return err_new(ERR_INVALID, STR_FMT " (%s): it is %llu, and the target is %llu",
                       STR_ARG(key), cfg_source(c, key.p), (unsigned long long)p->ceiling,
                       (unsigned long long)p->target);
    }
    return NULL;
}

CFG_FAMILY(pool) = {"pool",     rows,      ARRAY_LEN(rows), sizeof(struct named_pool),
                    POOLS_MOST, pool_check};

static const struct named_pool *pools_of(const struct settings *s, size_t *ret_count)
{
    return settings_named(s, CFG_FAMILY_OF(pool), ret_count);
}

static fallible refuse_pools(const struct sbx_backend *b, const struct named_pool *pools,
                             size_t count)
{
    if (!count)
        return NULL;
    return err_new(ERR_INVALID, "[pool." STR_FMT "] needs backend 'native'%s",
                   STR_ARG(pools[0].name),
                   sbx_backend_caps(b) & SBX_IS_HERE ? "" : "; the other server has pools");
}

/* Each that is wanted; all are tried. */
static fallible each_pool(struct manager *m, const struct settings *settings,
                          fallible (*fn)(struct manager *m, const struct pool_config *c))
{
    struct err *refused = NULL;
    static const struct wire_warm_config otherwise = {.name = STR_INIT("default"),
                                                      .image = STR_INIT("host"),
                                                      .run_as_user = -1,
                                                      .run_as_group = -1,
                                                      .fs_group = -1};
    const struct sbx_backend *backend = manager_driver(m)->backend;
    struct pool_config c = {.wire = otherwise, .target = 4, .ceiling = 64};
    size_t count;
    const struct named_pool *pools = pools_of(settings, &count);

    if (!backend->claims || !backend->claims->claim)
        return refuse_pools(backend, pools, count);
    if (!count)
        return fn(m, &c);
    for (size_t i = 0; i < count; i++) {
        const struct named_pool *p = &pools[i];
        c = (struct pool_config){.wire = {.name = p->name,
                                          .image = p->image,
                                          .working_dir = p->working_dir,
                                          .command = p->command,
                                          .environment = p->environment,
                                          .run_as_user = p->run_as_user,
                                          .run_as_group = p->run_as_group,
                                          .fs_group = p->fs_group},
                                 .target = (unsigned)p->target,
                                 .ceiling = (unsigned)(p->ceiling ? p->ceiling : p->target)};
        refused = err_join(refused, fn(m, &c));
    }
    return refused;
}

fallible pools_open(struct manager *m, const struct settings *settings)
{
    return each_pool(m, settings, pool_set);
}

fallible pools_check(struct manager *m, const struct settings *settings)
{
    return each_pool(m, settings, pool_may);
}

struct wanted_pools {
    const struct named_pool *pools;
    size_t count;
    struct str gone; /* one that is there and not wanted any more */
};

static void find_gone(void *arg, const struct pool_info *info)
{
    struct wanted_pools *w = arg;

    if (!info->wire.p)
        return; /* it goes by itself */
    for (size_t i = 0; i < w->count; i++)
        if (str_eq(w->pools[i].name, info->name))
            return;
    if (w->count || !str_eq(info->name, STR("default")))
        w->gone = info->name;
}

void pools_drop(struct manager *m, const struct settings *settings)
{
    struct wanted_pools w;

    w.pools = pools_of(settings, &w.count);
    do {
        w.gone = (struct str){0};
        pool_each(m, find_gone, &w);
    } while (w.gone.p && pool_remove(m, w.gone));
}
