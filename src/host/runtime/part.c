// SPDX-License-Identifier: Apache-2.0
/* part.c — the runtimes of a server, and their API. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/build/build.h"
#include "host/config/settings.h"
#include "host/part/part.h"
#include "host/runtime/api.h"
#include "host/runtime/events.h"
#include "host/runtime/manager.h"
#include "host/runtime/pools.h"
#include "host/runtime/runtime.h"
#include "host/server/backing.h"
#include "host/server/grants.h"
#include "host/server/launch.h"
#include "host/server/server.h"
#include "host/watch/watch.h"
#include "net/url.h"
#include "out/client.h"

struct runtime_settings {
    uint64_t most_starts;     /* that wait in line */
    uint64_t warm_recent;     /* sandboxes of an image that no pool has */
    uint64_t warm_recent_for; /* ms after its last start */
    struct str public_url;    /* how clients reach us; sandboxes are then below it */
    bool resume_on_request;   /* a request to a paused sandbox wakes it */
    bool rotate_session_key;  /* at resume */
    uint64_t build_wait;      /* ms that a start waits for its image */
    uint64_t pause_after, stop_after, delete_after, failed_after, max_age; /* ms; 0: never */
    bool per_sandbox;                                                      /* metrics of each */
    uint64_t most_snapshots; /* of every key; 0: no limit */
    struct str at_exit;      /* what becomes of those that run */
    bool keep_alive;
};

static const struct cfg_row rows[] = {
    CFG_MS(runtime_settings, build_wait, "server.build_wait", "60s",
           "How long a start waits for its image to be built: it is answered as starting, and "
           "fails after that. Clients wait 120 s or more. 0: it gets 503 at once.",
           .flag = "", .max = 600000),
    CFG_UINT(runtime_settings, most_starts, "server.most_starts", 10000,
             "Starts that may wait in line; further ones are refused with Retry-After.", .flag = "",
             .min = 1, .max = 100000),
    CFG_STR(
        runtime_settings, public_url, "server.public_url", NULL,
        "How clients reach this server, http:// or https://; the url of a sandbox is then below "
        "it.",
        .flag = "", .at_start = true),
    CFG_STR(
        runtime_settings, at_exit, "server.at_exit", "halt",
        "What a clean end of the server does with sandboxes that run: halt ends their processes "
        "and keeps their files, and a resume starts them again; keep lets them run on, and the "
        "next server takes them over; delete removes them with their files. Kill it, and they "
        "run on.",
        .choices = "halt|keep|delete"),
    CFG_BOOL(runtime_settings, resume_on_request, "server.resume_on_request", false,
             "A request to a paused sandbox wakes it, instead of being answered 503.", .flag = ""),
    CFG_BOOL(
        runtime_settings, rotate_session_key, "server.rotate_session_key", false,
        "A resume answers with a new session key, and the old one is refused. OpenHands' V0 "
        "clients go on with the old one: it is accepted, beside an API key that may act on the "
        "sandbox, until the new one is used. OpenHands' SDK would be locked out.",
        .flag = ""),
    CFG_UINT(runtime_settings, warm_recent, "server.warm_recent", 2,
             "Sandboxes kept ready of an image that no [pool] has, once it is started again within "
             "warm_recent_for. For four images at most. 0 is none.",
             .flag = "", .max = 64),
    CFG_MS(runtime_settings, warm_recent_for, "server.warm_recent_for", "10m",
           "How long sandboxes of such an image are kept ready after its last start.", .flag = ""),
    CFG_MS(runtime_settings, pause_after, "idle.pause_after", "0s",
           "A runtime unused for so long is paused, where its backend can; a command run as given "
           "uses it as long as it runs. 0 is never.",
           .flag = ""),
    CFG_MS(runtime_settings, stop_after, "idle.stop_after", "0s",
           "A runtime unused for so long is stopped. 0 is never.", .flag = ""),
    CFG_MS(runtime_settings, delete_after, "idle.delete_after", "0s",
           "A runtime that is paused, stopped or failed, and unused for so long, is removed with "
           "its files. One that runs never is. 0 is never.",
           .flag = ""),
    CFG_MS(runtime_settings, failed_after, "idle.failed_after", "10m",
           "A runtime that could not be started is stopped after so long: until then it can be "
           "looked at and resumed, and counts. 0 is never.",
           .flag = ""),
    CFG_MS(
        runtime_settings, max_age, "idle.max_age", "0s",
        "A runtime that has run so long since its start or last resume is paused, in use or not; "
        "OpenHands' own service takes 12h. 0 is never.",
        .flag = ""),
    CFG_BOOL(runtime_settings, per_sandbox, "telemetry.per_sandbox", false,
             "/metrics has processor time and memory of each sandbox too, for clients with a key "
             "that may see it: two series each, as measured at the time before.",
             .flag = ""),
    CFG_UINT(runtime_settings, most_snapshots, "tenant.most_snapshots", 256,
             "Snapshots of a key, a fork under way being one; one more is 429. Their bytes are not "
             "counted: each may be as large as limits.disk. 0 is no limit.",
             .flag = "", .max = 1000000),
    CFG_BOOL(runtime_settings, keep_alive, "sandbox.keep_runtime_alive", false,
             "Where server.at_exit is not set: true is keep, and false is halt.", .foreign = true),
};

/* OpenHands ends a runtime that is not to be kept alive, and its files stay. */
static void read_keep_alive(const struct cfg *c, struct runtime_settings *s)
{
    if (s->keep_alive && strcmp(cfg_source(c, "server.at_exit"), "default") == 0)
        s->at_exit = STR("keep");
}

static fallible runtime_settings_check(const struct cfg *c, void *into)
{
    struct runtime_settings *s = into;
    struct url u;

    read_keep_alive(c, s);
    if (!s->public_url.len) /* a variable that is there and empty */
        s->public_url = (struct str){0};
    if (!s->public_url.p)
        return NULL;
    struct err *e = url_parse(s->public_url, &u);
    if (!e && (str_eq(u.scheme, STR("http")) || str_eq(u.scheme, STR("https"))))
        return NULL;
    err_free(e);
    return err_new(ERR_INVALID,
                   "server.public_url (%s): wanted an address like https://croft.example.com",
                   cfg_source(c, "server.public_url"));
}
CFG_TABLE(runtime) = {rows, ARRAY_LEN(rows), .size = sizeof(struct runtime_settings),
                      .check = runtime_settings_check};

/* Names below the domain lead to the same port as our own url, or as what stands before us. */
static void name_domain(struct runtime_api *api, const struct host *h)
{
    const struct runtime_settings *s = settings_of(h->settings, CFG_TABLE_OF(runtime));
    struct str domain = proxy_domain(h->settings);
    struct url u;
    struct err *e = url_parse(s->public_url.p ? s->public_url : str_of(h->url), &u);
    bool usual = e || !u.port || u.port == (url_is_tls(&u) ? 443 : 80);

    err_free(e); /* a socket passed to us may have no port */
    snprintf(api->domain, sizeof api->domain, STR_FMT, STR_ARG(domain));
    if (domain.len && !usual)
        snprintf(api->domain + domain.len, sizeof api->domain - domain.len, ":%u", u.port);
}

static enum manager_at_exit at_exit_of(struct str word)
{
    return str_eq(word, STR("keep"))     ? AT_EXIT_KEEP
           : str_eq(word, STR("delete")) ? AT_EXIT_DELETE
                                         : AT_EXIT_HALT;
}

static struct manager_config make_config(const struct runtime_api *api, const struct host *h)
{
    const struct runtime_settings *s = settings_of(h->settings, CFG_TABLE_OF(runtime));
    struct manager_config c = {.loop = h->loop,
                               .store = store_of(h),
                               .keys = api->keys,
                               .proxy = proxy_of(h),
                               .journal = watch_of(h)->journal,
                               .metrics = watch_of(h)->metrics,
                               .driver = backend_of(h),
                               .client = api->client,
                               .base_url = s->public_url.p ? s->public_url : str_of(h->url),
                               .by_path = s->public_url.p != NULL || !h->local,
                               .domain = str_of(api->domain),
                               .limits = h->launch->limits,
                               .most = launch_most(h->settings),
                               .most_starts = (unsigned)s->most_starts,
                               .recent = (unsigned)s->warm_recent,
                               .recent_ms = s->warm_recent_for,
                               .snapshots = (unsigned)s->most_snapshots,
                               .pause_after_ms = s->pause_after,
                               .stop_after_ms = s->stop_after,
                               .delete_after_ms = s->delete_after,
                               .failed_after_ms = s->failed_after,
                               .max_age_ms = s->max_age,
                               .at_exit = at_exit_of(s->at_exit),
                               .per_sandbox = s->per_sandbox,
                               .park = s->resume_on_request,
                               .rotate = s->rotate_session_key,
                               .build_wait_ms = s->build_wait,
                               .registry_prefix = builds_prefix(api->builds)};

    c.mounts = grants_of(h->settings, &c.mount_count);
    while (c.base_url.len && c.base_url.p[c.base_url.len - 1] == '/')
        c.base_url.len--;
    return c;
}

static void on_build_news(void *arg, const struct build_news *n)
{
    manager_emit_for(arg, n->key_name, n->request,
                     n->failed ? RUNTIME_EVENT_ERROR : RUNTIME_EVENT_BUILDING, n->message);
}

static void runtime_part_close(void *state)
{
    struct runtime_api *api = state;

    manager_free(api->manager);
    http_client_free(api->client);
    free(api);
}

static fallible runtime_try_open(struct runtime_api *api, const struct host *h)
{
    const struct runtime_settings *s = settings_of(h->settings, CFG_TABLE_OF(runtime));

    if (!h->local && !s->public_url.p && !proxy_domain(h->settings).len)
        log_info("sandboxes are told to clients by this address; server.public_url is another",
                 KV("url", h->url));
    TRY(http_client_new(h->dialer, &(struct http_client_config){.idle_ms = 1}, &api->client));
    name_domain(api, h);
    struct manager_config c = make_config(api, h);
    TRY(manager_new(&c, &api->manager));
    builds_tell(api->builds, on_build_news, api->manager);
    return NULL;
}

static fallible runtime_part_open(struct host *h, void **ret_state)
{
    struct runtime_api *api = mem_new(sizeof *api);

    *api = (struct runtime_api){.host = h, .keys = keys_of(h), .builds = builds_of(h)};
    struct err *e = runtime_try_open(api, h);
    if (e)
        runtime_part_close(api);
    else
        *ret_state = api;
    return e;
}

static void on_adopted(void *state, struct err *e)
{
    struct runtime_api *api = state;

    if (!e)
        e = pools_open(api->manager, api->host->settings);
    api->begun.done(api->begun.arg, e);
}

static void runtime_begin(void *state, part_done *done, void *arg)
{
    struct runtime_api *api = state;

    api->begun = (struct part_answer){done, arg};
    manager_adopt(api->manager, on_adopted, api);
}

static fallible runtime_may_reload(void *state, const struct host *h)
{
    const struct runtime_api *api = state;

    return pools_check(api->manager, h->settings);
}

static void runtime_reload(void *state, const struct host *h)
{
    const struct runtime_api *api = state;
    struct manager_config c = make_config(api, h);

    manager_reconfigure(api->manager, &c);
    own(err) e = pools_open(api->manager, h->settings);
    if (e) /* it was just checked */
        log_error("a pool is not as it was told to be", KV_ERR(e));
    pools_drop(api->manager, h->settings);
}

static void on_shut_down(void *state)
{
    struct runtime_api *api = state;

    api->ended.done(api->ended.arg, NULL);
}

static void runtime_end(void *state, part_done *done, void *arg)
{
    struct runtime_api *api = state;

    api->ended = (struct part_answer){done, arg};
    manager_shutdown(api->manager, on_shut_down, api);
}

static void put_count(struct buf *line, unsigned count, const char *what)
{
    if (count)
        buf_addf(line, "%s%u sandbox%s %s", line->len ? ", " : "", count, count == 1 ? "" : "es",
                 what);
}

/* Tells the person that ended the server what is left, and the command that goes on from it. */
static void say_what_is_left(const struct runtime_api *api)
{
    const struct server_config *config = api->host->config;
    struct manager_left left;
    own_done(buf) line;

    buf_init(&line, 65536);
    manager_count_left(api->manager, &left);
    put_count(&line, left.live, "left running");
    put_count(&line, left.halted, "halted with all files kept");
    put_count(&line, left.deleted, "deleted with all files");
    if (!line.len)
        buf_add_cstr(&line, "no sandbox was there");
    if (left.live || left.halted)
        buf_addf(&line, "; go on with '%s'", config->again);
    if (left.halted)
        buf_addf(&line, ", then 'croft resume %s'", left.halted == 1 ? left.one : "NAME");
    const char *text = buf_cstr(&line);
    if (text && log_is_text())
        fd_print(config->err, "croft serve: ended: %s\n", text);
    else if (text)
        log_info("ended", KV("left", text));
}

static void runtime_settle(void *state)
{
    const struct runtime_api *api = state;

    manager_answer_starts(api->manager);
    if (api->ended.done)
        say_what_is_left(api);
}

HOST_PART(runtime) = {
    .name = "runtime",
    .needs = PART_NEEDS("backend", "store", "keys", "proxy", "build", "watch"),
    .routes = runtime_routes,
    .route_count = RUNTIME_ROUTES,
    .open = runtime_part_open,
    .begin = runtime_begin,
    .may_reload = runtime_may_reload,
    .reload = runtime_reload,
    .end = runtime_end,
    .settle = runtime_settle,
    .close = runtime_part_close,
};
