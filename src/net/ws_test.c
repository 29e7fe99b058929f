// SPDX-License-Identifier: Apache-2.0
/* ws_test.c — the endpoint against a raw peer: the table of cases over a real socket, then what
 * only an endpoint can do wrong: closing, pausing, slow and silent peers. */
#include "net/ws.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/ws_cases.h"
#include "net/ws_peer.h"
#include "test/test.h"

#define DEFLATE_OFFER "Sec-WebSocket-Extensions: permessage-deflate\r\n"

/* --- the table --- */

/* What an echo endpoint sends for the events of a case. */
static void expect_of(const struct ws_case *c, struct buf *out)
{
    struct str rest = str_of(c->out), one;

    for (bool more = rest.len > 0; more;) {
        more = str_cut(&rest, '|', &one);
        if (*one.p == 'O')
            continue;
        if (out->len)
            buf_add_char(out, '|');
        if (*one.p == 'C' || *one.p == 'X')
            buf_addf(out, "C%.4s:", one.p + 1);
        else if (*one.p == 'P')
            buf_addf(out, "O" STR_FMT, STR_ARG(str_from(one, 1)));
        else
            buf_add(out, one);
    }
}

struct wait {
    struct ws_peer *peer;
    struct str want;
};

static bool has_told(void *ctx)
{
    struct wait *w = ctx;

    ws_peer_poll(w->peer);
    return w->peer->eof || (w->peer->told.len >= w->want.len);
}

static bool is_closed(void *ctx)
{
    return *(unsigned *)ctx > 0;
}

/* step: bytes between two turns of the loop; 0: all at once. */
static void send_case(struct ws_peer *p, struct str bytes, size_t step)
{
    while (bytes.len) {
        struct str part = str_first(bytes, step ? step : bytes.len);
        ws_peer_send(p, part);
        bytes = str_from(bytes, part.len);
        if (step)
            CHECK_OK(loop_turn(p->rig->loop, 0));
    }
}

static void check_told(const struct ws_case *c, struct ws_peer *p, const char *how)
{
    own_done(buf) want;

    buf_init(&want, 1u << 20);
    expect_of(c, &want);
    struct wait w = {p, buf_str(&want)};
    ws_rig_until(p->rig, has_told, &w);
    if (!str_eq(buf_str(&p->told), buf_str(&want)))
        FAIL("%s (%s): told '" STR_FMT "', expected '" STR_FMT "'", c->name, how,
             STR_ARG(buf_str(&p->told)), STR_ARG(buf_str(&want)));
    shutdown(p->fd, SHUT_WR);
    ws_rig_until(p->rig, ws_peer_at_eof, p);
}

static void run_on_server(struct ws_rig *r, const struct ws_case *c, size_t step)
{
    struct ws_peer p;
    own_done(buf) bytes;

    buf_init(&bytes, 32u << 20);
    ws_case_bytes(c, WS_SERVER, &bytes);
    r->config = (struct ws_config){.message_bytes = ws_case_limit(c)};
    ws_peer_dial(&p, r, c->flags & CASE_DEFLATE ? DEFLATE_OFFER : "", STR(""));
    ws_rig_until(r, ws_peer_has_head, &p);
    r->closed = 0;
    send_case(&p, buf_str(&bytes), step);
    check_told(c, &p, "server");
    ws_rig_until(r, is_closed, &r->closed);
    ws_peer_done(&p);
}

TEST(ws_cases_hold_for_a_server_on_a_socket)
{
    struct ws_rig r;

    ws_rig_init(&r);
    for (size_t i = 0; i < ws_case_count; i++) {
        if (ws_cases[i].flags & CASE_CONTEXT)
            continue; /* the server does not agree to contexts */
        run_on_server(&r, &ws_cases[i], 0);
        if (!(ws_cases[i].flags & CASE_CODEC))
            run_on_server(&r, &ws_cases[i], 1);
        run_on_server(&r, &ws_cases[i], 1 + i % 7 * 1000);
    }
    ws_rig_done(&r);
}

struct listener {
    int fd;
    char url[200];
};

static void listen_raw(struct listener *l)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/raw.sock", test_dir());
    snprintf(l->url, sizeof l->url, "unix:%s:/x", addr.sun_path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(l->fd, (struct sockaddr *)&addr, sizeof addr) == 0);
    CHECK(listen(l->fd, 8) == 0);
}

/* A client of ours that echoes, and the raw server it is connected to. */
static void on_client_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    ws_send(ws, kind, data);
}

static void on_client_close(struct ws *ws, int code, struct str reason)
{
    struct ws_rig *r = ws_owner(ws);
    struct ws_event ev = {WS_EV_CLOSE, code, reason};

    buf_reset(&r->told);
    ws_case_print(&r->told, &ev);
    r->closed++;
}

static const struct ws_events client_events = {.on_message = on_client_message,
                                               .on_close = on_client_close};

static struct ws *dial_raw(struct ws_rig *r, struct listener *l, struct ws_peer *p)
{
    struct ws *ws;

    CHECK_OK(ws_rig_connect(r, str_of(l->url), &r->config, &client_events, r, &ws));
    ws_peer_serve(p, r, accept(l->fd, NULL, NULL));
    ws_rig_until(r, ws_peer_has_head, p);
    return ws;
}

static void run_on_client(struct ws_rig *r, struct listener *l, const struct ws_case *c,
                          size_t step)
{
    struct ws_peer p;
    own_done(buf) bytes;

    buf_init(&bytes, 32u << 20);
    ws_case_bytes(c, WS_CLIENT, &bytes);
    r->config = (struct ws_config){.message_bytes = ws_case_limit(c)};
    r->closed = 0;
    dial_raw(r, l, &p);
    ws_peer_answer(&p, c->flags & CASE_CONTEXT   ? DEFLATE_OFFER
                       : c->flags & CASE_DEFLATE ? "Sec-WebSocket-Extensions: permessage-deflate; "
                                                   "server_no_context_takeover\r\n"
                                                 : "");
    send_case(&p, buf_str(&bytes), step);
    check_told(c, &p, "client");
    ws_rig_until(r, is_closed, &r->closed);
    ws_peer_done(&p);
}

TEST(ws_cases_hold_for_a_client_on_a_socket)
{
    struct ws_rig r;
    struct listener l;

    ws_rig_init(&r);
    listen_raw(&l);
    for (size_t i = 0; i < ws_case_count; i++) {
        run_on_client(&r, &l, &ws_cases[i], 0);
        if (!(ws_cases[i].flags & CASE_CODEC))
            run_on_client(&r, &l, &ws_cases[i], 1);
    }
    close(l.fd);
    ws_rig_done(&r);
}

/* --- what only an endpoint can do wrong --- */

static void check_peer_told(struct ws_peer *p, const char *want)
{
    struct wait w = {p, str_of(want)};

    ws_rig_until(p->rig, has_told, &w);
    CHECK_STR(buf_str(&p->told), want);
}

static void send_spec(struct ws_peer *p, const char *spec)
{
    struct ws_case c = {.in = spec};
    own_done(buf) bytes;

    buf_init(&bytes, 32u << 20);
    ws_case_bytes(&c, p->role == WS_CLIENT ? WS_SERVER : WS_CLIENT, &bytes);
    ws_peer_send(p, buf_str(&bytes));
}

static void open_peer(struct ws_peer *p, struct ws_rig *r, const char *extra)
{
    ws_peer_dial(p, r, extra, STR(""));
    ws_rig_until(r, ws_peer_has_head, p);
    CHECK_HAS(buf_str(&p->head), "HTTP/1.1 101 ");
}

TEST(ws_frames_sent_together_with_the_request_are_not_lost)
{
    struct ws_rig r;
    struct ws_peer p;
    struct ws_case c = {.in = "81:early|89:bird"};
    own_done(buf) bytes;

    buf_init(&bytes, 4096);
    ws_case_bytes(&c, WS_SERVER, &bytes);
    ws_rig_init(&r);
    ws_peer_dial(&p, &r, "", buf_str(&bytes));
    check_peer_told(&p, "T:early|O:bird");
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_close_waits_for_the_peers_half)
{
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    open_peer(&p, &r, "");
    ws_close(r.ws, 4001, STR("enough"));
    check_peer_told(&p, "C4001:");
    CHECK_INT(r.closed, 0);
    send_spec(&p, "81:late|88#4001:fine");
    ws_rig_until(&r, is_closed, &r.closed);
    CHECK_STR(buf_str(&r.told), "C4001:fine"); /* the late message is not told */
    ws_rig_until(&r, ws_peer_at_eof, &p);
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_close_gives_up_on_a_peer_that_does_not_answer)
{
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    r.config.close_ms = 20;
    open_peer(&p, &r, "");
    ws_close(r.ws, WS_NORMAL, STR(""));
    ws_rig_until(&r, is_closed, &r.closed);
    CHECK_STR(buf_str(&r.told), "C1006:the peer did not close within 20 ms");
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_close_cuts_its_reason_at_a_character)
{
    struct ws_rig r;
    struct ws_peer p;
    char reason[124 + 2];

    memset(reason, 'x', sizeof reason);
    reason[122] = '\xe2'; /* of this character only the first byte would fit */
    reason[123] = '\x82';
    reason[124] = '\xac';
    ws_rig_init(&r);
    open_peer(&p, &r, "");
    ws_close(r.ws, WS_NORMAL, str_n(reason, sizeof reason));
    struct wait w = {&p, STR("C1000:")};
    ws_rig_until(&r, has_told, &w);
    CHECK_STR(buf_str(&p.told), "C1000:"); /* the raw peer checks UTF-8 */
    CHECK_INT(p.reader.control_len, 2 + 122);
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_close_without_a_code_that_may_be_sent_sends_none)
{
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    open_peer(&p, &r, "");
    ws_close(r.ws, WS_ABNORMAL, STR("not on the wire"));
    check_peer_told(&p, "C1005:");
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_peer_that_hangs_up_is_1006)
{
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    open_peer(&p, &r, "");
    send_spec(&p, "81:a|01:unfinished");
    check_peer_told(&p, "T:a");
    ws_peer_done(&p);
    ws_rig_until(&r, is_closed, &r.closed);
    CHECK_STR(buf_str(&r.told), "T:a|C1006:the peer hung up");
    ws_rig_done(&r);
}

TEST(ws_asks_a_silent_peer_and_drops_it_when_nothing_comes)
{
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    r.config.ping_ms = 100;
    open_peer(&p, &r, "");
    check_peer_told(&p, "P:");
    CHECK_INT(r.closed, 0);
    send_spec(&p, "8a:");
    check_peer_told(&p, "P:|P:"); /* the answer counted, so it asked once more */
    CHECK_INT(r.closed, 0);
    ws_rig_until(&r, is_closed, &r.closed);
    CHECK_STR(buf_str(&r.told), "C1006:no answer to a ping for 100 ms");
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_peer_that_does_not_read_is_dropped_and_others_are_not)
{
    struct ws_rig r;
    struct ws_peer slow, quick;
    static char block[100000];

    ws_rig_init(&r);
    r.config = (struct ws_config){.queue_bytes = 300000, .close_ms = 20, .no_deflate = true};
    open_peer(&slow, &r, "");
    struct ws *ws = r.ws;
    open_peer(&quick, &r, "");
    memset(block, '*', sizeof block);
    for (int i = 0; i < 50 && r.closed == 0; i++) {
        ws_send(ws, WS_BINARY, str_n(block, sizeof block));
        CHECK(ws_pending(ws) <= 300000 + 200);
        CHECK_OK(loop_turn(r.loop, 0));
    }
    CHECK_STR(buf_str(&r.told), "C1008:too slow");
    send_spec(&quick, "81:still here");
    check_peer_told(&quick, "T:still here");
    CHECK_INT(r.closed, 1);
    ws_peer_done(&slow);
    ws_peer_done(&quick);
    ws_rig_done(&r);
}

TEST(ws_peer_dropped_for_being_slow_reads_why_if_it_reads_on)
{
    struct ws_rig r;
    struct ws_peer p;
    static char block[100000];

    ws_rig_init(&r);
    r.config = (struct ws_config){.queue_bytes = 300000, .no_deflate = true};
    open_peer(&p, &r, "");
    struct ws *ws = r.ws;
    for (int i = 0; i < 50 && r.closed == 0; i++) {
        ws_send(ws, WS_BINARY, str_n(block, sizeof block));
        CHECK_OK(loop_turn(r.loop, 0));
    }
    CHECK_INT(r.closed, 1);
    ws_rig_until(&r, ws_peer_at_eof, &p);
    CHECK(str_ends(buf_str(&p.told), STR("|C1008:")));
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_send_from_an_empty_queue_takes_any_message)
{
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    r.config = (struct ws_config){.queue_bytes = 1000, .no_deflate = true};
    open_peer(&p, &r, "");
    send_spec(&p, "82*500000");
    check_peer_told(&p, "B*500000");
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_pause_holds_messages_back_in_order)
{
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    r.pause_each = true;
    open_peer(&p, &r, "");
    send_spec(&p, "81:one|81:two|89:|81:three");
    check_peer_told(&p, "T:one");
    for (int i = 0; i < 5; i++)
        CHECK_OK(loop_turn(r.loop, 1));
    CHECK_STR(buf_str(&r.told), "T:one");
    ws_resume(r.ws);
    check_peer_told(&p, "T:one|T:two");
    ws_resume(r.ws);
    check_peer_told(&p, "T:one|T:two|O:|T:three");
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_close_while_paused_reads_on_for_the_answer)
{
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    r.pause_each = true;
    open_peer(&p, &r, "");
    send_spec(&p, "81:one|81:two");
    check_peer_told(&p, "T:one");
    ws_close(r.ws, WS_NORMAL, STR(""));
    send_spec(&p, "88#1000");
    ws_rig_until(&r, is_closed, &r.closed);
    CHECK_STR(buf_str(&r.told), "T:one|C1000:");
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_abort_tells_nothing)
{
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    open_peer(&p, &r, "");
    ws_abort(take(&r.ws));
    ws_rig_until(&r, ws_peer_at_eof, &p);
    CHECK_INT(r.closed, 0);
    ws_abort(NULL);
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_client_whose_server_vanishes_is_told_at_every_stage)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: webso";
    struct ws_rig r;
    struct listener l;

    ws_rig_init(&r);
    listen_raw(&l);
    for (int stage = 0; stage < 4; stage++) {
        struct ws_peer p;
        r.closed = 0;
        dial_raw(&r, &l, &p);
        if (stage == 1)
            ws_peer_send(&p, str_of(answer));
        if (stage >= 2)
            ws_peer_answer(&p, "");
        if (stage == 3)
            send_spec(&p, "82L1000;:half");
        ws_peer_done(&p);
        ws_rig_until(&r, is_closed, &r.closed);
        CHECK(str_starts(buf_str(&r.told), STR("C1006:")));
        CHECK_HAS(buf_str(&r.told), "hung up");
    }
    close(l.fd);
    ws_rig_done(&r);
}

TEST(ws_server_outlives_peers_that_vanish_at_every_byte_of_the_opening)
{
    static const char opening[] =
        "GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        "\x81\x85\x01\x02\x03\x04Ignmn";
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    for (size_t n = 0; n < sizeof opening; n++) {
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        CHECK_OK(http_server_serve(r.server, pair[1]));
        CHECK(send(pair[0], opening, n, MSG_NOSIGNAL) == (ssize_t)n);
        if (n % 2)
            CHECK_OK(loop_turn(r.loop, 0));
        close(pair[0]);
        for (int i = 0; i < 4; i++)
            CHECK_OK(loop_turn(r.loop, 0));
    }
    CHECK(r.opened > 0);
    CHECK_INT(r.closed, r.opened);
    CHECK_INT(http_server_connections(r.server), 0);
    open_peer(&p, &r, "");
    send_spec(&p, "81:fine");
    check_peer_told(&p, "T:fine");
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_peer_that_still_takes_a_long_message_is_not_silent)
{
    struct ws_rig r;
    struct ws_peer p;
    static char block[32u << 20], part[8192];

    ws_rig_init(&r);
    r.config = (struct ws_config){.ping_ms = 1000, .no_deflate = true};
    open_peer(&p, &r, "");
    ws_send(r.ws, WS_BINARY, str_n(block, sizeof block));
    uint64_t end_ns = clock_mono_ns(&clock_system) + 3 * NS_PER_S;
    while (clock_mono_ns(&clock_system) < end_ns) { /* a slow reader: a little per turn */
        CHECK_OK(loop_turn(r.loop, 2));
        (void)!recv(p.fd, part, sizeof part, MSG_DONTWAIT);
    }
    CHECK_INT(r.closed, 0);
    CHECK(ws_pending(r.ws) > 0);
    ws_rig_until(&r, is_closed, &r.closed); /* now it takes nothing any more */
    CHECK_HAS(buf_str(&r.told), "no answer to a ping");
    ws_peer_done(&p);
    ws_rig_done(&r);
}

TEST(ws_answer_that_lay_unread_while_we_stalled_counts)
{
    struct ws_rig r;
    struct ws_peer p;

    ws_rig_init(&r);
    r.config.ping_ms = 500;
    open_peer(&p, &r, "");
    check_peer_told(&p, "P:");
    send_spec(&p, "8a:");
    uint64_t end_ns = clock_mono_ns(&clock_system) + 1200 * NS_PER_MS;
    while (clock_mono_ns(&clock_system) < end_ns)
        ; /* the loop does not turn */
    for (int i = 0; i < 3; i++)
        CHECK_OK(loop_turn(r.loop, 0));
    CHECK_INT(r.closed, 0);
    ws_peer_done(&p);
    ws_rig_done(&r);
}
