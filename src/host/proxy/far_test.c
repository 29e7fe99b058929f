// SPDX-License-Identifier: Apache-2.0
/* far_test.c — a sandbox of another machine: its url's name and path, its troubles, TLS. */
#include <stdio.h>
#include <string.h>

#include "net/listen.h"
#include "test/proxy_kit.h"
#include "test/test.h"

#define HOST      "Host: 127.0.0.1\r\n"
#define GET(path) STR("GET " path " HTTP/1.1\r\n" HOST "X-Is: host: not\r\n\r\n")

/* The server inside, at an address of TCP too. */
static void go_far(struct pkit *k, const char *path)
{
    struct sbx_address *a = &k->t.address;
    int fd;

    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_OK(listen_name(fd, false, a->url, sizeof a->url));
    CHECK_OK(http_server_listen(k->inside, fd));
    strcat(a->url, path);
    a->unix_path[0] = '\0';
    k->t.inner = (struct sbx_address){0};
}

static unsigned troubles;

static void on_trouble(struct proxy_target *t)
{
    (void)t;
    troubles++;
}

TEST(a_sandbox_elsewhere_is_asked_by_its_own_name_and_below_its_path)
{
    static const char *const paths[] = {"", "/", "/run/abc", "/run/abc/"};
    char line[300];
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        go_far(&k, paths[i]);
        unsigned port = 0;
        CHECK_INT(sscanf(k.t.address.url, "http://127.0.0.1:%u", &port), 1);
        struct web_answer a = pkit_ask(&k, GET("/a%2Fb?c=d"));
        snprintf(line, sizeof line, "GET %s/a%%2Fb?c=d\nHost: 127.0.0.1:%u\nX-Is: host: not\n",
                 i < 2 ? "" : "/run/abc", port);
        CHECK_HAS(a.body, line);
        CHECK_INT(str_find(str_from(a.body, strlen(line)), STR("\nHost:")), -1); /* one only */
        CHECK_HAS(a.body, "X-Forwarded-Host: 127.0.0.1\n");
        proxy_set_state(k.proxy, &k.t, PROXY_PAUSED); /* drops connections that are kept */
        proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    }
    pkit_close(&k);
}

TEST(a_request_that_came_before_the_sandbox_elsewhere_was_there_goes_there)
{
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    k.t.address = (struct sbx_address){0};
    proxy_set_state(k.proxy, &k.t, PROXY_STARTING);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, GET("/early")));
    web_turns(&k.web, PKIT_TURNS);
    go_far(&k, "/x");
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    CHECK_HAS(pkit_take(&k, &c).body, "GET /x/early\n");
    web_close_client(&c);
    pkit_close(&k);
}

TEST(trouble_with_a_sandbox_elsewhere_is_told)
{
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    go_far(&k, "");
    k.t.on_trouble = on_trouble;
    troubles = 0;
    CHECK_INT(pkit_ask(&k, GET("/fine")).status, 200);
    CHECK_INT(troubles, 0);
    CHECK_INT(pkit_ask(&k, STR("PATCH /x HTTP/1.1\r\n" HOST "\r\n")).status, 405);
    CHECK_INT(troubles, 0); /* its own affair */
    snprintf(k.t.address.url, sizeof k.t.address.url, "http://127.0.0.1:1");
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    CHECK_INT(pkit_ask(&k, GET("/gone")).status, 502);
    CHECK_INT(troubles, 1);
    CHECK_INT(pkit_ask(&k, STR("GET /sandbox/" PKIT_ID "/vscode/ HTTP/1.1\r\n" HOST "\r\n")).status,
              502);
    pkit_close(&k);
}

TEST(a_sandbox_elsewhere_behind_tls_is_asked_through_it_or_not_at_all)
{
    struct pkit k;
    char url[100];

    pkit_open(&k, NULL, NULL, 0);
    go_far(&k, "");
    snprintf(url, sizeof url, "https%s", k.t.address.url + 4);
    strcpy(k.t.address.url, url);
    struct web_answer a = pkit_ask(&k, GET("/")); /* what listens there speaks no TLS */
    CHECK_INT(a.status, 502);
    CHECK_HAS(a.body, "TLS");
    dialer_done(&k.web.dialer);
    k.web.dialer.ca_file = "/nowhere";
    CHECK_HAS(pkit_ask(&k, GET("/")).body, "/nowhere");
    pkit_close(&k);
}
