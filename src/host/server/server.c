// SPDX-License-Identifier: Apache-2.0
/* server.c — see server.h. */
#include "host/server/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cfg.h"
#include "base/fd.h"
#include "base/log.h"
#include "host/build/build.h"
#include "host/config/settings.h"
#include "host/keys/keys.h"
#include "host/ops/docs.h"
#include "host/ops/journal.h"
#include "host/ops/notify.h"
#include "host/ops/request_id.h"
#include "host/proxy/name.h"
#include "host/proxy/proxy.h"
#include "host/runtime/api.h"
#include "host/runtime/manager.h"
#include "host/runtime/runtime.h"
#include "host/server/backing.h"
#include "host/server/launch.h"
#include "host/server/layout.h"
#include "host/server/machine.h"
#include "host/server/pools.h"
#include "host/server/watch.h"
#include "host/store/store.h"
#include "host/tree/tree.h"
#include "host/v1/v1.h"
#include "loop/loop.h"
#include "net/listen.h"
#include "net/local.h"
#include "net/router.h"
#include "net/server.h"
#include "net/url.h"
#include "out/client.h"
#include "out/dial.h"

#define ANSWER_MS 1000  /* to those who asked something of a launcher that is gone */
#define END_MS    50000 /* a clean end; what is not stopped by then lives on, for the next server */

struct server {
    const struct server_config *config;
    const struct settings *settings;
    struct runtime_api api;
    struct layout layout;
    struct launch launch;
    struct loop *loop;
    struct net *net;
    struct dialer dialer;
    struct store *store;
    struct keys *keys;
    struct proxy *proxy;
    struct http_client *client;
    struct sbx_host host;
    struct backing backing;
    const char *roots[LAUNCHER_ROOTS + 1];
    struct builds *builds;
    struct sbx_driver *driver;
    struct manager *manager;
    struct watch watch;
    struct router *router;
    struct http_server *http;
    struct loop_signal term, interrupt, hangup;
    struct loop_timer watchdog, last;
    int listener;
    int passed[NOTIFY_FDS_MAX]; /* by a service manager; the first is the listener */
    size_t passed_count;
    char url[160];
    char domain[SETTINGS_DOMAIN + 8]; /* with the port by which clients come, if they must say it */
    bool local, ending;
    struct err *failed;
};

/* --- before anything is read that a stranger wrote --- */

static fallible become_ordinary(struct server *s)
{
    if (!s->layout.separate)
        return NULL;
    TRY(launcher_drop_privileges(&s->layout.user));
    log_info("the server is an ordinary user now", KV("uid", s->layout.user.uid));
    if (s->layout.user.shared)
        log_warn("the server has no user of its own", KV("why", LAUNCHER_OWN_USER));
    return NULL;
}

/* --- the parts --- */

/* A request that names a sandbox needs that sandbox's key, not ours. While we ask for none, what a
 * sandbox shows below our own address is no page of ours to a browser. */
static fallible server_intercept(void *server, struct http_req *req, const struct route **ret_route)
{
    struct server *s = server;

    request_id_set(req);
    TRY(proxy_intercept(s->proxy, req, ret_route));
    req->passed_on = *ret_route;
    struct str host = http_req_header(req, STR("host"));
    if (*ret_route && !keys_any(s->keys) && !name_is_below(host, s->settings->domain))
        http_reply_header(req, STR("Content-Security-Policy"),
                          STR("sandbox allow-scripts allow-forms allow-popups allow-modals "
                              "allow-downloads"));
    return NULL;
}

/* Before a byte of the body is kept for somebody. Which scope it takes the handler knows. */
static fallible check_key(void *server, struct http_req *req)
{
    struct server *s = server;
    const struct key *key;

    return keys_check(s->keys, req, KEY_ALL, &key);
}

static fallible open_rows(struct server *s)
{
    TRY(store_open(s->loop, s->layout.rows, &s->store));
    TRY(keys_open(s->store, &s->keys));
    keys_set_defaults(s->keys, (uint32_t)s->settings->tenant.most_runtimes,
                      (uint32_t)s->settings->tenant.starts_per_minute);
    if (s->config->api_key.p)
        TRY(keys_ensure(s->keys, "default", s->config->api_key, KEY_ALL));
    if (!s->local && !keys_any(s->keys))
        return err_new(ERR_FORBIDDEN,
                       "'" STR_FMT "' can be reached from elsewhere and there is no key: set "
                       "CROFT_API_KEY or --api-key-file, or make one with 'croft token'",
                       STR_ARG(s->settings->listen));
    return NULL;
}

static void on_lost(void *arg);

static void set_patience(struct server *s)
{
    s->host.silence_ms = (uint32_t)s->settings->launcher_wait;
    s->host.most_waiting = (uint32_t)s->settings->most_waiting;
}

static fallible open_driver(struct server *s)
{
    for (size_t i = 0; i < s->launch.root_count; i++)
        s->roots[i] = s->launch.roots[i][0] ? s->launch.roots[i] : "(none)";
    s->host =
        (struct sbx_host){.loop = s->loop,
                          .dialer = &s->dialer,
                          .state_dir = s->layout.state,
                          .guest_fd = -1,
                          .envp = s->config->envp,
                          .launcher = s->launch.sock,
                          .sockets = s->layout.sockets,
                          .outputs = s->layout.outputs,
                          .native_caps = s->launch.caps,
                          .native_lacks = backing_is_native(s->settings) ? s->launch.lacks : NULL,
                          .on_lost = on_lost,
                          .lost_arg = s,
                          .roots = s->roots,
                          .remove_tree = tree_remove,
                          .remote_url = s->config->remote_url,
                          .remote_key = s->config->remote_key};
    set_patience(s);
    if (!backing_is_native(s->settings))
        s->host.state_dir = s->layout.own; /* all else is the launcher's */
    TRY(backing_lend(&s->backing, s->settings->backend, s->config->guest, &s->host));
    return sbx_driver_open(sbx_backend_find(s->settings->backend), &s->host, &s->driver);
}

/* Whoever is elsewhere reaches this server alone: sandboxes by paths below it. Nobody can be sent
 * to the address that means all of them. */
static void be_reachable(struct server *s)
{
    char address[INET_ADDRSTRLEN];
    struct str all[] = {STR("http://0.0.0.0:"), STR("http://[::]:")}, url = str_of(s->url);

    for (size_t i = 0; i < ARRAY_LEN(all) && !s->local; i++)
        if (str_starts(url, all[i]) && machine_address(address)) {
            char port[16];
            snprintf(port, sizeof port, STR_FMT, STR_ARG(str_from(url, all[i].len)));
            snprintf(s->url, sizeof s->url, "http://%s:%s", address, port);
            break;
        }
    if (!s->local && !s->settings->public_url.p && !s->settings->domain.len)
        log_info("sandboxes are told to clients by this address; server.public_url is another",
                 KV("url", s->url));
}

/* Names below the domain lead to the same port as our own url, or as what stands before us. */
static void name_domain(struct server *s)
{
    const struct settings *r = s->settings;
    struct url u;
    struct err *e = url_parse(r->public_url.p ? r->public_url : str_of(s->url), &u);
    bool usual = e || !u.port || u.port == (url_is_tls(&u) ? 443 : 80);

    err_free(e); /* a socket passed to us may have no port */
    snprintf(s->domain, sizeof s->domain, STR_FMT, STR_ARG(r->domain));
    if (r->domain.len && !usual)
        snprintf(s->domain + r->domain.len, sizeof s->domain - r->domain.len, ":%u", u.port);
}

static struct manager_config manager_settings(const struct server *s)
{
    const struct settings *r = s->settings;

    return (struct manager_config){.loop = s->loop,
                                   .store = s->store,
                                   .keys = s->keys,
                                   .proxy = s->proxy,
                                   .driver = s->driver,
                                   .client = s->client,
                                   .base_url = r->public_url.p ? r->public_url : str_of(s->url),
                                   .by_path = r->public_url.p != NULL || !s->local,
                                   .domain = str_of(s->domain),
                                   .limits = s->launch.limits,
                                   .mounts = r->mounts,
                                   .mount_count = r->mount_count,
                                   .most = (unsigned)r->most_sandboxes,
                                   .most_starts = (unsigned)r->most_starts,
                                   .recent = (unsigned)r->warm_recent,
                                   .recent_ms = r->warm_recent_for,
                                   .snapshots = (unsigned)r->tenant.most_snapshots,
                                   .pause_after_ms = r->idle.pause_after,
                                   .stop_after_ms = r->idle.stop_after,
                                   .delete_after_ms = r->idle.delete_after,
                                   .failed_after_ms = r->idle.failed_after,
                                   .max_age_ms = r->idle.max_age,
                                   .keep = r->sandbox.keep_runtime_alive,
                                   .per_sandbox = r->telemetry.per_sandbox,
                                   .park = r->resume_on_request,
                                   .rotate = r->rotate_session_key,
                                   .build_wait_ms = r->build_wait,
                                   .registry_prefix = r->registry_prefix};
}

static void on_build_news(void *arg, const struct build_news *n)
{
    manager_emit_for(arg, n->key_name, n->request,
                     n->failed ? RUNTIME_EVENT_ERROR : RUNTIME_EVENT_BUILDING, n->message);
}

static struct builds_config build_settings(const struct server *s)
{
    const struct settings *r = s->settings;

    return (struct builds_config){.loop = s->loop,
                                  .store = s->store,
                                  .keys = s->keys,
                                  .driver = s->driver,
                                  .dir = s->layout.builds,
                                  .limits = s->launch.limits,
                                  .registry_prefix = r->registry_prefix,
                                  .context_bytes = r->build_bytes,
                                  .most = (unsigned)r->most_builds,
                                  .most_of_key = (unsigned)r->tenant.most_builds,
                                  .most_sent = (unsigned)r->tenant.most_contexts,
                                  .on_news = on_build_news,
                                  .arg = s->manager};
}

static fallible open_manager(struct server *s)
{
    struct manager_config c = manager_settings(s);

    while (c.base_url.len && c.base_url.p[c.base_url.len - 1] == '/')
        c.base_url.len--;
    TRY(manager_new(&c, &s->manager));
    struct builds_config builds = build_settings(s);
    TRY(builds_open(&builds, &s->builds));
    s->api = (struct runtime_api){.keys = s->keys, .manager = s->manager, .builds = s->builds};
    own_fd dir = open(s->layout.own, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open '%s'", s->layout.own);
    return watch_open(&s->watch, s->loop, dir, s->settings->journal.keep, s->manager, &s->api);
}

static void server_on_answer(void *server, const struct http_req *req, int status, uint64_t ns)
{
    const struct server *s = server;

    watch_answer(&s->api, req, status, ns);
}

static fallible open_http(struct server *s)
{
    s->router =
        router_new(&(struct router_config){.auth = check_key, .ctx = s, .collapse_slashes = true});
    router_add(s->router, runtime_routes, runtime_route_count, &s->api);
    router_add(s->router, v1_routes, v1_route_count, &s->api);
    router_add(s->router, keys_routes, keys_route_count, s->keys);
    router_add(s->router, build_routes, build_route_count, s->builds);
    router_add(s->router, docs_routes, DOCS_ROUTES, NULL);
    struct http_server_config config = {.router = s->router,
                                        .ctx = s,
                                        .intercept = server_intercept,
                                        .server_name = "croft",
                                        .on_answer = server_on_answer};
    return http_server_new(s->net, &config, &s->http);
}

static bool is_key(void *ctx, struct str secret)
{
    const struct server *s = container_of((struct runtime_api *)ctx, struct server, api);

    return keys_find(s->keys, secret) != NULL;
}

static bool has_tenants(void *ctx)
{
    const struct server *s = container_of((struct runtime_api *)ctx, struct server, api);

    return keys_any(s->keys);
}

static fallible open_parts(struct server *s)
{
    struct proxy_config proxy = {.domain = s->settings->domain,
                                 .spare_ports = 16,
                                 .on_answer = watch_sandbox_answer,
                                 .on_action = watch_action,
                                 .is_key = is_key,
                                 .has_tenants = has_tenants,
                                 .ctx = &s->api};

    TRY(loop_new(&clock_system, &s->loop));
    TRY(net_new(s->loop, &s->net));
    s->dialer =
        (struct dialer){.net = s->net, .ca_file = cfg_env_get(s->config->envp, "CROFT_CA_FILE")};
    proxy.dialer = &s->dialer;
    TRY(backing_claim(&s->layout, s->settings->backend));
    TRY_WRAP(open_rows(s), "rows");
    TRY(proxy_new(&proxy, &s->proxy));
    TRY(http_client_new(&s->dialer, &(struct http_client_config){.idle_ms = 1}, &s->client));
    TRY(open_driver(s));
    TRY(open_manager(s));
    return open_http(s);
}

/* --- life --- */

static void server_fail(struct server *s, struct err *e)
{
    if (s->failed)
        err_free(e);
    else
        s->failed = e;
    loop_stop(s->loop);
}

/* --- without a launcher nothing can be started or ended: the next server has a new one --- */

static void give_up(struct server *s)
{
    server_fail(s,
                err_new(ERR_CLOSED, "the launcher ended: start the server again, it takes over the "
                                    "sandboxes, which live on"));
}

static void on_last(struct loop_timer *t)
{
    give_up(container_of(t, struct server, last));
}

static void on_answered(void *arg)
{
    give_up(arg);
}

/* Who waits is told, with a bound: what streams may have no end. */
static void on_lost(void *arg)
{
    struct server *s = arg;

    s->ending = true;
    loop_timer_start(s->loop, &s->last, ANSWER_MS, on_last);
    http_server_drain(s->http, on_answered, s);
}

static void on_watchdog(struct loop_timer *t)
{
    struct server *s = container_of(t, struct server, watchdog);
    unsigned every_ms = notify_watchdog_ms(s->config->envp);

    if (!every_ms)
        return;
    err_free(notify_send(s->config->envp, "WATCHDOG=1")); /* it restarts us if it does not hear */
    loop_timer_start(s->loop, t, every_ms, on_watchdog);
}

static fallible server_listen(struct server *s)
{
    char path[4400];
    int api;

    snprintf(path, sizeof path, "unix:%s", s->layout.api);
    TRY(listen_open(str_of(path), &api));
    TRY(http_server_listen(s->http, api));
    TRY(http_server_listen(s->http, take_fd(&s->listener)));
    for (size_t i = 1; i < s->passed_count; i++)
        TRY(http_server_listen(s->http, s->passed[i]));
    TRY(pools_open(s->manager, s->settings));
    fd_print(s->config->out, "%s\n", s->url);
    own(err) unsaid = notify_send(s->config->envp, "READY=1");
    if (unsaid)
        log_warn("the service manager was not told", KV_ERR(unsaid));
    on_watchdog(&s->watchdog);
    return NULL;
}

static void on_adopted(void *arg, struct err *e)
{
    struct server *s = arg;

    if (!e)
        e = server_listen(s);
    if (e)
        server_fail(s, e);
}

static void on_shut_down(void *arg)
{
    struct server *s = arg;

    loop_stop(s->loop);
}

static void on_drained(void *arg)
{
    struct server *s = arg;

    manager_shutdown(s->manager, on_shut_down, s);
}

static void on_not_ended(struct loop_timer *t)
{
    server_fail(container_of(t, struct server, last),
                err_new(ERR_TIMEOUT,
                        "not all sandboxes could be stopped within %d s: the rest lives on",
                        END_MS / 1000));
}

static void server_end(struct server *s)
{
    if (s->ending) { /* asked twice: at once */
        loop_stop(s->loop);
        return;
    }
    s->ending = true;
    err_free(notify_send(s->config->envp, "STOPPING=1")); /* it asked for it */
    log_info("stopping");
    loop_timer_start(s->loop, &s->last, END_MS, on_not_ended);
    on_drained(s);
}

static void on_term(struct loop_signal *sig)
{
    server_end(container_of(sig, struct server, term));
}

static void on_interrupt(struct loop_signal *sig)
{
    server_end(container_of(sig, struct server, interrupt));
}

/* --- settings anew --- */

static fallible server_apply(struct server *s)
{
    struct manager_config c = manager_settings(s);
    struct builds_config builds = build_settings(s);

    manager_reconfigure(s->manager, &c);
    builds_reconfigure(s->builds, &builds);
    set_patience(s);
    journal_keep(s->watch.journal, s->settings->journal.keep);
    keys_set_defaults(s->keys, (uint32_t)s->settings->tenant.most_runtimes,
                      (uint32_t)s->settings->tenant.starts_per_minute);
    TRY(pools_open(s->manager, s->settings));
    pools_drop(s->manager, s->settings);
    return NULL;
}

/* What cannot be read or makes no sense changes nothing. */
static void on_hangup(struct loop_signal *sig)
{
    struct server *s = container_of(sig, struct server, hangup);
    const struct settings *settings;
    struct err *e = s->config->reload ? s->config->reload(s->config->arg, &settings) : NULL;

    if (!e && s->config->reload && !str_eq(settings->backend, s->settings->backend))
        e = err_new(ERR_INVALID, "server.backend is another: that needs a new server");
    if (!e && s->config->reload) {
        s->settings = settings;
        e = server_apply(s);
    }
    if (e)
        log_error("settings were not read anew", KV_ERR(e));
    else
        log_info("settings were read anew");
    err_free(e);
}

static fallible server_live(struct server *s)
{
    TRY(open_parts(s));
    TRY(loop_signal_start(s->loop, &s->hangup, SIGHUP, on_hangup));
    TRY(loop_signal_start(s->loop, &s->term, SIGTERM, on_term));
    TRY(loop_signal_start(s->loop, &s->interrupt, SIGINT, on_interrupt));
    TRY(manager_adopt(s->manager, on_adopted, s));
    TRY(loop_run(s->loop));
    return take(&s->failed);
}

static void close_parts(struct server *s)
{
    if (s->loop) {
        loop_signal_stop(&s->hangup);
        loop_timer_stop(&s->watchdog);
        loop_timer_stop(&s->last);
        loop_signal_stop(&s->term);
        loop_signal_stop(&s->interrupt);
    }
    if (s->driver) /* first: what is told may be written down */
        sbx_wait_end(s->driver);
    store_close(s->store); /* tells what waits: runtimes, keys, and through them clients */
    if (s->manager)
        manager_answer_starts(s->manager);
    http_server_free(s->http);
    router_free(s->router);
    watch_close(&s->watch);
    s->api.metrics = NULL; /* sandboxes' clients are still answered */
    s->api.journal = NULL;
    manager_free(s->manager);
    builds_free(s->builds);
    keys_free(s->keys);
    proxy_free(s->proxy);
    http_client_free(s->client);
    sbx_driver_close(s->driver);
    net_free(s->net);
    dialer_done(&s->dialer);
    loop_free(s->loop);
    backing_close(&s->backing);
    err_free(s->failed);
}

static fallible serve_server_run(struct server *s)
{
    TRY(layout_open(&s->layout, s->config->state));
    TRY(backing_check(s->settings));
    if (backing_is_native(s->settings))
        TRY(launch_open(&s->launch, &s->layout, s->settings));
    TRY(notify_listen_fds(s->config->envp, s->passed, &s->passed_count));
    if (s->passed_count)
        s->listener = s->passed[0];
    else
        TRY(listen_open(s->settings->listen, &s->listener));
    TRY(listen_name(s->listener, false, s->url, sizeof s->url));
    s->local = listen_is_loopback(s->listener);
    be_reachable(s);
    name_domain(s);
    TRY(become_ordinary(s));
    struct err *e = server_live(s);
    close_parts(s);
    return e;
}

fallible server_run(const struct server_config *config)
{
    struct server s = {.config = config,
                       .settings = config->settings,
                       .launch = {.sock = -1},
                       .listener = -1,
                       .backing = {.guest = -1}};

    s.layout.lock = s.layout.builds_dir = -1;
    signal(SIGPIPE, SIG_IGN);
    machine_raise_descriptors();
    struct err *e = serve_server_run(&s);
    own_close_p(&s.listener);
    own_close_p(&s.launch.sock);
    layout_close(&s.layout);
    return e;
}
