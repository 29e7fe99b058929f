// SPDX-License-Identifier: Apache-2.0
/* pause_test.c — a sandbox that starts, stands still, wakes up and goes while requests come. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "host/proxy/proxy.h"
#include "test/proxy_kit.h"
#include "test/test.h"

#define HOST      "Host: 127.0.0.1\r\n"
#define GET(path) STR("GET " path " HTTP/1.1\r\n" HOST "\r\n")

static unsigned woken;

static void on_wake(struct proxy_target *t)
{
    (void)t;
    woken++;
}

static void check_paused(struct pkit *k, struct web_client *c)
{
    CHECK(web_send(&k->web, c, GET("/")));
    struct web_answer a = pkit_take(k, c);
    CHECK_INT(a.status, 503);
    CHECK_HAS(a.head, "retry-after: 1\r\n");
    CHECK_STR(a.body, "{\"detail\":\"the sandbox is paused\"}");
    CHECK(a.keep_alive);
}

TEST(a_paused_sandbox_is_503_on_old_connections_too)
{
    struct web_client old, fresh, main;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    pkit_dial(&k, k.t.port, &old, 4096);
    CHECK(web_send(&k.web, &old, GET("/")));
    CHECK_INT(pkit_take(&k, &old).status, 200);
    CHECK_INT(k.t.idlers, 1);
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    CHECK_INT(k.t.idlers, 0);
    pkit_dial(&k, k.t.port, &fresh, 4096);
    check_paused(&k, &old);
    check_paused(&k, &fresh);
    check_paused(&k, &old);
    web_connect(&k.web, &main, 4096);
    CHECK(web_send(&k.web, &main, GET("/sandbox/" PKIT_ID "/")));
    CHECK_INT(pkit_take(&k, &main).status, 503);
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    CHECK(web_send(&k.web, &old, GET("/")));
    CHECK_INT(pkit_take(&k, &old).status, 200);
    CHECK_INT(k.t.open, 0);
    web_close_client(&old);
    web_close_client(&fresh);
    web_close_client(&main);
    pkit_close(&k);
}

TEST(what_is_in_flight_is_held_over_a_pause_however_long)
{
    struct proxy_config config = {.answer_ms = 60000, .connect_ms = 1000};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, &config, NULL, 0);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, GET("/hold")));
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.held_count, 1);
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    for (int i = 0; i < 100; i++)
        web_pass(&k.web, 3600000);
    web_read(&k.web, &c);
    CHECK_INT(c.len, 0);
    CHECK_INT(k.t.open, 1);
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    web_turns(&k.web, PKIT_TURNS);
    web_pass(&k.web, 59000);
    pkit_answer_held(&k, 0);
    CHECK_STR(pkit_take(&k, &c).body, "late");
    web_close_client(&c);
    pkit_close(&k);
}

TEST(a_parked_request_wakes_the_sandbox_once_and_goes_on)
{
    struct web_client c[3];
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    k.t.park = true;
    k.t.on_wake = on_wake;
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    for (int i = 0; i < 3; i++) {
        pkit_dial(&k, k.t.port, &c[i], 4096);
        CHECK(web_send(&k.web, &c[i],
                       STR("POST /a HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody")));
        web_turns(&k.web, PKIT_TURNS);
        CHECK_INT(woken, 1);
    }
    CHECK_INT(k.t.open, 3);
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    for (int i = 0; i < 3; i++)
        CHECK_HAS(pkit_take(&k, &c[i]).body, "\n\nbody");
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    CHECK(web_send(&k.web, &c[0], GET("/")));
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(woken, 2);
    web_pass(&k.web, 30001); /* nobody resumes it */
    CHECK_INT(pkit_take(&k, &c[0]).status, 503);
    CHECK_INT(k.t.open, 0);
    for (int i = 0; i < 3; i++)
        web_close_client(&c[i]);
    pkit_close(&k);
}

static struct proxy *wake_proxy;

static void on_wake_at_once(struct proxy_target *t)
{
    proxy_set_state(wake_proxy, t, PROXY_OPEN);
}

TEST(a_sandbox_may_be_resumed_inside_the_call_that_asks_for_it)
{
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    wake_proxy = k.proxy;
    k.t.park = true;
    k.t.on_wake = on_wake_at_once;
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    CHECK_INT(pkit_ask(&k, GET("/")).status, 200);
    pkit_close(&k);
}

TEST(parking_has_a_bound)
{
    struct proxy_config config = {.most_parked = 2};
    struct web_client c[3];
    struct pkit k;

    pkit_open(&k, &config, NULL, 0);
    k.t.park = true;
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    for (int i = 0; i < 3; i++) {
        pkit_dial(&k, k.t.port, &c[i], 4096);
        CHECK(web_send(&k.web, &c[i], GET("/")));
        web_turns(&k.web, PKIT_TURNS);
    }
    CHECK_INT(pkit_take(&k, &c[2]).status, 503);
    CHECK_INT(k.t.open, 2);
    web_close_client(&c[0]); /* who gives up makes room */
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.t.open, 1);
    CHECK(web_send(&k.web, &c[2], GET("/")));
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.t.open, 2);
    proxy_set_state(k.proxy, &k.t, PROXY_GONE);
    CHECK_INT(pkit_take(&k, &c[1]).status, 404);
    CHECK_INT(pkit_take(&k, &c[2]).status, 404);
    CHECK_INT(k.t.open, 0);
    web_close_client(&c[1]);
    web_close_client(&c[2]);
    pkit_close(&k);
}

TEST(one_sandbox_does_not_take_all_the_room_to_park)
{
    enum { MANY = 129 };
    static struct web_client c[MANY];
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    k.t.park = true;
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    for (int i = 0; i < MANY; i++) {
        pkit_dial(&k, k.t.port, &c[i], 1024);
        CHECK(web_send(&k.web, &c[i], GET("/")));
        web_turns(&k.web, PKIT_TURNS);
    }
    CHECK_INT(pkit_take(&k, &c[MANY - 1]).status, 503);
    CHECK_INT(k.t.open, MANY - 1);
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    for (int i = 0; i < MANY - 1; i++) {
        CHECK_INT(pkit_take(&k, &c[i]).status, 200);
        web_close_client(&c[i]);
    }
    web_close_client(&c[MANY - 1]);
    CHECK_INT(k.t.waiting, 0);
    pkit_close(&k);
}

TEST(a_tenant_parks_no_more_than_it_leaves_free_for_others)
{
    enum { MANY = 3 };
    struct proxy_config config = {.most_parked = 4};
    struct web_client c[MANY], other;
    uint32_t ours = 0, theirs = 0;
    struct pkit k;

    pkit_open(&k, &config, NULL, 0);
    k.t.park = true;
    k.t.parked_of = &ours;
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    for (int i = 0; i < MANY; i++) {
        pkit_dial(&k, k.t.port, &c[i], 1024);
        CHECK(web_send(&k.web, &c[i], GET("/")));
        web_turns(&k.web, PKIT_TURNS);
    }
    CHECK_INT(pkit_take(&k, &c[MANY - 1]).status, 503);
    CHECK_INT(ours, 2);
    struct proxy_target t = {.id = "theirs", .park = true, .parked_of = &theirs};
    CHECK_OK(proxy_add(k.proxy, &t, 0));
    proxy_set_state(k.proxy, &t, PROXY_PAUSED);
    pkit_dial(&k, t.port, &other, 1024);
    CHECK(web_send(&k.web, &other, GET("/")));
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(theirs, 1);
    web_close_client(&other);
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(theirs, 0);
    proxy_remove(k.proxy, &t);
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    for (int i = 0; i < MANY; i++) {
        if (i < MANY - 1)
            CHECK_INT(pkit_take(&k, &c[i]).status, 200);
        web_close_client(&c[i]);
    }
    CHECK_INT(ours, 0);
    pkit_close(&k);
}

static bool has_none(void *ctx)
{
    (void)ctx;
    return false;
}

TEST(where_there_are_no_tenants_all_places_to_park_are_one_s_own)
{
    enum { MANY = 3 };
    struct proxy_config config = {.most_parked = MANY - 1, .has_tenants = has_none};
    struct web_client c[MANY];
    uint32_t ours = 0;
    struct pkit k;

    pkit_open(&k, &config, NULL, 0);
    k.t.park = true;
    k.t.parked_of = &ours;
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    for (int i = 0; i < MANY; i++) {
        pkit_dial(&k, k.t.port, &c[i], 1024);
        CHECK(web_send(&k.web, &c[i], GET("/")));
        web_turns(&k.web, PKIT_TURNS);
    }
    CHECK_INT(pkit_take(&k, &c[MANY - 1]).status, 503);
    CHECK_INT(ours, MANY - 1); /* counted all the same: there may be keys the next time */
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    for (int i = 0; i < MANY; i++) {
        if (i < MANY - 1)
            CHECK_INT(pkit_take(&k, &c[i]).status, 200);
        web_close_client(&c[i]);
    }
    CHECK_INT(ours, 0);
    pkit_close(&k);
}

TEST(requests_wait_for_a_start_but_not_for_ever)
{
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    proxy_set_state(k.proxy, &k.t, PROXY_STARTING);
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, GET("/a")));
    web_turns(&k.web, PKIT_TURNS);
    web_pass(&k.web, 59000);
    web_read(&k.web, &c);
    CHECK_INT(c.len, 0);
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    CHECK_INT(pkit_take(&k, &c).status, 200);
    proxy_set_state(k.proxy, &k.t, PROXY_STARTING);
    CHECK(web_send(&k.web, &c, GET("/a")));
    web_turns(&k.web, PKIT_TURNS);
    web_pass(&k.web, 60001);
    struct web_answer a = pkit_take(&k, &c);
    CHECK_INT(a.status, 503);
    CHECK_STR(a.body, "{\"detail\":\"the sandbox is starting\"}");
    proxy_set_state(k.proxy, &k.t, PROXY_STARTING);
    CHECK(web_send(&k.web, &c, GET("/a")));
    web_turns(&k.web, PKIT_TURNS);
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED); /* started, and paused at once */
    CHECK_INT(pkit_take(&k, &c).status, 503);
    web_close_client(&c);
    pkit_close(&k);
}

/* --- ended while it stands still --- */

#define HOLD_POST STR("POST /hold HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody")

static void ask_held(struct pkit *k, struct web_client *c, struct str request)
{
    unsigned before = k->held_count;

    pkit_dial(k, k->t.port, c, 4096);
    CHECK(web_send(&k->web, c, request));
    web_turns(&k->web, PKIT_TURNS);
    CHECK_INT(k->held_count, before + 1);
}

static void check_later(struct pkit *k, struct web_client *c, const char *detail)
{
    struct web_answer a = pkit_take(k, c);

    CHECK_INT(a.status, 503);
    CHECK_HAS(a.head, "retry-after: 1\r\n");
    CHECK_HAS(a.body, detail);
}

static void end_held(struct pkit *k, unsigned i)
{
    http_reply_abort(take(&k->held[i]));
    web_turns(&k->web, PKIT_TURNS);
}

TEST(what_is_held_over_a_pause_is_503_when_the_sandbox_is_ended_then)
{
    struct web_client c[3];
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    ask_held(&k, &c[0], GET("/hold"));
    ask_held(&k, &c[1], HOLD_POST); /* nobody knows whether it was done: its client decides */
    ask_held(&k, &c[2], GET("/hold"));
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    end_held(&k, 0);
    check_later(&k, &c[0], "the sandbox is paused");
    end_held(&k, 1);
    check_later(&k, &c[1], "the sandbox is paused");
    proxy_set_state(k.proxy, &k.t, PROXY_STARTING); /* resumed before its end was seen */
    end_held(&k, 2);
    web_read(&k.web, &c[2]);
    CHECK_INT(c[2].len, 0);
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    web_turns(&k.web, PKIT_TURNS);
    pkit_answer_held(&k, 3);
    CHECK_STR(pkit_take(&k, &c[2]).body, "late");
    for (int i = 0; i < 3; i++)
        web_close_client(&c[i]);
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.t.open, 0);
    pkit_close(&k);
}

TEST(what_is_held_is_parked_when_a_paused_sandbox_is_ended_that_is_to_be_woken)
{
    struct web_client c[3];
    struct pkit k;

    woken = 0;
    pkit_open(&k, NULL, NULL, 0);
    k.t.park = true;
    k.t.on_wake = on_wake;
    ask_held(&k, &c[0], GET("/hold"));
    ask_held(&k, &c[1], HOLD_POST);
    ask_held(&k, &c[2], GET("/hold"));
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    CHECK_INT(woken, 0);
    CHECK_INT(shutdown(c[2].fd, SHUT_WR), 0); /* most likely gone: nobody to wake it for */
    web_turns(&k.web, PKIT_TURNS);
    end_held(&k, 2);
    check_later(&k, &c[2], "the sandbox is paused");
    end_held(&k, 1);
    check_later(&k, &c[1], "the sandbox is paused");
    CHECK_INT(woken, 0);
    end_held(&k, 0);
    CHECK_INT(woken, 1);
    CHECK_INT(k.t.waiting, 1);
    proxy_set_state(k.proxy, &k.t, PROXY_OPEN);
    web_turns(&k.web, PKIT_TURNS);
    pkit_answer_held(&k, 3);
    CHECK_STR(pkit_take(&k, &c[0]).body, "late");
    for (int i = 0; i < 3; i++)
        web_close_client(&c[i]);
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.t.open, 0);
    pkit_close(&k);
}

/* Its backlog was full, or pid 1 was asked for a port: nothing of the request went in. */
TEST(what_was_being_connected_is_503_when_a_paused_sandbox_is_ended)
{
    static const struct raw_script tunnel = {.answers = {STR_INIT("")}, .end = RAW_HANGUP};
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, &tunnel, 1);
    k.t.address.tunnel_port = 60000;
    pkit_dial(&k, k.t.port, &c, 4096);
    CHECK(web_send(&k.web, &c, HOLD_POST));
    web_turns(&k.web, PKIT_TURNS);
    CHECK_HAS(buf_str(&k.raw.seen), "CONNECT ");
    proxy_set_state(k.proxy, &k.t, PROXY_PAUSED);
    raw_close_conns(&k.raw);
    check_later(&k, &c, "the sandbox is paused");
    CHECK_INT(k.t.open, 0);
    web_close_client(&c);
    pkit_close(&k);
}

/* --- pauses under load --- */

enum { CLIENTS = 24, PAUSES = 1000 };

struct load {
    struct web_client c;
    bool asked;
    unsigned ok, refused, after; /* after: turns since it asked */
};

static struct rng *dice;

static void ask(struct pkit *k, struct load *l)
{
    static const struct str kinds[] = {
        STR_INIT("GET /a HTTP/1.1\r\n" HOST "\r\n"),
        STR_INIT("POST /take HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"),
        STR_INIT("GET /give?40000 HTTP/1.1\r\n" HOST "\r\n"),
        STR_INIT("GET /stream?1000 HTTP/1.1\r\n" HOST "\r\n"),
        STR_INIT("POST /a HTTP/1.1\r\n" HOST
                 "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
    };
    struct str request = kinds[rng_u64(dice) % ARRAY_LEN(kinds)];

    CHECK_INT(send(l->c.fd, request.p, request.len, MSG_NOSIGNAL), (long long)request.len);
    l->asked = true;
    l->after = 0;
    (void)k;
}

/* Takes the answer if it is there as a whole. */
static void look(struct load *l)
{
    struct http_head h;
    struct http_body b;
    struct str in, piece;
    struct arena a;
    size_t scanned = 0, end = 0;

    web_read_some(&l->c, l->c.cap);
    CHECK(!l->c.eof && !l->c.errnum);
    CHECK_OK(http_head_end(str_n(l->c.p, l->c.len), &scanned, &end));
    if (!end)
        return;
    arena_init(&a, 1u << 20);
    CHECK_OK(http_parse_response(&a, str_n(l->c.p, end), STR("GET"), &h));
    in = str_n(l->c.p + end, l->c.len - end);
    http_body_init(&b, &h);
    while (in.len && !b.done)
        CHECK_OK(http_body_next(&b, &in, &piece));
    if (b.done) {
        CHECK(h.status == 200 || h.status == 503);
        CHECK_INT(in.len, 0);
        *(h.status == 200 ? &l->ok : &l->refused) += 1;
        l->c.len = 0;
        l->asked = false;
    }
    arena_done(&a);
}

/* A frozen sandbox neither accepts nor reads nor writes: the same loop runs ours, so its listener
 * and its connections stand still by being asked of nothing. Here only the proxy's state flips, as
 * fast as it can; test/wire/serve_pause_test.c has real sandboxes and the kernel's freezer. */
static void run_load(bool park)
{
    struct load all[CLIENTS] = {0};
    unsigned ok = 0, refused = 0;
    struct pkit k;

    dice = rng_system();
    pkit_open(&k, NULL, NULL, 0);
    k.t.park = park;
    k.t.on_wake = on_wake;
    for (int i = 0; i < CLIENTS; i++)
        pkit_dial(&k, k.t.port, &all[i].c, 64u << 10);
    for (int pause = 0; pause < 2 * PAUSES; pause++) {
        proxy_set_state(k.proxy, &k.t, pause % 2 ? PROXY_OPEN : PROXY_PAUSED);
        for (int turn = (int)(rng_u64(dice) % 6); turn >= 0; turn--) {
            for (int i = 0; i < CLIENTS; i++)
                if (!all[i].asked)
                    ask(&k, &all[i]);
                else
                    look(&all[i]);
            web_turns(&k.web, 1);
        }
    }
    for (int turn = 0; turn < 500; turn++) {
        web_turns(&k.web, 1);
        for (int i = 0; i < CLIENTS; i++)
            if (all[i].asked)
                look(&all[i]);
    }
    for (int i = 0; i < CLIENTS; i++) {
        CHECK(!all[i].asked);
        CHECK(all[i].ok > 10);
        ok += all[i].ok;
        refused += all[i].refused;
        web_close_client(&all[i].c);
    }
    CHECK(ok > PAUSES);
    CHECK((refused > PAUSES) == !park);
    web_turns(&k.web, PKIT_TURNS);
    CHECK_INT(k.t.open, 0);
    pkit_close(&k);
}

TEST(nothing_hangs_over_a_thousand_pauses_under_load)
{
    run_load(false);
}

TEST(nothing_hangs_over_a_thousand_pauses_with_parked_requests)
{
    run_load(true);
}
