// SPDX-License-Identifier: Apache-2.0
/* The driver of remote sandboxes against a server that answers as scripted; time stands still. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/listen.h"
#include "sandbox/client/client.h"
#include "sandbox/remote/inner.h"
#include "test/test.h"
#include "test/web.h"

#define AGAIN_MS 100

enum { SAY, CUT, CUT_LATER }; /* what is done with a request: answered, cut before, cut amid */

struct answer {
    const char *to; /* "POST /start"; NULL: the end of the script */
    int status;
    const char *state;   /* of the runtime object; or the detail of an error */
    const char *headers; /* "Retry-After: 7"; NULL: none */
    int how;
};

struct world {
    struct web web;
    struct sbx_host host;
    struct sbx_driver *driver;
    struct sbx *s;
    char url[100];
    const struct answer *script; /* what is not in it fails the test */
    char sent[2000];             /* the last body */
    unsigned asked, alive;
    bool croft, plain_alive;
    int commands; /* status of /execute_action; 0: 200 */

    unsigned answers, gone;
    enum err_code code;
    bool failed;
    char error[600];
};

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
    struct world *w = req->app;
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
    if (a->status >= 400)
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
    struct world *w = req->app;

    CHECK_INT(http_req_header(req, STR("X-API-Key")).len, 0); /* the server's, not the sandbox's */
    if (w->alive++ == 0 && w->plain_alive)
        return err_new(ERR_UPSTREAM, "not yet");
    http_reply_json(req, 200, STR("{}"));
    return NULL;
}

static fallible serve_command(struct http_req *req)
{
    struct world *w = req->app;

    if (w->commands)
        return err_new(ERR_BUSY, "paused");
    http_reply_json(req, 200,
                    STR("{\"observation\":\"run\",\"content\":\"hi\",\"extras\":{\"command\":\"x\","
                        "\"metadata\":{\"exit_code\":0}}}"));
    return NULL;
}

static const struct route routes[] = {
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

static void world_listen(struct world *w)
{
    int fd;

    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_OK(listen_name(fd, false, w->url, sizeof w->url));
    CHECK_OK(http_server_listen(w->web.server, fd));
}

static void world_open(struct world *w, const struct answer *script)
{
    struct http_server_config server = {.app = w};

    w->script = script;
    web_open(&w->web, WEB_ROUTES(routes), NULL, &server);
    world_listen(w);
    w->host = (struct sbx_host){.loop = w->web.loop,
                                .net = w->web.net,
                                .remote_url = w->url,
                                .remote_key = "sesame",
                                .remote_again_ms = AGAIN_MS};
    CHECK_OK(sbx_driver_open(sbx_backend_find(STR("remote")), &w->host, &w->driver));
    struct sbx_spec spec = {.id = "one", .on_gone = on_gone, .arg = w};
    CHECK_OK(sbx_create(w->driver, &spec, &w->s));
}

static void on_done(void *arg, struct sbx *s, const struct err *e)
{
    struct world *w = arg;

    (void)s;
    w->answers++;
    w->failed = e != NULL;
    w->code = e ? err_code(e) : ERR_INTERNAL;
    snprintf(w->error, sizeof w->error, "%s", e ? err_text(e) : "");
}

/* Time goes by in small steps until there is an answer; gives how much, ms. */
static uint64_t until_answered(struct world *w, uint64_t most_ms)
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

typedef fallible operation(struct sbx *s, sbx_done *done, void *arg);

static uint64_t operate(struct world *w, operation *op)
{
    CHECK_OK(op(w->s, on_done, w));
    return until_answered(w, 400000);
}

static uint64_t must(struct world *w, operation *op)
{
    uint64_t ms = operate(w, op);

    CHECK_STR(w->error, "");
    return ms;
}

static void must_fail(struct world *w, operation *op, enum err_code code, const char *part)
{
    operate(w, op);
    CHECK(w->failed);
    CHECK_HAS(w->error, part);
    CHECK_INT(w->code, code);
}

static void world_close(struct world *w)
{
    CHECK(w->script->to == NULL); /* all of it was asked for */
    CHECK_INT(w->driver->sandboxes, 0);
    sbx_driver_close(w->driver);
    web_close(&w->web);
}

#define END                                                                                        \
    {                                                                                              \
        0                                                                                          \
    }
#define STOPPED_AND_GONE                                                                           \
    {                                                                                              \
        "POST /stop", 200, "stopped"                                                               \
    }

TEST(remote_asks_again_after_waits_that_grow_and_differ)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 503, "busy"},
                                    {"POST /start", 502, "bad"},
                                    {"POST /start", 504, "slow"},
                                    {"POST /start", 429, "limit"},
                                    {"POST /start", 200, "running"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    uint64_t ms = must(&w, sbx_start); /* each from half of 100, 200, 400, 800 to all of it */
    CHECK(ms >= 750 && ms <= 1500 + 100);
    must(&w, sbx_stop);
    must(&w, sbx_remove);
    const struct remote_driver *d = container_of(w.driver, struct remote_driver, base);
    bool differ = false;
    for (unsigned attempt = 1; attempt < 60; attempt++) {
        uint64_t most = attempt < 20 ? (uint64_t)AGAIN_MS << (attempt - 1) : REMOTE_MOST_MS, one,
                 other;
        if (most > REMOTE_MOST_MS)
            most = REMOTE_MOST_MS;
        one = remote_wait_ms(d, attempt);
        other = remote_wait_ms(d, attempt);
        CHECK(one >= most / 2 && one <= most && other >= most / 2 && other <= most);
        differ |= one != other;
    }
    CHECK(differ);
    world_close(&w);
}

TEST(remote_waits_as_long_as_retry_after_says)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 429, "limit", "7"},
                                    {"POST /start", 503, "busy", "5"},
                                    {"POST /start", 503, "busy", "Fri, 31 Dec 1999 23:59:59 GMT"},
                                    {"POST /start", 200, "running"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    uint64_t ms = must(&w, sbx_start);
    CHECK(ms >= 12000 && ms < 13000);
    must(&w, sbx_stop);
    must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_does_not_wait_for_a_retry_after_that_is_too_long)
{
    struct world w = {0};
    const struct answer script[] = {
        {"POST /start", 429, "your quota", "3600"}, {"GET /sessions/one", 404, "none"}, END};

    world_open(&w, script);
    must_fail(&w, sbx_start, ERR_LIMIT, "again in 3600 seconds: the server: your quota");
    must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_gives_up_after_six_attempts_and_says_so)
{
    struct world w = {0};
    const struct answer script[] = {
        {"POST /start", 503, "busy"},       {"POST /start", 503, "busy"},
        {"POST /start", 503, "busy"},       {"POST /start", 503, "busy"},
        {"POST /start", 503, "busy"},       {"POST /start", 503, "full"},
        {"GET /sessions/one", 404, "none"}, END};

    world_open(&w, script);
    must_fail(&w, sbx_start, ERR_BUSY, "6 attempts: the server: full");
    must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_does_not_repeat_what_was_refused_for_good)
{
    static const struct {
        int status;
        enum err_code code;
    } rows[] = {{400, ERR_INVALID},    {401, ERR_UNAUTHORIZED},  {403, ERR_FORBIDDEN},
                {409, ERR_CONFLICT},   {422, ERR_UNPROCESSABLE}, {500, ERR_UPSTREAM},
                {501, ERR_UNSUPPORTED}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w = {0};
        const struct answer script[] = {
            {"POST /start", rows[i].status, "because"}, {"GET /sessions/one", 404, "none"}, END};
        world_open(&w, script);
        must_fail(&w, sbx_start, rows[i].code, "the server: because");
        if (rows[i].status == 401)
            CHECK_HAS(w.error, "api_key");
        must(&w, sbx_remove);
        world_close(&w);
    }
}

TEST(remote_sends_a_start_again_when_its_answer_was_cut)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "running", NULL, CUT},
                                    {"POST /start", 200, "running", NULL, CUT_LATER},
                                    {"POST /start", 200, "running"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    must(&w, sbx_start);
    CHECK_HAS(w.sent, "\"session_id\":\"one\""); /* by which it is found again */
    must(&w, sbx_stop);
    must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_tells_that_a_server_cannot_be_reached)
{
    struct world w = {0};
    const struct answer script[] = {END};

    world_open(&w, script);
    int fd;
    char nobody[100];
    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_OK(listen_name(fd, false, nobody, sizeof nobody));
    listen_close(fd);
    w.host.remote_url = nobody;
    must_fail(&w, sbx_start, ERR_UPSTREAM, "6 attempts: the server cannot be reached");
    CHECK_HAS(w.error, "Connection refused");
    operate(&w, sbx_remove); /* whether it is there cannot be known: said, and gone here */
    CHECK_HAS(w.error, "cannot be reached");
    CHECK_INT(w.asked, 0);
    world_close(&w);
}

TEST(remote_removes_a_start_that_was_never_answered)
{
    struct world w = {.croft = true};
    const struct answer script[] = {
        {"POST /start", 500, "late"},
        {"GET /sessions/one", 200, "running"},
        {"DELETE /croft/v1/sandboxes/abc", 200, "stopped"},
        END,
    };

    world_open(&w, script);
    must_fail(&w, sbx_start, ERR_UPSTREAM, "late");
    must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_leaves_nothing_at_a_server_that_is_no_croft)
{
    struct world w = {0};
    const struct answer script[] = {
        {"POST /start", 200, "error"}, {"POST /stop", 200, "stopped"}, END};

    world_open(&w, script);
    must_fail(&w, sbx_start, ERR_UPSTREAM, "Runtime is unavailable (status: error)");
    must(&w, sbx_remove);
    CHECK_STR(w.sent, "{\"runtime_id\":\"abc\"}");
    world_close(&w);
}

TEST(remote_asks_after_a_start_until_it_is_ready_and_alive)
{
    struct world w = {.plain_alive = true};
    const struct answer script[] = {{"POST /start", 200, "starting"},
                                    {"GET /runtime/abc", 200, "starting"},
                                    {"GET /runtime/abc", 503, "busy"},
                                    {"GET /runtime/abc", 200, "running"},
                                    {"GET /runtime/abc", 200, "running"}, /* /alive was 502 */
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    must(&w, sbx_start);
    CHECK_INT(w.alive, 2);
    struct sbx_info info;
    sbx_inspect(w.s, &info);
    CHECK_STR(info.address.url, w.url);
    CHECK_STR(info.session_key, "inner");
    must(&w, sbx_stop);
    CHECK_OK(sbx_start(w.s, on_done, &w));
    until_answered(&w, 1000);
    CHECK_HAS(w.error, "keeps no files");
    must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_tells_a_crash_and_a_start_that_takes_too_long_apart)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "crashed"},
                                    {"POST /start", 200, "unknown"},
                                    {"POST /start", 200, "starting"},
                                    END};
    static struct answer forever[300];

    world_open(&w, script);
    must_fail(&w, sbx_start, ERR_UPSTREAM, "crashed and is being restarted");
    must_fail(&w, sbx_start, ERR_UPSTREAM, "Runtime is unavailable (status: unknown)");
    CHECK_OK(sbx_start(w.s, on_done, &w));
    web_turns(&w.web, 30);
    for (size_t i = 0; i + 1 < ARRAY_LEN(forever); i++)
        forever[i] = (struct answer){"GET /runtime/abc", 200, "starting"};
    w.script = forever;
    uint64_t ms = until_answered(&w, 400000);
    CHECK(ms >= 179000 && ms < 190000);
    CHECK_INT(w.code, ERR_TIMEOUT);
    CHECK_HAS(w.error, "Runtime (ID=abc) is not yet ready. Status: pending");
    CHECK(w.asked < 120); /* ever less often */
    const struct answer end[] = {STOPPED_AND_GONE, END};
    w.script = end;
    must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_resumes_a_session_that_a_start_finds_paused)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "paused"},
                                    {"POST /resume", 200, "paused"},
                                    {"GET /runtime/abc", 200, "starting"},
                                    {"GET /runtime/abc", 200, "running"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    must(&w, sbx_start);
    must(&w, sbx_stop);
    must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_looks_when_a_resume_is_a_conflict)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "running"},
                                    {"POST /pause", 200, "paused"},
                                    {"POST /resume", 409, "is running"},
                                    {"GET /runtime/abc", 200, "running"},
                                    {"POST /pause", 200, "paused"},
                                    {"POST /resume", 409, "is stopped"},
                                    {"GET /runtime/abc", 200, "stopped"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    must(&w, sbx_start);
    must(&w, sbx_pause);
    must(&w, sbx_resume);
    must(&w, sbx_pause);
    must_fail(&w, sbx_resume, ERR_UPSTREAM, "Runtime is unavailable (status: stopped)");
    must(&w, sbx_stop);
    must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_is_gone_when_the_server_does_not_know_it)
{
    struct world w = {0};
    const struct answer script[] = {
        {"POST /start", 200, "running"}, {"POST /pause", 404, "no such"}, END};

    world_open(&w, script);
    must(&w, sbx_start);
    must_fail(&w, sbx_pause, ERR_NOT_FOUND, "no such");
    CHECK_INT(w.gone, 1);
    struct sbx_info info;
    sbx_inspect(w.s, &info);
    CHECK_INT(info.state, SBX_STOPPED);
    CHECK_STR(info.failure, "the server does not know it any more");
    must(&w, sbx_remove); /* there is nobody to ask about */
    world_close(&w);
}

TEST(remote_adopts_what_is_there_and_says_whose_session_is_not)
{
    static const struct {
        const char *state;
        enum sbx_state found;
    } rows[] = {{"running", SBX_RUNNING},
                {"paused", SBX_PAUSED},
                {"stopped", SBX_STOPPED},
                {"error", SBX_STOPPED}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w = {0};
        const struct answer script[] = {{"GET /sessions/one", 404, "none"},
                                        {"GET /sessions/one", 200, "starting"},
                                        {"GET /runtime/abc", 200, rows[i].state},
                                        STOPPED_AND_GONE,
                                        END};
        world_open(&w, script);
        must_fail(&w, sbx_adopt, ERR_NOT_FOUND, "Could not find existing runtime for SID: one");
        must(&w, sbx_adopt);
        CHECK_INT(w.s->state.now, rows[i].found);
        if (rows[i].found != SBX_STOPPED)
            must(&w, sbx_stop);
        must(&w, sbx_remove);
        world_close(&w);
    }
}

TEST(remote_asks_a_croft_for_limits_and_tells_others_cannot)
{
    const struct answer script[] = {{"POST /croft/v1/sandboxes", 404, "Not Found"},
                                    {"GET /sessions/limited", 404, "none"},
                                    END};

    for (int croft = 0; croft < 2; croft++) {
        struct world w = {.croft = croft};
        const struct answer first[] = {END};
        world_open(&w, first);
        must(&w, sbx_remove);
        struct sbx_spec spec = {.id = "limited",
                                .hostname = "box",
                                .factor = 4,
                                .limits = {.memory_bytes = 64u << 20, .cpu_permille = 1500}};
        CHECK_OK(sbx_create(w.driver, &spec, &w.s));
        w.script = script;
        CHECK_OK(sbx_start(w.s, on_done, &w));
        until_answered(&w, 100);
        CHECK_INT(w.code, croft ? ERR_NOT_FOUND : ERR_UNSUPPORTED);
        CHECK_HAS(w.sent, "\"memory\":67108864");
        CHECK_HAS(w.sent, "\"cpus\":1.5");
        CHECK_HAS(w.sent, "\"hostname\":\"box\"");
        CHECK_HAS(w.sent, "\"resource_factor\":4");
        must(&w, sbx_remove);
        world_close(&w);
    }
}

TEST(remote_is_what_a_look_finds)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "running"},
                                    {"GET /runtime/abc", 200, "running"},
                                    {"GET /runtime/abc", 200, "paused"},
                                    {"GET /runtime/abc", 500, "ill"},
                                    {"GET /runtime/abc", 200, "starting"},
                                    {"GET /runtime/abc", 200, "error"},
                                    STOPPED_AND_GONE,
                                    END};
    struct sbx_info info;

    world_open(&w, script);
    must(&w, sbx_start);
    must(&w, sbx_look);
    CHECK_INT(w.s->state.now, SBX_RUNNING);
    must(&w, sbx_look);
    CHECK_INT(w.s->state.now, SBX_PAUSED);
    must_fail(&w, sbx_look, ERR_UPSTREAM, "ill"); /* then nothing is known anew */
    CHECK_INT(w.s->state.now, SBX_PAUSED);
    must(&w, sbx_look);
    CHECK_INT(w.s->state.now, SBX_RUNNING);
    CHECK_INT(w.gone, 0);
    operate(&w, sbx_look);
    CHECK_INT(w.gone, 1);
    sbx_inspect(w.s, &info);
    CHECK_INT(info.state, SBX_STOPPED);
    CHECK_STR(info.failure, "at the other server: error");
    must(&w, sbx_remove);
    world_close(&w);
}

/* --- resumed on 503 --- */

struct resumer {
    struct world *w;
    struct action_client *client;
    unsigned resumes, answers;
    enum action_failure failure;
    char error[600];
};

static void on_resumed(void *arg, struct sbx *s, const struct err *e)
{
    struct resumer *r = arg;

    (void)s;
    if (!e)
        r->w->commands = 0;
    action_client_resumed(r->client, e ? err_copy(e) : NULL);
}

static void resume(void *arg, struct action_client *c)
{
    struct resumer *r = arg;

    r->resumes++;
    sbx_found_paused(r->w->s);
    struct err *e = sbx_resume(r->w->s, on_resumed, r);
    if (e)
        action_client_resumed(c, e);
}

static void on_result(void *arg, const struct action_result *result)
{
    struct resumer *r = arg;

    r->answers++;
    r->failure = result->failure;
    snprintf(r->error, sizeof r->error, "%s", result->error ? err_text(result->error) : "");
}

static void command(struct resumer *r)
{
    unsigned before = r->answers;

    CHECK_OK(action_run(r->client, STR("echo hi"), on_result, r));
    web_turns(&r->w->web, 30);
    for (unsigned i = 0; i < 1000 && r->answers == before; i++) {
        web_pass(&r->w->web, 10);
        web_turns(&r->w->web, 12);
    }
    CHECK_INT(r->answers, before + 1);
}

TEST(remote_is_resumed_when_its_sandbox_answers_503)
{
    struct world w = {0};
    struct resumer r = {.w = &w};
    const struct answer script[] = {{"POST /start", 200, "running"},
                                    {"POST /resume", 200, "running"},
                                    {"POST /resume", 500, "no room"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    must(&w, sbx_start);
    struct action_client_config config = {
        .net = w.web.net, .url = str_of(w.url), .resume = resume, .resume_arg = &r};
    CHECK_OK(action_client_new(&config, &r.client));
    w.commands = 503;
    command(&r);
    CHECK_INT(r.failure, ACTION_NO_FAILURE);
    CHECK_INT(r.resumes, 1);
    CHECK_INT(w.s->state.now, SBX_RUNNING);
    w.commands = 503;
    command(&r);
    CHECK_INT(r.failure, ACTION_DISCONNECTED);
    CHECK_HAS(r.error, "Runtime is paused and could not be resumed");
    CHECK_HAS(r.error, "no room");
    CHECK_INT(w.s->state.now, SBX_PAUSED);
    action_client_free(r.client);
    must(&w, sbx_stop);
    must(&w, sbx_remove);
    world_close(&w);
}

/* --- refused before anything is sent --- */

static fallible refuse_tls(void *ctx, struct stream *s, struct str host)
{
    (void)ctx, (void)s, (void)host;
    return err_new(ERR_UPSTREAM, "a certificate of somebody else");
}

TEST(remote_needs_an_address_and_a_key_to_begin_with)
{
    static const struct {
        const char *url, *key, *part;
    } rows[] = {
        {NULL, "k", "remote_runtime_api_url"},
        {"", "k", "remote_runtime_api_url"},
        {"elsewhere", "k", "remote_runtime_api_url"},
        {"ftp://elsewhere", "k", "remote_runtime_api_url"},
        {"http://elsewhere/?a", "k", "'?'"},
        {"http://elsewhere/", "k", "slash"},
        {"https://elsewhere", "k", "no TLS"},
        {"http://elsewhere:3000", NULL, "API key is required"},
        {"http://elsewhere:3000", "", "SANDBOX_API_KEY"},
    };
    struct web web;
    struct sbx_driver *d;

    web_open(&web, NULL, 0, NULL, NULL);
    struct sbx_host host = {.loop = web.loop, .net = web.net};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        host.remote_url = rows[i].url;
        host.remote_key = rows[i].key;
        CHECK_ERR(sbx_driver_open(sbx_backend_find(STR("remote")), &host, &d),
                  i == 6 ? ERR_UNSUPPORTED : ERR_INVALID, rows[i].part);
    }
    host.remote_url = "http://127.0.0.1:3000"; /* where a server may do without */
    CHECK_OK(sbx_driver_open(sbx_backend_find(STR("remote")), &host, &d));
    sbx_driver_close(d);
    host.remote_url = "https://elsewhere";
    host.remote_key = "k";
    host.remote_tls = refuse_tls;
    CHECK_OK(sbx_driver_open(sbx_backend_find(STR("remote")), &host, &d));
    sbx_driver_close(d);
    web_close(&web);
}
