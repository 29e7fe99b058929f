// SPDX-License-Identifier: Apache-2.0
/* serve_bad_test.c — croft serve: bodies, headers and numbers that are wrong. Each is answered,
 * with a status and a detail that names what is wrong, and nothing comes of it. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "test/serve_kit.h"

#define MOST 4194304 /* bytes of a body */

/* Whatever comes back to these bytes; half: nothing more is sent, and that is shown. */
static struct serve_answer raw(struct serve *s, struct str bytes, bool half)
{
    own_done(buf) got;
    struct serve_answer a = {0};
    int fd = wire_connect(&s->wire);

    buf_init(&got, 16u << 20);
    wire_send(fd, bytes);
    if (half)
        CHECK_INT(shutdown(fd, SHUT_WR), 0);
    wire_read_to_end(fd, &got);
    close(fd);
    struct str all = arena_copy(&s->arena, buf_str(&got));
    ptrdiff_t end = str_find(all, STR("\r\n\r\n"));
    if (end < 0)
        FAIL("no answer but '" STR_FMT "'", STR_ARG(str_first(all, 100)));
    a.status = atoi(all.p + sizeof "HTTP/1.1");
    a.body = str_from(all, (size_t)end + 4);
    CHECK_OK(json_parse(&s->arena, a.body, NULL, &a.json));
    return a;
}

static void refused(struct serve *s, struct str bytes, bool half, int status, const char *part)
{
    struct serve_answer a = raw(s, bytes, half);

    if (a.status != status || str_find(json_get_str(a.json, "detail", STR("")), str_of(part)) < 0)
        FAIL("%d " STR_FMT ", wanted %d %s", a.status, STR_ARG(a.body), status, part);
}

#define POST(path, headers, body)                                                                  \
    "POST " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" headers "\r\n" body
#define WHOLE "{\"image\":\"host\",\"session_id\":\"x\"}"

static const char *padding(size_t n)
{
    char *text = mem_new(n + 1);

    memset(text, 'x', n);
    return text;
}

TEST(serve_refuses_a_body_that_is_too_large_and_says_what_is_not)
{
    struct serve s = {.key = NULL};
    own_free const char *much = padding(MOST + 1000);

    serve_open(&s);
    refused(&s, STR(POST("/start", "Content-Length: 4194305\r\n", "")), false, 413,
            "the body has 4194305 bytes, at most 4194304 are taken");
    refused(
        &s, /* also who sends it all first is told */
        str_of(serve_text(&s, POST("/start", "Content-Length: %zu\r\n", "%s"), strlen(much), much)),
        false, 413, "at most 4194304");
    refused(&s,
            str_of(serve_text(
                &s, POST("/start", "Transfer-Encoding: chunked\r\n", "%zx\r\n%s\r\n0\r\n\r\n"),
                strlen(much), much)),
            false, 413, "more than 4194304 bytes");
    refused(&s, STR(POST("/croft/v1/sandboxes", "Content-Length: 99999999\r\n", "")), false, 413,
            "at most 4194304");
    refused(&s, STR(POST("/build", "Content-Length: 9223372036854775807\r\n", "")), false, 413,
            "at most 2864");
    serve_close(&s);
}

TEST(serve_answers_a_body_that_ends_too_early)
{
    static const char *const cut[] = {
        POST("/start", "Content-Length: 500\r\n", WHOLE),
        POST("/start", "Content-Length: 500\r\n", ""),
        POST("/start", "Transfer-Encoding: chunked\r\n", "21\r\n" WHOLE "\r\n"),
        POST("/stop", "Content-Length: 40\r\n", "{\"runtime_id\":"),
        POST("/croft/v1/sandboxes", "Content-Length: 500\r\n", WHOLE),
        POST("/build", "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 500\r\n",
             "--b\r\nContent-Disposition: form-data; name=\"context\"\r\n\r\nAAAA"),
    };
    struct serve s = {.key = NULL};

    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(cut); i++)
        if (i < ARRAY_LEN(cut) - 1 || access("/usr/bin/buildah", X_OK) == 0)
            refused(&s, str_of(cut[i]), true, 400, "the body ends too early");
    refused(&s, STR(POST("/start", "Content-Length: 9\r\n", "{\"image\":")), true, 422, "line 1");
    serve_refused(&s, 404, "not found", "GET", "/sessions/x", NULL);
    serve_refused(&s, 422, "session_id: ", "POST", "/start",
                  "{'image':'host','session_id':'a\\ud800'}");
    serve_close(&s);
}

TEST(serve_refuses_what_is_said_twice)
{
    static const struct {
        const char *method, *target, *body, *part;
    } cases[] = {
        {"POST", "/start", "{'image':'host','session_id':'x','session_id':'y'}", "session_id"},
        {"POST", "/start", "{'image':'host','session_id':'x','image':'host'}", "image"},
        {"POST", "/start", "{'image':'host','session_id':'x','environment':{'A':'1','A':'2'}}",
         "environment.A"},
        {"POST", "/stop", "{'runtime_id':'a','runtime_id':'b'}", "runtime_id"},
        {"POST", "/croft/v1/sandboxes",
         "{'image':'host','session_id':'x','memory':'1G','memory':'2G'}", "memory"},
        {"POST", "/croft/v1/tokens", "{'name':'a','name':'b'}", "name"},
        {"PATCH", "/croft/v1/pool/default", "{'target':1,'target':2}", "target"},
    };
    struct serve s = {.key = "a-rather-long-first-secret-of-a-test"};

    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        serve_refused(&s, 422, serve_text(&s, "%s: it is there twice", cases[i].part),
                      cases[i].method, cases[i].target, cases[i].body);
    serve_refused(&s, 404, "not found", "GET", "/sessions/x", NULL);
    serve_close(&s);
}

TEST(serve_refuses_headers_that_say_two_things)
{
#define KEY   "a-rather-long-first-secret-of-a-test"
#define GET_1 "GET /list HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    static const struct {
        const char *bytes, *part;
    } cases[] = {
        {GET_1 "X-API-Key: wrong\r\nX-API-Key: " KEY "\r\n\r\n", "X-API-Key: it is there 2 times"},
        {GET_1 "x-api-key: " KEY "\r\nX-API-Key: wrong\r\n\r\n", "X-API-Key: it is there 2 times"},
        {GET_1 "Authorization: Bearer " KEY "\r\nAuthorization: Bearer x\r\n\r\n",
         "Authorization: it is there 2 times"},
        {POST("/start", "X-API-Key: " KEY "\r\nContent-Length: 33\r\nContent-Length: 33\r\n",
              WHOLE),
         "more than one Content-Length"},
        {POST("/start", "X-API-Key: " KEY "\r\nContent-Length: 33, 34\r\n", WHOLE),
         "Content-Length is not a number"},
        {POST("/start",
              "X-API-Key: " KEY "\r\nContent-Length: 33\r\nTransfer-Encoding: chunked\r\n", WHOLE),
         "both Content-Length and Transfer-Encoding"},
    };
    struct serve s = {.key = NULL};

    setenv("CROFT_API_KEY", KEY, 1);
    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refused(&s, str_of(cases[i].bytes), false, 400, cases[i].part);
    s.key = KEY;
    serve_refused(&s, 404, "not found", "GET", "/sessions/x", NULL);
    serve_close(&s);
}

#define AT_ONCE 8

/* All are asked before the first answer is read. */
TEST_LIMIT(serve_gives_starts_of_one_session_at_the_same_time_one_runtime, 120)
{
    struct serve s = {.key = NULL};
    const char *body = "{\"image\":\"host\",\"session_id\":\"same\"}", *id = NULL;
    int fds[AT_ONCE];

    serve_open(&s);
    for (int i = 0; i < AT_ONCE; i++)
        fds[i] = wire_connect(&s.wire);
    for (int i = 0; i < AT_ONCE; i++)
        wire_send(fds[i], str_of(serve_text(&s, POST("/start", "Content-Length: %zu\r\n", "%s"),
                                            strlen(body), body)));
    for (int i = 0; i < AT_ONCE; i++) {
        own_done(buf) got;
        struct json *r;
        buf_init(&got, 1u << 20);
        wire_read_to_end(fds[i], &got);
        close(fds[i]);
        struct str all = arena_copy(&s.arena, buf_str(&got));
        CHECK_HAS(all, "HTTP/1.1 200 ");
        CHECK_OK(json_parse(&s.arena, str_from(all, (size_t)str_find(all, STR("\r\n\r\n")) + 4),
                            NULL, &r));
        if (id)
            CHECK_STR(serve_field(&s, r, "runtime_id"), id);
        id = serve_field(&s, r, "runtime_id");
    }
    CHECK_INT(json_get_int(serve_want(&s, 200, "GET", "/list", NULL), "total", 0), 1);
    serve_close(&s);
}

/* more: beside image and session. */
static void refuse_more(struct serve *s, const char *target, const char *more, const char *part)
{
    serve_refused(s, 422, part, "POST", target,
                  serve_text(s, "{'image':'host','session_id':'x',%s}", more));
}

TEST(serve_refuses_wrong_types_by_the_name_of_the_field)
{
    static const struct {
        const char *more, *part;
    } both[] = {
        {"'command':7", "command"},
        {"'command':{'a':1}", "command"},
        {"'command':[['a']]", "command[0]: "},
        {"'command':['','a']", "command[0]: "},
        {"'command':'\\'open'", "command"},
        {"'environment':[]", "environment"},
        {"'environment':{'A':null}", "environment.A: "},
        {"'environment':{'A=B':'x'}", "environment: 'A=B'"},
        {"'environment':{'':'x'}", "environment: ''"},
        {"'working_dir':7", "working_dir"},
        {"'working_dir':''", "working_dir"},
        {"'resource_factor':'2'", "resource_factor"},
        {"'resource_factor':0", "resource_factor"},
        {"'resource_factor':1.5", "resource_factor"},
        {"'resource_factor':99999999999999999999", "resource_factor"},
        {"'run_as_user':'root'", "run_as_user"},
        {"'run_as_user':-1", "run_as_user"},
        {"'run_as_user':70000", "run_as_user"},
        {"'run_as_group':true", "run_as_group"},
        {"'fs_group':[]", "fs_group"},
        {"'runtime_class':7", "runtime_class"},
        {"'image_pull_policy':{}", "image_pull_policy"},
    };
    struct serve s = {.key = NULL};

    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        refuse_more(&s, "/start", both[i].more, both[i].part);
        refuse_more(&s, "/croft/v1/sandboxes", both[i].more, both[i].part);
    }
    serve_refused(&s, 404, "not found", "GET", "/sessions/x", NULL);
    serve_close(&s);
}

TEST(serve_refuses_limits_images_and_bodies_that_cannot_be_by_the_name_of_the_field)
{
    static const struct {
        const char *more, *part;
    } ours[] = {
        {"'memory':'lots'", "memory"},
        {"'memory':1", "memory"},
        {"'memory':'9999T'", "memory"},
        {"'memory':-5", "memory"},
        {"'disk':'x'", "disk"},
        {"'disk':'9999999T'", "disk"},
        {"'cpus':'2'", "cpus"},
        {"'cpus':1e9", "cpus"},
        {"'cpus':-1", "cpus"},
        {"'pids':1.5", "pids"},
        {"'pids':99999999999", "pids"},
        {"'pids':1", "pids"},
        {"'hostname':'a b'", "hostname"},
        {"'hostname':7", "hostname"},
        {"'mounts':{}", "mounts"},
        {"'mounts':[7]", "mounts[0]"},
        {"'from':7", "from"},
    };
    struct serve s = {.key = NULL};

    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        refuse_more(&s, "/croft/v1/sandboxes", ours[i].more, ours[i].part);
    serve_refused(&s, 422, "image: ", "POST", "/croft/v1/sandboxes",
                  "{'image':'no/such:1','session_id':'x'}");
    serve_refused(&s, 422, "image: ", "POST", "/start", "{'image':'a b','session_id':'x'}");
    serve_refused(&s, 422, "image: ", "POST", "/start", "{'image':'../../etc','session_id':'x'}");
    serve_refused(&s, 422, "image: ", "POST", "/start", "{'image':'','session_id':'x'}");
    serve_refused(&s, 422, "'image'", "POST", "/start", "{'image':['host'],'session_id':'x'}");
    serve_refused(&s, 422, "session_id: ", "POST", "/start",
                  serve_text(&s, "{'image':'host','session_id':'%0300d'}", 7));
    serve_refused(&s, 422, "wanted an object", "POST", "/start", "[]");
    serve_refused(&s, 422, "wanted an object", "POST", "/start", "null");
    serve_refused(&s, 404, "not found", "GET", "/sessions/x", NULL);
    serve_close(&s);
}

TEST(serve_refuses_a_body_that_is_nested_too_deep)
{
    struct serve s = {.key = NULL};
    char *deep = mem_new(200001);

    serve_open(&s);
    memset(deep, '[', 100000);
    memset(deep + 100000, ']', 100000);
    serve_refused(&s, 422, "deep", "POST", "/start", deep);
    serve_refused(&s, 422, "deep", "POST", "/start",
                  serve_text(&s, "{'image':'host','session_id':'x','command':%s}", deep));
    free(deep);
    serve_refused(&s, 404, "not found", "GET", "/sessions/x", NULL);
    serve_close(&s);
}

TEST(serve_gives_the_live_runtime_of_a_session_whatever_image_is_named)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    const char *id = serve_field(&s, serve_start(&s, "a", ""), "runtime_id");
    struct json *again = serve_want(&s, 200, "POST", "/start",
                                    "{'image':'no/such:1','session_id':'a','command':'x'}");
    CHECK(strcmp(serve_field(&s, again, "runtime_id"), id) == 0);
    serve_close(&s);
}

TEST(serve_refuses_names_of_snapshots_that_are_no_names)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    const char *id = serve_field(&s, serve_start(&s, "a", ""), "runtime_id");
    const char *path = serve_text(&s, "/croft/v1/sandboxes/%s/snapshot", id);
    serve_refused(&s, 422, "name: ", "POST", path, "{'name':'..'}");
    serve_refused(&s, 422, "name: ", "POST", path, "{'name':'-a'}");
    serve_refused(&s, 422, "name: ", "POST", path, "{'name':'a\\u0000b'}");
    serve_refused(&s, 422, "name: ", "POST", path, "{'name':'a b'}");
    serve_want(&s, 200, "POST", path, "{'name':'a.b-1_'}");
    CHECK_INT(serve_ask(&s, "DELETE", "/croft/v1/snapshots/a.b-1_", NULL).status, 204);
    serve_close(&s);
}

/* Nobody has to keep for it what a stranger may send. */
TEST(serve_refuses_a_stranger_before_his_body)
{
    struct serve s = {.key = "a-rather-long-first-secret-of-a-test"};

    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    refused(&s, STR(POST("/start", "Content-Length: 4194304\r\n", "{")), false, 401, "X-API-Key");
    refused(&s, STR(POST("/start", "X-API-Key: none\r\nContent-Length: 4194304\r\n", "{")), false,
            401, "not accepted");
    serve_close(&s);
}
