// SPDX-License-Identifier: Apache-2.0
/* remote.c — sandboxes of another machine, through its Runtime API; see README.md.
 *
 * The API has no events, so a start that is not ready at once is asked after, ever less often.
 * POST /start is safe to repeat: the session's runtime is found again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cfg_table.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/local.h"
#include "net/stream.h"
#include "net/url.h"
#include "out/dial.h"
#include "sandbox/environment.h"
#include "sandbox/remote/inner.h"
#include "wire/remote.h"
#include "wire/wants.h"

#define CAPS                                                                                       \
    (SBX_CAN_USER | SBX_HIDES_FILES | SBX_HIDES_PROCESSES | SBX_HIDES_NETWORK |                    \
     SBX_LIMITS_MEMORY | SBX_LIMITS_PIDS | SBX_LIMITS_CPU | SBX_LIMITS_DISK)

#define KEY_BYTES 4096

static struct remote *remote_of(struct sbx *s)
{
    return container_of(s, struct remote, base);
}

/* --- the driver --- */

static const struct cfg_row rows[] = {
    CFG_STR(remote_settings, url, "sandbox.remote_runtime_api_url", "http://localhost:8000",
            "With --backend remote: the other server, such as https://croft.example.",
            .flag = "remote-url", .foreign = true, .at_start = true),
    CFG_SECRET(remote_settings, key, "sandbox.api_key", "Key of the other server.", .foreign = true,
               .at_start = true),
    CFG_STR(remote_settings, key_file, "remote-key-file", NULL,
            "A file with a key of the other server; or set SANDBOX_API_KEY."),
};

/* The file is read here, while the program may still be root. */
static fallible remote_check_settings(const struct cfg *c, void *into)
{
    struct remote_settings *s = into;
    own_done(buf) file;

    buf_init(&file, KEY_BYTES);
    while (str_ends(s->url, STR("/")))
        s->url.len--;
    if (!s->key_file.p)
        return NULL;
    TRY_WRAP(fd_read_file(arena_cstr(c->arena, s->key_file), &file), "--remote-key-file");
    s->key = arena_copy(c->arena, str_trim(buf_str(&file)));
    TRY(arena_check(c->arena));
    return s->key.len ? NULL
                      : err_new(ERR_INVALID, "--remote-key-file '" STR_FMT "' is empty",
                                STR_ARG(s->key_file));
}

CFG_TABLE(remote) = {rows, ARRAY_LEN(rows), .size = sizeof(struct remote_settings),
                     .check = remote_check_settings};

/* Keys go over the wire: what is no server is told before the first of them does. */
static fallible check_host(const struct sbx_host *host)
{
    const struct remote_settings *s = host->settings;
    struct url u;

    if (!s->url.len)
        return err_new(ERR_INVALID, "it needs the address of a server: "
                                    "[sandbox] remote_runtime_api_url");
    TRY_WRAP(url_parse(s->url, &u), "[sandbox] remote_runtime_api_url");
    if (!str_eq(u.scheme, STR("http")) && !str_eq(u.scheme, STR("https")))
        return err_new(ERR_INVALID, "[sandbox] remote_runtime_api_url: http or https");
    if (u.query.len || u.fragment.len)
        return err_new(ERR_INVALID, "[sandbox] remote_runtime_api_url: an address without '?' and "
                                    "'#'");
    if (url_is_tls(&u))
        TRY_WRAP(dialer_load_tls(host->dialer), "TLS to the other server");
    if (!local_is_name(u.host) && !s->key.len)
        return err_new(ERR_INVALID, "API key is required to use the remote runtime: [sandbox] "
                                    "api_key, or SANDBOX_API_KEY");
    return NULL;
}

/* Any answer shows whether a croft is there; until there is one, it is asked for. */
static void on_hello(struct remote_call *c, const struct json *body, struct err *e)
{
    (void)body;
    if (e && c->driver->base.unsure)
        remote_call_again(c, e); /* and again, until it is */
    err_free(e);
}

static const struct retry retry = {.attempts = REMOTE_ATTEMPTS,
                                   .first_ms = 500,
                                   .most_ms = 30000,
                                   .after_most_ms = REMOTE_AFTER_MS,
                                   .jitter = true};

static void remote_drop(struct remote_driver *d)
{
    remote_call_done(&d->hello);
    http_client_free(d->client);
    free(d);
}

static fallible remote_open(const struct sbx_host *host, struct sbx_driver **ret_driver)
{
    TRY(check_host(host));
    struct remote_driver *d = mem_new(sizeof *d);
    struct err *e = http_client_new(host->dialer, NULL, &d->client);
    if (e) {
        free(d);
        return e;
    }
    d->base.caps = CAPS;
    d->base.host = host;
    d->settings = host->settings;
    d->base.unsure = d->base.forgets = true; /* until it shows to be a croft */
    d->retry = retry;
    list_init(&d->asks);
    list_init(&d->readings);
    remote_call_init(&d->hello, d, "");
    d->hello.attempts = 0;
    d->hello.most_ms = REMOTE_ADOPT_MS;
    e = remote_call_send(&d->hello, "GET", "/health", on_hello);
    if (e) {
        remote_drop(d);
        return e;
    }
    *ret_driver = &d->base;
    return NULL;
}

/* Leaves the living sandbox to the next server. */
static void remote_let_go(struct sbx *s)
{
    struct remote *r = remote_of(s);

    loop_timer_stop(&r->timer);
    attempts_stop(&r->reaching);
    remote_call_done(&r->call);
    free(take(&r->from));
    free(take(&r->last_words));
    free(take(&r->image));
    free(take(&r->working_dir));
    free(take(&r->hostname));
    buf_done(&r->env);
    buf_done(&r->command);
}

static void remote_close(struct sbx_driver *driver)
{
    struct remote_driver *d = container_of(driver, struct remote_driver, base);

    remote_drop_asks(d);
    remote_drop_readings(d);
    remote_drop(d);
}

static void add_strings(struct buf *b, const char *const *list)
{
    buf_reset(b);
    for (; list && *list; list++)
        buf_add_mem(b, *list, strlen(*list) + 1);
}

static char *dup_or_null(const char *s)
{
    return s ? mem_dup_cstr(s) : NULL;
}

static fallible remote_create(struct sbx_driver *driver, const struct sbx_spec *spec, struct sbx *s)
{
    struct remote *r = remote_of(s);

    (void)driver;
    if (spec->workspace || spec->mount_count)
        return err_new(ERR_UNSUPPORTED,
                       "'%.300s' is a directory of this machine; sandboxes of backend 'remote' are "
                       "elsewhere",
                       spec->workspace ? spec->workspace : spec->mounts[0].source);
    buf_init(&r->env, ENVIRONMENT_BYTES);
    buf_init(&r->command, ENVIRONMENT_BYTES);
    remote_call_init(&r->call, remote_driver_of(r), s->id);
    add_strings(&r->env, spec->env);
    add_strings(&r->command, spec->command);
    r->has_command = spec->command != NULL;
    r->has_user = spec->has_user;
    r->has_group = spec->has_user || spec->has_group;
    r->has_fs_group = spec->has_fs_group;
    r->fs_group = spec->fs_group;
    r->face = spec->face;
    r->factor = spec->factor;
    r->uid = spec->uid;
    r->gid = spec->gid;
    r->image = mem_dup_cstr(spec->image ? spec->image : "host");
    r->working_dir = dup_or_null(spec->working_dir);
    r->hostname = dup_or_null(spec->hostname);
    r->limits = spec->limits;
    if (!buf_failed(&r->env) && !buf_failed(&r->command))
        return NULL;
    remote_let_go(&r->base);
    return err_new(ERR_TOO_LARGE, "command and environment are too large");
}

static fallible remote_fork(struct sbx_driver *driver, struct str snapshot,
                            const struct sbx_spec *spec, struct sbx *s)
{
    TRY(remote_create(driver, spec, s));
    struct remote *r = remote_of(s);
    r->from = strndup(snapshot.p, snapshot.len);
    if (r->from) /* none would be a start without its files */
        return NULL;
    remote_let_go(s);
    return err_no_memory();
}

/* --- starting --- */

static const char *const action_server[] = {
    "python",     "-u",
    "-m",         "openhands.runtime.action_execution_server",
    "60000",      "--working-dir",
    "/workspace", "--username",
    "root",       "--user-id",
    "0",          NULL};

static const char **list_strings(const struct buf *b)
{
    const char **list = mem_new((ENVIRONMENT_MAX + 1) * sizeof *list);
    size_t n = 0;

    for (size_t at = 0; at < b->len && n < ENVIRONMENT_MAX; at += strlen(b->p + at) + 1)
        list[n++] = b->p + at;
    list[n] = NULL;
    return list;
}

/* Wants that only a croft takes, by routes of its own. */
static bool wants_any(const struct remote *r)
{
    const struct sbx_limits *l = &r->limits;

    return l->memory_bytes || l->disk_bytes || l->pids || l->cpu_permille || r->hostname || r->from;
}

static void put_start(struct remote *r)
{
    const struct wire_wants wants = {
        .memory_bytes = r->limits.memory_bytes,
        .disk_bytes = r->limits.disk_bytes,
        .pids = r->limits.pids,
        .cpu_milli = r->limits.cpu_permille,
        .hostname = r->hostname ? str_of(r->hostname) : (struct str){0},
    };
    own_free const char **env = list_strings(&r->env);
    own_free const char **command = list_strings(&r->command);
    struct jw w;
    const struct wire_remote_start start = {
        .image = str_of(r->image),
        .session_id = str_of(r->base.id),
        .working_dir = r->working_dir ? str_of(r->working_dir) : (struct str){0},
        .command = r->has_command ? command : action_server,
        .env = env,
        .has_user = r->has_user,
        .has_group = r->has_group,
        .has_fs_group = r->has_fs_group,
        .fs_group = r->fs_group,
        .uid = r->uid,
        .gid = r->gid,
        .factor = r->factor,
        .wants = wants_any(r) ? &wants : NULL,
        .from = r->from ? str_of(r->from) : (struct str){0},
    };

    buf_reset(&r->call.body);
    jw_init(&w, &r->call.body, JW_WEB);
    wire_put_remote_start(&w, &start);
}

static fallible remote_look(struct sbx *s)
{
    remote_look_then(remote_of(s), remote_on_look);
    return NULL;
}

static void on_own_start(struct remote *r, const struct json *body, struct err *e)
{
    if (e && err_code(e) == ERR_NOT_FOUND && !remote_driver_of(r)->croft)
        e = err_recode(err_wrap(e, "limits, a host name and forks need a croft at the other side"),
                       ERR_UNSUPPORTED);
    remote_on_object(r, body, e);
}

static fallible remote_start(struct sbx *s)
{
    struct remote *r = remote_of(s);

    remote_begin_waiting(r);
    if (r->ended)
        return err_new(ERR_UNSUPPORTED,
                       "the server of sandbox '%s' keeps no files of what was "
                       "stopped; make a new one",
                       r->base.id);
    r->there = true;
    free(take(&r->last_words));
    if (r->runtime_id[0] && remote_driver_of(r)->croft)
        return remote_call_croft(r, "POST", "/resume", remote_on_object);
    put_start(r);
    if (wants_any(r))
        return remote_call(r, "POST", "/croft/v1/sandboxes", on_own_start);
    return remote_call(r, "POST", "/start", remote_on_object);
}

static void on_found(struct remote *r, const struct json *body, struct err *e)
{
    if (e && err_code(e) == ERR_NOT_FOUND)
        e = err_wrap(e, "Could not find existing runtime for SID: %s", r->base.id);
    r->there = !e || err_code(e) != ERR_NOT_FOUND; /* a server that did not answer may have it */
    remote_on_object(r, body, e);
}

static fallible remote_adopt(struct sbx *s)
{
    struct remote *r = remote_of(s);

    remote_begin_waiting(r);
    snprintf(r->call.path, sizeof r->call.path, "/sessions/%s", s->id);
    buf_reset(&r->call.body);
    return remote_call(r, "GET", r->call.path, on_found);
}

/* --- and the rest of a life --- */

/* Refused in its state now: another client may have done the same, or ended it. */
static void on_state(struct remote *r, const struct json *body, struct err *e)
{
    bool stops = r->base.op == SBX_STOP;
    struct wire_remote o;

    if (!e)
        e = remote_take_object(r, body, &o);
    if (e) {
        remote_end_if_gone(r, e);
        return;
    }
    if (o.state == WIRE_REMOTE_STOPPED || o.state == WIRE_REMOTE_FAILED) {
        bool failed = o.state == WIRE_REMOTE_FAILED; /* its files may still be had by a start */
        r->ended |= !failed;
        sbx_finish(&r->base,
                   stops ? NULL
                         : err_new(ERR_CONFLICT, "it %s", failed ? "has failed" : "is stopped"));
        if (!stops)
            sbx_gone(&r->base,
                     failed ? "it failed at the other server" : "somebody else stopped it");
    } else if (o.state == WIRE_REMOTE_PAUSED && !stops)
        sbx_finish(&r->base, NULL);
    else
        sbx_finish(&r->base, err_new(ERR_CONFLICT, "the server refuses it while it is " STR_FMT,
                                     STR_ARG(o.status)));
}

static void on_paused(struct remote *r, const struct json *body, struct err *e)
{
    (void)body;
    if (e && err_code(e) == ERR_CONFLICT) {
        err_free(e);
        remote_look_then(r, on_state);
    } else if (e)
        remote_end_if_gone(r, e);
    else
        sbx_finish(&r->base, NULL);
}

/* A sandbox that is missing has stopped. */
static struct err *unless_gone(struct remote *r, struct err *e)
{
    if (!e || err_code(e) != ERR_NOT_FOUND)
        return e;
    err_free(e);
    r->there = false;
    r->ended = true;
    return NULL;
}

static void on_stopped(struct remote *r, const struct json *body, struct err *e)
{
    (void)body;
    if (e && err_code(e) == ERR_CONFLICT) {
        err_free(e);
        remote_look_then(r, on_state);
        return;
    }
    e = unless_gone(r, e);
    if (!e && !remote_driver_of(r)->croft) {
        r->there = false;
        r->ended = true;
    }
    sbx_finish(&r->base, e);
}

static fallible remote_stop(struct sbx *s)
{
    struct remote *r = remote_of(s);

    if (remote_driver_of(r)->croft)
        return remote_call_croft(r, "POST", "/stop", on_stopped);
    return remote_call_id(r, "/stop", on_stopped);
}

static fallible remote_pause(struct sbx *s)
{
    return remote_call_id(remote_of(s), "/pause", on_paused);
}

static fallible remote_resume(struct sbx *s)
{
    remote_begin_waiting(remote_of(s));
    return remote_call_id(remote_of(s), "/resume", remote_on_object);
}

/* --- its end --- */

static void remove_here(struct remote *r, struct err *e)
{
    remote_log_left(r);
    remote_let_go(&r->base);
    sbx_finish(&r->base, e);
}

static void on_removed(struct remote *r, const struct json *body, struct err *e)
{
    (void)body;
    remove_here(r, unless_gone(r, e));
}

static void remove_there(struct remote *r)
{
    struct err *e = remote_driver_of(r)->croft ? remote_call_croft(r, "DELETE", "", on_removed)
                                               : remote_call_id(r, "/stop", on_removed);

    if (e)
        remove_here(r, e);
}

static void on_left(struct remote *r, const struct json *body, struct err *e)
{
    struct wire_remote o;

    if (!e)
        e = remote_take_object(r, body, &o);
    if (e)
        remove_here(r, unless_gone(r, e));
    else
        remove_there(r);
}

/* A start that was sent and never answered is first looked up by its session. */
static fallible remote_remove(struct sbx *s)
{
    struct remote *r = remote_of(s);
    struct err *e = NULL;

    if (!r->there)
        remove_here(r, NULL);
    else if (r->runtime_id[0])
        remove_there(r);
    else {
        snprintf(r->call.path, sizeof r->call.path, "/sessions/%s", s->id);
        buf_reset(&r->call.body);
        e = remote_call(r, "GET", r->call.path, on_left);
    }
    if (e)
        remove_here(r, e);
    return NULL;
}

static void remote_inspect(struct sbx *s, struct sbx_info *info)
{
    const struct remote *r = remote_of(s);

    snprintf(info->address.url, sizeof info->address.url, "%s", r->url);
    info->session_key = r->session_key[0] ? r->session_key : NULL;
}

static fallible remote_expose(struct sbx *s, uint16_t port, struct sbx_address *ret_address)
{
    const struct remote *r = remote_of(s);

    for (size_t i = 0; i < REMOTE_PORTS; i++)
        if (r->ports[i].port == port) {
            *ret_address = (struct sbx_address){0};
            memcpy(ret_address->url, r->ports[i].url, sizeof ret_address->url);
            return NULL;
        }
    return err_new(ERR_UNSUPPORTED,
                   "port %u of sandbox '%s' is not published by its server: 12000 and 12001 are "
                   "for workers, 60001 is for VS Code",
                   port, s->id);
}

SBX_BACKEND(remote) = {
    .name = "remote",
    .summary = "sandboxes of another machine, through its runtime API",
    .remedy = "a croft at the other side",
    .settings = CFG_TABLE_OF(remote),
    .caps = CAPS,
    .depends = REMOTE_CROFT_CAPS,
    .size = sizeof(struct remote),
    .open = remote_open,
    .close = remote_close,
    .create = remote_create,
    .let_go = remote_let_go,
    .start = remote_start,
    .stop = remote_stop,
    .remove = remote_remove,
    .inspect = remote_inspect,
    .measure = remote_measure,
    .pauses = &(const struct sbx_pause_calls){.pause = remote_pause, .resume = remote_resume},
    .survivors = &(const struct sbx_survivor_calls){.adopt = remote_adopt, .look = remote_look},
    .logs = &(const struct sbx_log_calls){.newest = remote_logs,
                                          .open = remote_log_open,
                                          .next = remote_log_next,
                                          .close = remote_log_close,
                                          .moved = remote_log_moved},
    .snapshots = &(const struct sbx_snapshot_calls){.make = remote_snapshot,
                                                    .fork = remote_fork,
                                                    .list = remote_snapshot_list,
                                                    .remove = remote_snapshot_remove},
    .files = &(const struct sbx_file_calls){.diff = remote_diff,
                                            .apply = remote_apply,
                                            .rollback = remote_rollback},
    .ports = &(const struct sbx_port_calls){.expose = remote_expose},
};
