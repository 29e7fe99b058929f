// SPDX-License-Identifier: Apache-2.0
/* pools.c — see pools.h. */
#include "host/server/pools.h"

#include "host/config/settings.h"
#include "host/runtime/pool.h"
#include "host/server/backing.h"

fallible pools_open(struct manager *m, const struct settings *settings)
{
    static const struct wire_warm_config otherwise = {.name = STR_INIT("default"),
                                                      .image = STR_INIT("host"),
                                                      .run_as_user = -1,
                                                      .run_as_group = -1,
                                                      .fs_group = -1};
    struct pool_config c = {.wire = otherwise, .target = 4, .ceiling = 64};

    if (!backing_is_native(settings))
        return NULL;
    if (!settings->pool_count)
        return pool_set(m, &c);
    for (size_t i = 0; i < settings->pool_count; i++) {
        const struct settings_pool *p = &settings->pools[i];
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
        TRY(pool_set(m, &c));
    }
    return NULL;
}

struct wanted_pools {
    const struct settings *settings;
    struct str gone; /* one that is there and not wanted any more */
};

static void find_gone(void *arg, const struct pool_info *info)
{
    struct wanted_pools *w = arg;

    if (!info->wire.p)
        return; /* it goes by itself */
    for (size_t i = 0; i < w->settings->pool_count; i++)
        if (str_eq(w->settings->pools[i].name, info->name))
            return;
    if (w->settings->pool_count || !str_eq(info->name, STR("default")))
        w->gone = info->name;
}

void pools_drop(struct manager *m, const struct settings *settings)
{
    struct wanted_pools w = {.settings = settings};

    do {
        w.gone = (struct str){0};
        pool_each(m, find_gone, &w);
    } while (w.gone.p && pool_remove(m, w.gone));
}
