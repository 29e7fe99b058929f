// SPDX-License-Identifier: Apache-2.0
/* part.c — the builds of a server. */
#include "host/config/settings.h"
#include "host/build/build.h"
#include "host/keys/keys.h"
#include "host/part/part.h"
#include "host/server/backing.h"
#include "host/server/launch.h"
#include "host/server/layout.h"
#include "host/store/store.h"

struct build_settings {
    struct str registry_prefix;
    uint64_t bytes;       /* of contexts */
    uint64_t most;        /* that wait or are being sent */
    uint64_t most_of_key; /* of these */
    uint64_t most_sent;   /* of these: that are being sent */
};

static const struct cfg_row rows[] = {
    CFG_SIZE(build_settings, bytes, "server.build_bytes", "8G",
             "Disk for the contexts of all builds together; each may have up to 2G. A build "
             "without room gets 429.",
             .flag = "", .min = 1, .max = INT64_MAX),
    CFG_UINT(build_settings, most, "server.most_builds", 16,
             "Builds that may wait, including those whose context is being sent; one more gets "
             "429. Two are made at a time.",
             .flag = "", .min = 1, .max = 10000),
    CFG_STR(build_settings, registry_prefix, "server.registry_prefix", "localhost/croft",
            "The names of images that clients have built begin so, then '/'; a key without the "
            "scope admin can build no others, unless this is empty.",
            .flag = ""),
    CFG_UINT(build_settings, most_of_key, "tenant.most_builds", 12,
             "Builds of a key that may wait, including those whose context is being sent. Keep it "
             "below server.most_builds, or one key can take all places. One more gets 429.",
             .flag = "", .min = 1, .max = 10000),
    CFG_UINT(build_settings, most_sent, "tenant.most_contexts", 2,
             "Contexts of builds that a key may be sending at a time; one more is 429.", .flag = "",
             .min = 1, .max = 10000),
};
CFG_TABLE(build) = {rows, ARRAY_LEN(rows), .size = sizeof(struct build_settings)};

struct builds *builds_of(const struct host *h)
{
    return host_part(h, "build");
}

static struct builds_config make_config(const struct host *h)
{
    const struct build_settings *s = settings_of(h->settings, CFG_TABLE_OF(build));

    return (struct builds_config){.loop = h->loop,
                                  .store = store_of(h),
                                  .keys = keys_of(h),
                                  .driver = backend_of(h),
                                  .dir = h->layout->builds,
                                  .limits = h->launch->limits,
                                  .registry_prefix = s->registry_prefix,
                                  .context_bytes = s->bytes,
                                  .most = (unsigned)s->most,
                                  .most_of_key = (unsigned)s->most_of_key,
                                  .most_sent = (unsigned)s->most_sent};
}

static fallible build_part_open(struct host *h, void **ret_state)
{
    const struct builds_config config = make_config(h);
    struct builds *b;

    TRY(builds_open(&config, &b));
    *ret_state = b;
    return NULL;
}

static void build_part_begin(void *builds, part_done *done, void *arg)
{
    builds_load(builds, done, arg);
}

static void build_part_reload(void *builds, const struct host *h)
{
    const struct builds_config config = make_config(h);

    builds_reconfigure(builds, &config);
}

static void build_part_close(void *builds)
{
    builds_free(builds);
}

HOST_PART(build) = {
    .name = "build",
    .needs = PART_NEEDS("backend", "store", "keys"),
    .routes = build_routes,
    .route_count = BUILD_ROUTES,
    .open = build_part_open,
    .begin = build_part_begin,
    .reload = build_part_reload,
    .close = build_part_close,
};
