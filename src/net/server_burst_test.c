// SPDX-License-Identifier: Apache-2.0
/* server_burst_test.c — an answer that pauses is the handler's affair, not the reader's. */
#include "net/server.h"
#include "test/test.h"
#include "test/web.h"

static struct http_req *waits; /* in this test's own process */

static void on_gone(struct http_req *req)
{
    waits = NULL;
    http_reply(req, 200, STR(""), STR("")); /* still required, goes nowhere */
}

static fallible burst(struct http_req *req)
{
    static const char zeros[400 << 10];

    waits = req;
    req->on_gone = on_gone;
    http_reply_begin(req, 200, STR(""), HTTP_LENGTH_UNKNOWN);
    http_reply_write(req, str_n(zeros, sizeof zeros));
    return NULL;
}

TEST(a_handler_that_is_silent_after_a_burst_is_not_the_peers_fault)
{
    static const struct route burst_route[] = {{"GET", "/burst", burst, 0, 0}};
    struct http_server_config sc = {.limits = {.body_idle_ms = 100}};
    struct web w;
    struct web_client c;

    web_open(&w, WEB_ROUTES(burst_route), NULL, &sc);
    web_connect(&w, &c, 1u << 20);
    CHECK(web_send(&w, &c, STR("GET /burst HTTP/1.1\r\nHost: a\r\n\r\n")));
    web_read(&w, &c);
    web_pass(&w, 10000);
    CHECK(waits != NULL);
    http_reply_end(waits);
    CHECK_INT(web_take(&w, &c).body.len, 400u << 10);
    web_close_client(&c);
    web_close(&w);
}
