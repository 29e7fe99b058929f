// SPDX-License-Identifier: Apache-2.0
#include "host/ops/journal.h"

#include "net/server.h"
#include "test/test.h"
#include "test/web.h"

#define GET(path, more) "GET " path " HTTP/1.1\r\nHost: a\r\n" more "\r\n"

static struct journal *journal;

static fallible follow_all(struct http_req *req)
{
    return journal_follow(journal, req, (struct str){0}, NULL);
}

static fallible follow_ada(struct http_req *req)
{
    return journal_follow(journal, req, STR("ada"), NULL);
}

static const struct route routes[] = {
    {"GET", "/all", follow_all, 0, 0},
    {"GET", "/ada", follow_ada, 0, 0},
};

static void add(const char *tenant, const char *message)
{
    journal_add(journal, &(struct journal_note){.kind = JOURNAL_STATUS,
                                                .tenant = str_of(tenant),
                                                .level = STR("info"),
                                                .status = STR("STATUS$READY"),
                                                .message = str_of(message)});
}

static void open_journal_of(struct web *w, uint64_t keep_bytes)
{
    web_open(w, WEB_ROUTES(routes), NULL, NULL);
    const struct journal_config c = {
        .loop = w->loop, .dir = test_dir_fd(), .keep_bytes = keep_bytes};

    CHECK_OK(journal_open(&c, &journal));
}

static void open_journal(struct web *w)
{
    open_journal_of(w, 0);
}

/* Until the page has come so far: the commit is made on a thread. */
static struct str read_until(struct web *w, struct web_client *c, const char *text)
{
    for (int i = 0; i < 5000; i++) {
        web_pass(w, 10);
        web_read(w, c);
        if (str_find(str_n(c->p, c->len), str_of(text)) >= 0)
            break;
        test_check_ok(__FILE__, __LINE__, "turn", loop_turn(w->loop, 1));
    }
    return str_n(c->p, c->len);
}

static void close_all(struct web *w, struct web_client *c)
{
    web_close_client(c);
    web_turns(w, 4);
    journal_free(journal);
    web_close(w);
}

TEST(a_follower_may_begin_at_now)
{
    struct web w;
    struct web_client c, late;

    open_journal(&w);
    add("ada", "before");
    web_connect(&w, &c, 1 << 16);
    CHECK(web_send(&w, &c, STR(GET("/all", ""))));
    CHECK_HAS(read_until(&w, &c, "before"), "id: 1\n"); /* it is on disk */
    web_connect(&w, &late, 1 << 16);
    CHECK(web_send(&w, &late, STR(GET("/ada?after=now", ""))));
    read_until(&w, &late, "\r\n\r\n");
    add("ada", "later");
    struct str got = read_until(&w, &late, "later");
    CHECK_HAS(got, "id: 2\n");
    CHECK_INT(str_find(got, STR("before")), -1);
    web_close_client(&late);
    close_all(&w, &c);
}

TEST(a_follower_gets_history_and_what_happens_after_it)
{
    struct web w;
    struct web_client c;

    open_journal(&w);
    add("ada", "before");
    web_connect(&w, &c, 1 << 16);
    CHECK(web_send(&w, &c, STR(GET("/all", ""))));
    CHECK_HAS(read_until(&w, &c, "before"), "id: 1\nevent: status\ndata: {\"ts\":");
    add("bob", "after");
    CHECK_HAS(read_until(&w, &c, "\"after\""),
              "\"event\":{\"actor\":\"bob\",\"level\":\"info\",\"status\":\"STATUS$READY\","
              "\"message\":\"after\"}}");
    close_all(&w, &c);
}

TEST(a_follower_who_comes_back_gets_what_it_missed_and_no_more)
{
    struct web w;
    struct web_client c;

    open_journal(&w);
    add("ada", "one");
    add("ada", "two");
    web_connect(&w, &c, 1 << 16);
    CHECK(web_send(&w, &c, STR(GET("/all", ""))));
    CHECK_HAS(read_until(&w, &c, "two"), "one");
    web_close_client(&c);
    web_connect(&w, &c, 1 << 16);
    CHECK(web_send(&w, &c, STR(GET("/all", "Last-Event-ID: 1\r\n"))));
    struct str got = read_until(&w, &c, "two");
    CHECK_HAS(got, "id: 2\n");
    CHECK_INT(str_find(got, STR("one")), -1);
    close_all(&w, &c);
}

TEST(a_tenant_sees_nothing_of_another)
{
    struct web w;
    struct web_client c;

    open_journal(&w);
    add("bob", "secret of bob");
    add("ada", "hers");
    web_connect(&w, &c, 1 << 16);
    CHECK(web_send(&w, &c, STR(GET("/ada", ""))));
    struct str got = read_until(&w, &c, "hers");
    CHECK_HAS(got, "hers");
    CHECK_INT(str_find(got, STR("bob")), -1);
    close_all(&w, &c);
}

TEST(a_question_that_makes_no_sense_is_refused)
{
    struct web w;

    open_journal(&w);
    CHECK_INT(web_ask(&w, STR(GET("/all?kind=nonsense", ""))).status, 422);
    CHECK_INT(web_ask(&w, STR(GET("/all", "Last-Event-ID: x\r\n"))).status, 422);
    CHECK_INT(web_ask(&w, STR(GET("/all?after=99", ""))).status, 400);
    journal_free(journal);
    web_close(&w);
}

TEST(a_follower_who_asks_for_what_is_not_kept_any_more_is_told)
{
    struct web w;
    struct web_client c;

    open_journal_of(&w, 16000);
    for (int i = 0; i < 300; i++)
        add("ada", "one of many");
    add("ada", "the last");
    web_connect(&w, &c, 1 << 20);
    CHECK(web_send(&w, &c, STR(GET("/all", ""))));
    read_until(&w, &c, "the last"); /* so all is written */
    web_close_client(&c);
    web_connect(&w, &c, 1 << 20);
    CHECK(web_send(&w, &c, STR(GET("/all", ""))));
    struct str got = read_until(&w, &c, "the last");
    ptrdiff_t at = str_find(got, STR("id: "));
    CHECK(at > 0 && atoi(got.p + at + 4) > 100);
    struct web_answer a = web_ask(&w, STR(GET("/all", "Last-Event-ID: 1\r\n")));
    CHECK_INT(a.status, 410);
    CHECK_HAS(a.body, "not kept any more (journal.keep): ask after ");
    close_all(&w, &c);
}

static void refuse(unsigned times)
{
    while (times--)
        journal_add(journal, &(struct journal_note){
                                 .kind = JOURNAL_AUDIT, .decision = STR("denied"), .paced = true});
}

TEST(what_anybody_can_cause_is_written_at_a_pace_and_the_rest_counted)
{
    struct web w;
    struct web_client c;

    open_journal(&w);
    refuse(JOURNAL_BURST + 7);
    web_pass(&w, JOURNAL_PACE_MS);
    refuse(1);
    add("ada", "hers");
    web_connect(&w, &c, 1 << 20);
    CHECK(web_send(&w, &c, STR(GET("/all", ""))));
    struct str got = read_until(&w, &c, "hers");
    CHECK_HAS(got, "id: 101\nevent: audit\n");
    CHECK_HAS(got, "{\"decision\":\"denied\",\"left_out\":7}");
    CHECK_HAS(got, "id: 102\nevent: status\n");
    close_all(&w, &c);
}
