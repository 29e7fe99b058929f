// SPDX-License-Identifier: Apache-2.0
/* remote_kit.c — see remote_kit.h. */
#include "test/remote_kit.h"

#include <stdio.h>
#include <string.h>

#include "net/listen.h"
#include "sandbox/remote/inner.h"
#include "test/test.h"

static void put_object(struct world *w, const char *state, char *out, size_t size)
{
    static const char *const pods[][2] = {{"running", "ready"},    {"starting", "pending"},
                                          {"paused", "not found"}, {"stopped", "not found"},
                                          {"error", "failed"},     {"crashed", "CrashLoopBackOff"},
                                          {"unknown", "unknown"}};
    const char *pod = "";

    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        if (strcmp(pods[i][0], state) == 0)
            pod = pods[i][1];
    snprintf(
        out, size,
        "{\"runtime_id\":\"abc\",\"url\":\"%s\",\"session_api_key\":\"inner\",\"status\":\"%s\","
        "\"pod_status\":\"%s\",\"status_detail\":null}",
        w->url, state, pod);
}

static fallible serve_scripted(struct http_req *req)
{
    struct world *w = req->owner;
    const struct answer *a = w->script;
    char line[200], body[600];
    struct str key = http_req_header(req, STR("X-API-Key"));

    snprintf(line, sizeof line, "%.*s %.*s", STR_ARG(req->head.method), STR_ARG(req->head.target));
    w->asked++;
    if (!a->to || strcmp(line, a->to) != 0)
        FAIL("'%s' is asked and not '%s'", line, a->to ? a->to : "nothing");
    CHECK_STR(key, "sesame");
    snprintf(w->sent, sizeof w->sent, "%.*s", STR_ARG(req->body));
    w->script++;
    if (w->croft)
        http_reply_header(req, STR("Server"), STR("croft"));
    if (a->headers)
        http_reply_header(req, STR("Retry-After"), str_of(a->headers));
    struct str events = str_of(a->state);
    if (str_starts(events, STR("event: "))) {
        http_reply_header(req, STR("x-croft-log-place"), STR("7.0"));
        http_reply_begin(req, a->status, STR("text/event-stream"), HTTP_LENGTH_UNKNOWN);
        http_reply_write(req, events);
        http_reply_end(req);
        return NULL;
    }
    if (a->state[0] == '{')
        snprintf(body, sizeof body, "%s", a->state);
    else if (a->status >= 400)
        snprintf(body, sizeof body, "{\"detail\":\"%s\"}", a->state);
    else
        put_object(w, a->state, body, sizeof body);
    if (a->how == CUT)
        http_reply_abort(req);
    else if (a->how == CUT_LATER) {
        http_reply_begin(req, a->status, STR("application/json"), strlen(body));
        http_reply_write(req, str_n(body, 10));
        http_reply_abort(req);
    } else
        http_reply_json(req, a->status, str_of(body));
    return NULL;
}

static fallible serve_alive(struct http_req *req)
{
    struct world *w = req->owner;

    CHECK_INT(http_req_header(req, STR("X-API-Key")).len, 0); /* the server's, not the sandbox's */
    if (w->alive++ == 0 && w->plain_alive)
        return err_new(ERR_UPSTREAM, "not yet");
    http_reply_json(req, 200, STR("{}"));
    return NULL;
}

static fallible serve_command(struct http_req *req)
{
    struct world *w = req->owner;

    if (w->commands)
        return err_new(ERR_BUSY, "paused");
    http_reply_json(req, 200,
                    STR("{\"observation\":\"run\",\"content\":\"hi\",\"extras\":{\"command\":\"x\","
                        "\"metadata\":{\"exit_code\":0}}}"));
    return NULL;
}

static fallible serve_health(struct http_req *req)
{
    const struct world *w = req->owner;

    if (w->croft)
        http_reply_header(req, STR("Server"), STR("croft"));
    http_reply_json(req, 200, STR("{}"));
    return NULL;
}

static const struct route routes[] = {
    {"GET", "/health", serve_health, 0, 0},
    {"GET", "/alive", serve_alive, 0, 0},
    {"POST", "/execute_action", serve_command, 0, 0},
    {"GET", "/{path...}", serve_scripted, 0, 0},
    {"POST", "/{path...}", serve_scripted, 0, 0},
    {"DELETE", "/{path...}", serve_scripted, 0, 0},
};

static void on_gone(void *arg, struct sbx *s)
{
    (void)s;
    ((struct world *)arg)->gone++;
}

void world_listen(struct world *w)
{
    int fd;

    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_OK(listen_name(fd, false, w->url, sizeof w->url));
    CHECK_OK(http_server_listen(w->web.server, fd));
}

void world_open(struct world *w, const struct answer *script)
{
    struct http_server_config server = {.ctx = w};

    w->script = script;
    web_open(&w->web, WEB_ROUTES(routes), NULL, &server);
    world_listen(w);
    w->host =
        (struct sbx_host){.loop = w->web.loop, .dialer = &w->web.dialer, .settings = &w->settings};
    w->settings = (struct remote_settings){.url = str_of(w->url), .key = STR("sesame")};
    CHECK_OK(sbx_driver_open(sbx_backend_find(STR("remote")), &w->host, &w->driver));
    container_of(w->driver, struct remote_driver, base)->retry.first_ms = WORLD_AGAIN_MS;
    struct sbx_spec spec = {.id = "one", .on_gone = on_gone, .arg = w};
    CHECK_OK(sbx_create(w->driver, &spec, &w->s));
}

void world_on_done(void *arg, struct sbx *s, const struct err *e)
{
    struct world *w = arg;

    (void)s;
    w->answers++;
    w->failed = e != NULL;
    w->code = e ? err_code(e) : ERR_INTERNAL;
    snprintf(w->error, sizeof w->error, "%s", e ? err_text(e) : "");
}

uint64_t world_until_answered(struct world *w, uint64_t most_ms)
{
    unsigned before = w->answers;
    uint64_t ms = 0;

    for (web_turns(&w->web, 30); w->answers == before && ms < most_ms; ms += 10) {
        web_pass(&w->web, 10);
        web_turns(&w->web, 12);
    }
    if (w->answers == before)
        FAIL("no answer in %llu ms", (unsigned long long)most_ms);
    return ms;
}

uint64_t world_operate(struct world *w, world_operation *op)
{
    CHECK_OK(op(w->s, world_on_done, w));
    return world_until_answered(w, 400000);
}

uint64_t world_must(struct world *w, world_operation *op)
{
    uint64_t ms = world_operate(w, op);

    CHECK_STR(w->error, "");
    return ms;
}

void world_must_fail(struct world *w, world_operation *op, enum err_code code, const char *part)
{
    world_operate(w, op);
    CHECK(w->failed);
    CHECK_HAS(w->error, part);
    CHECK_INT(w->code, code);
}

void world_close(struct world *w)
{
    CHECK(w->script->to == NULL); /* all of it was asked for */
    CHECK_INT(w->driver->sandboxes, 0);
    sbx_driver_close(w->driver);
    web_close(&w->web);
}
