// SPDX-License-Identifier: Apache-2.0
/* log_test.c — what is made of the log of the other server: its events, its refusals, its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/follow.h"
#include "test/remote_kit.h"
#include "test/test.h"

#define LOGS "GET /croft/v1/sandboxes/abc/logs?follow="
#define LOG(id, said)                                                                              \
    "event: log\nid: " id "\ndata: {\"place\":\"" id "\",\"text\":\"" said "\"}\n\n"
#define OVER "event: end\ndata: it ended\n\n"
#define STOPPED_THERE                                                                              \
    {                                                                                              \
        "POST /croft/v1/sandboxes/abc/stop", 200, "paused"                                         \
    }
#define GONE_THERE                                                                                 \
    {                                                                                              \
        "DELETE /croft/v1/sandboxes/abc", 200, "stopped"                                           \
    }

struct ear {
    struct sbx_follower follower;
    struct buf heard;
    bool begun, ended, idle; /* idle: it takes nothing */
    enum err_code code;
    char first[SBX_PLACE_MAX], last[SBX_PLACE_MAX], error[400];
};

static void on_more(struct sbx_follower *f)
{
    struct ear *ear = container_of(f, struct ear, follower);

    if (!ear->idle)
        sbx_log_next(f, &ear->heard);
    sbx_place_format(&f->at, ear->last);
}

static void on_begin(struct sbx_follower *f)
{
    struct ear *ear = container_of(f, struct ear, follower);

    ear->begun = true;
    sbx_place_format(&f->at, ear->first);
}

static void on_end(struct sbx_follower *f, const struct err *e)
{
    struct ear *ear = container_of(f, struct ear, follower);

    ear->idle = false;
    on_more(f);
    ear->ended = true;
    ear->code = e ? err_code(e) : ERR_INTERNAL;
    snprintf(ear->error, sizeof ear->error, "%s", e ? err_text(e) : "");
}

static const struct sbx_log_from follow = {.lines = UINT64_MAX, .follow = true};
static const struct sbx_log_from all = {.lines = UINT64_MAX};

static void listen_to(struct world *w, struct ear *ear, const struct sbx_log_from *from)
{
    *ear = (struct ear){.follower = {.on_begin = on_begin, .on_more = on_more, .on_end = on_end},
                        .idle = ear->idle};
    buf_init(&ear->heard, 4u << 20);
    CHECK_OK(sbx_follow(w->s, from, &ear->follower));
}

static void until_it_ends(struct world *w, struct ear *ear)
{
    for (unsigned i = 0; !ear->ended; i++) {
        CHECK(i < 10000);
        web_pass(&w->web, 10);
        web_turns(&w->web, 12);
    }
}

static void hear(struct world *w, struct ear *ear, const struct sbx_log_from *from)
{
    listen_to(w, ear, from);
    until_it_ends(w, ear);
}

static void end_world(struct world *w)
{
    world_must(w, sbx_stop);
    world_must(w, sbx_remove);
    world_close(w);
}

TEST(remote_log_keeps_the_places_of_the_other_server)
{
    struct world w = {.croft = true};
    const struct answer script[] = {
        {"POST /start", 200, "running"},
        {LOGS "false", 200, LOG("9.0", "a\\n") LOG("9.4", "\xc3\xbc\\n")},
        {LOGS "true&tail=3", 200, LOG("9.0", "a\\n") OVER},
        {LOGS "false&since=9.4", 200, "event: log\n"}, /* nothing */
        STOPPED_THERE,
        GONE_THERE,
        END};
    struct ear ear = {0};

    world_open(&w, script);
    world_must(&w, sbx_start);
    hear(&w, &ear, &all);
    CHECK_STR(ear.error, "");
    CHECK_STR(ear.first, "7.0");
    CHECK_STR(ear.last, "9.4");
    CHECK_STR(buf_str(&ear.heard), "a\n\xc3\xbc\n");
    buf_done(&ear.heard);
    hear(&w, &ear, &(struct sbx_log_from){.lines = 3, .follow = true});
    CHECK_STR(ear.error, "");
    CHECK_STR(buf_str(&ear.heard), "a\n");
    buf_done(&ear.heard);
    hear(&w, &ear, &(struct sbx_log_from){.has_place = true, .place = {9, 4}});
    CHECK_STR(ear.error, "");
    CHECK_INT(ear.heard.len, 0);
    buf_done(&ear.heard);
    end_world(&w);
}

TEST(remote_log_is_followed_from_before_the_start_to_the_end)
{
    struct world w = {.croft = true};
    const struct answer script[] = {{"POST /start", 200, "running"},
                                    {LOGS "true&since=0.0", 200, LOG("2.0", "hi") OVER},
                                    STOPPED_THERE,
                                    GONE_THERE,
                                    END};
    struct ear ear = {0}, never = {0};

    world_open(&w, script);
    web_turns(&w.web, 30); /* until it is known who is there */
    listen_to(&w, &ear, &follow);
    CHECK(ear.begun && !ear.ended);
    hear(&w, &never, &all); /* so far it said nothing */
    CHECK_INT(never.heard.len, 0);
    world_must(&w, sbx_start);
    until_it_ends(&w, &ear);
    CHECK_STR(ear.error, "");
    CHECK_STR(buf_str(&ear.heard), "hi");
    buf_done(&ear.heard);
    end_world(&w);
}

TEST(remote_log_that_is_cut_or_refused_says_why)
{
    static const struct {
        const char *said;
        int status;
        enum err_code code;
        const char *part;
    } rows[] = {
        {LOG("2.0", "hi"), 200, ERR_UPSTREAM, "before the sandbox did"},
        {LOG("two", "hi"), 200, ERR_UPSTREAM, "'two' is no place"},
        {"event: log\ndata: hi\n\n", 200, ERR_UPSTREAM, "the log of the other server"},
        {"event: log\ndata: {}\n\n", 200, ERR_UPSTREAM, "place"},
        {"who?", 404, ERR_NOT_FOUND, "the server: who?"},
        {"not here", 501, ERR_UNSUPPORTED, "the server: not here"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w = {.croft = true};
        const struct answer script[] = {{"POST /start", 200, "running"},
                                        {LOGS "true", rows[i].status, rows[i].said},
                                        STOPPED_THERE,
                                        GONE_THERE,
                                        END};
        struct ear ear = {0};
        world_open(&w, script);
        world_must(&w, sbx_start);
        hear(&w, &ear, &follow);
        CHECK_HAS(ear.error, rows[i].part);
        CHECK_INT(ear.code, rows[i].code);
        CHECK_INT(ear.begun, rows[i].status == 200);
        buf_done(&ear.heard);
        end_world(&w);
    }
}

TEST(remote_log_wants_a_croft_at_the_other_side)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "running"}, STOPPED_AND_GONE, END};
    struct ear ear = {0};

    world_open(&w, script);
    CHECK_ERR(sbx_follow(w.s, &all, &ear.follower), ERR_BUSY, "not known yet");
    world_must(&w, sbx_start);
    CHECK_ERR(sbx_follow(w.s, &all, &ear.follower), ERR_UNSUPPORTED,
              "cannot keep a log here: that needs a croft at the other side");
    end_world(&w);
}

TEST(remote_log_is_not_read_faster_than_its_reader_takes_it)
{
    enum { EVENTS = 200, EACH = 8 << 10 };
    struct world w = {.croft = true};
    own_free char *text = malloc(EVENTS * (EACH + 100));
    struct ear ear = {.idle = true};
    char *p = text;

    CHECK(text != NULL);
    for (unsigned i = 1; i <= EVENTS; i++) {
        p += sprintf(p, "event: log\ndata: {\"place\":\"%u.0\",\"text\":\"", i);
        memset(p, 'm', EACH);
        p += EACH;
        p += sprintf(p, "\"}\n\n");
    }
    const struct answer script[] = {
        {"POST /start", 200, "running"}, {LOGS "false", 200, text}, STOPPED_THERE, GONE_THERE, END};
    world_open(&w, script);
    world_must(&w, sbx_start);
    listen_to(&w, &ear, &all);
    for (unsigned i = 0; i < 200; i++)
        web_turns(&w.web, 12);
    CHECK(ear.begun && !ear.ended);
    sbx_log_next(&ear.follower, &ear.heard);
    CHECK(ear.heard.len >= EACH && ear.heard.len < 256u << 10);
    ear.idle = false;
    until_it_ends(&w, &ear);
    CHECK_STR(ear.error, "");
    CHECK_INT(ear.heard.len, EVENTS * EACH);
    CHECK_STR(ear.last, "200.0");
    buf_done(&ear.heard);
    end_world(&w);
}

/* Some are let go of, some are left to the driver's end. */
TEST(remote_log_may_be_let_go_of_at_any_time)
{
    for (unsigned turns = 0; turns < 40; turns += 3) {
        struct world w = {.croft = true};
        const struct answer script[] = {{"POST /start", 200, "running"},
                                        {LOGS "true", 200, LOG("2.0", "hi") LOG("4.0", "hi")},
                                        {LOGS "true", 200, LOG("2.0", "hi") LOG("4.0", "hi")},
                                        END};
        struct ear one = {.idle = true}, other = {.idle = true};
        world_open(&w, script);
        world_must(&w, sbx_start);
        listen_to(&w, &one, &follow);
        listen_to(&w, &other, &follow);
        web_turns(&w.web, turns);
        if (!one.ended)
            sbx_unfollow(&one.follower);
        sbx_driver_close(w.driver); /* and the sandbox goes on there */
        web_turns(&w.web, 30);
        buf_done(&one.heard);
        buf_done(&other.heard);
        web_close(&w.web);
    }
}

static const char *last_words(struct world *w, struct buf *out)
{
    buf_init(out, 8);
    CHECK_OK(sbx_logs(w->s, out));
    return buf_cstr(out);
}

TEST(remote_log_of_one_that_failed_ends_with_the_words_told_of_it)
{
#define FAILED(words)                                                                              \
    "{\"runtime_id\":\"abc\",\"url\":\"http://x\",\"status\":\"error\",\"pod_status\":\"failed\"," \
    "\"pod_logs\":\"" words "\"}"
    struct world w = {.croft = true};
    const struct answer script[] = {{"POST /start", 200, FAILED("no such file")},
                                    {"POST /croft/v1/sandboxes/abc/resume", 200, FAILED("")},
                                    GONE_THERE,
                                    END};
    own_done(buf) out, none;

    world_open(&w, script);
    world_must_fail(&w, sbx_start, ERR_UPSTREAM, "unavailable");
    CHECK_STR(str_of(last_words(&w, &out)), "uch file"); /* the end of it, as much as fits */
    world_must_fail(&w, sbx_start, ERR_UPSTREAM, "unavailable");
    CHECK_STR(str_of(last_words(&w, &none)), "");
    world_must(&w, sbx_remove);
    world_close(&w);
}
