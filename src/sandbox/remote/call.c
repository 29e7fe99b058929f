// SPDX-License-Identifier: Apache-2.0
/* call.c — calls to the server of a remote sandbox, and which of them are tried again.
 *
 * Again: what did not get through (refused, cut, 502, 504) and what the server put off (429, 503).
 * Not: a call that timed out, for that was long enough, and what the server refused for good. */
#include <stdio.h>

#include "base/log.h"
#include "net/stream.h"
#include "sandbox/remote/inner.h"
#include "wire/remote.h"

static fallible send_call(struct remote_call *c);

static void on_again(struct attempts *a)
{
    struct remote_call *c = container_of(a, struct remote_call, tries);
    struct err *e = send_call(c);

    if (e)
        c->answered(c, NULL, e);
}

static bool is_passing(const struct remote_call *c, const struct err *e)
{
    if (e)
        return err_code(e) == ERR_UPSTREAM;
    return c->status == 429 || (c->status >= 502 && c->status <= 504);
}

bool remote_call_again(struct remote_call *c, const struct err *e)
{
    const struct remote_driver *d = c->driver;
    struct retry policy = d->retry;

    policy.attempts = c->attempts;
    if (!attempts_again(&c->tries, d->base.host->loop, &policy, c->after_ms, on_again))
        return false;
    log_warn("the server of a remote sandbox is asked again", KV("sandbox", c->sandbox),
             KV("path", c->path), KV("attempt", c->tries.count - 1), KV("status", c->status),
             KV("wait_ms", c->tries.wait_ms), KV("error", e ? err_text(e) : ""));
    return true;
}

/* --- answers --- */

static enum err_code code_of(int status)
{
    static const struct {
        int status;
        enum err_code code;
    } rows[] = {{400, ERR_INVALID},       {401, ERR_UNAUTHORIZED}, {403, ERR_FORBIDDEN},
                {404, ERR_NOT_FOUND},     {409, ERR_CONFLICT},     {413, ERR_TOO_LARGE},
                {422, ERR_UNPROCESSABLE}, {429, ERR_LIMIT},        {501, ERR_UNSUPPORTED},
                {503, ERR_BUSY},          {504, ERR_TIMEOUT},      {507, ERR_NO_SPACE}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status)
            return rows[i].code;
    return ERR_UPSTREAM;
}

fallible remote_refusal(int status, const char *path, const struct json *body)
{
    struct str detail = wire_remote_detail(body);

    if (status < 400)
        return NULL;
    struct err *e = detail.len
                        ? err_new(code_of(status), "the server: " STR_FMT, STR_ARG(detail))
                        : err_new(code_of(status), "the server answered %s with %d", path, status);
    return status == 401 ? err_wrap(e, "the server does not take our key ([sandbox] api_key)") : e;
}

static fallible error_of(const struct remote_call *c, const struct json *body)
{
    struct err *e = remote_refusal(c->status, c->path, body);

    if (e && c->status != 401 && c->after_ms > REMOTE_AFTER_MS)
        return err_wrap(e, "to be asked again in %llu seconds",
                        (unsigned long long)c->after_ms / 1000);
    return e;
}

/* Any answer shows whether a croft is there. */
static void call_learn(struct remote_driver *d, const struct http_head *head)
{
    d->base.unsure = false;
    if (!str_starts(http_header_get(head, STR("server")), STR("croft")))
        return;
    d->croft = true;
    d->base.forgets = false;
    d->base.caps |= REMOTE_CROFT_CAPS;
}

static void on_head(struct http_call *call, const struct http_head *head)
{
    struct remote_call *c = http_call_owner(call);

    c->status = head->status;
    if (!c->inside)
        call_learn(c->driver, head);
    c->after_ms = retry_after_ms(head);
}

static void on_body(struct http_call *call, struct str piece)
{
    buf_add(&((struct remote_call *)http_call_owner(call))->answer, piece);
}

static void on_answer(struct http_call *call, struct err *e)
{
    struct remote_call *c = http_call_owner(call);
    struct json *body = NULL;
    struct arena a;

    c->http = NULL;
    if (is_passing(c, e) && remote_call_again(c, e)) {
        err_free(e);
        return;
    }
    arena_init(&a, 16 * (size_t)ANSWER_MAX);
    if (!e && c->answer.len && (!c->as_it_is || c->status >= 400)) /* no JSON: its status tells */
        err_free(json_parse(&a, buf_str(&c->answer), NULL, &body));
    if (e)
        e = err_wrap(e, "the server cannot be reached");
    else
        e = error_of(c, body);
    if (e && c->tries.count > 1)
        e = err_wrap(e, "%u attempts", c->tries.count);
    c->answered(c, e ? NULL : body, e);
    arena_done(&a);
}

/* --- calls --- */

static fallible send_call(struct remote_call *c)
{
    static const struct http_call_events events = {
        .on_head = on_head, .on_body = on_body, .on_done = on_answer};
    const struct remote_settings *settings = c->driver->settings;
    static const struct http_header once = {STR_INIT("Connection"), STR_INIT("close")};
    const struct http_header headers[] = {
        {STR("Content-Type"), STR("application/json")},
        {STR("X-API-Key"), settings->key},
    };
    struct str server = c->inside ? str_of(c->inside) : settings->url;
    char url[512];

    if (snprintf(url, sizeof url, STR_FMT "%s", STR_ARG(server), c->path) >= (int)sizeof url)
        return err_new(ERR_INVALID, "the address of the server is too long");
    c->status = 0;
    c->after_ms = 0;
    buf_reset(&c->answer);
    c->answer.limit_bytes = c->as_it_is ? CHANGES_MAX : ANSWER_MAX;
    const struct http_call_spec spec = {
        .method = str_of(c->method),
        .url = str_of(url),
        .headers = c->inside ? &once : headers, /* one request; the connection is not kept */
        .header_count = c->inside || !settings->key.len ? 1 : 2,
        .body = c->body.len ? buf_str(&c->body) : (struct str){0},
        .total_ms = c->most_ms,
        .idle_ms = c->most_ms,
        .max_body_bytes = c->answer.limit_bytes,
    };
    return http_call_start(c->driver->client, &spec, &events, c, &c->http);
}

void remote_call_init(struct remote_call *c, struct remote_driver *d, const char *sandbox)
{
    c->driver = d;
    c->sandbox = sandbox;
    c->attempts = REMOTE_ATTEMPTS;
    c->most_ms = REMOTE_CALL_MS;
    buf_init(&c->body, BODY_MAX);
    buf_init(&c->answer, ANSWER_MAX);
}

void remote_call_done(struct remote_call *c)
{
    attempts_stop(&c->tries);
    if (c->http)
        http_call_cancel(take(&c->http));
    buf_done(&c->body);
    buf_done(&c->answer);
}

fallible remote_call_send(struct remote_call *c, const char *method, const char *path,
                          remote_answered *answered)
{
    TRY(buf_check(&c->body));
    c->method = method;
    if (path != c->path)
        snprintf(c->path, sizeof c->path, "%s", path);
    c->answered = answered;
    attempts_begin(&c->tries, c->driver->base.host->loop);
    return send_call(c);
}

/* --- of a sandbox --- */

static void on_answered(struct remote_call *c, const struct json *body, struct err *e)
{
    struct remote *r = container_of(c, struct remote, call);

    r->then(r, body, e);
}

static fallible call_begin_request(struct remote *r, const char *method, const char *path,
                                   const char *inside, remote_then *then)
{
    struct remote_call *c = &r->call;
    bool adopts = r->base.op == SBX_ADOPT;
    bool looks = r->base.op == SBX_MEASURE || r->base.op == SBX_FILES;

    r->then = then;
    c->inside = inside;
    c->as_it_is = r->base.op == SBX_FILES;
    /* One attempt to adopt: a server that starts asks for all it had, one must not hold up the
     * rest. And one to measure or to look at files: the caller can ask again. */
    c->attempts = inside || adopts || looks ? 1 : REMOTE_ATTEMPTS;
    bool quick = adopts || r->base.op == SBX_MEASURE;
    c->most_ms = inside ? REMOTE_ALIVE_MS : quick ? REMOTE_ADOPT_MS : REMOTE_CALL_MS;
    return remote_call_send(c, method, path, on_answered);
}

fallible remote_call(struct remote *r, const char *method, const char *path, remote_then *then)
{
    return call_begin_request(r, method, path, NULL, then);
}

fallible remote_call_id(struct remote *r, const char *path, remote_then *then)
{
    struct jw w;

    buf_reset(&r->call.body);
    jw_init(&w, &r->call.body, JW_WEB);
    wire_put_remote_id(&w, str_of(r->runtime_id));
    return remote_call(r, "POST", path, then);
}

static fallible call_croft(struct remote *r, const char *method, const char *what,
                           remote_then *then)
{
    snprintf(r->call.path, sizeof r->call.path, "/croft/v1/sandboxes/%s%s", r->runtime_id, what);
    return remote_call(r, method, r->call.path, then);
}

fallible remote_call_croft(struct remote *r, const char *method, const char *what,
                           remote_then *then)
{
    buf_reset(&r->call.body);
    return call_croft(r, method, what, then);
}

fallible remote_call_body(struct remote *r, const char *what, remote_then *then)
{
    return call_croft(r, "POST", what, then);
}

fallible remote_call_name(struct remote *r, const char *what, struct str name, remote_then *then)
{
    struct jw w;

    buf_reset(&r->call.body);
    jw_init(&w, &r->call.body, JW_WEB);
    wire_put_remote_name(&w, name);
    return remote_call_body(r, what, then);
}

fallible remote_call_alive(struct remote *r, remote_then *then)
{
    buf_reset(&r->call.body);
    return call_begin_request(r, "GET", "/alive", r->url, then);
}
