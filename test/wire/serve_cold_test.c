// SPDX-License-Identifier: Apache-2.0
/* serve_cold_test.c — croft serve: one runtime from start to stop, and what is refused. */
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/serve_kit.h"

static void check_members(const struct json *o)
{
    static const struct {
        const char *name;
        enum json_type type;
    } members[] = {{"runtime_id", JSON_STR},    {"session_id", JSON_STR},
                   {"url", JSON_STR},           {"session_api_key", JSON_STR},
                   {"status", JSON_STR},        {"status_detail", JSON_STR},
                   {"pod_status", JSON_STR},    {"work_hosts", JSON_OBJECT},
                   {"restart_count", JSON_INT}, {"restart_reasons", JSON_ARRAY},
                   {"events", JSON_ARRAY},      {"container_statuses", JSON_ARRAY},
                   {"pod_logs", JSON_STR},      {"vscode_url", JSON_STR}};

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct json *v = json_get(o, str_of(members[i].name));
        if (!v || v->type != members[i].type)
            FAIL("member '%s' is %s", members[i].name, v ? json_type_word(v) : "missing");
    }
    CHECK_INT(json_get(o, STR("work_hosts"))->count, 2);
}

TEST(serve_starts_pauses_resumes_and_stops_a_runtime)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    CHECK_INT(serve_get(&s, "/health").status, 200);
    struct json *r = serve_start(&s, "one", "'command':null,'environment':{'COLOUR':'blue'}");
    check_members(r);
    CHECK_INT(json_get_str(r, "runtime_id", STR("")).len, 16);
    CHECK_STR(json_get_str(r, "pod_status", STR("")), "ready");
    CHECK_INT(serve_visit(&s, r, "/alive"), 200);
    CHECK_STR(serve_exec(&s, r, "echo $COLOUR $WORKER_2 $RUNTIME_ID"),
              serve_text(&s, "blue 12001 %s", serve_field(&s, r, "runtime_id")));
    CHECK_STR(json_get_str(serve_tell(&s, "/pause", r), "status", STR("")), "paused");
    CHECK_INT(serve_visit(&s, r, "/alive"), 503);
    CHECK_STR(json_get_str(serve_tell(&s, "/pause", r), "status", STR("")), "paused");
    struct json *again = serve_tell(&s, "/resume", r);
    check_members(again);
    CHECK_STR(json_get_str(again, "status", STR("")), "running");
    CHECK_STR(json_get_str(again, "session_api_key", STR("")),
              json_get_str(r, "session_api_key", STR("")));
    CHECK_INT(serve_visit(&s, r, "/alive"), 200);
    struct json *end = serve_tell(&s, "/stop", r);
    check_members(end);
    CHECK_STR(json_get_str(end, "status", STR("")), "stopped");
    serve_tell(&s, "/stop", r);
    serve_refused(&s, 409, "is stopped", "POST", "/resume",
                  serve_text(&s, "{'runtime_id':'%s'}", serve_field(&s, r, "runtime_id")));
    struct json *list = serve_want(&s, 200, "GET", "/list", NULL);
    CHECK_INT(json_get_int(list, "total", -1), 0);
    serve_close(&s);
}

TEST(serve_gives_a_session_the_runtime_it_has)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *a = serve_start(&s, "a", ""), *b = serve_start(&s, "b", "");
    struct json *same = serve_start(&s, "a", "");
    CHECK_STR(serve_field(&s, same, "runtime_id"), serve_field(&s, a, "runtime_id"));
    serve_tell(&s, "/pause", a);
    same = serve_start(&s, "a", "");
    CHECK_STR(serve_field(&s, same, "runtime_id"), serve_field(&s, a, "runtime_id"));
    CHECK_INT(serve_visit(&s, a, "/alive"), 200);
    struct serve_answer batch = serve_get(&s, "/sessions/batch?ids=a&ids=none&ids=b");
    CHECK_INT(batch.json->type, JSON_ARRAY);
    CHECK_INT(batch.json->count, 2);
    batch = serve_get(&s, "/sessions/batch?ids=b,a");
    CHECK_STR(json_get_str(json_at(batch.json, 0), "session_id", STR("")), "b");
    struct json *odd = serve_start(&s, "b,a c", "");
    batch = serve_get(&s, "/sessions/batch?ids=b%2Ca%20c");
    CHECK_INT(batch.json->count, 1);
    CHECK_STR(json_get_str(json_at(batch.json, 0), "session_id", STR("")), "b,a c");
    serve_tell(&s, "/stop", odd);
    own_done(buf) many;
    buf_init(&many, 1u << 16);
    for (unsigned i = 0; i <= 1000; i++)
        buf_addf(&many, "%s%u", i ? "," : "/sessions/batch?ids=", i);
    serve_refused(&s, 422, "ids: more than 1000", "GET", buf_cstr(&many), NULL);
    struct json *list = serve_want(&s, 200, "GET", "//list", NULL);
    CHECK_INT(json_get_int(list, "total", -1), 2);
    CHECK_INT(json_get(list, STR("runtimes"))->count, 2);
    serve_tell(&s, "/stop", a);
    struct json *other = serve_start(&s, "a", "");
    CHECK(!str_eq(json_get_str(other, "runtime_id", STR("")),
                  json_get_str(a, "runtime_id", STR(""))));
    (void)b;
    serve_close(&s);
}

static void refuse_long_text(struct serve *s)
{
    own_free char *value = mem_new(132000);

    memset(value, 'x', 131999);
    serve_refused(
        s, 422, "environment.A: 132001 bytes", "POST", "/start",
        serve_text(s, "{'image':'host','session_id':'x','environment':{'A':'%s'}}", value));
    serve_refused(
        s, 422, "command[1]: 131999 bytes", "POST", "/start",
        serve_text(s, "{'image':'host','session_id':'x','command':['echo','%s']}", value));
    value[100000] = '\0';
    const char *body = "{'image':'host','session_id':'x','environment':{";
    for (int i = 0; i < 11; i++)
        body = serve_text(s, "%s%s'A%d':'%s'", body, i ? "," : "", i, value);
    serve_refused(s, 422, "environment: 1100", "POST", "/start", serve_text(s, "%s}}", body));
    value[300] = '\0';
    serve_refused(
        s, 422, "working_dir: a name in it has 300 bytes", "POST", "/start",
        serve_text(s, "{'image':'host','session_id':'x','working_dir':'/tmp/%s/a'}", value));
}

TEST(serve_refuses_what_is_wrong_and_names_the_field)
{
    static const struct {
        int status;
        const char *part, *target, *body;
    } cases[] = {
        {422, "JSON", "/start", "{"},
        {422, "image", "/start", "{'session_id':'x'}"},
        {422, "session_id", "/start", "{'image':'host'}"},
        {422, "session_id", "/start", "{'image':'host','session_id':7}"},
        {422, "image: 'no/such:1' is not here", "/start", "{'image':'no/such:1','session_id':'x'}"},
        {422, "command", "/start", "{'image':'host','session_id':'x','command':' '}"},
        {422, "command[1]", "/start", "{'image':'host','session_id':'x','command':['a',1]}"},
        {422, "environment.A", "/start", "{'image':'host','session_id':'x','environment':{'A':1}}"},
        {422, "working_dir", "/start", "{'image':'host','session_id':'x','working_dir':'here'}"},
        {422, "working_dir: '/proc/1/cwd' is the kernel's", "/start",
         "{'image':'host','session_id':'x','working_dir':'/proc/1/cwd'}"},
        {422, "resource_factor", "/start",
         "{'image':'host','session_id':'x','resource_factor':99}"},
        {422, "resource_factor: 16 is ", "/start",
         "{'image':'host','session_id':'x','resource_factor':16}"},
        {422, "memroy: no such field; did you mean 'memory'?", "/croft/v1/sandboxes",
         "{'image':'host','session_id':'x','memroy':1}"},
        {422, "scope: no such field; did you mean 'scopes'?", "/croft/v1/tokens",
         "{'name':'x','scope':['read']}"},
        {404, "null", "/stop", "{'runtime_id':null}"},
        {404, "runtime 'nobody' not found", "/pause", "{'runtime_id':'nobody'}"},
        {422, "runtime_id", "/resume", "{}"},
    };
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[limits]\nmemory = '512G'\n"); /* sixteen of them are nowhere to be had */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        serve_refused(&s, cases[i].status, cases[i].part, "POST", cases[i].target, cases[i].body);
    refuse_long_text(&s);
    serve_refused(&s, 422, "taget: no such field; did you mean 'target'?", "PATCH",
                  "/croft/v1/pool/default", "{'taget':1}");
    serve_refused(&s, 404, "not found", "GET", "/runtime/abcdefghijklmnop", NULL);
    serve_refused(&s, 404, "not found", "GET", "/sessions/nobody", NULL);
    serve_close(&s);
}

/* The text with every a in it as b, which is as long. */
static struct str with(struct serve *s, struct str text, const char *a, const char *b)
{
    struct str copy = arena_copy(&s->arena, text);

    CHECK_INT(strlen(a), strlen(b));
    for (ptrdiff_t at; (at = str_find(copy, str_of(a))) >= 0;)
        memcpy((char *)copy.p + at, b, strlen(b));
    return copy;
}

static struct str filled(struct serve *s, const char *text, const char *id)
{
    const char *at = strchr(text, '@');

    if (!at)
        return str_of(text);
    return str_of(serve_text(s, "%.*s%s%s", (int)(at - text), text, id, filled(s, at + 1, id).p));
}

#define V1 "/croft/v1/sandboxes/@"
/* Whoever asks for what is another's is told what he is told of what nobody has. */
static void check_hidden(struct serve *s, const char *what, const char *nobody)
{
    static const struct {
        const char *method, *target, *body;
        int status;
    } routes[] = {
        {"GET", "/runtime/@", NULL, 404},
        {"GET", "/sessions/@", NULL, 404},
        {"GET", "/sessions/batch?ids=@", NULL, 200},
        {"GET", "/sessions/batch?ids=@&ids=@", NULL, 200},
        {"POST", "/pause", "{'runtime_id':'@'}", 404},
        {"POST", "/resume", "{'runtime_id':'@'}", 404},
        {"POST", "/stop", "{'runtime_id':'@'}", 404},
        {"GET", V1, NULL, 404},
        {"POST", V1 "/pause", NULL, 404},
        {"POST", V1 "/resume", NULL, 404},
        {"POST", V1 "/stop", NULL, 404},
        {"GET", V1 "/logs", NULL, 404},
        {"GET", V1 "/logs?follow=true", NULL, 404},
        {"GET", V1 "/stats", NULL, 404},
        {"POST", V1 "/snapshot", "{'name':'n'}", 404},
        {"POST", V1 "/fork", "{'count':1}", 404},
        {"GET", V1 "/diff", NULL, 404},
        {"POST", V1 "/apply", "{}", 404},
        {"POST", V1 "/rollback", NULL, 404},
        {"DELETE", V1, NULL, 404},
        {"DELETE", "/croft/v1/snapshots/@", NULL, 404},
        {"POST", "/croft/v1/sandboxes", "{'image':'host','session_id':'c','from':'@'}", 404},
    };

    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        struct serve_answer got[2];
        for (size_t k = 0; k < 2; k++) {
            const char *id = k ? nobody : what;
            struct str body = STR(""), target = filled(s, routes[i].target, id);
            if (routes[i].body)
                body = filled(s, routes[i].body, id);
            got[k] = serve_ask(s, routes[i].method, target.p, routes[i].body ? body.p : NULL);
        }
        if (got[0].status != routes[i].status)
            FAIL("%s %s: %d " STR_FMT, routes[i].method, routes[i].target, got[0].status,
                 STR_ARG(got[0].body));
        CHECK_INT(got[1].status, got[0].status);
        CHECK_STR(with(s, got[0].body, what, nobody), got[1].body);
    }
}

TEST(serve_tells_tenants_nothing_of_each_other)
{
    struct serve s = {.key = "first-secret"};

    setenv("CROFT_API_KEY", "first-secret", 1);
    serve_open(&s);
    struct json *mine = serve_start(&s, "shared", "");
    const char *id = serve_field(&s, mine, "runtime_id");
    serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/snapshot", id),
               "{'name':'shared'}");
    struct json *made = serve_want(&s, 201, "POST", "/croft/v1/tokens", "{'name':'other'}");
    s.key = serve_field(&s, made, "secret");
    check_hidden(&s, id, "abcdefghijklmnop");
    check_hidden(&s, "shared", "nobody");
    CHECK_INT(json_get_int(serve_want(&s, 200, "GET", "/list", NULL), "total", 9), 0);
    struct json *theirs = serve_start(&s, "shared", "");
    CHECK(strcmp(serve_field(&s, theirs, "runtime_id"), id) != 0);
    s.key = "wrong";
    serve_refused(&s, 401, "", "GET", "/list", NULL);
    s.key = NULL;
    serve_refused(&s, 401, "", "GET", "/list", NULL);
    CHECK_INT(serve_get(&s, "/health").status, 200);
    s.key = "first-secret"; /* nothing of all that was done */
    CHECK_STR(serve_field(&s, serve_want(&s, 200, "GET", "/sessions/shared", NULL), "status"),
              "running");
    CHECK_INT(serve_ask(&s, "DELETE", "/croft/v1/snapshots/shared", NULL).status, 204);
    serve_close(&s);
}

TEST(serve_needs_a_key_beyond_loopback_and_a_state_to_itself)
{
    struct serve s = {.key = NULL};
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    serve_open(&s);
    CHECK_INT(program_run(ARGS(test_program("croft"), "serve", "--listen", "127.0.0.1:0", "--state",
                               s.state),
                          &out),
              1);
    CHECK_HAS(buf_str(&out), "another 'croft serve' uses it");
    serve_close(&s);
    buf_reset(&out);
    CHECK_INT(program_run(
                  ARGS(test_program("croft"), "serve", "--listen", "0.0.0.0:0", "--state", s.state),
                  &out),
              1);
    CHECK_HAS(buf_str(&out), "there is no key");
    serve_reap();
}
