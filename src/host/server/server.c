// SPDX-License-Identifier: Apache-2.0
/* server.c — see server.h. */
#include "host/server/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cfg.h"
#include "base/fd.h"
#include "base/log.h"
#include "host/config/settings.h"
#include "host/ops/notify.h"
#include "host/ops/request_id.h"
#include "host/part/part.h"
#include "host/server/backing.h"
#include "host/server/launch.h"
#include "host/server/layout.h"
#include "host/server/machine.h"
#include "loop/loop.h"
#include "net/listen.h"
#include "net/router.h"
#include "net/server.h"
#include "out/dial.h"

#define ANSWER_MS 1000  /* for answers to requests that wait for a launcher that is gone */
#define END_MS    50000 /* of a clean end; sandboxes that still run then live on */

struct server {
    const struct server_config *config;
    struct host host; /* of the parts */
    struct layout layout;
    struct launch launch;
    struct dialer dialer;
    struct router *router;
    struct http_server *http;
    struct loop_signal term, interrupt, hangup;
    struct loop_timer watchdog, last;
    int listener;
    int passed[NOTIFY_FDS_MAX]; /* by a service manager; the first is the listener */
    size_t passed_count;
    char url[160];
    bool ending;
    struct err *failed;
};

struct server_settings {
    struct str listen;
};

static const struct cfg_row rows[] = {
    CFG_STR(server_settings, listen, "server.listen", "127.0.0.1:3000",
            "Address and port of the App Server, the Runtime API and the page.", .at_start = true),
};
CFG_TABLE(server) = {rows, ARRAY_LEN(rows), .size = sizeof(struct server_settings), .first = true};

struct str server_address(const struct settings *s)
{
    const struct server_settings *own = settings_of(s, CFG_TABLE_OF(server));

    return own->listen;
}

/* --- root is given up, before anything is read that a stranger wrote --- */

static fallible become_ordinary(struct server *s)
{
    if (!s->layout.separate)
        return NULL;
    TRY(launcher_drop_privileges(&s->layout.user));
    log_info("the server is an ordinary user now", KV("uid", s->layout.user.uid));
    if (s->layout.user.shared)
        log_warn("the server runs as 'nobody', as other programs may: 'croft doctor' says how to "
                 "give it a user of its own");
    return NULL;
}

/* --- the listener --- */

/* Clients elsewhere are told this address. One that means all interfaces leads nowhere from there,
 * so the machine's own takes its place. */
static void be_reachable(struct server *s)
{
    char address[INET_ADDRSTRLEN];
    struct str all[] = {STR("http://0.0.0.0:"), STR("http://[::]:")}, url = str_of(s->url);

    for (size_t i = 0; i < ARRAY_LEN(all) && !s->host.local; i++)
        if (str_starts(url, all[i]) && machine_address(address)) {
            char port[16];
            snprintf(port, sizeof port, STR_FMT, STR_ARG(str_from(url, all[i].len)));
            snprintf(s->url, sizeof s->url, "http://%s:%s", address, port);
            break;
        }
}

static fallible server_intercept(void *host, struct http_req *req, const struct route **ret_route)
{
    request_id_set(req);
    return parts_intercept(host, req, ret_route);
}

static fallible open_http(struct server *s)
{
    struct host *h = &s->host;

    s->router =
        router_new(&(struct router_config){.auth = parts_auth, .ctx = h, .collapse_slashes = true});
    parts_add_routes(h, s->router);
    struct http_server_config config = {.router = s->router,
                                        .ctx = h,
                                        .intercept = server_intercept,
                                        .server_name = "croft",
                                        .on_answer = parts_on_answer};
    return http_server_new(h->net, &config, &s->http);
}

/* --- life --- */

static void server_fail(struct server *s, struct err *e)
{
    if (s->failed)
        err_free(e);
    else
        s->failed = e;
    loop_stop(s->host.loop);
}

/* --- the launcher is gone: nothing can be started or ended, and the next server has a new one ---
 */

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

/* Requests that wait are answered first. This has a bound, because a stream may have no end. */
static void on_lost(void *host)
{
    struct server *s = container_of((struct host *)host, struct server, host);

    s->ending = true;
    loop_timer_start(s->host.loop, &s->last, ANSWER_MS, on_last);
    http_server_drain(s->http, on_answered, s);
}

static void on_watchdog(struct loop_timer *t)
{
    struct server *s = container_of(t, struct server, watchdog);
    unsigned every_ms = notify_watchdog_ms(s->config->envp);

    if (!every_ms)
        return;
    err_free(notify_send(s->config->envp, "WATCHDOG=1")); /* else it restarts the server */
    loop_timer_start(s->host.loop, t, every_ms, on_watchdog);
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
    fd_print(s->config->out, "%s\n", s->url);
    own(err) unsaid = notify_send(s->config->envp, "READY=1");
    if (unsaid)
        log_warn("the service manager was not told", KV_ERR(unsaid));
    on_watchdog(&s->watchdog);
    return NULL;
}

static void on_begun(void *arg, struct err *e)
{
    struct server *s = arg;

    if (!e && !s->ending)
        e = server_listen(s);
    if (e)
        server_fail(s, e);
}

static void on_ended(void *arg, struct err *e)
{
    const struct server *s = arg;

    err_free(e); /* never one, see part.h */
    loop_stop(s->host.loop);
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
    if (s->ending) { /* a second signal ends it at once */
        loop_stop(s->host.loop);
        return;
    }
    s->ending = true;
    err_free(notify_send(s->config->envp, "STOPPING=1")); /* the service manager knows anyway */
    log_debug("stopping");
    loop_timer_start(s->host.loop, &s->last, END_MS, on_not_ended);
    parts_end(&s->host, on_ended, s);
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

/* Settings that cannot be read, or that a part refuses, leave those of before. */
static void put_change(void *keys, const struct cfg_row *row)
{
    buf_addf(keys, "%s%s", ((struct buf *)keys)->len ? ", " : "", row->key);
}

static void put_waiting(void *keys, const struct cfg_row *row)
{
    if (row->at_start)
        put_change(keys, row);
}

/* What waits differs from the settings of the start, whenever that came to be. */
static void log_changes(const struct server *s, const struct settings *before)
{
    own_done(buf) changed;
    own_done(buf) waits;

    buf_init(&changed, 1u << 16);
    buf_init(&waits, 1u << 16);
    cfg_each_change(&before->cfg, &s->host.settings->cfg, put_change, &changed);
    cfg_each_change(&s->config->settings->cfg, &s->host.settings->cfg, put_waiting, &waits);
    if (waits.len)
        log_warn("settings were read anew, and some wait for a restart",
                 KV("changed", buf_str(&changed)), KV("wait", buf_str(&waits)));
    else
        log_info("settings were read anew",
                 KV("changed", changed.len ? buf_str(&changed) : STR("nothing")));
}

static fallible server_reload(struct server *s)
{
    const struct settings *before = s->host.settings;

    if (!s->config->reload)
        return NULL;
    TRY(s->config->reload(s->config->arg, &s->host.settings));
    struct err *e = parts_reload(&s->host);
    if (e)
        s->host.settings = before;
    else
        log_changes(s, before);
    return e;
}

static void on_hangup(struct loop_signal *sig)
{
    own(err) e = server_reload(container_of(sig, struct server, hangup));

    if (e)
        log_error("settings were not read anew: those of before count, all of them", KV_ERR(e));
}

static fallible server_open(struct server *s)
{
    struct host *h = &s->host;

    TRY(loop_new(&clock_system, &h->loop));
    TRY(net_new(h->loop, &h->net));
    s->dialer =
        (struct dialer){.net = h->net, .ca_file = cfg_env_get(s->config->envp, "CROFT_CA_FILE")};
    TRY(parts_open(h));
    return open_http(s);
}

static fallible server_live(struct server *s)
{
    struct loop *loop;

    TRY(server_open(s));
    loop = s->host.loop;
    TRY(loop_signal_start(loop, &s->hangup, SIGHUP, on_hangup));
    TRY(loop_signal_start(loop, &s->term, SIGTERM, on_term));
    TRY(loop_signal_start(loop, &s->interrupt, SIGINT, on_interrupt));
    parts_begin(&s->host, on_begun, s);
    if (!s->failed)
        TRY(loop_run(loop));
    return take(&s->failed);
}

static void server_close(struct server *s)
{
    if (s->host.loop) {
        loop_signal_stop(&s->hangup);
        loop_timer_stop(&s->watchdog);
        loop_timer_stop(&s->last);
        loop_signal_stop(&s->term);
        loop_signal_stop(&s->interrupt);
    }
    parts_settle(&s->host);
    http_server_free(s->http);
    router_free(s->router);
    parts_close(&s->host);
    dialer_done(&s->dialer);
    net_free(s->host.net);
    loop_free(s->host.loop);
    err_free(s->failed);
}

static fallible server_try_run(struct server *s)
{
    TRY(layout_open(&s->layout, s->config->state));
    if (backing_row(s->host.settings)->needs & SBX_NEEDS_LAUNCHER)
        TRY(launch_open(&s->launch, &s->layout, s->host.settings));
    TRY(notify_listen_fds(s->config->envp, s->passed, &s->passed_count));
    if (s->passed_count)
        s->listener = s->passed[0];
    else
        TRY(listen_open(server_address(s->host.settings), &s->listener));
    TRY(listen_name(s->listener, false, s->url, sizeof s->url));
    s->host.local = listen_is_loopback(s->listener);
    be_reachable(s);
    TRY(become_ordinary(s));
    struct err *e = server_live(s);
    server_close(s);
    return e;
}

fallible server_run(const struct server_config *config)
{
    struct server s = {.config = config, .launch = {.sock = -1}, .listener = -1};

    s.host = (struct host){.dialer = &s.dialer,
                           .settings = config->settings,
                           .config = config,
                           .layout = &s.layout,
                           .launch = &s.launch,
                           .url = s.url,
                           .on_lost = on_lost};
    s.layout.lock = s.layout.builds_dir = -1;
    signal(SIGPIPE, SIG_IGN);
    machine_raise_descriptors();
    struct err *e = server_try_run(&s);
    own_close_p(&s.listener);
    own_close_p(&s.launch.sock);
    layout_close(&s.layout);
    return e;
}
