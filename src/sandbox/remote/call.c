// SPDX-License-Identifier: Apache-2.0
/* call.c — calls to the server of a remote sandbox, and which of them are tried again.
 *
 * Again: what did not get through (refused, cut, 502, 504) and what the server put off (429, 503;
 * its Retry-After is a lower bound). Not: a call that timed out, for that was long enough, and what
 * the server refused for good. Waits are doubled and half of each is chance, so that many clients
 * of a server that comes back do not come all at once. */
#include <stdio.h>

#include "base/log.h"
#include "base/rng.h"
#include "net/stream.h"
#include "sandbox/remote/inner.h"
#include "wire/remote.h"

static fallible send_call(struct remote *r);

/* --- again --- */

uint64_t remote_wait_ms(const struct remote_driver *d, unsigned attempt)
{
    const struct sbx_host *host = d->base.host;
    uint64_t ms = host->remote_again_ms ? host->remote_again_ms : REMOTE_AGAIN_MS;

    while (--attempt && ms < REMOTE_MOST_MS)
        ms *= 2;
    if (ms > REMOTE_MOST_MS)
        ms = REMOTE_MOST_MS;
    return ms - rng_below(d->rng, ms / 2 + 1);
}

static void on_again(struct loop_timer *t)
{
    struct remote *r = container_of(t, struct remote, timer);
    struct err *e = send_call(r);

    if (e)
        r->then(r, NULL, e);
}

static bool is_passing(const struct remote *r, const struct err *e)
{
    if (e)
        return err_code(e) == ERR_UPSTREAM;
    return r->status == 429 || (r->status >= 502 && r->status <= 504);
}

static bool try_again(struct remote *r, const struct err *e)
{
    if (!is_passing(r, e) || r->attempt >= r->attempts || r->after_s > REMOTE_AFTER_S)
        return false;
    uint64_t ms = remote_wait_ms(remote_driver_of(r), r->attempt);
    if (ms < r->after_s * 1000)
        ms = r->after_s * 1000;
    log_warn("the server of a remote sandbox is asked again", KV("sandbox", r->base.id),
             KV("path", r->path), KV("attempt", r->attempt), KV("status", r->status),
             KV("wait_ms", ms), KV("error", e ? err_text(e) : ""));
    loop_timer_start(r->base.driver->host->loop, &r->timer, ms, on_again);
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
    struct err *e =
        detail.len
            ? err_new(code_of(r->status), "the server: " STR_FMT, STR_ARG(detail))
            : err_new(code_of(r->status), "the server answered %s with %d", r->path, r->status);
    if (r->status == 401)
        return err_wrap(e, "the server does not take our key ([sandbox] api_key)");
    if (r->after_s > REMOTE_AFTER_S)
        return err_wrap(e, "to be asked again in %llu seconds", (unsigned long long)r->after_s);
    return e;
}

static void on_head(struct http_call *call, const struct http_head *head)
{
    struct remote *r = http_call_owner(call);

    r->status = head->status;
    if (!r->inside && str_starts(http_header_get(head, STR("server")), STR("croft"))) {
        remote_driver_of(r)->croft = true;
        r->base.driver->forgets = false;
    }
    if (!str_to_u64(http_header_get(head, STR("retry-after")), &r->after_s))
        r->after_s = 0; /* none, or a date: our own wait will do */
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
    if (try_again(r, e)) {
        err_free(e);
        return;
    }
    arena_init(&a, 16 * (size_t)ANSWER_MAX);
    if (!e && r->answer.len) /* what is no JSON is told by its status */
        err_free(json_parse(&a, buf_str(&r->answer), NULL, &body));
    if (e)
        e = err_wrap(e, "the server cannot be reached");
    else
        e = error_of(r, body);
    if (e && r->attempt > 1)
        e = err_wrap(e, "%u attempts", r->attempt);
    r->then(r, e ? NULL : body, e);
    arena_done(&a);
}

/* --- calls --- */

static fallible send_call(struct remote *r)
{
    static const struct http_call_events events = {
        .on_head = on_head, .on_body = on_body, .on_done = on_answer};
    const struct sbx_host *host = r->base.driver->host;
    static const struct http_header once = {STR_INIT("Connection"), STR_INIT("close")};
    const struct http_header headers[] = {
        {STR("Content-Type"), STR("application/json")},
        {STR("X-API-Key"), str_of(host->remote_key ? host->remote_key : "")},
    };
    bool adopts = r->base.op == SBX_ADOPT;
    uint32_t ms = r->inside ? REMOTE_ALIVE_MS : adopts ? REMOTE_ADOPT_MS : REMOTE_CALL_MS;
    char url[512];

    if (snprintf(url, sizeof url, "%s%s", r->inside ? r->url : host->remote_url, r->path) >=
        (int)sizeof url)
        return err_new(ERR_INVALID, "the address of the server is too long");
    r->status = 0;
    r->after_s = 0;
    r->attempt++;
    buf_reset(&r->answer);
    const struct http_call_spec spec = {
        .method = str_of(r->method),
        .url = str_of(url),
        .headers = r->inside ? &once : headers, /* nobody here asks inside again */
        .header_count = r->inside || !host->remote_key ? 1 : 2,
        .body = r->body.len ? buf_str(&r->body) : (struct str){0},
        .total_ms = ms,
        .idle_ms = ms,
        .max_body_bytes = ANSWER_MAX,
    };
    return http_call_start(remote_driver_of(r)->client, &spec, &events, r, &r->call);
}

static fallible begin(struct remote *r, const char *method, const char *path, bool inside,
                      remote_then *then)
{
    TRY(buf_check(&r->body));
    r->method = method;
    if (path != r->path)
        snprintf(r->path, sizeof r->path, "%s", path);
    r->then = then;
    r->attempt = 0;
    r->inside = inside;
    /* a server that starts asks for all it had: what does not answer must not hold up the rest */
    r->attempts = inside || r->base.op == SBX_ADOPT ? 1 : REMOTE_ATTEMPTS;
    return send_call(r);
}

fallible remote_call(struct remote *r, const char *method, const char *path, remote_then *then)
{
    return begin(r, method, path, false, then);
}

fallible remote_call_id(struct remote *r, const char *path, remote_then *then)
{
    struct jw w;

    buf_reset(&r->body);
    jw_init(&w, &r->body, JW_WEB);
    wire_put_remote_id(&w, str_of(r->runtime_id));
    return remote_call(r, "POST", path, then);
}

fallible remote_call_croft(struct remote *r, const char *method, const char *what,
                           remote_then *then)
{
    buf_reset(&r->body);
    snprintf(r->path, sizeof r->path, "/croft/v1/sandboxes/%s%s", r->runtime_id, what);
    return remote_call(r, method, r->path, then);
}

fallible remote_call_alive(struct remote *r, remote_then *then)
{
    buf_reset(&r->body);
    return begin(r, "GET", "/alive", true, then);
}
