// SPDX-License-Identifier: Apache-2.0
/* proxy_test.c — requests through the proxy and their answers; who is found by what; refusals. */
#include "host/proxy/proxy.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/proxy/inner.h"
#include "test/proxy_kit.h"
#include "test/test.h"

#define HOST              "Host: 127.0.0.1\r\n"
#define GET(path)         STR("GET " path " HTTP/1.1\r\n" HOST "\r\n")
#define AT(host, path, h) STR("GET " path " HTTP/1.1\r\nHost: " host "\r\n" h "\r\n")

/* --- heads --- */

static bool is_sesame(void *ctx, struct str secret)
{
    (void)ctx;
    return str_eq(secret, STR("s3same"));
}

TEST(a_request_goes_in_without_keys_and_hop_by_hop_headers)
{
    struct pkit k;

    pkit_open(&k, &(struct proxy_config){.is_key = is_sesame}, NULL, 0);
    struct web_answer a = pkit_ask(
        &k, STR("POST /a%2Fb?c=d HTTP/1.1\r\n" HOST "X-API-Key: secret\r\n"
                "X-Session-API-Key: theirs\r\nTE: trailers\r\nX-Drop: 1\r\nX-Keep: 2\r\n"
                "X-Request-ID: mine-1\r\n"
                "Connection: x-drop, keep-alive\r\nAuthorization: Bearer croft_abc\r\n"
                "Accept: a\r\nAccept: b\r\nKeep-Alive: 3\r\nContent-Length: 5\r\n\r\nhello"));
    CHECK_STR(a.body, "POST /a%2Fb?c=d\nHost: 127.0.0.1\nX-Session-API-Key: theirs\nX-Keep: 2\n"
                      "Accept: a\nAccept: b\nX-Request-ID: mine-1\nX-Forwarded-For: 127.0.0.1\n"
                      "X-Forwarded-Host: 127.0.0.1\nX-Forwarded-Proto: http\n"
                      "Content-Length: 5\n\nhello");
    a = pkit_ask(&k, STR("GET / HTTP/1.1\r\n" HOST "Authorization: Bearer other\r\n\r\n"));
    CHECK_HAS(a.body, "Authorization: Bearer other\n");
    a = pkit_ask(&k, STR("GET / HTTP/1.1\r\n" HOST "authorization: bearer  s3same \r\n\r\n"));
    CHECK_INT(str_find(a.body, STR("s3same")), -1);
    CHECK_HAS(a.body, "X-Request-ID: ");
    a = pkit_ask(&k, STR("GET / HTTP/1.1\r\n" HOST "X-Request-ID: a \"b\r\n\r\n"));
    CHECK_HAS(a.body, "X-Request-ID: ");
    CHECK_INT(str_find(a.body, STR("a \"b")), -1); /* one of ours instead */
    pkit_close(&k);
}

/* The key outside was changed; the one that the sandbox knows is nobody's to show. */
TEST(a_changed_session_key_is_exchanged_however_the_query_spells_it)
{
    static const struct {
        struct str asked, inside;
    } rows[] = {
        {STR_INIT("session_api_key=new-1"), STR_INIT("session_api_key=old-1")},
        {STR_INIT("session_api_key=old-1"), STR_INIT("session_api_key=")},
        {STR_INIT("session_api_key=%6fld%2D1"), STR_INIT("session_api_key=")},
        {STR_INIT("session_api_key=%6eew-1"), STR_INIT("session_api_key=old-1")},
        {STR_INIT("a=b&session%5Fapi_key=old-1&c"), STR_INIT("a=b&session%5Fapi_key=&c")},
        {STR_INIT("session_api_key=old-1&session_api_key=ol%64-1"),
         STR_INIT("session_api_key=&session_api_key=")},
        {STR_INIT("session_api_key=other%2D1&x=old-1"),
         STR_INIT("session_api_key=other%2D1&x=old-1")},
        {STR_INIT("session_api_key&=old-1"), STR_INIT("session_api_key&=old-1")},
    };
    struct pkit k;
    char request[300];

    pkit_open(&k, NULL, NULL, 0);
    k.t.key = "new-1";
    k.t.inner_key = "old-1";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(request, sizeof request, "GET /x?" STR_FMT " HTTP/1.1\r\n" HOST "\r\n",
                 STR_ARG(rows[i].asked));
        struct str line, rest = pkit_ask(&k, str_of(request)).body;
        CHECK(str_cut(&rest, '\n', &line));
        CHECK_STR(str_from(line, strlen("GET /x?")), rows[i].inside);
    }
    pkit_close(&k);
}

static unsigned new_shown;

static bool takes_old(struct proxy_target *t, struct http_req *req, struct str shown)
{
    (void)t;
    return str_eq(shown, STR("old-1")) && http_req_header(req, STR("x-api-key")).p;
}

static void on_key(struct proxy_target *t)
{
    t->takes_old = NULL;
    new_shown++;
}

static void check_exchanged(struct pkit *k, const char *lines, const char *inside)
{
    char request[300];

    snprintf(request, sizeof request, "GET / HTTP/1.1\r\n" HOST "%s\r\n", lines);
    CHECK_HAS(pkit_ask(k, str_of(request)).body, inside);
}

TEST(a_session_key_from_before_opens_where_its_owner_says_so_until_the_new_one_is_shown)
{
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    k.t.key = "new-1";
    k.t.inner_key = "old-1";
    k.t.takes_old = takes_old;
    k.t.on_key = on_key;
    check_exchanged(&k, "X-Session-API-Key: old-1\r\n", "X-Session-API-Key: \n");
    for (int i = 0; i < 2; i++)
        check_exchanged(&k, "X-Session-API-Key: old-1\r\nX-API-Key: a\r\n",
                        "X-Session-API-Key: old-1\n");
    CHECK_HAS(
        pkit_ask(&k, STR("GET /?session_api_key=old-1 HTTP/1.1\r\n" HOST "X-API-Key: a\r\n\r\n"))
            .body,
        "GET /?session_api_key=\n"); /* those who show it so do not come to be known */
    CHECK_INT(new_shown, 0);
    for (int i = 0; i < 2; i++)
        check_exchanged(&k, "X-Session-API-Key: new-1\r\n", "X-Session-API-Key: old-1\n");
    CHECK_INT(new_shown, 1);
    check_exchanged(&k, "X-Session-API-Key: old-1\r\nX-API-Key: a\r\n", "X-Session-API-Key: \n");
    pkit_close(&k);
}

TEST(answers_pass_with_their_own_heads)
{
    static const struct raw_script script = {
        .answers = {
            STR_INIT("HTTP/1.1 201 Made It\r\nDate: then\r\nServer: theirs\r\nX-A: 1\r\nX-A: 2\r\n"
                     "X-Request-ID: theirs\r\nConnection: x-b\r\nX-B: gone\r\nKeep-Alive: 5\r\n"
                     "Content-Length: 5\r\n\r\nhello")}};
    struct pkit k;

    pkit_open(&k, NULL, &script, 1);
    struct web_answer a = pkit_ask(&k, AT("127.0.0.1", "/x", "X-Request-ID: mine-1\r\n"));
    CHECK_STR(a.head, "HTTP/1.1 201 Made It\r\ncontent-length: 5\r\n"
                      "x-request-id: mine-1\r\nDate: then\r\n"
                      "Server: theirs\r\nX-A: 1\r\nX-A: 2\r\n\r\n");
    CHECK_STR(a.body, "hello");
    pkit_close(&k);
}

TEST(a_sandbox_is_found_by_path_with_its_prefix_removed)
{
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    struct web_answer a = web_ask(&k.web, GET("/sandbox/" PKIT_ID "/a/b?c"));
    CHECK_HAS(a.body, "GET /a/b?c\n");
    CHECK_HAS(a.body, "X-Forwarded-Prefix: /sandbox/" PKIT_ID "\n");
    a = web_ask(&k.web, GET("/sandbox/" PKIT_ID));
    CHECK_HAS(a.body, "GET /\n");
    a = web_ask(&k.web, GET("/sandbox/abcdefghijklmnoq/a"));
    CHECK_INT(a.status, 404);
    CHECK_STR(a.body, "{\"detail\":\"no such sandbox\"}");
    CHECK_INT(web_ask(&k.web, GET("/other")).status, 404);
    pkit_close(&k);
}

TEST(a_sandbox_is_found_by_host_name)
{
    struct proxy_config config = {.domain = STR("run.example")};
    struct pkit k;

    pkit_open(&k, &config, NULL, 0);
    struct web_answer a = web_ask(&k.web, AT("ABCDEFGHIJKLMNOP.run.example:99", "/sandbox/x", ""));
    CHECK_HAS(a.body, "GET /sandbox/x\n");
    CHECK_HAS(a.body, "X-Forwarded-Host: ABCDEFGHIJKLMNOP.run.example:99\n");
    CHECK_INT(web_ask(&k.web, AT("other.run.example", "/", "")).status, 404);
    /* names that no sandbox can have are not the server's either */
    CHECK_HAS(web_ask(&k.web, AT("a.b.run.example", "/", "")).body, "no such sandbox");
    CHECK_HAS(web_ask(&k.web, AT("a~.run.example:99", "/", "")).body, "no such sandbox");
    CHECK_HAS(web_ask(&k.web, AT("run.example", "/", "")).body, "Not Found");
    CHECK_HAS(pkit_ask(&k, AT(PKIT_ID ".run.example", "/", "")).body, "GET /\n");
    pkit_close(&k);
}

TEST(a_request_whose_target_and_host_differ_is_refused)
{
    struct proxy_config config = {.domain = STR("run.example")};
    struct pkit k;

    pkit_open(&k, &config, NULL, 0);
    CHECK_INT(web_ask(&k.web, AT("localhost", "http://" PKIT_ID ".run.example/", "")).status, 400);
    CHECK_INT(web_ask(&k.web, AT(PKIT_ID ".run.example", "http://localhost/", "")).status, 400);
    CHECK_INT(pkit_ask(&k, AT("localhost", "http://" PKIT_ID ".run.example/", "")).status, 400);
    CHECK_HAS(pkit_ask(&k, AT("localhost", "http://localhost/x", "")).body, "GET /x\n");
    pkit_close(&k);
}

/* Behind a proxy on this machine the client is the one that proxy names. */
TEST(forwarded_headers_are_believed_from_this_machine_only)
{
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    struct web_answer a =
        pkit_ask(&k, STR("GET / HTTP/1.1\r\n" HOST "X-Forwarded-For: 9.9.9.9\r\n"
                         "X-Forwarded-Proto: https\r\nX-Forwarded-Host: far\r\n\r\n"));
    CHECK_HAS(a.body, "X-Forwarded-For: 9.9.9.9, 127.0.0.1\nX-Forwarded-Host: far\n"
                      "X-Forwarded-Proto: https\n");
    pkit_close(&k);
}

TEST(a_redirect_of_the_sandbox_stays_below_the_prefix)
{
    static const struct raw_script script = {
        .answers = {STR_INIT("HTTP/1.1 302 F\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"),
                    STR_INIT("HTTP/1.1 302 F\r\nLocation: //o/b\r\nContent-Length: 0\r\n\r\n"),
                    STR_INIT("HTTP/1.1 302 F\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n")}};
    struct pkit k;

    pkit_open(&k, NULL, &script, 1);
    CHECK_HAS(web_ask(&k.web, GET("/sandbox/" PKIT_ID "/a")).head,
              "Location: /sandbox/" PKIT_ID "/b\r\n");
    CHECK_HAS(web_ask(&k.web, GET("/sandbox/" PKIT_ID "/a")).head, "Location: //o/b\r\n");
    CHECK_HAS(pkit_ask(&k, GET("/a")).head, "Location: /b\r\n");
    pkit_close(&k);
}

TEST(a_cookie_of_the_sandbox_stays_below_the_prefix)
{
#define COOKIE(text)                                                                               \
    {                                                                                              \
        .answers = {STR_INIT("HTTP/1.1 200 OK\r\nSet-Cookie: " text                                \
                             "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")},               \
    }
    static const struct raw_script scripts[] = {
        COOKIE("a=b; Path=/; Secure"), COOKIE("a=b; Path=/x/"), COOKIE("a=b"), COOKIE("a=b"),
        COOKIE("a=b; Path=x"),         COOKIE("a=b; Path=/")};
    struct pkit k;

    pkit_open(&k, NULL, scripts, ARRAY_LEN(scripts));
    CHECK_HAS(web_ask(&k.web, GET("/sandbox/" PKIT_ID "/a")).head,
              "Set-Cookie: a=b; Path=/sandbox/" PKIT_ID "; Secure\r\n");
    CHECK_HAS(web_ask(&k.web, GET("/" PKIT_ID "/a")).head,
              "Set-Cookie: a=b; Path=/" PKIT_ID "/x/\r\n");
    CHECK_HAS(web_ask(&k.web, GET("/" PKIT_ID "/a")).head, "Set-Cookie: a=b\r\n");
    CHECK_HAS(web_ask(&k.web, GET("/" PKIT_ID)).head, "Set-Cookie: a=b; Path=/" PKIT_ID "\r\n");
    CHECK_HAS(web_ask(&k.web, GET("/" PKIT_ID)).head,
              "Set-Cookie: a=b; Path=x; Path=/" PKIT_ID "\r\n");
    CHECK_HAS(pkit_ask(&k, GET("/a")).head, "Set-Cookie: a=b; Path=/\r\n");
    pkit_close(&k);
}

/* A worker for all of "/" would see every request of the browser to the API and to others. */
TEST(a_service_worker_of_the_sandbox_stays_below_the_prefix)
{
#define ALLOWED(text)                                                                              \
    {                                                                                              \
        .answers = {STR_INIT("HTTP/1.1 200 OK\r\nService-Worker-Allowed: " text                    \
                             "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")},               \
    }
    static const struct raw_script scripts[] = {ALLOWED("/"), ALLOWED("/../.."), ALLOWED("/")};
    struct pkit k;

    pkit_open(&k, NULL, scripts, ARRAY_LEN(scripts));
    CHECK_HAS(web_ask(&k.web, GET("/sandbox/" PKIT_ID "/a")).head,
              "Service-Worker-Allowed: /sandbox/" PKIT_ID "/\r\n");
    CHECK_HAS(web_ask(&k.web, GET("/" PKIT_ID "/a")).head,
              "Service-Worker-Allowed: /" PKIT_ID "/\r\n");
    CHECK_HAS(pkit_ask(&k, GET("/a")).head, "Service-Worker-Allowed: /\r\n");
    pkit_close(&k);
}

/* --- listeners --- */

TEST(own_listeners_answer_to_names_of_this_machine_only)
{
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    CHECK_INT(pkit_ask(&k, AT("evil.example", "/", "")).status, 403);
    CHECK_INT(pkit_ask(&k, AT("localhost", "/", "Origin: http://evil.example\r\n")).status, 403);
    CHECK_INT(pkit_ask(&k, AT("localhost", "/", "Origin: null\r\n")).status, 403);
    CHECK_INT(pkit_ask(&k, AT("localhost", "/", "Origin: http://localhost:3000\r\n")).status, 200);
    CHECK_INT(pkit_ask(&k, AT("[::1]:80", "/", "")).status, 200);
    pkit_close(&k);
}

TEST(a_port_is_had_again_and_a_taken_one_is_refused)
{
    struct proxy_target other = {.id = "other", .state = PROXY_OPEN};
    struct proxy_config config = {0};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    uint16_t port = k.t.port;
    CHECK_ERR(proxy_add(k.proxy, &other, port), ERR_CONFLICT, "listen on 127.0.0.1");
    CHECK(proxy_find(k.proxy, STR("other")) == NULL);
    pkit_dial(&k, port, &c, 4096); /* a connection is there while the proxy restarts */
    CHECK(web_send(&k.web, &c, GET("/")));
    CHECK_INT(pkit_take(&k, &c).status, 200);
    proxy_free(k.proxy);
    config.dialer = &k.web.dialer;
    CHECK_OK(proxy_new(&config, &k.proxy));
    k.t.state = PROXY_OPEN;
    CHECK_OK(proxy_add(k.proxy, &k.t, port));
    CHECK_INT(k.t.port, port);
    CHECK_INT(pkit_ask(&k, GET("/")).status, 200);
    web_close_client(&c);
    pkit_close(&k);
}

TEST(ports_of_a_range_come_in_turn_and_may_run_out)
{
    struct proxy_target t[4] = {{.id = "a"}, {.id = "b"}, {.id = "c"}, {.id = "d"}};
    struct proxy_config config = {0};
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    uint16_t first = k.t.port; /* free soon, and its neighbours with luck */
    proxy_free(k.proxy);
    config.dialer = &k.web.dialer;
    config.port_first = first;
    config.port_last = (uint16_t)(first + 2);
    CHECK_OK(proxy_new(&config, &k.proxy));
    CHECK_OK(proxy_add(k.proxy, &t[0], 0));
    CHECK_OK(proxy_add(k.proxy, &t[1], 0));
    CHECK(t[0].port >= first && t[0].port <= first + 2);
    CHECK(t[1].port != t[0].port && t[1].port >= first && t[1].port <= first + 2);
    struct err *e = proxy_add(k.proxy, &t[2], 0); /* another program may have it */
    err_free(e);
    CHECK_ERR(proxy_add(k.proxy, &t[3], 0), ERR_LIMIT, "all ports from");
    uint16_t freed = t[0].port;
    proxy_remove(k.proxy, &t[0]);
    CHECK_OK(proxy_add(k.proxy, &t[3], 0));
    CHECK_INT(t[3].port, freed);
    config.port_last = 1;
    struct proxy *none;
    CHECK_ERR(proxy_new(&config, &none), ERR_INVALID, "no range");
    pkit_close(&k);
}

TEST(who_was_connected_to_a_sandbox_that_is_gone_hears_404)
{
    struct proxy_target next = {.id = "next", .state = PROXY_OPEN};
    struct web_client idle, busy;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    uint16_t port = k.t.port;
    next.address = k.t.address;
    pkit_dial(&k, port, &idle, 4096);
    pkit_dial(&k, port, &busy, 4096);
    CHECK(web_send(&k.web, &idle, GET("/")));
    CHECK_INT(pkit_take(&k, &idle).status, 200);
    CHECK(web_send(&k.web, &busy, GET("/hold")));
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.t.open, 1);
    proxy_remove(k.proxy, &k.t);
    CHECK_INT(k.t.open, 0);
    CHECK_INT(pkit_take(&k, &busy).status, 404);
    CHECK_OK(proxy_add(k.proxy, &next, port)); /* not the sandbox it was connected to */
    CHECK(web_send(&k.web, &idle, GET("/")));
    CHECK_INT(pkit_take(&k, &idle).status, 404);
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.hangups, 1); /* inside they see that nobody waits */
    proxy_remove(k.proxy, &next);
    web_close_client(&idle);
    web_close_client(&busy);
    pkit_close(&k);
}

TEST(a_port_says_for_a_while_that_its_sandbox_is_gone)
{
    struct proxy_target t = {.id = "t", .state = PROXY_OPEN};
    struct proxy_config config = {.closed_ms = 1000};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, &config, NULL, 0);
    t.address = k.t.address;
    CHECK_OK(proxy_add(k.proxy, &t, 0));
    uint16_t port = t.port;
    proxy_remove(k.proxy, &t);
    pkit_dial(&k, port, &c, 4096);
    CHECK(web_send(&k.web, &c, GET("/t/alive")));
    struct web_answer a = pkit_take(&k, &c);
    CHECK_INT(a.status, 404);
    CHECK_STR(a.body, "{\"detail\":\"this sandbox is gone\"}");
    web_close_client(&c);
    web_turns(&k.web, PKIT_TURNS);
    unsigned before = test_open_fds();
    web_pass(&k.web, 1100);
    CHECK_INT(test_open_fds(), before - 1);
    pkit_close(&k);
}

TEST(ports_of_sandboxes_that_are_gone_have_a_bound)
{
    struct proxy_target t[CLOSED_PORTS + 1];
    char ids[CLOSED_PORTS + 1][8];
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    unsigned before = test_open_fds();
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        snprintf(ids[i], sizeof ids[i], "t%zu", i);
        t[i] = (struct proxy_target){.id = ids[i], .state = PROXY_OPEN};
        CHECK_OK(proxy_add(k.proxy, &t[i], 0));
    }
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        proxy_remove(k.proxy, &t[i]);
    CHECK_INT(test_open_fds(), before + CLOSED_PORTS);
    pkit_close(&k);
}

TEST(a_listener_does_not_take_urls_of_other_sandboxes)
{
    struct proxy_target other = {.id = "other", .state = PROXY_OPEN};
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    CHECK_OK(proxy_add(k.proxy, &other, 0));
    CHECK_HAS(pkit_ask(&k, GET("/" PKIT_ID "/a")).body, "GET /a\n");
    CHECK_HAS(pkit_ask(&k, GET("/aaaaaaaaaaaaaaa/a")).body, "GET /aaaaaaaaaaaaaaa/a\n");
    CHECK_INT(pkit_ask(&k, GET("/aaaaaaaaaaaaaaaa/a")).status, 404);
    CHECK_INT(pkit_ask(&k, GET("/other/a")).status, 404);
    proxy_remove(k.proxy, &other);
    CHECK_HAS(pkit_ask(&k, GET("/other/a")).body, "GET /other/a\n");
    pkit_close(&k);
}

TEST(a_port_is_open_before_somebody_waits_for_it)
{
    struct proxy_config config = {.spare_ports = 2};
    struct proxy_target t = {.id = "t", .state = PROXY_OPEN}, u = {.id = "u", .state = PROXY_OPEN};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, &config, NULL, 0);
    web_pass(&k.web, 10); /* the spare ones are opened behind the first */
    unsigned before = test_open_fds();
    t.address = u.address = k.t.address;
    CHECK_OK(proxy_add(k.proxy, &t, 0));
    CHECK_INT(test_open_fds(), before); /* it was there */
    uint16_t port = t.port;
    proxy_remove(k.proxy, &t);
    CHECK_OK(proxy_add(k.proxy, &u, 0));
    CHECK(u.port != port);
    pkit_dial(&k, u.port, &c, 4096);
    CHECK(web_send(&k.web, &c, GET("/")));
    CHECK_INT(pkit_take(&k, &c).status, 200);
    proxy_remove(k.proxy, &u);
    CHECK(web_send(&k.web, &c, GET("/")));
    CHECK_INT(pkit_take(&k, &c).status, 404);
    web_close_client(&c);
    pkit_close(&k);
}

TEST(an_idle_target_costs_one_descriptor)
{
    struct proxy_target t = {.id = "t", .state = PROXY_OPEN};
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    unsigned before = test_open_fds();
    t.address = k.t.address;
    CHECK_OK(proxy_add(k.proxy, &t, 0));
    CHECK_INT(test_open_fds(), before + 1);
    struct web_answer a = web_ask(&k.web, GET("/sandbox/t/"));
    CHECK_INT(a.status, 200);
    CHECK_INT(t.idlers, 1);
    web_pass(&k.web, 5000); /* a connection that nobody uses is not kept */
    CHECK_INT(test_open_fds(), before + 1);
    proxy_remove(k.proxy, &t);
    web_pass(&k.web, 60001); /* while it says that the sandbox is gone */
    CHECK_INT(test_open_fds(), before);
    pkit_close(&k);
}

/* --- ports inside --- */

TEST(ports_inside_are_asked_of_pid_1)
{
    static const struct raw_script script = {
        .answers = {STR_INIT("HTTP/1.1 200 Connection established\r\n\r\n"),
                    STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
                    STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain")}};
    struct pkit k;

    pkit_open(&k, NULL, &script, 1);
    k.t.services[PROXY_WORK_2] = 4000;
    struct web_answer a =
        web_ask(&k.web, STR("GET /sandbox/" PKIT_ID "/work-2/x HTTP/1.1\r\n" HOST
                            "X-Session-API-Key: the-servers\r\nX-Keep: 2\r\n\r\n"));
    CHECK_STR(a.body, "hello");
    CHECK_HAS(buf_str(&k.raw.seen), "X-Keep: 2\r\n"); /* but no key: it is another's port */
    CHECK(str_find(buf_str(&k.raw.seen), STR("the-servers")) < 0);
    CHECK_HAS(buf_str(&k.raw.seen), "CONNECT localhost:4000 HTTP/1.1\r\nHost: localhost:4000\r\n"
                                    "\r\nGET /x HTTP/1.1\r\n");
    CHECK_STR(web_ask(&k.web, GET("/sandbox/" PKIT_ID "/work-2/")).body, "again");
    CHECK_INT(k.raw.accepted, 1); /* the same connection */
    pkit_close(&k);
}

TEST(a_port_that_nobody_listens_on_is_502)
{
    static const struct raw_script scripts[] = {
        {.answers = {STR_INIT("HTTP/1.1 502 Bad\r\nConnection: close\r\n\r\nport 12000: refused")},
         .end = RAW_CLOSE},
        {.answers = {STR_INIT("HTTP/1.1 504 Slow\r\nConnection: close\r\n\r\n")}},
        {.answers = {STR_INIT("what?\r\n\r\n")}},
        {.answers = {STR_INIT("")}, .end = RAW_CLOSE},
    };
    static const int statuses[] = {502, 504, 502, 502};
    struct pkit k;

    pkit_open(&k, NULL, scripts, ARRAY_LEN(scripts));
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct web_answer a = web_ask(&k.web, GET("/sandbox/" PKIT_ID "/work-1/"));
        CHECK_INT(a.status, statuses[i]);
        CHECK_HAS(a.body, "port 12000 inside");
    }
    CHECK_INT(k.t.open, 0);
    pkit_close(&k);
}
