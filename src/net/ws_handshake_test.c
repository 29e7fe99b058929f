// SPDX-License-Identifier: Apache-2.0
/* ws_handshake_test.c — heads in, verdicts out; then the refusals as a server really answers. */
#include "net/ws_handshake.h"

#include <stdio.h>
#include <sys/socket.h>

#include "net/ws_peer.h"
#include "test/test.h"

#define KEY  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define HOST "Host: x\r\n"
#define UP   "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define V13  "Sec-WebSocket-Version: 13\r\n"
#define GET  "GET /echo HTTP/1.1\r\n" HOST

static void parse(struct arena *a, struct str text, struct http_head *ret_head)
{
    CHECK_OK(http_parse_request(a, text, ret_head));
}

TEST(ws_accept_is_the_one_of_the_rfc)
{
    char accept[WS_ACCEPT_LEN];

    ws_accept_for(STR("dGhlIHNhbXBsZSBub25jZQ=="), accept);
    CHECK_STR(str_n(accept, sizeof accept), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static const struct {
    const char *head;
    int status; /* 101 when fine */
} requests[] = {
    {GET UP V13 KEY, 101},
    {GET "upgrade: WebSocket\r\nconnection: keep-alive, upgrade\r\n" V13 KEY, 101},
    {GET "Upgrade: h2c, websocket\r\nConnection: Upgrade\r\n" V13 KEY, 101},
    {"POST /echo HTTP/1.1\r\n" HOST UP V13 KEY, 400},
    {"GET /echo HTTP/1.0\r\n" HOST UP V13 KEY, 400},
    {GET V13 KEY, 426},
    {GET "Upgrade: websocket\r\n" V13 KEY, 426},
    {GET "Connection: upgrade\r\n" V13 KEY, 426},
    {GET "Upgrade: h2c\r\nConnection: Upgrade\r\n" V13 KEY, 426},
    {GET UP KEY, 426},
    {GET UP "Sec-WebSocket-Version: 8\r\n" KEY, 426},
    {GET UP "Sec-WebSocket-Version: 13, 8\r\n" KEY, 426},
    {GET UP V13 V13 KEY, 426},
    {GET UP V13, 400},
    {GET UP V13 KEY KEY, 400},
    {GET UP V13 "Sec-WebSocket-Key: \r\n", 400},
    {GET UP V13 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j\r\n", 400},
    {GET UP V13 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZWQ=\r\n", 400},
    {GET UP V13 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ!!\r\n", 400},
    {GET UP V13 KEY "Sec-WebSocket-Extensions: permessage-deflate; \r\n", 400},
    {GET UP V13 KEY "Sec-WebSocket-Extensions: a b\r\n", 400},
};

TEST(ws_request_is_answered_with_101_400_or_426)
{
    struct ws_rig r;

    ws_rig_init(&r);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct ws_peer p;
        int pair[2];
        char line[32];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        CHECK_OK(http_server_serve(r.server, pair[1]));
        ws_peer_serve(&p, &r, pair[0]);
        ws_peer_send(&p, str_of(requests[i].head));
        ws_peer_send(&p, STR("\r\n"));
        ws_rig_until(&r, ws_peer_has_head, &p);
        snprintf(line, sizeof line, "HTTP/1.1 %d ", requests[i].status);
        if (!str_starts(buf_str(&p.head), str_of(line)))
            FAIL("%s: answered " STR_FMT, requests[i].head, STR_ARG(buf_str(&p.head)));
        if (requests[i].status == 426) {
            CHECK_HAS(buf_str(&p.head), "Sec-WebSocket-Version: 13\r\n");
            CHECK_HAS(buf_str(&p.head), "Upgrade: websocket\r\n");
        }
        ws_abort(take(&r.ws));
        ws_peer_done(&p);
    }
    ws_rig_done(&r);
}

#define PMD    "permessage-deflate"
#define ANSWER PMD "; server_no_context_takeover; client_no_context_takeover"
static const struct {
    const char *offer, *answer; /* NULL: malformed; "": declined */
} offers[] = {
    {PMD, ANSWER},
    {PMD "; server_no_context_takeover", ANSWER},
    {PMD ";client_no_context_takeover;server_no_context_takeover", ANSWER},
    {PMD "; client_max_window_bits", ANSWER "; client_max_window_bits=12"},
    {PMD "; client_max_window_bits=15", ANSWER "; client_max_window_bits=12"},
    {PMD "; client_max_window_bits=9", ANSWER "; client_max_window_bits=9"},
    {PMD "; client_max_window_bits=\"10\"", ANSWER "; client_max_window_bits=10"},
    {PMD "; server_max_window_bits=15", ANSWER "; server_max_window_bits=12"},
    {PMD "; server_max_window_bits=8", ANSWER "; server_max_window_bits=8"},
    {PMD "; server_max_window_bits=10; client_max_window_bits",
     ANSWER "; server_max_window_bits=10; client_max_window_bits=12"},
    {"x-other, " PMD, ANSWER},
    {"x-other; a=1; b=\"c\", , " PMD, ANSWER},
    {"", ""},
    {"x-webkit-deflate-frame", ""},
    {PMD "; server_max_window_bits", ""},
    {PMD "; server_max_window_bits=7", ""},
    {PMD "; server_max_window_bits=16", ""},
    {PMD "; server_max_window_bits=010", ""},
    {PMD "; server_max_window_bits=x", ""},
    {PMD "; client_max_window_bits=0", ""},
    {PMD "; client_max_window_bits=99999999999999999999", ""},
    {PMD "; server_no_context_takeover=1", ""},
    {PMD "; client_no_context_takeover; client_no_context_takeover", ""},
    {PMD "; client_max_window_bits; client_max_window_bits=9", ""},
    {PMD "; unknown", ""},
    {PMD "; unknown=1, " PMD "; client_max_window_bits", ANSWER "; client_max_window_bits=12"},
    {PMD ", " PMD "; client_max_window_bits", ANSWER},
    {PMD ";", NULL},
    {PMD "; =9", NULL},
    {PMD "; client_max_window_bits=", NULL},
    {PMD "; client_max_window_bits=\"9", NULL},
    {PMD "; client_max_window_bits=\"9 \"", NULL},
    {PMD " client_max_window_bits", NULL},
    {"; " PMD, NULL},
    {PMD ", @", NULL},
};

TEST(ws_offers_are_chosen_declined_or_refused)
{
    for (size_t i = 0; i < ARRAY_LEN(offers); i++) {
        own_done(arena) a;
        own_done(buf) text, answer;
        struct http_head head;
        struct ws_deflate_terms terms;
        arena_init(&a, 1u << 16);
        buf_init(&text, 4096);
        buf_init(&answer, 4096);
        buf_addf(&text, GET UP V13 KEY "Sec-WebSocket-Extensions: %s\r\n\r\n", offers[i].offer);
        parse(&a, buf_str(&text), &head);
        if (!offers[i].answer) {
            CHECK_ERR(ws_choose_deflate(&head, &terms), ERR_INVALID, "well formed");
            continue;
        }
        CHECK_OK(ws_choose_deflate(&head, &terms));
        ws_put_answer(&answer, &head, STR(""), &terms);
        struct str got = buf_str(&answer), name = STR("Sec-WebSocket-Extensions: ");
        ptrdiff_t at = str_find(got, name);
        got = at < 0 ? STR("") : str_from(got, (size_t)at + name.len);
        got = str_first(got, (size_t)str_find_char(got, '\r'));
        if (!str_eq(got, str_of(offers[i].answer)))
            FAIL("'%s': answered '" STR_FMT "'", offers[i].offer, STR_ARG(got));
    }
}

TEST(ws_offers_may_come_in_several_headers)
{
    own_done(arena) a;
    struct http_head head;
    struct ws_deflate_terms terms;

    arena_init(&a, 1u << 16);
    parse(&a,
          STR(GET UP V13 KEY "Sec-WebSocket-Extensions: x-other\r\n"
                             "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
          &head);
    CHECK_OK(ws_choose_deflate(&head, &terms));
    CHECK(terms.on);
}

TEST(ws_protocol_is_chosen_only_if_offered)
{
    own_done(arena) a;
    struct http_head head;

    arena_init(&a, 1u << 16);
    parse(&a, STR(GET UP V13 KEY "Sec-WebSocket-Protocol: chat, super.chat\r\n\r\n"), &head);
    CHECK(ws_offers_protocol(&head, STR("super.chat")));
    CHECK(ws_offers_protocol(&head, STR("chat")));
    CHECK(!ws_offers_protocol(&head, STR("Chat")));
    CHECK(!ws_offers_protocol(&head, STR("cha")));
}

#define OK101 "HTTP/1.1 101 Switching Protocols\r\n"
#define ACC   "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define EXT   "Sec-WebSocket-Extensions: "
static const struct {
    const char *answer, *why; /* NULL: fine */
    bool deflate, context;
} answers[] = {
    {OK101 UP ACC, NULL, false, false},
    {OK101 UP ACC EXT PMD "\r\n", NULL, true, true},
    {OK101 UP ACC EXT PMD "; server_no_context_takeover\r\n", NULL, true, false},
    {OK101 UP ACC EXT PMD "; client_max_window_bits=10\r\n", NULL, true, true},
    {OK101 UP ACC EXT PMD "; server_max_window_bits=10\r\n", NULL, true, true},
    {OK101 UP ACC "Sec-WebSocket-Protocol: chat\r\n", NULL, false, false},
    {OK101 UP ACC "Sec-WebSocket-Protocol: other\r\n", "sub-protocol", false, false},
    {OK101 UP ACC EXT PMD "; client_max_window_bits=15\r\n", "not asked", false, false},
    {OK101 UP ACC EXT PMD "; client_max_window_bits\r\n", "not asked", false, false},
    {OK101 UP ACC EXT PMD "; server_max_window_bits\r\n", "not asked", false, false},
    {OK101 UP ACC EXT PMD ", " PMD "\r\n", "not asked", false, false},
    {OK101 UP ACC EXT PMD "; what\r\n", "not asked", false, false},
    {OK101 UP ACC EXT "x-other\r\n", "not offered", false, false},
    {OK101 UP ACC EXT ";\r\n", "well formed", false, false},
    {OK101 UP, "does not fit", false, false},
    {OK101 UP ACC ACC, "does not fit", false, false},
    {OK101 UP "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOO=\r\n", "does not fit", false,
     false},
    {OK101 ACC, "did not switch", false, false},
    {OK101 "Connection: Upgrade\r\nUpgrade: h2c\r\n" ACC, "did not switch", false, false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", "answered 200", false, false},
    {"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n", "answered 401", false, false},
};

TEST(ws_answer_is_held_against_what_was_asked)
{
    struct ws_ask ask = {.protocol = STR("chat"), .deflate = true};

    memcpy(ask.key, "dGhlIHNhbXBsZSBub25jZQ==", WS_KEY_LEN);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        own_done(arena) a;
        own_done(buf) text;
        struct http_head head;
        struct ws_deflate_terms terms;
        arena_init(&a, 1u << 16);
        buf_init(&text, 4096);
        buf_addf(&text, "%s\r\n", answers[i].answer);
        CHECK_OK(http_parse_response(&a, buf_str(&text), STR("GET"), &head));
        if (answers[i].why) {
            CHECK_ERR(ws_check_answer(&head, &ask, &terms), ERR_UPSTREAM, answers[i].why);
            continue;
        }
        CHECK_OK(ws_check_answer(&head, &ask, &terms));
        CHECK_INT(terms.on, answers[i].deflate);
        if (terms.on)
            CHECK_INT(terms.receive_forgets, !answers[i].context);
    }
}

TEST(ws_answer_may_not_compress_what_was_not_offered)
{
    struct ws_ask ask = {.deflate = false};
    own_done(arena) a;
    struct http_head head;
    struct ws_deflate_terms terms;

    arena_init(&a, 1u << 16);
    memcpy(ask.key, "dGhlIHNhbXBsZSBub25jZQ==", WS_KEY_LEN);
    CHECK_OK(http_parse_response(&a, STR(OK101 UP ACC EXT PMD "\r\n\r\n"), STR("GET"), &head));
    CHECK_ERR(ws_check_answer(&head, &ask, &terms), ERR_UPSTREAM, "not asked");
}
