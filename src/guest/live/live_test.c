// SPDX-License-Identifier: Apache-2.0
#include "guest/live/live.h"

#include <stdio.h>
#include <stdlib.h>

#include "guest/live/live_sse.h"
#include "test/test.h"
#include "test/web.h"

struct seen {
    struct live_reader reader;
    struct buf got;
    bool stalled, ended;
    uint64_t lost;
};

static size_t on_bytes(struct live_reader *r, struct str bytes)
{
    struct seen *s = container_of(r, struct seen, reader);

    if (s->stalled)
        return 0;
    bytes = str_first(bytes, 1000);
    buf_add(&s->got, bytes);
    return bytes.len;
}

static void on_end(struct live_reader *r, uint64_t lost_bytes)
{
    struct seen *s = container_of(r, struct seen, reader);

    s->ended = true;
    s->lost = lost_bytes;
}

static void seen_init(struct seen *s, uint64_t at)
{
    *s = (struct seen){.reader = {.at = at, .on_bytes = on_bytes, .on_end = on_end}};
    buf_init(&s->got, 64u << 20);
}

TEST(live_gives_what_was_kept_then_what_comes)
{
    struct live l;
    struct seen all, rest;

    live_init(&l);
    live_add(&l, STR("one"));
    seen_init(&all, 0);
    seen_init(&rest, 2);
    CHECK_OK(live_attach(&l, &all.reader));
    live_read(&all.reader);
    CHECK_OK(live_attach(&l, &rest.reader));
    live_add(&l, STR("two"));
    CHECK_STR(buf_str(&all.got), "onetwo");
    CHECK_STR(buf_str(&rest.got), "etwo");
    live_done(&l);
    CHECK(all.ended && rest.ended && all.lost == 0);
    buf_done(&all.got);
    buf_done(&rest.got);
}

TEST(live_drops_a_reader_that_falls_behind_and_keeps_its_memory_bounded)
{
    struct live l;
    struct seen slow, quick;
    char page[4096];

    memset(page, 'x', sizeof page);
    live_init(&l);
    seen_init(&slow, 0);
    seen_init(&quick, 0);
    slow.stalled = true;
    CHECK_OK(live_attach(&l, &slow.reader));
    CHECK_OK(live_attach(&l, &quick.reader));
    for (int i = 0; i < 1024; i++)
        live_add(&l, str_n(page, sizeof page));
    CHECK(slow.ended && slow.lost > 0);
    CHECK(!quick.ended);
    CHECK_INT(quick.got.len, 4u << 20);
    CHECK(l.kept.len >= LIVE_KEEP_BYTES && l.kept.cap <= 2 * LIVE_KEEP_BYTES);
    CHECK_INT(live_end(&l), 4u << 20);
    live_add(&l, str_n(quick.got.p, 1u << 20)); /* one piece larger than all that is kept */
    CHECK_INT(quick.got.len, 5u << 20);
    live_done(&l);
    buf_done(&slow.got);
    buf_done(&quick.got);
}

TEST(live_refuses_one_reader_too_many)
{
    static struct seen s[LIVE_READERS_MAX + 1];
    struct live l;

    live_init(&l);
    for (int i = 0; i < LIVE_READERS_MAX; i++) {
        seen_init(&s[i], 0);
        CHECK_OK(live_attach(&l, &s[i].reader));
    }
    seen_init(&s[LIVE_READERS_MAX], 0);
    CHECK_ERR(live_attach(&l, &s[LIVE_READERS_MAX].reader), ERR_LIMIT, "32 readers");
    live_detach(&s[0].reader);
    live_detach(&s[0].reader);
    CHECK_OK(live_attach(&l, &s[LIVE_READERS_MAX].reader));
    live_done(&l);
    CHECK(!s[0].ended && s[1].ended);
}

/* --- as events --- */

static struct live source;
static struct web web;

static fallible handle(struct http_req *req)
{
    return live_sse(&source, web.loop, req);
}

static const struct route routes[] = {{"GET", "/out", handle}};

static void open_site(void)
{
    live_init(&source);
    web_open(&web, WEB_ROUTES(routes), NULL, NULL);
}

static void ask(struct web_client *c, const char *request)
{
    web_connect(&web, c, 1u << 20);
    CHECK(web_send(&web, c, str_of(request)));
    web_read(&web, c);
}

static struct str text_of(const struct web_client *c)
{
    return str_n(c->p, c->len);
}

#define GET(target, headers) "GET " target " HTTP/1.1\r\nHost: x\r\n" headers "\r\n"

TEST(live_events_carry_bytes_and_continue_by_id)
{
    struct web_client all, text, rest;

    open_site();
    live_add(&source, STR("a\r\n\xc3"));
    ask(&all, GET("/out", ""));
    ask(&text, GET("/out?encoding=text", ""));
    ask(&rest, GET("/out?encoding=text", "Last-Event-ID: 1\r\n"));
    CHECK_HAS(text_of(&all), "id: 4\nevent: output\ndata: YQ0Kww==\n\n");
    CHECK_HAS(text_of(&text), "id: 3\nevent: output\ndata: \"a\\r\\n\"\n\n");
    CHECK_HAS(text_of(&rest), "data: \"\\r\\n\"\n\n");
    live_add(&source, STR("\xa4 end"));
    web_read(&web, &text);
    CHECK_HAS(text_of(&text), "id: 9\nevent: output\ndata: \"\xc3\xa4 end\"\n\n");
    char control[20000];
    memset(control, '\033', sizeof control);
    live_add(&source, str_n(control, sizeof control)); /* takes most room as JSON */
    web_read(&web, &text);
    CHECK_HAS(text_of(&text), "id: 16393\n");
    CHECK_HAS(text_of(&text), "id: 20009\n");
    CHECK_HAS(text_of(&text), "\\u001b\"\n\n");
    live_done(&source);
    web_read(&web, &all);
    CHECK_HAS(text_of(&all), "event: end\ndata: {\"reason\":\"closed\"}\n\n");
    CHECK(str_ends(text_of(&all), STR("0\r\n\r\n"))); /* an answer like any other */
    web_close_client(&all);
    web_close_client(&text);
    web_close_client(&rest);
    web_close(&web);
}

TEST(live_events_say_what_a_late_reader_missed)
{
    struct web_client c;
    own_free char *much = calloc(1, LIVE_KEEP_BYTES);

    open_site();
    for (int i = 0; i < 3; i++)
        live_add(&source, str_n(much, LIVE_KEEP_BYTES));
    ask(&c, GET("/out?after=10", ""));
    CHECK_HAS(text_of(&c), "event: gap\ndata: 262134\n\n");
    web_close_client(&c);
    web_turns(&web, 3);
    CHECK_INT(source.readers_count, 0); /* whoever leaves is forgotten */
    ask(&c, GET("/out", ""));
    CHECK(str_find(text_of(&c), STR("event: gap")) < 0); /* it did not ask for what is gone */
    web_close_client(&c);
    live_done(&source);
    web_close(&web);
}

TEST(live_events_end_for_a_peer_that_does_not_read)
{
    struct web_client c;
    own_free char *much = calloc(1, LIVE_KEEP_BYTES);

    open_site();
    web_connect(&web, &c, 4u << 20);
    CHECK(web_send(&web, &c, STR(GET("/out", ""))));
    web_turns(&web, 3);
    CHECK_INT(source.readers_count, 1);
    for (int i = 0; i < 40; i++) {
        live_add(&source, str_n(much, LIVE_KEEP_BYTES));
        web_turns(&web, 1);
    }
    CHECK_INT(source.readers_count, 0);
    web_read(&web, &c);
    CHECK_HAS(text_of(&c), "event: end\ndata: {\"reason\":\"too slow\",\"lost_bytes\":");
    web_close_client(&c);
    live_done(&source);
    web_close(&web);
}

TEST(live_events_keep_a_silent_connection_alive_and_refuse_bad_questions)
{
    struct web_client c;

    open_site();
    ask(&c, GET("/out", ""));
    for (int i = 0; i < 10; i++)
        web_pass(&web, 20000);
    CHECK_INT(source.readers_count, 1);
    live_add(&source, STR("still"));
    web_read(&web, &c);
    CHECK_HAS(text_of(&c), "data: c3RpbGw=");
    web_close_client(&c);
    CHECK_INT(web_ask(&web, STR(GET("/out?encoding=utf9", ""))).status, 422);
    CHECK_INT(web_ask(&web, STR(GET("/out?after=x", ""))).status, 422);
    CHECK_INT(web_ask(&web, STR("HEAD /out HTTP/1.1\r\nHost: x\r\n\r\n")).status, 200);
    live_done(&source);
    web_close(&web);
}
