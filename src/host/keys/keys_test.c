// SPDX-License-Identifier: Apache-2.0
#include "host/keys/keys.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "test/store_kit.h"
#include "test/web.h"

/* --- without HTTP --- */

struct kit {
    struct rows_kit rows;
    struct keys *keys;
};

static struct keys *load(struct rows_kit *rows)
{
    struct keys *keys = keys_new(rows->store);
    struct rows_wait w = {0};

    keys_load(keys, rows_on_done, &w);
    rows_wait(rows, &w);
    CHECK_STR(w.text, "");
    return keys;
}

static void start(struct kit *k)
{
    log_setup(2, LOG_OFF, LOG_TEXT);
    rows_init(&k->rows);
    rows_open(&k->rows);
    k->keys = load(&k->rows);
}

static void finish(struct kit *k)
{
    rows_done(&k->rows);
    keys_free(k->keys);
}

static void again(struct kit *k)
{
    rows_close(&k->rows);
    keys_free(k->keys);
    rows_open(&k->rows);
    k->keys = load(&k->rows);
}

static void make(struct kit *k, const char *name, unsigned scopes, char secret[KEY_SECRET_SIZE])
{
    struct rows_wait w = {0};
    struct key want = {.scopes = scopes, .most_runtimes = 3, .starts_per_minute = 2};

    snprintf(want.name, sizeof want.name, "%s", name);
    CHECK_OK(keys_create(k->keys, &want, secret, rows_on_done, &w));
    CHECK(keys_find(k->keys, str_of(secret)) == NULL); /* not before its row is on disk */
    rows_wait(&k->rows, &w);
    CHECK(!w.failed);
}

TEST(a_key_is_found_by_its_secret_also_after_a_restart)
{
    struct kit k;
    char a[KEY_SECRET_SIZE], b[KEY_SECRET_SIZE];

    start(&k);
    CHECK(!keys_any(k.keys));
    make(&k, "one", KEY_ADMIN, a);
    make(&k, "two", KEY_READ, b);
    CHECK(keys_any(k.keys));
    CHECK_INT(strlen(a), 49);
    CHECK(str_starts(str_of(a), STR("croft_")) && strcmp(a, b) != 0);
    for (int i = 0; i < 2; i++) {
        CHECK_STR(keys_find(k.keys, str_of(a))->name, "one");
        const struct key *two = keys_find(k.keys, str_of(b));
        CHECK_STR(two->name, "two");
        CHECK(two->scopes == KEY_READ && two->most_runtimes == 3 && two->starts_per_minute == 2);
        CHECK(two->made_ms > 0);
        a[20] ^= 1;
        CHECK(keys_find(k.keys, str_of(a)) == NULL);
        a[20] ^= 1;
        CHECK(keys_find(k.keys, str_first(str_of(a), 48)) == NULL);
        CHECK(keys_find(k.keys, STR("")) == NULL);
        again(&k);
    }
    finish(&k);
}

TEST(the_database_holds_no_secret)
{
    struct kit k;
    char a[KEY_SECRET_SIZE], wal[600];
    own_done(buf) bytes;

    start(&k);
    make(&k, "one", KEY_ADMIN, a);
    CHECK_OK(keys_ensure(k.keys, "default", STR("from-outside-0123456789"), KEY_ALL));
    again(&k);
    buf_init(&bytes, 16u << 20);
    CHECK_OK(fd_read_file(k.rows.path, &bytes));
    snprintf(wal, sizeof wal, "%s-wal", k.rows.path);
    err_free(fd_read_file(wal, &bytes));
    CHECK(str_find(buf_str(&bytes), STR("from-outside")) < 0);
    CHECK(str_find(buf_str(&bytes), str_first(str_of(a), 16)) < 0);
    CHECK(str_find(buf_str(&bytes), STR("default")) >= 0);
    finish(&k);
}

TEST(a_revoked_key_is_refused_at_once_and_after_a_restart)
{
    struct kit k;
    char a[KEY_SECRET_SIZE], b[KEY_SECRET_SIZE];
    struct rows_wait w = {0};
    struct key want = {.name = "one", .scopes = KEY_ADMIN};

    start(&k);
    make(&k, "one", KEY_ADMIN, a);
    CHECK_OK(keys_revoke(k.keys, STR("one"), rows_on_done, &w));
    CHECK(keys_find(k.keys, str_of(a)) == NULL);
    rows_wait(&k.rows, &w);
    CHECK(!w.failed);
    again(&k);
    CHECK(keys_find(k.keys, str_of(a)) == NULL);
    CHECK(keys_find_name(k.keys, STR("one"))->revoked_ms > 0);
    CHECK(keys_any(k.keys)); /* whoever revokes the last one does not open the door */
    CHECK_ERR(keys_create(k.keys, &want, b, NULL, NULL), ERR_CONFLICT, "there is or was a key");
    CHECK_ERR(keys_revoke(k.keys, STR("two"), NULL, NULL), ERR_NOT_FOUND, "no key 'two'");
    finish(&k);
}

TEST(a_wish_for_a_key_that_cannot_be_is_refused_by_field)
{
    static const struct {
        const char *json, *why;
    } bad[] = {
        {"{}", "name"},
        {"{\"name\":1}", "name"},
        {"{\"name\":\"\"}", "name: wanted 1 to 63"},
        {"{\"name\":\"a b\"}", "name: wanted 1 to 63"},
        {"{\"name\":\"../x\"}", "name: wanted 1 to 63"},
        {"{\"name\":\"a\",\"scopes\":\"admin\"}", "scopes: wanted an array"},
        {"{\"name\":\"a\",\"scopes\":[\"root\"]}", "'root' is none of admin, runtime, read, mount"},
        {"{\"name\":\"a\",\"scopes\":[1]}", "scopes: wanted strings"},
        {"{\"name\":\"a\",\"scopes\":[]}", "scopes: wanted some of"},
        {"{\"name\":\"a\"}", "the first key must have 'admin'"},
        {"{\"name\":\"a\",\"scopes\":[\"admin\"],\"most_runtimes\":-1}", "most_runtimes"},
        {"{\"name\":\"a\",\"scopes\":[\"admin\"],\"starts_per_minute\":60001}",
         "starts_per_minute"},
    };
    struct kit k;
    own_done(arena) a;

    start(&k);
    arena_init(&a, 1u << 20);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct json *body;
        struct key want;
        char secret[KEY_SECRET_SIZE];
        CHECK_OK(json_parse(&a, str_of(bad[i].json), NULL, &body));
        struct err *e = keys_parse_want(body, &want);
        if (!e)
            e = keys_create(k.keys, &want, secret, NULL, NULL);
        CHECK_ERR(e, ERR_UNPROCESSABLE, bad[i].why);
    }
    finish(&k);
}

TEST(a_key_from_outside_is_kept_and_replaced)
{
    struct kit k;
    char a[KEY_SECRET_SIZE];

    start(&k);
    CHECK_OK(keys_ensure(k.keys, "default", STR("first-secret-000"), KEY_ALL));
    CHECK_STR(keys_find(k.keys, STR("first-secret-000"))->name, "default");
    again(&k);
    CHECK(keys_find(k.keys, STR("first-secret-000")) != NULL);
    CHECK_OK(keys_ensure(k.keys, "default", STR("other-secret-000"), KEY_READ));
    CHECK(keys_find(k.keys, STR("first-secret-000")) == NULL);
    again(&k);
    CHECK(keys_find(k.keys, STR("first-secret-000")) == NULL);
    CHECK_INT(keys_find(k.keys, STR("other-secret-000"))->scopes, KEY_READ);
    make(&k, "one", KEY_ADMIN, a);
    CHECK_ERR(keys_ensure(k.keys, "default", str_of(a), KEY_ALL), ERR_CONFLICT, "key 'one' has");
    CHECK_ERR(keys_ensure(k.keys, "default", STR(""), KEY_ALL), ERR_INVALID, "1 to 512 visible");
    CHECK_ERR(keys_ensure(k.keys, "default", STR("two words"), KEY_ALL), ERR_INVALID, "visible");
    finish(&k);
}

static void end_key(struct kit *k, const char *name)
{
    struct rows_wait w = {0};

    CHECK_OK(keys_revoke(k->keys, str_of(name), rows_on_done, &w));
    rows_wait(&k->rows, &w);
}

TEST(a_key_from_outside_that_was_revoked_stays_so)
{
    struct kit k;

    start(&k);
    CHECK_OK(keys_ensure(k.keys, "default", STR("first-secret-000"), KEY_ALL));
    end_key(&k, "default");
    for (int i = 0; i < 2; i++) {
        again(&k);
        CHECK_OK(keys_ensure(k.keys, "default", STR("first-secret-000"), KEY_ALL));
        CHECK(keys_find(k.keys, STR("first-secret-000")) == NULL);
        CHECK(keys_find_name(k.keys, STR("default"))->revoked_ms > 0);
    }
    CHECK_OK(keys_ensure(k.keys, "default", STR("other-secret-000"), KEY_ALL));
    CHECK(keys_find(k.keys, STR("other-secret-000")) != NULL);
    finish(&k);
}

TEST(the_last_key_that_administers_is_known_as_such)
{
    struct kit k;
    char a[KEY_SECRET_SIZE], b[KEY_SECRET_SIZE];

    start(&k);
    make(&k, "one", KEY_ALL, a);
    make(&k, "reader", KEY_READ, b);
    CHECK_ERR(keys_check_last(k.keys, STR("one")), ERR_CONFLICT, "the last");
    CHECK_OK(keys_check_last(k.keys, STR("reader")));
    CHECK_OK(keys_check_last(k.keys, STR("nobody")));
    make(&k, "two", KEY_ADMIN, b);
    CHECK_OK(keys_check_last(k.keys, STR("one")));
    end_key(&k, "one");
    CHECK_ERR(keys_check_last(k.keys, STR("two")), ERR_CONFLICT, "the last");
    finish(&k);
}

TEST(quotas_name_the_limit_and_when_to_come_back)
{
    struct kit k;
    char a[KEY_SECRET_SIZE];

    start(&k);
    make(&k, "one", KEY_ADMIN, a);
    const struct key *key = keys_find(k.keys, str_of(a));
    own(err) many = keys_admit(k.keys, key, 3);
    CHECK(err_again_s(many) > 0);
    CHECK_ERR(take(&many), ERR_LIMIT, "most_runtimes is 3");
    CHECK_OK(keys_admit(k.keys, key, 0));
    CHECK_OK(keys_admit(k.keys, key, 1));
    own(err) fast = keys_admit(k.keys, key, 2);
    CHECK(err_again_s(fast) > 0 && err_again_s(fast) <= 30);
    CHECK_ERR(take(&fast), ERR_LIMIT, "starts_per_minute, 2: try again in");
    keys_give_back(k.keys, key); /* that start was not made after all */
    CHECK_OK(keys_admit(k.keys, key, 1));
    CHECK_ERR(keys_admit(k.keys, key, 1), ERR_LIMIT, "starts_per_minute");
    finish(&k);
}

TEST(a_key_without_quotas_has_those_of_the_settings)
{
    struct kit k;

    start(&k);
    CHECK_OK(keys_ensure(k.keys, "default", STR("secret-0123456789"), KEY_ALL));
    const struct key *key = keys_find(k.keys, STR("secret-0123456789"));
    for (int i = 0; i < 1000; i++)
        CHECK_OK(keys_admit(k.keys, key, 1000));
    keys_set_defaults(k.keys, 10, 3);
    CHECK_ERR(keys_admit(k.keys, key, 10), ERR_LIMIT, "most_runtimes is 10");
    for (int i = 0; i < 3; i++)
        CHECK_OK(keys_admit(k.keys, key, 9));
    CHECK_ERR(keys_admit(k.keys, key, 9), ERR_LIMIT, "starts_per_minute, 3");
    finish(&k);
}

/* --- over HTTP --- */

struct site {
    struct keys *keys;
    struct web web;
    struct store *store;
};

static fallible on_make(struct http_req *req)
{
    const struct key *key;

    TRY(keys_check(((struct site *)req->owner)->keys, req, KEY_RUNTIME, &key));
    http_reply(req, 200, STR("text/plain"), str_of(key->name));
    return NULL;
}

static fallible on_look(struct http_req *req)
{
    const struct key *key;

    TRY(keys_check(((struct site *)req->owner)->keys, req, KEY_READ, &key));
    http_reply(req, 200, STR("text/plain"), str_of(key->name));
    return NULL;
}

static const struct route site_routes[] = {{"POST", "/make", on_make}, {"GET", "/look", on_look}};

static void site_start(struct site *s)
{
    struct http_server_config c = {.ctx = s};
    char path[512];

    log_setup(2, LOG_OFF, LOG_TEXT);
    web_open(&s->web, WEB_ROUTES(site_routes), NULL, &c);
    loop_forbid_threads(s->web.loop);
    snprintf(path, sizeof path, "%s/croft.db", test_dir());
    CHECK_OK(store_open(s->web.loop, path, &s->store));
    s->keys = load(&(struct rows_kit){.loop = s->web.loop, .store = s->store});
    router_add(s->web.router, keys_routes, KEYS_ROUTES, s->keys);
}

static void site_finish(struct site *s)
{
    store_close(s->store);
    keys_free(s->keys);
    web_close(&s->web);
}

static struct web_answer ask(struct site *s, const char *line, const char *header, const char *body)
{
    char text[2048];

    snprintf(text, sizeof text,
             "%s HTTP/1.1\r\nHost: localhost\r\n%s%sContent-Length: %zu\r\nConnection: close\r\n"
             "\r\n%s",
             line, header, header[0] ? "\r\n" : "", strlen(body), body);
    return web_ask(&s->web, str_of(text));
}

/* The answer's secret as a header. */
static void key_header(struct web_answer a, const char *form, char out[128])
{
    own_done(arena) arena;
    struct json *body;

    arena_init(&arena, 1u << 20);
    CHECK_INT(a.status, 201);
    CHECK_OK(json_parse(&arena, a.body, NULL, &body));
    snprintf(out, 128, "%s" STR_FMT, form, STR_ARG(json_get_str(body, "secret", STR(""))));
}

TEST(the_first_key_closes_the_door_for_those_without)
{
    struct site s = {0};
    char header[128];

    site_start(&s);
    CHECK_STR(ask(&s, "GET /look", "", "").body, "default");
    struct web_answer a =
        ask(&s, "POST /croft/v1/tokens", "", "{\"name\":\"boss\",\"scopes\":[\"admin\"]}");
    key_header(a, "X-API-Key: ", header);
    a = ask(&s, "GET /look", "", "");
    CHECK_INT(a.status, 401);
    CHECK_STR(a.body, "{\"detail\":\"wanted a key in X-API-Key\"}");
    CHECK_HAS(a.head, "WWW-Authenticate: Bearer");
    a = ask(&s, "GET /look", "X-API-Key: croft_wrong", "");
    CHECK_INT(a.status, 401);
    CHECK_STR(a.body, "{\"detail\":\"the key in X-API-Key is not accepted\"}");
    CHECK_INT(ask(&s, "GET /croft/v1/tokens", "", "").status, 401);
    CHECK_STR(ask(&s, "GET /look", header, "").body, "boss");
    CHECK_STR(ask(&s, "POST /make", header, "").body, "boss");
    site_finish(&s);
}

TEST(a_key_may_do_what_its_scopes_say_and_no_more)
{
    struct site s = {0};
    char boss[128], maker[128], looker[128];

    site_start(&s);
    key_header(ask(&s, "POST /croft/v1/tokens", "", "{\"name\":\"b\",\"scopes\":[\"admin\"]}"),
               "X-API-Key: ", boss);
    key_header(ask(&s, "POST /croft/v1/tokens", boss, "{\"name\":\"m\",\"scopes\":[\"runtime\"]}"),
               "Authorization: Bearer ", maker);
    key_header(ask(&s, "POST /croft/v1/tokens", boss, "{\"name\":\"l\",\"scopes\":[\"read\"]}"),
               "authorization: bearer ", looker);
    CHECK_STR(ask(&s, "POST /make", maker, "").body, "m");
    CHECK_STR(ask(&s, "GET /look", maker, "").body, "m");
    CHECK_STR(ask(&s, "GET /look", looker, "").body, "l");
    struct web_answer a = ask(&s, "POST /make", looker, "");
    CHECK_INT(a.status, 403);
    CHECK_STR(a.body, "{\"detail\":\"key 'l' lacks the scope 'runtime'\"}");
    CHECK_INT(ask(&s, "GET /croft/v1/tokens", maker, "").status, 403);
    CHECK_INT(ask(&s, "POST /croft/v1/tokens", maker, "{\"name\":\"x\"}").status, 403);
    CHECK_INT(ask(&s, "DELETE /croft/v1/tokens/b", maker, "").status, 403);
    CHECK_INT(ask(&s, "DELETE /croft/v1/tokens/m", boss, "").status, 200);
    CHECK_INT(ask(&s, "GET /look", maker, "").status, 401);
    CHECK_INT(ask(&s, "DELETE /croft/v1/tokens/nobody", boss, "").status, 404);
    site_finish(&s);
}

TEST(keys_are_listed_without_secrets)
{
    struct site s = {0};
    char boss[128];

    site_start(&s);
    key_header(ask(&s, "POST /croft/v1/tokens", "",
                   "{\"name\":\"b\",\"scopes\":[\"admin\",\"read\"],\"most_runtimes\":7}"),
               "X-API-Key: ", boss);
    struct web_answer a = ask(&s, "GET /croft/v1/tokens", boss, "");
    CHECK_HAS(a.body, "{\"tokens\":[{\"name\":\"b\",\"scopes\":[\"admin\",\"read\"],"
                      "\"most_runtimes\":7,\"starts_per_minute\":0,\"created_at\":\"");
    CHECK_HAS(a.body, "\"revoked_at\":null}]}");
    CHECK(str_find(a.body, str_of(boss + 11)) < 0);
    site_finish(&s);
}

/* A page in a browser of this machine comes from 127.0.0.1 too. */
TEST(without_keys_only_this_machine_is_served_and_no_web_page)
{
    struct site s = {0};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    static const struct {
        const char *head;
        int status;
    } asks[] = {
        {"GET /look HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
        {"GET /look HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
        {"GET /look HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403},
        {"GET /look HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:1\r\n\r\n", 200},
        /* what a sandbox serves, on its own port or below our own address */
        {"GET /look HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:2\r\n\r\n", 403},
        {"GET /look HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", 403},
        {"GET /look HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-site\r\n\r\n", 403},
        {"GET /look HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: none\r\n\r\n", 200},
    };

    site_start(&s);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(bind(fd, (struct sockaddr *)&at, len) == 0 && listen(fd, 8) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    CHECK_OK(http_server_listen(s.web.server, fd));
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        struct web_client c;
        int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(connect(peer, (struct sockaddr *)&at, len) == 0);
        web_client_init(&c, peer, 65536);
        CHECK(web_send(&s.web, &c, str_of(asks[i].head)));
        CHECK_INT(web_take(&s.web, &c).status, asks[i].status);
        web_close_client(&c);
    }
    site_finish(&s);
}
