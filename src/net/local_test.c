// SPDX-License-Identifier: Apache-2.0
#include "net/local.h"

#include <stdio.h>

#include "net/router.h"
#include "net/server.h"
#include "test/test.h"
#include "test/web.h"

TEST(local_names_are_loopback_and_nothing_else)
{
    static const char *const yes[] = {
        "localhost", "LOCALHOST:3000", "127.0.0.1",   "[::1]",         "127.0.0.1:8000",
        "127.8.9.1", "[::1]:80",       "a.localhost", "a.localhost:1", "localhost:"};
    static const char *const no[] = {
        "",
        "evil.com",
        "localhost.evil.com",
        "127.0.0.1.evil.com",
        "0.0.0.0",
        "10.0.0.1",
        "[::2]",
        "[::1",
        "[::1]x",
        "localhost:x",
        "localhost:70000",
        ".localhost",
        "xlocalhost",
        "localhost@evil.com",
        "127.0.0.1/x",
        "[::1]:80:9",
        "evil.com:127.0.0.1",
    };

    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        if (!local_is_name(str_of(yes[i])))
            FAIL("%s", yes[i]);
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        if (local_is_name(str_of(no[i])))
            FAIL("%s", no[i]);
}

static fallible hello(struct http_req *req)
{
    http_reply_json(req, 200, STR("{}"));
    return NULL;
}

static const struct route routes[] = {{"GET", "/", hello, ROUTE_OPEN, 0}};

TEST(local_server_refuses_foreign_hosts_and_origins_on_every_path)
{
    static const struct {
        const char *lines;
        int status;
        const char *part;
    } rows[] = {
        {"Host: localhost:1", 200, "{}"},
        {"Host: [::1]:1", 200, "{}"},
        {"Host: 127.0.0.1\r\nOrigin: http://localhost:3000", 200, "{}"},
        {"Host: evil.com", 403, "{\"detail\":\"Host 'evil.com' is not this machine"},
        {"Host: localhost\r\nOrigin: https://evil.com", 403, "Origin 'https://evil.com' is not"},
        {"Host: localhost\r\nOrigin: null", 403, "Origin 'null'"},
    };
    struct http_server_config sc = {.local_names = true};
    struct web w;
    char request[200];

    web_open(&w, WEB_ROUTES(routes), NULL, &sc);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(request, sizeof request, "GET / HTTP/1.1\r\n%s\r\n\r\n", rows[i].lines);
        struct web_answer a = web_ask(&w, str_of(request));
        CHECK_INT(a.status, rows[i].status);
        CHECK_HAS(a.body, rows[i].part);
    }
    CHECK_INT(web_ask(&w, STR("GET /no HTTP/1.1\r\nHost: evil.com\r\n\r\n")).status, 403);
    web_close(&w);
}
