// SPDX-License-Identifier: Apache-2.0
/* sse_test.c — streams in, events out, however the bytes are cut. */
#include "net/sse.h"

#include "test/test.h"

/* Appends "[id|event|data|retry]" to a buf. */
static void on_event(void *ctx, const struct sse_event *e)
{
    buf_addf(ctx, "[" STR_FMT "|" STR_FMT "|" STR_FMT "|%lld]", STR_ARG(e->id), STR_ARG(e->event),
             STR_ARG(e->data), (long long)e->retry_ms);
}

/* Feeds text in two pieces cut at each place in turn, and byte by byte. */
static void check_splits(struct str text, const char *want)
{
    for (size_t cut = 0; cut <= text.len + 1; cut++) {
        own_done(buf) got;
        own_done(sse_parser) p;
        buf_init(&got, 1 << 20);
        sse_parser_init(&p, 1 << 16, on_event, &got);
        if (cut <= text.len) {
            CHECK_OK(sse_parser_feed(&p, str_first(text, cut)));
            CHECK_OK(sse_parser_feed(&p, str_from(text, cut)));
        } else {
            for (size_t i = 0; i < text.len; i++)
                CHECK_OK(sse_parser_feed(&p, str_n(text.p + i, 1)));
        }
        CHECK_STR(buf_str(&got), want);
    }
}

TEST(events_come_the_same_however_the_bytes_are_cut)
{
    static const struct {
        struct str text;
        const char *want;
    } cases[] = {
        {STR_INIT("data: a\n\n"), "[|message|a|-1]"},
        {STR_INIT("data:a\r\rdata:  b\r\n\r\n"), "[|message|a|-1][|message| b|-1]"},
        {STR_INIT("data: a\ndata\ndata:b\n\n"), "[|message|a\n\nb|-1]"},
        {STR_INIT("data\n\n"), "[|message||-1]"},
        {STR_INIT("data\ndata\n\n"), "[|message|\n|-1]"},
        {STR_INIT("data:\n\n"), "[|message||-1]"},
        {STR_INIT("\n\n\r\n\r"), ""},
        {STR_INIT(": hello\n\n:\n\ndata: x\n\n"), "[|message|x|-1]"},
        {STR_INIT("\xef\xbb\xbf"
                  "data: x\n\n"),
         "[|message|x|-1]"},
        {STR_INIT("\xef\xbb\xbf\xef\xbb\xbf"
                  "data: x\n\n"),
         ""},
        {STR_INIT("\n\xef\xbb\xbf"
                  "data: x\n\n"),
         ""},
        {STR_INIT("event: e\ndata: 1\n\ndata: 2\n\n"), "[|e|1|-1][|message|2|-1]"},
        {STR_INIT("event: lost\n\ndata: 2\n\n"), "[|message|2|-1]"},
        {STR_INIT("event: a\nevent: b\ndata: 2\n\n"), "[|b|2|-1]"},
        {STR_INIT("event: a\nevent\ndata: 2\n\n"), "[|message|2|-1]"},
        {STR_INIT("id: 7\ndata: 1\n\ndata: 2\n\nid\ndata: 3\n\n"),
         "[7|message|1|-1][7|message|2|-1][|message|3|-1]"},
        {STR_INIT("id: 7\n\ndata: 1\n\n"), "[7|message|1|-1]"},
        {STR_INIT("id: 7\nid: 8\0\ndata: 1\n\n"), "[7|message|1|-1]"},
        {STR_INIT("retry: 10\ndata: 1\n\ndata: 2\n\n"), "[|message|1|10][|message|2|-1]"},
        {STR_INIT("retry: 10\n\ndata: 2\n\n"), "[|message|2|10]"},
        {STR_INIT("retry: 1x\nretry: -1\nretry: +1\nretry\nretry:  5\ndata: 2\n\n"),
         "[|message|2|-1]"},
        {STR_INIT("retry: 99999999999999999999\ndata: 2\n\n"), "[|message|2|-1]"},
        {STR_INIT("Data: a\ndata : b\n data: c\nunknown: x\n\n"), ""},
        {STR_INIT("data: a: b\n\n"), "[|message|a: b|-1]"},
        {STR_INIT("data: a\n"), ""},
        {STR_INIT("data: a\r\n\r"), "[|message|a|-1]"},
        {STR_INIT("data: a\n\r\n"), "[|message|a|-1]"},
        {STR_INIT("data: a\r\n\ndata: b\r\n\n"), "[|message|a|-1][|message|b|-1]"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_splits(cases[i].text, cases[i].want);
}

TEST(what_is_put_is_what_is_read)
{
    own_done(buf) wire;

    buf_init(&wire, 1 << 16);
    sse_put(&wire, STR("5"), STR("tick"), STR("a\nb\r\nc\rd\n"));
    sse_put_comment(&wire, STR("still\nhere"));
    sse_put(&wire, STR(""), STR(""), STR(""));
    sse_put(&wire, STR("6\ndata: forged"), STR("x\r\n\r\ndata: y"), STR("z"));
    CHECK_HAS(buf_str(&wire), "id: 5\nevent: tick\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
    check_splits(buf_str(&wire), "[5|tick|a\nb\nc\nd\n|-1][5|message||-1]"
                                 "[6data: forged|xdata: y|z|-1]");
}

static struct err *feed_all(struct str text, size_t piece, size_t limit, unsigned *events)
{
    own_done(buf) got;
    own_done(sse_parser) p;
    struct err *e = NULL;

    buf_init(&got, 1 << 20);
    sse_parser_init(&p, limit, on_event, &got);
    for (size_t at = 0; at < text.len && !e; at += piece)
        e = sse_parser_feed(&p, str_first(str_from(text, at), piece));
    *events = got.len > 0;
    if (e)
        CHECK_ERR(sse_parser_feed(&p, STR("\n\n")), err_code(e), ""); /* and stays so */
    return e;
}

TEST(an_event_over_the_limit_is_refused_however_it_is_cut)
{
    unsigned events;

    for (size_t piece = 1; piece < 30; piece++) {
        CHECK_OK(feed_all(STR("data: 34567890\n\n"), piece, 14, &events));
        CHECK_INT(events, 1);
        CHECK_ERR(feed_all(STR("data: 345678901\n\n"), piece, 14, &events), ERR_TOO_LARGE, "14");
        CHECK_INT(events, 0);
        CHECK_ERR(feed_all(STR(":23456789012345"), piece, 14, &events), ERR_TOO_LARGE, "over 14");
        CHECK_ERR(feed_all(STR("data:1234567\ndata:1234567\n\n"), piece, 14, &events),
                  ERR_TOO_LARGE, "over 14");
        CHECK_ERR(feed_all(STR("data:1234567\nevent:1234567\n\n"), piece, 14, &events),
                  ERR_TOO_LARGE, "over 14");
    }
}

TEST(no_memory_is_an_error_of_the_feed)
{
    unsigned n = 0, events;

    for (;;) {
        fault_at(++n);
        struct err *e = feed_all(STR("id: 1\nevent: x\ndata: yyy\n\n"), 3, 100, &events);
        if (!fault_fired())
            break;
        if (e)
            CHECK_ERR(e, ERR_NO_MEMORY, "memory");
    }
    fault_at(0);
    CHECK(n > 4);
}

TEST(many_lines_with_bare_cr_cost_linear_time)
{
    static char text[4 << 20];
    unsigned events;

    memset(text, '\r', sizeof text);
    CHECK_OK(feed_all(str_n(text, sizeof text), sizeof text, 100, &events));
}
