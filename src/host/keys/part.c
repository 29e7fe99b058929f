// SPDX-License-Identifier: Apache-2.0
/* part.c — the keys of a server, as a part of the host. */
#include "host/config/settings.h"
#include "host/keys/inner.h"
#include "host/part/part.h"
#include "host/server/server.h"

struct keys_settings {
    struct str api_key;                        /* the first key, if none is given otherwise */
    uint64_t most_runtimes, starts_per_minute; /* of keys that were made without; 0: no limit */
};

static const struct cfg_row rows[] = {
    CFG_SECRET(keys_settings, api_key, "server.api_key",
               "Key that clients must show; needed to listen beyond loopback.", .flag = "",
               .at_start = true),
    CFG_UINT(keys_settings, most_runtimes, "tenant.most_runtimes", 0,
             "Live runtimes of a key that was made without a limit of its own. 0 is no limit.",
             .flag = "", .max = 1000000),
    CFG_UINT(keys_settings, starts_per_minute, "tenant.starts_per_minute", 0,
             "Starts in a minute of a key that was made without a limit of its own. 0 is no limit.",
             .flag = "", .max = 60000),
};
CFG_TABLE(keys) = {rows, ARRAY_LEN(rows), .size = sizeof(struct keys_settings)};

struct keys *keys_of(const struct host *h)
{
    return host_part(h, "keys");
}

static void keys_reload(void *keys, const struct host *h)
{
    const struct keys_settings *s = settings_of(h->settings, CFG_TABLE_OF(keys));

    keys_set_defaults(keys, (uint32_t)s->most_runtimes, (uint32_t)s->starts_per_minute);
}

static fallible check_reach(const struct keys *k, const struct host *h)
{
    if (h->local || keys_any(k))
        return NULL;
    return err_new(ERR_FORBIDDEN,
                   "'" STR_FMT "' can be reached from elsewhere and there is no key: set "
                   "CROFT_API_KEY or --api-key-file, or make one with 'croft token'",
                   STR_ARG(server_address(h->settings)));
}

static fallible keys_part_open(struct host *h, void **ret_state)
{
    struct keys *k = keys_new(store_of(h));

    k->host = h;
    *ret_state = k;
    keys_reload(k, h);
    return NULL;
}

/* All rows are there. Makes the key of the settings; a server that others reach needs a key. */
static fallible keys_part_check(struct keys *k)
{
    const struct keys_settings *s = settings_of(k->host->settings, CFG_TABLE_OF(keys));
    struct str first = k->host->config->api_key.p ? k->host->config->api_key : s->api_key;

    if (first.p)
        TRY(keys_ensure(k, "default", first, KEY_ALL));
    return check_reach(k, k->host);
}

static void on_keys(void *arg, struct err *e)
{
    struct keys *k = arg;

    if (!e)
        e = keys_part_check(k);
    k->begun.done(k->begun.arg, e ? err_wrap(e, "rows") : NULL);
}

static void keys_part_begin(void *keys, part_done *done, void *arg)
{
    struct keys *k = keys;

    k->begun = (struct part_answer){done, arg};
    keys_load(k, on_keys, k);
}

static void keys_part_close(void *keys)
{
    keys_free(keys);
}

/* Any key will do here, before a byte of the body is stored. The handler checks the scope. */
static fallible keys_auth(void *keys, struct http_req *req)
{
    const struct key *key;

    return keys_check(keys, req, KEY_ALL, &key);
}

HOST_PART(keys) = {
    .name = "keys",
    .needs = PART_NEEDS("store"),
    .routes = keys_routes,
    .route_count = KEYS_ROUTES,
    .open = keys_part_open,
    .begin = keys_part_begin,
    .reload = keys_reload,
    .close = keys_part_close,
    .auth = keys_auth,
};
