// SPDX-License-Identifier: Apache-2.0
/* remote.c — sandboxes of another machine, through its Runtime API; see README.md.
 *
 * The API has no events, so a start that is not ready at once is asked after, ever less often.
 * POST /start is safe to repeat: the session's runtime is found again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/client.h"
#include "net/stream.h"
#include "sandbox/environment.h"
#include "sandbox/sandbox.h"
#include "wire/remote.h"

#define CALL_MS     180000 /* as the oldest clients wait for the API */
#define START_MS    180000 /* for a runtime to be ready */
#define POLL_MIN_MS 50
#define POLL_MAX_MS 2000
#define ATTEMPTS    3
#define AGAIN_MS    4000 /* between attempts; Retry-After wins */
#define AGAIN_MAX_S 60
#define ANSWER_MAX  (1u << 20)
#define BODY_MAX    (4u << 20)
#define CAPS                                                                                       \
    (SBX_CAN_USER | SBX_CAN_PAUSE | SBX_CAN_ADOPT | SBX_HIDES_FILES | SBX_HIDES_PROCESSES |        \
     SBX_HIDES_NETWORK)

struct remote_driver {
    struct sbx_driver base;
    struct http_client *client;
    bool croft; /* on the other side: its additions can be used */
};

struct remote {
    struct sbx base;
    char *image, *working_dir, *from;
    struct buf env, command; /* strings one after the other */
    bool has_command, has_user;
    uint32_t uid, gid;

    char runtime_id[SBX_ID_MAX + 1];
    char url[sizeof((struct sbx_address *)0)->url];
    char session_key[SBX_KEY_MAX + 1];

    /* the call under way */
    const char *method;
    char path[160];
    struct buf body;
    struct http_call *call;
    struct buf answer;
    int status;
    unsigned attempt, again_s;
    struct loop_timer timer;
    uint64_t give_up_ns, poll_ms;
    void (*then)(struct remote *r, const struct json *body, struct err *e);
};

static struct remote *remote_of(struct sbx *s)
{
    return container_of(s, struct remote, base);
}

static struct remote_driver *driver_of(const struct remote *r)
{
    return container_of(r->base.driver, struct remote_driver, base);
}

static struct loop *loop_of(const struct remote *r)
{
    return r->base.driver->host->loop;
}

/* --- calls --- */

static fallible send_call(struct remote *r);

static void on_again(struct loop_timer *t)
{
    struct remote *r = container_of(t, struct remote, timer);
    struct err *e = send_call(r);

    if (e)
        r->then(r, NULL, e);
}

static bool try_again(struct remote *r, unsigned after_ms)
{
    if (++r->attempt >= ATTEMPTS)
        return false;
    loop_timer_start(loop_of(r), &r->timer, after_ms, on_again);
    return true;
}

static enum err_code code_of(int status)
{
    static const struct {
        int status;
        enum err_code code;
    } rows[] = {{400, ERR_INVALID},       {401, ERR_UNAUTHORIZED}, {403, ERR_FORBIDDEN},
                {404, ERR_NOT_FOUND},     {409, ERR_CONFLICT},     {413, ERR_TOO_LARGE},
                {422, ERR_UNPROCESSABLE}, {429, ERR_LIMIT},        {501, ERR_UNSUPPORTED},
                {503, ERR_BUSY},          {504, ERR_TIMEOUT}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status)
            return rows[i].code;
    return ERR_UPSTREAM;
}

static fallible error_of(const struct remote *r, const struct json *body)
{
    struct str detail = wire_remote_detail(body);

    if (r->status < 400)
        return NULL;
    if (detail.len)
        return err_new(code_of(r->status), "the server: " STR_FMT, STR_ARG(detail));
    return err_new(code_of(r->status), "the server answered %s with %d", r->path, r->status);
}

static void on_head(struct http_call *call, const struct http_head *head)
{
    struct remote *r = http_call_owner(call);
    uint64_t seconds = 0;

    r->status = head->status;
    for (size_t i = 0; i < head->header_count; i++) {
        const struct http_header *h = &head->headers[i];
        if (str_eq_nocase(h->name, STR("server")) && str_starts(h->value, STR("croft")))
            driver_of(r)->croft = true;
        if (str_eq_nocase(h->name, STR("retry-after")) && str_to_u64(h->value, &seconds))
            r->again_s = seconds < AGAIN_MAX_S ? (unsigned)seconds : AGAIN_MAX_S;
    }
}

static void on_body(struct http_call *call, struct str piece)
{
    buf_add(&((struct remote *)http_call_owner(call))->answer, piece);
}

static void on_answer(struct http_call *call, struct err *e)
{
    struct remote *r = http_call_owner(call);
    struct json *body = NULL;
    struct arena a;

    r->call = NULL;
    if (e && err_code(e) == ERR_UPSTREAM && try_again(r, AGAIN_MS)) {
        log_warn("the server of a remote sandbox cannot be reached, trying again",
                 KV("sandbox", r->base.id), KV_ERR(e));
        err_free(e);
        return;
    }
    if (!e && r->status == 429 && try_again(r, r->again_s ? r->again_s * 1000 : AGAIN_MS))
        return;
    arena_init(&a, 16 * ANSWER_MAX);
    if (!e && r->answer.len) /* what is no JSON is told by its status */
        err_free(json_parse(&a, buf_str(&r->answer), NULL, &body));
    if (!e)
        e = error_of(r, body);
    r->then(r, e ? NULL : body, e);
    arena_done(&a);
}

static fallible send_call(struct remote *r)
{
    static const struct http_call_events events = {
        .on_head = on_head, .on_body = on_body, .on_done = on_answer};
    const struct sbx_host *host = r->base.driver->host;
    const struct http_header headers[] = {
        {STR("X-API-Key"), str_of(host->remote_key ? host->remote_key : "")},
        {STR("Content-Type"), STR("application/json")},
    };
    char url[512];

    if (snprintf(url, sizeof url, "%s%s", host->remote_url, r->path) >= (int)sizeof url)
        return err_new(ERR_INVALID, "the address of the server is too long");
    r->status = 0;
    r->again_s = 0;
    buf_reset(&r->answer);
    const struct http_call_spec spec = {
        .method = str_of(r->method),
        .url = str_of(url),
        .headers = headers,
        .header_count = ARRAY_LEN(headers),
        .body = r->body.len ? buf_str(&r->body) : (struct str){0},
        .total_ms = CALL_MS,
        .idle_ms = CALL_MS,
        .max_body_bytes = ANSWER_MAX,
    };
    return http_call_start(driver_of(r)->client, &spec, &events, r, &r->call);
}

/* The body is what is in r->body. */
static fallible call(struct remote *r, const char *method, const char *path,
                     void (*then)(struct remote *r, const struct json *body, struct err *e))
{
    TRY(buf_check(&r->body));
    r->method = method;
    snprintf(r->path, sizeof r->path, "%s", path);
    r->then = then;
    r->attempt = 0;
    return send_call(r);
}

static fallible call_id(struct remote *r, const char *path,
                        void (*then)(struct remote *r, const struct json *body, struct err *e))
{
    struct jw w;

    buf_reset(&r->body);
    jw_init(&w, &r->body, JW_WEB);
    wire_put_remote_id(&w, str_of(r->runtime_id));
    return call(r, "POST", path, then);
}

/* /croft/v1/sandboxes/ID and what follows. */
static fallible call_croft(struct remote *r, const char *method, const char *what,
                           void (*then)(struct remote *r, const struct json *body, struct err *e))
{
    char path[sizeof r->path];

    snprintf(path, sizeof path, "/croft/v1/sandboxes/%s%s", r->runtime_id, what);
    return call(r, method, path, then);
}

/* --- the driver --- */

static fallible remote_open(const struct sbx_host *host, struct sbx_driver **ret_driver)
{
    if (!host->remote_url)
        return err_new(ERR_INVALID, "backend 'remote' needs the address of a server: "
                                    "[sandbox] remote_runtime_api_url");
    struct remote_driver *d = mem_new(sizeof *d);
    struct err *e = http_client_new(host->net, &(struct http_client_config){0}, &d->client);
    if (e) {
        free(d);
        return e;
    }
    d->base.caps = CAPS;
    *ret_driver = &d->base;
    return NULL;
}

static void remote_close(struct sbx_driver *driver)
{
    struct remote_driver *d = container_of(driver, struct remote_driver, base);

    http_client_free(d->client);
    free(d);
}

static void add_strings(struct buf *b, const char *const *list)
{
    buf_reset(b);
    for (; list && *list; list++)
        buf_add_mem(b, *list, strlen(*list) + 1);
}

static void release(struct remote *r)
{
    loop_timer_stop(&r->timer);
    if (r->call)
        http_call_cancel(r->call);
    free(r->image);
    free(r->working_dir);
    free(r->from);
    buf_done(&r->env);
    buf_done(&r->command);
    buf_done(&r->body);
    buf_done(&r->answer);
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
    buf_init(&r->body, BODY_MAX);
    buf_init(&r->answer, ANSWER_MAX);
    add_strings(&r->env, spec->env);
    add_strings(&r->command, spec->command);
    r->has_command = spec->command != NULL;
    r->has_user = spec->has_user;
    r->uid = spec->uid;
    r->gid = spec->gid;
    r->image = mem_dup_cstr(spec->image ? spec->image : "host");
    r->working_dir = dup_or_null(spec->working_dir);
    if (!buf_failed(&r->env) && !buf_failed(&r->command))
        return NULL;
    release(r);
    return err_new(ERR_TOO_LARGE, "command and environment are too large");
}

static fallible remote_fork(struct sbx_driver *driver, struct str snapshot,
                            const struct sbx_spec *spec, struct sbx *s)
{
    TRY(remote_create(driver, spec, s));
    char *from = mem_new(snapshot.len + 1);
    memcpy(from, snapshot.p, snapshot.len);
    remote_of(s)->from = from;
    return NULL;
}

static fallible remote_remove_here(struct remote *r, struct err *e)
{
    release(r);
    sbx_finish(&r->base, e);
    return NULL;
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

static void put_start(struct remote *r)
{
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
        .uid = r->uid,
        .gid = r->gid,
        .from = r->from ? str_of(r->from) : (struct str){0},
    };

    buf_reset(&r->body);
    jw_init(&w, &r->body, JW_WEB);
    wire_put_remote_start(&w, &start);
}

static bool keep_text(char *to, size_t size, struct str s)
{
    if (s.len >= size)
        return false;
    memcpy(to, s.p, s.len);
    to[s.len] = '\0';
    return true;
}

static fallible take_object(struct remote *r, const struct json *body, struct wire_remote *ret)
{
    TRY(wire_decode_remote(body, ret));
    if (!keep_text(r->runtime_id, sizeof r->runtime_id, ret->runtime_id) ||
        !keep_text(r->url, sizeof r->url, ret->url) ||
        !keep_text(r->session_key, sizeof r->session_key, ret->session_api_key))
        return err_new(ERR_UPSTREAM,
                       "runtime_id, url or session_api_key of the server is too long");
    return NULL;
}

static void on_object(struct remote *r, const struct json *body, struct err *e);

static void on_poll(struct loop_timer *t)
{
    struct remote *r = container_of(t, struct remote, timer);
    char path[sizeof r->path];

    snprintf(path, sizeof path, "/runtime/%s", r->runtime_id);
    buf_reset(&r->body);
    struct err *e = call(r, "GET", path, on_object);
    if (e)
        sbx_finish(&r->base, e);
}

static void on_object(struct remote *r, const struct json *body, struct err *e)
{
    struct wire_remote object;

    if (!e)
        e = take_object(r, body, &object);
    if (!e && (object.state == WIRE_REMOTE_FAILED || object.state == WIRE_REMOTE_STOPPED))
        e = err_new(ERR_UPSTREAM, "the runtime did not start: " STR_FMT, STR_ARG(object.detail));
    if (!e && object.state == WIRE_REMOTE_WAIT) {
        if (loop_now_ns(loop_of(r)) < r->give_up_ns) {
            loop_timer_start(loop_of(r), &r->timer, r->poll_ms, on_poll);
            r->poll_ms = r->poll_ms * 3 / 2 < POLL_MAX_MS ? r->poll_ms * 3 / 2 : POLL_MAX_MS;
            return;
        }
        e = err_new(ERR_TIMEOUT, "the runtime was not ready within %d seconds", START_MS / 1000);
    }
    sbx_finish(&r->base, e);
}

static fallible remote_start(struct sbx *s)
{
    struct remote *r = remote_of(s);

    r->give_up_ns = loop_now_ns(loop_of(r)) + START_MS * NS_PER_MS;
    r->poll_ms = POLL_MIN_MS;
    if (r->runtime_id[0] && !driver_of(r)->croft)
        return err_new(ERR_UNSUPPORTED,
                       "the server of sandbox '%s' keeps no files of what was "
                       "stopped; make a new one",
                       r->base.id);
    if (r->runtime_id[0]) {
        buf_reset(&r->body);
        return call_croft(r, "POST", "/resume", on_object);
    }
    put_start(r);
    return call(r, "POST", r->from ? "/croft/v1/sandboxes" : "/start", on_object);
}

static void on_found(struct remote *r, const struct json *body, struct err *e)
{
    struct wire_remote object;

    if (!e)
        e = take_object(r, body, &object);
    if (!e)
        r->base.found = object.state == WIRE_REMOTE_PAUSED    ? SBX_PAUSED
                        : object.state == WIRE_REMOTE_STOPPED ? SBX_STOPPED
                        : object.state == WIRE_REMOTE_FAILED  ? SBX_STOPPED
                                                              : SBX_RUNNING;
    sbx_finish(&r->base, e);
}

static fallible remote_adopt(struct sbx *s)
{
    struct remote *r = remote_of(s);
    char path[sizeof r->path];

    snprintf(path, sizeof path, "/sessions/%s", s->id);
    buf_reset(&r->body);
    return call(r, "GET", path, on_found);
}

/* --- and the rest of a life --- */

static void on_done(struct remote *r, const struct json *body, struct err *e)
{
    (void)body;
    sbx_finish(&r->base, e);
}

/* What is not there any more has stopped. */
static void on_stopped(struct remote *r, const struct json *body, struct err *e)
{
    (void)body;
    if (e && err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        e = NULL;
    }
    sbx_finish(&r->base, e);
}

static fallible remote_stop(struct sbx *s)
{
    struct remote *r = remote_of(s);

    buf_reset(&r->body);
    if (driver_of(r)->croft)
        return call_croft(r, "POST", "/stop", on_stopped);
    return call_id(r, "/stop", on_stopped);
}

static fallible remote_pause(struct sbx *s)
{
    return call_id(remote_of(s), "/pause", on_done);
}

static fallible remote_resume(struct sbx *s)
{
    struct remote *r = remote_of(s);

    r->give_up_ns = loop_now_ns(loop_of(r)) + START_MS * NS_PER_MS;
    r->poll_ms = POLL_MIN_MS;
    return call_id(r, "/resume", on_object);
}

static void on_removed(struct remote *r, const struct json *body, struct err *e)
{
    (void)body;
    if (e && err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        e = NULL;
    }
    err_free(remote_remove_here(r, e));
}

static fallible remote_remove(struct sbx *s)
{
    struct remote *r = remote_of(s);
    struct err *e = NULL;

    buf_reset(&r->body);
    if (r->runtime_id[0] && driver_of(r)->croft)
        e = call_croft(r, "DELETE", "", on_removed);
    else
        return remote_remove_here(r, NULL);
    return e ? remote_remove_here(r, e) : NULL;
}

static void remote_inspect(struct sbx *s, struct sbx_info *info)
{
    const struct remote *r = remote_of(s);

    snprintf(info->address.url, sizeof info->address.url, "%s", r->url);
    info->session_key = r->session_key[0] ? r->session_key : NULL;
}

SBX_BACKEND(remote) = {
    .name = "remote",
    .summary = "sandboxes of another machine, through its runtime API",
    .caps = CAPS,
    .size = sizeof(struct remote),
    .open = remote_open,
    .close = remote_close,
    .create = remote_create,
    .start = remote_start,
    .stop = remote_stop,
    .pause = remote_pause,
    .resume = remote_resume,
    .adopt = remote_adopt,
    .fork = remote_fork,
    .remove = remote_remove,
    .inspect = remote_inspect,
};
