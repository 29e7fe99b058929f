// SPDX-License-Identifier: Apache-2.0
/* client.c — see client.h. */
#include "sandbox/client/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/list.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "net/stream.h"
#include "out/client.h"
#include "out/dial.h"
#include "out/retry.h"
#include "wire/api.h"

#define ANSWER_BYTES  (256u << 20)
#define REQUEST_BYTES (256u << 20)
#define GRACE_MS      5000 /* beyond the action's own timeout */
#define TIMEOUT_S     120
#define TIMEOUT_MAX_S (7 * 86400.0)
#define AGAIN_MS      4000
#define AFTER_MAX_MS  60000 /* a longer Retry-After is not waited for */
#define ALIVE_MS      5000  /* for one answer of /alive */
#define PROBE_MIN_MS  50
#define PROBE_MAX_MS  2000

enum { CUT_ATTEMPTS = 5, REFUSED_ATTEMPTS = 3, LIMITED_ATTEMPTS = 3 };

struct action_client {
    struct action_client_config config;
    struct loop *loop;
    struct http_client *http;
    struct list calls; /* the first is under way */
    char *url, *unix_path, *key;
};

struct call {
    struct action_client *client;
    struct list link;
    action_done *done;
    void *arg;
    struct buf request, answer;
    struct attempts tries;
    struct http_call *http;
    struct loop_later first;
    uint32_t within_ms; /* of a connect */
    uint32_t timeout_ms;
    double timeout_s;
    int status;
    uint64_t after_ms; /* Retry-After */
    bool connects, hidden;
    bool resuming, resumed; /* being resumed for this one; once was enough */
    struct wire_opt_int id;
};

static void client_begin(struct call *c);

static char *text_of(struct str s)
{
    char *p = mem_new(s.len + 1);

    if (s.len)
        memcpy(p, s.p, s.len);
    return p;
}

fallible action_client_new(const struct action_client_config *config, struct action_client **ret)
{
    struct action_client *c = mem_new(sizeof *c);

    c->config = *config;
    c->loop = net_loop(config->dialer->net);
    list_init(&c->calls);
    if (!c->config.timeout_s)
        c->config.timeout_s = TIMEOUT_S;
    if (!c->config.again_ms)
        c->config.again_ms = AGAIN_MS;
    c->url = text_of(config->url);
    c->unix_path = text_of(config->unix_path);
    c->key = text_of(config->session_key);
    struct err *e = http_client_new(config->dialer, NULL, &c->http);
    if (e) {
        action_client_free(c);
        return e;
    }
    *ret = c;
    return NULL;
}

static void call_free(struct call *c)
{
    list_del(&c->link);
    attempts_stop(&c->tries);
    loop_later_cancel(&c->first);
    if (c->http)
        http_call_cancel(c->http);
    buf_done(&c->request);
    buf_done(&c->answer);
    free(c);
}

void action_client_free(struct action_client *c)
{
    if (!c)
        return;
    LIST_EACH(call, &c->calls, struct call, link)
        call_free(call);
    http_client_free(c->http);
    free(c->url);
    free(c->unix_path);
    free(c->key);
    free(c);
}

/* --- the end of a call --- */

static void on_first(struct loop_later *l)
{
    client_begin(container_of(l, struct call, first));
}

static void start_next(struct action_client *client)
{
    if (list_empty(&client->calls))
        return;
    struct call *next = container_of(client->calls.next, struct call, link);
    loop_later(client->loop, &next->first, on_first);
}

static void client_finish(struct call *c, const struct action_result *result)
{
    struct action_client *client = c->client;
    action_done *done = c->done;
    void *arg = c->arg;

    list_del(&c->link);
    list_init(&c->link);
    start_next(client); /* before done, which may free the client */
    done(arg, result);
    call_free(c);
}

static void client_fail(struct call *c, enum action_failure failure, struct err *error)
{
    struct action_result r = {.failure = failure, .http_status = c->status, .error = error};

    client_finish(c, &r);
    err_free(error);
}

static fallible client_decode(struct call *c, struct arena *a, struct wire_observation *ret)
{
    struct json *doc;

    TRY(json_parse(a, buf_str(&c->answer), NULL, &doc));
    TRY(wire_decode_observation(a, doc, ret));
    if (c->id.is_set)
        ret->envelope.cause = c->id;
    if (c->hidden && ret->type == WIRE_OBS_RUN)
        ret->run.hidden = true;
    return NULL;
}

static void client_observe(struct call *c)
{
    struct arena a;
    struct wire_observation o;
    struct action_result r = {.http_status = c->status, .observation = &o};

    arena_init(&a, 2 * (size_t)ANSWER_BYTES);
    struct err *error = client_decode(c, &a, &o);
    if (error)
        client_fail(c, ACTION_BAD, err_wrap(error, "the server's observation"));
    else
        client_finish(c, &r);
    arena_done(&a);
}

/* --- one attempt and the next --- */

static void on_again(struct attempts *a)
{
    client_begin(container_of(a, struct call, tries));
}

/* The waits are 4, 4, 4, 8, 16 … s, as foreign clients keep them. */
static bool client_again(struct call *c, unsigned attempts)
{
    const uint32_t least_ms = c->client->config.again_ms;
    const struct retry policy = {.attempts = attempts,
                                 .first_ms = least_ms / 4,
                                 .least_ms = least_ms,
                                 .after_most_ms = AFTER_MAX_MS};

    return attempts_again(&c->tries, c->client->loop, &policy, c->after_ms, on_again);
}

static bool was_refused(const struct err *e)
{
    int n = err_errno(e);

    return n == ECONNREFUSED || n == ENOENT || n == EHOSTUNREACH || n == ENETUNREACH;
}

static void on_connect_failed(struct call *c, struct err *error)
{
    const struct retry policy = {
        .within_ms = c->within_ms, .first_ms = PROBE_MIN_MS, .most_ms = PROBE_MAX_MS};

    if (attempts_again(&c->tries, c->client->loop, &policy, 0, on_again))
        err_free(error);
    else
        client_fail(c, ACTION_NOT_READY, err_wrap(error, "the server did not come up in time"));
}

static void on_lost(struct call *c, struct err *error)
{
    unsigned attempts = was_refused(error) ? REFUSED_ATTEMPTS : CUT_ATTEMPTS;

    if (err_code(error) == ERR_TIMEOUT) {
        err_free(error);
        client_fail(
            c, ACTION_TIMEOUT,
            err_new(ERR_TIMEOUT,
                    "Runtime failed to return execute_action before the requested timeout of %gs",
                    c->timeout_s));
    } else if (err_code(error) != ERR_UPSTREAM) {
        client_fail(c, ACTION_BAD, error);
    } else if (client_again(c, attempts)) {
        err_free(error);
    } else {
        client_fail(c, ACTION_DISCONNECTED, error);
    }
}

/* "detail" of the answer, if it has one. */
static struct str detail_of(struct call *c, struct arena *a)
{
    struct json *doc;
    struct err *e = json_parse(a, buf_str(&c->answer), NULL, &doc);

    if (!e)
        return wire_find_detail(doc);
    err_free(e);
    return STR("");
}

/* --- paused, and kept --- */

static bool client_resume(struct call *c)
{
    const struct action_client_config *config = &c->client->config;

    if (c->status != 503 || !config->resume || c->resumed)
        return false;
    c->resuming = c->resumed = true;
    config->resume(config->resume_arg, c->client);
    return true;
}

void action_client_resumed(struct action_client *client, struct err *e)
{
    struct call *c =
        list_empty(&client->calls) ? NULL : LIST_FIRST(&client->calls, struct call, link);

    if (!c || !c->resuming) { /* that action is gone */
        err_free(e);
        return;
    }
    c->resuming = false;
    if (e)
        client_fail(c, ACTION_DISCONNECTED,
                    err_wrap(e, "Runtime is paused and could not be resumed"));
    else
        loop_later(c->client->loop, &c->first, on_first);
}

static void client_refuse(struct call *c)
{
    struct arena a;

    arena_init(&a, 1u << 20);
    struct str detail = detail_of(c, &a);
    struct err *e = err_new(ERR_UPSTREAM, "the server answered %d%s%.*s", c->status,
                            detail.len ? "\nDetails: " : "", STR_ARG(detail));
    arena_done(&a);
    if (c->status == 404)
        client_fail(c, ACTION_DISCONNECTED,
                    err_wrap(e,
                             "Runtime is not responding. This may be temporary, please try again. "
                             "Original error"));
    else if (c->status >= 502 && c->status <= 504)
        client_fail(c, ACTION_DISCONNECTED,
                    err_wrap(e,
                             "Runtime is temporarily unavailable. This may be due to a restart or "
                             "network issue, please try again. Original error"));
    else
        client_fail(c, ACTION_BAD, e);
}

static void on_answer(struct call *c)
{
    struct action_result ready = {.http_status = c->status};
    struct err *full = buf_check(&c->answer);

    if (full)
        client_fail(c, ACTION_BAD, err_wrap(full, "the server's answer"));
    else if (c->connects && c->status / 100 == 2)
        client_finish(c, &ready);
    else if (c->connects)
        on_connect_failed(c, err_new(ERR_UPSTREAM, "/alive answered %d", c->status));
    else if (c->status == 200)
        client_observe(c);
    else if (!(c->status == 429 && client_again(c, LIMITED_ATTEMPTS)) && !client_resume(c))
        client_refuse(c);
}

static void on_head(struct http_call *http, const struct http_head *head)
{
    struct call *c = http_call_owner(http);

    c->status = head->status;
    c->after_ms = retry_after_ms(head);
}

static void on_body(struct http_call *http, struct str piece)
{
    struct call *c = http_call_owner(http);

    buf_add(&c->answer, piece);
}

static void on_done(struct http_call *http, struct err *e)
{
    struct call *c = http_call_owner(http);

    c->http = NULL;
    if (!e)
        on_answer(c);
    else if (c->connects)
        on_connect_failed(c, e);
    else
        on_lost(c, e);
}

static const struct http_call_events events = {
    .on_head = on_head, .on_body = on_body, .on_done = on_done};

static fallible client_ask(struct call *c)
{
    const struct action_client *client = c->client;
    struct http_header headers[] = {
        {STR("Content-Type"), STR("application/json")},
        {STR("X-Session-API-Key"), str_of(client->key)},
    };
    own_done(buf) url;
    struct http_call_spec spec = {
        .method = c->connects ? STR("GET") : STR("POST"),
        .unix_path = str_of(client->unix_path),
        .headers = headers,
        .header_count = client->key[0] ? 2 : 1,
        .body = c->connects ? (struct str){0} : buf_str(&c->request),
        .idle_ms = c->timeout_ms,
        .total_ms = c->timeout_ms,
        .max_body_bytes = ANSWER_BYTES,
    };

    buf_init(&url, 8192);
    buf_addf(&url, "%s%s", client->url, c->connects ? "/alive" : "/execute_action");
    TRY(buf_check(&url));
    spec.url = buf_str(&url);
    return http_call_start(client->http, &spec, &events, c, &c->http);
}

static void client_begin(struct call *c)
{
    buf_reset(&c->answer);
    c->status = 0;
    c->after_ms = 0;
    struct err *e = client_ask(c);
    if (!e)
        return;
    if (c->connects)
        on_connect_failed(c, e);
    else
        on_lost(c, e);
}

/* --- what callers say --- */

static struct call *call_new(struct action_client *client, action_done *done, void *arg)
{
    struct call *c = mem_new(sizeof *c);

    c->client = client;
    c->done = done;
    c->arg = arg;
    buf_init(&c->request, REQUEST_BYTES);
    buf_init(&c->answer, ANSWER_BYTES);
    return c;
}

static void client_enqueue(struct call *c)
{
    bool idle = list_empty(&c->client->calls);

    attempts_begin(&c->tries, c->client->loop);
    list_add(&c->client->calls, &c->link);
    if (idle)
        start_next(c->client);
}

fallible action_connect(struct action_client *client, uint32_t within_ms, action_done *done,
                        void *arg)
{
    struct call *c = call_new(client, done, arg);

    c->connects = true;
    c->timeout_ms = within_ms < ALIVE_MS ? within_ms : ALIVE_MS;
    c->within_ms = within_ms;
    client_enqueue(c);
    return NULL;
}

static fallible client_check(const struct wire_action *a)
{
    if (!wire_action_is_runnable(a->type))
        return err_new(ERR_INVALID, "action '%s' is not run in a sandbox",
                       wire_action_name(a->type));
    if (a->type == WIRE_ACT_RUN && a->run.blocking && !a->has_timeout)
        return err_new(ERR_INVALID, "Blocking command with no timeout set");
    if (a->has_timeout && !(a->timeout_s > 0 && a->timeout_s <= TIMEOUT_MAX_S))
        return err_new(ERR_INVALID, "timeout: more than 0 and at most %g seconds", TIMEOUT_MAX_S);
    return NULL;
}

fallible action_send(struct action_client *client, const struct wire_action *action,
                     action_done *done, void *arg)
{
    struct wire_action a = *action;
    struct jw w;

    TRY(client_check(&a));
    if (!a.has_timeout) {
        a.has_timeout = true;
        a.timeout_s = client->config.timeout_s;
    }
    struct call *c = call_new(client, done, arg);
    list_init(&c->link);
    jw_init(&w, &c->request, JW_WEB);
    wire_put_execute_action(&w, &a);
    struct err *full = buf_check(&c->request);
    if (full) {
        call_free(c);
        return err_wrap(full, "the action");
    }
    c->timeout_s = a.timeout_s;
    c->timeout_ms = (uint32_t)(a.timeout_s * 1000) + GRACE_MS;
    c->hidden = a.type == WIRE_ACT_RUN && a.run.hidden;
    c->id = a.envelope.id;
    list_del(&c->link);
    client_enqueue(c);
    return NULL;
}

fallible action_run(struct action_client *c, struct str command, action_done *done, void *arg)
{
    struct wire_action a;

    wire_action_init(&a, WIRE_ACT_RUN);
    a.run.command = command;
    return action_send(c, &a, done, arg);
}

fallible action_read(struct action_client *c, struct str path, action_done *done, void *arg)
{
    struct wire_action a;

    wire_action_init(&a, WIRE_ACT_READ);
    a.read.path = path;
    return action_send(c, &a, done, arg);
}

fallible action_write(struct action_client *c, struct str path, struct str content,
                      action_done *done, void *arg)
{
    struct wire_action a;

    wire_action_init(&a, WIRE_ACT_WRITE);
    a.write.path = path;
    a.write.content = content;
    return action_send(c, &a, done, arg);
}

fallible action_edit(struct action_client *c, const struct wire_edit *edit, action_done *done,
                     void *arg)
{
    struct wire_action a;

    wire_action_init(&a, WIRE_ACT_EDIT);
    a.edit = *edit;
    return action_send(c, &a, done, arg);
}

fallible action_browse(struct action_client *c, struct str url, action_done *done, void *arg)
{
    struct wire_action a;

    wire_action_init(&a, WIRE_ACT_BROWSE);
    a.browse.url = url;
    return action_send(c, &a, done, arg);
}
