// SPDX-License-Identifier: Apache-2.0
/* router_test.c — which path goes where, with what in its parameters; CORS and the auth hook. */
#include "net/router.h"

#include <stdio.h>

#include "net/server.h"
#include "test/test.h"
#include "test/web.h"

/* Answers "pattern name=value;…". */
static fallible show(struct http_req *req, const char *pattern)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    buf_add_cstr(&out, pattern);
    for (size_t i = 0; i < req->param_count; i++)
        buf_addf(&out, " " STR_FMT "=" STR_FMT, STR_ARG(req->params[i].name),
                 STR_ARG(req->params[i].value));
    http_reply(req, 200, STR("text/plain"), buf_str(&out));
    return NULL;
}

#define SHOW(id, pattern)                                                                          \
    static fallible show_##id(struct http_req *req)                                                \
    {                                                                                              \
        return show(req, pattern);                                                                 \
    }
SHOW(root, "root")
SHOW(a, "a")
SHOW(ab, "ab")
SHOW(id, "id")
SHOW(idx, "idx")
SHOW(two, "two")
SHOW(rest, "rest")
SHOW(dir, "dir")
SHOW(put, "put")
SHOW(slash, "slash")
SHOW(open, "open")

static const struct route routes[] = {
    {"GET", "/", show_root, 0, 0},
    {"GET", "/a", show_a, 0, 0},
    {"GET", "/a/b", show_ab, 0, 0},
    {"GET", "/e/{id}", show_id, 0, 0},
    {"PUT", "/e/{id}", show_put, 0, 0},
    {"GET", "/e/{id}/x", show_idx, 0, 0},
    {"GET", "/e/all/{other}/y", show_two, 0, 0},
    {"GET", "/t/{x}/{y}", show_two, 0, 0},
    {"GET", "/f/{path...}", show_rest, 0, 0},
    {"GET", "/d/{dir}/f/{path...}", show_dir, 0, 0},
    {"GET", "/s/", show_slash, 0, 0},
    {"GET", "/open", show_open, ROUTE_OPEN, 0},
};

static struct web_answer ask(struct web *w, const char *method, const char *path,
                             const char *headers)
{
    char req[3000];

    snprintf(req, sizeof req, "%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n", method, path, headers);
    return web_ask(w, str_of(req));
}

struct row {
    const char *path;
    int status;
    const char *body; /* NULL: any */
};

static const struct row plain[] = {
    {"/", 200, "root"},
    {"/a", 200, "a"},
    {"/a?x=/b", 200, "a"},
    {"/a/b", 200, "ab"},
    {"/%61/%62", 200, "ab"},
    {"/a/c", 404, NULL},
    {"/a/b/c", 404, NULL},
    {"/A", 404, NULL},
    {"/a/", 404, NULL},
    {"//a", 404, NULL},
    {"/e/7", 200, "id id=7"},
    {"/e/a%2Fb", 200, "id id=a/b"},
    {"/e/a%20b+c", 200, "id id=a b+c"},
    {"/e/%C3%A4", 200, "id id=\xc3\xa4"},
    {"/e/%252F", 200, "id id=%2F"},
    {"/e/..", 200, "id id=.."},
    {"/e/", 404, NULL}, /* a parameter is not empty */
    {"/e", 404, NULL},
    {"/e/7/x", 200, "idx id=7"},
    {"/e/all", 200, "id id=all"}, /* the static branch leads nowhere: back to the parameter */
    {"/e/all/x", 200, "idx id=all"},
    {"/e/all/7/y", 200, "two other=7"},
    {"/t/1/2", 200, "two x=1 y=2"},
    {"/t/1%2f2/3", 200, "two x=1/2 y=3"},
    {"/f/a/b/c", 200, "rest path=a/b/c"},
    {"/f/", 200, "rest path="},
    {"/f", 404, NULL},
    {"/f/a%2Fb/%2e%2e/c", 200, "rest path=a/b/../c"},
    {"/f//etc", 200, "rest path=/etc"},
    {"/f/a//b/", 200, "rest path=a//b/"},
    {"/d/x%2Fy/f/z", 200, "dir dir=x/y path=z"},
    {"/e/%", 400, NULL},
    {"/e/%4", 400, NULL},
    {"/e/%zz", 400, NULL},
    {"/e/a%00b", 400, NULL},
    {"/f/a/%00", 400, NULL},
    {"/f/a/%g0", 400, NULL},
    {"/s/", 200, "slash"},
    {"/s", 404, NULL},
};

static void check_rows(struct web *w, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct web_answer a = ask(w, "GET", rows[i].path, "");
        if (a.status != rows[i].status)
            FAIL("%s: %d, want %d", rows[i].path, a.status, rows[i].status);
        if (rows[i].body)
            CHECK_STR(a.body, rows[i].body);
    }
}

TEST(paths_lead_to_their_routes)
{
    struct web w;

    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    check_rows(&w, plain, ARRAY_LEN(plain));
    web_close(&w);
}

TEST(deep_paths_match_a_rest_and_nothing_else)
{
    struct web w;
    char path[2100] = "/f", want[2100] = "rest path=";

    for (int i = 0; i < 400; i++) {
        strcat(path, "/ab");
        strcat(want, i ? "/ab" : "ab");
    }
    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    struct web_answer a = ask(&w, "GET", path, "");
    CHECK_INT(a.status, 200);
    CHECK_STR(a.body, want);
    path[1] = 'e';
    CHECK_INT(ask(&w, "GET", path, "").status, 404);
    web_close(&w);
}

TEST(slashes_collapse_when_they_should)
{
    static const struct row rows[] = {
        {"//", 200, "root"},         {"//a", 200, "a"},   {"/a///b", 200, "ab"},
        {"///e//7", 200, "id id=7"}, {"/a//", 404, NULL}, {"//f//x//y", 200, "rest path=x//y"},
        {"/s//", 200, "slash"},
    };
    struct router_config rc = {.collapse_slashes = true};
    struct web w;

    web_open(&w, WEB_ROUTES(routes), &rc, NULL);
    check_rows(&w, rows, ARRAY_LEN(rows));
    web_close(&w);
}

TEST(a_slash_too_many_or_too_few_is_redirected)
{
    static const struct {
        const char *path;
        int status;
        const char *to;
    } rows[] = {
        {"/a/", 307, "location: /a\r\n"},
        {"/a/?x=1", 307, "location: /a?x=1\r\n"},
        {"/s", 307, "location: /s/\r\n"},
        {"/s?y", 307, "location: /s/?y\r\n"},
        {"/e/a%2Fb/", 307, "location: /e/a%2Fb\r\n"},
        {"/f", 307, "location: /f/\r\n"},
        {"/none/", 404, ""},
        {"/none", 404, ""},
        {"/a", 200, ""},
        {"/", 200, ""},
        {"//a/", 404, ""},
        {"//evil.com/", 404, ""},
        {"/\\evil.com/", 404, ""},
    };
    static const struct route any[] = {{"GET", "/{x}", show_id, 0, 0},
                                       {"GET", "/{x}/y/", show_id, 0, 0}};
    struct router_config rc = {.redirect_slashes = true};
    struct web w;

    web_open(&w, WEB_ROUTES(routes), &rc, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct web_answer a = ask(&w, "GET", rows[i].path, "");
        if (a.status != rows[i].status)
            FAIL("%s: %d", rows[i].path, a.status);
        CHECK_HAS(a.head, rows[i].to);
    }
    web_close(&w);
    web_open(&w, WEB_ROUTES(any), &rc, NULL); /* "/{x}" takes "/\evil.com" */
    CHECK_INT(ask(&w, "GET", "/good/", "").status, 307);
    CHECK_INT(ask(&w, "GET", "/\\evil.com/", "").status, 404);
    CHECK_INT(ask(&w, "GET", "/\\evil.com/y", "").status, 404);
    web_close(&w);
}

TEST(another_method_is_405_with_what_is_allowed)
{
    struct web w;

    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    struct web_answer a = ask(&w, "DELETE", "/e/1", "");
    CHECK_INT(a.status, 405);
    CHECK_HAS(a.head, "allow: PUT, GET, HEAD\r\n");
    CHECK_STR(ask(&w, "PUT", "/e/1", "").body, "put id=1");
    CHECK_INT(ask(&w, "OPTIONS", "/a", "").status, 405);
    CHECK_INT(ask(&w, "get", "/a", "").status, 405);
    web_close(&w);
}

static fallible name_owner(struct http_req *req)
{
    http_reply(req, 200, STR("text/plain"), str_of(req->owner));
    return NULL;
}

TEST(a_handler_finds_the_owner_its_route_was_added_for)
{
    static const struct route first[] = {{"GET", "/x/{id}", name_owner}, {"PUT", "/y", name_owner}};
    static const struct route second[] = {{"GET", "/y", name_owner}};
    char one[] = "one", two[] = "two";
    struct web w;

    web_open(&w, NULL, 0, NULL, NULL);
    router_add(w.router, first, ARRAY_LEN(first), one);
    router_add(w.router, second, ARRAY_LEN(second), two);
    CHECK_STR(ask(&w, "GET", "/x/1", "").body, "one");
    CHECK_STR(ask(&w, "PUT", "/y", "").body, "one");
    CHECK_STR(ask(&w, "GET", "/y", "").body, "two");
    web_close(&w);
}

static fallible only_with_key(void *ctx, struct http_req *req)
{
    (void)ctx;
    if (str_eq(http_req_header(req, STR("x-key")), STR("sesame")))
        return NULL;
    http_reply_header(req, STR("www-authenticate"), STR("Bearer"));
    return err_new(ERR_UNAUTHORIZED, "who are you?");
}

TEST(the_auth_hook_guards_all_but_open_routes)
{
    static const char *const origins[] = {"http://x", NULL};
    struct router_config rc = {.auth = only_with_key, .cors_origins = origins};
    struct web w;

    web_open(&w, WEB_ROUTES(routes), &rc, NULL);
    struct web_answer a = ask(&w, "GET", "/a", "Origin: http://x\r\n");
    CHECK_INT(a.status, 401);
    CHECK_HAS(a.head, "www-authenticate: Bearer\r\n");
    CHECK_HAS(a.head, "access-control-allow-origin: http://x\r\n"); /* or the page sees nothing */
    CHECK_HAS(a.body, "who are you?");
    CHECK_INT(ask(&w, "GET", "/a", "X-Key: sesame\r\n").status, 200);
    CHECK_INT(ask(&w, "GET", "/open", "").status, 200);
    CHECK_INT(ask(&w, "GET", "/none", "").status, 401); /* nor can a stranger learn what exists */
    CHECK_INT(ask(&w, "PATCH", "/a", "").status, 401);
    CHECK_INT(ask(&w, "GET", "/none", "X-Key: sesame\r\n").status, 404);
    CHECK_INT(ask(&w, "PATCH", "/a", "X-Key: sesame\r\n").status, 405);
    CHECK_INT(ask(&w, "OPTIONS", "/a", "Origin: http://x\r\nAccess-Control-Request-Method: GET\r\n")
                  .status,
              200);
    web_close(&w);
}

struct cors_row {
    const char *origin;
    const char *allow; /* NULL: not allowed */
};

static void check_cors(const struct router_config *rc, const struct cors_row *rows, size_t count)
{
    struct web w;
    char headers[300], want[300];

    web_open(&w, WEB_ROUTES(routes), rc, NULL);
    for (size_t i = 0; i < count; i++) {
        snprintf(headers, sizeof headers, "Origin: %s\r\n", rows[i].origin);
        struct web_answer a = ask(&w, "GET", "/a", headers);
        CHECK_INT(a.status, 200);
        if (rows[i].allow) {
            snprintf(want, sizeof want, "access-control-allow-origin: %s\r\n", rows[i].allow);
            CHECK_HAS(a.head, want);
        } else if (str_find(a.head, STR("access-control")) >= 0) {
            FAIL("%s is allowed", rows[i].origin);
        }
        snprintf(headers, sizeof headers,
                 "Origin: %s\r\nAccess-Control-Request-Method: PUT\r\n"
                 "Access-Control-Request-Headers: X-A, X-B\r\n",
                 rows[i].origin);
        a = ask(&w, "OPTIONS", "/anywhere", headers);
        CHECK_INT(a.status, rows[i].allow ? 200 : 400);
        if (rows[i].allow) {
            CHECK_HAS(a.head, want);
            CHECK_HAS(a.head, "access-control-allow-headers: X-A, X-B\r\n");
            CHECK_HAS(a.head, "PUT");
        }
    }
    CHECK(str_find(ask(&w, "GET", "/a", "").head, STR("access-control")) < 0);
    web_close(&w);
}

TEST(origins_are_allowed_by_name_star_or_being_local)
{
    static const char *const named[] = {"https://a.example", "http://b:8080", NULL};
    static const char *const star[] = {"*", NULL};
    static const char *const none[] = {NULL};
    static const struct cors_row named_rows[] = {
        {"https://a.example", "https://a.example"},
        {"http://b:8080", "http://b:8080"},
        {"http://b", NULL},
        {"https://a.example.evil", NULL},
        {"null", NULL},
    };
    static const struct cors_row star_rows[] = {{"https://any", "*"}, {"null", "*"}};
    static const struct cors_row creds_rows[] = {{"https://any", "https://any"}};
    static const struct cors_row local_rows[] = {
        {"http://localhost:3000", "http://localhost:3000"},
        {"https://127.0.0.1", "https://127.0.0.1"},
        {"http://localhost.evil.com", NULL},
        {"http://evil.com/localhost", NULL},
        {"http://localhost@evil.com", NULL},
        {"null", NULL},
    };
    check_cors(&(struct router_config){.cors_origins = named}, named_rows, ARRAY_LEN(named_rows));
    check_cors(&(struct router_config){.cors_origins = star}, star_rows, ARRAY_LEN(star_rows));
    check_cors(&(struct router_config){.cors_origins = star, .cors_credentials = true}, creds_rows,
               ARRAY_LEN(creds_rows));
    check_cors(&(struct router_config){.cors_origins = none, .cors_localhost = true}, local_rows,
               ARRAY_LEN(local_rows));
}
