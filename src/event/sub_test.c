// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/log.h"
#include "event/log.h"
#include "test/event_kit.h"

struct reader {
    struct event_sub sub;
    struct buf got;
    struct kit *k;
    uint64_t last;
    unsigned records, caught_up, ended;
    unsigned pause_every; /* 0: never */
    enum err_code why;
    bool stop_at_first, free_log;
};

static void on_record(struct event_sub *s, const struct event_record *r)
{
    struct reader *rd = container_of(s, struct reader, sub);

    if (!s->filter)
        CHECK_INT(r->seq, rd->last + 1); /* no gap, no repetition */
    rd->last = r->seq;
    rd->records++;
    kit_collect(r, &rd->got);
    if (rd->pause_every && rd->records % rd->pause_every == 0)
        event_sub_pause(s);
    if (rd->stop_at_first) {
        event_sub_stop(s);
        memset(s, 0xee, sizeof *s); /* its owner may free it now */
    }
    if (rd->free_log) {
        event_log_free(rd->k->log);
        rd->k->log = NULL;
    }
}

static void on_caught_up(struct event_sub *s)
{
    container_of(s, struct reader, sub)->caught_up++;
}

static void on_end(struct event_sub *s, const struct err *why)
{
    struct reader *rd = container_of(s, struct reader, sub);

    rd->ended++;
    rd->why = err_code(why);
    CHECK(s->log == NULL);
}

static void subscribe(struct kit *k, struct reader *rd, uint64_t after)
{
    rd->sub.on_record = on_record;
    rd->sub.on_caught_up = on_caught_up;
    rd->sub.on_end = on_end;
    rd->sub.after = rd->last = after;
    rd->k = k;
    buf_init(&rd->got, 1u << 20);
    CHECK_OK(event_sub_start(k->log, &rd->sub));
}

TEST(a_subscriber_gets_history_and_then_what_becomes_durable)
{
    struct kit k;
    struct reader rd = {0};
    struct kit_wait w;

    kit_init(&k);
    kit_open(&k);
    kit_fill(&k, 3);
    subscribe(&k, &rd, 1);
    CHECK_INT(rd.records, 0); /* never from inside start */
    kit_push(&k, &w, STR("four"));
    kit_turns(&k, 4);
    CHECK_STR(buf_str(&rd.got), "2:2 3:3 4:four ");
    CHECK_INT(rd.caught_up, 1);
    event_sub_stop(&rd.sub);
    event_sub_stop(&rd.sub);
    kit_append(&k, STR("five"));
    kit_turns(&k, 2);
    CHECK_INT(rd.records, 3);
    buf_done(&rd.got);
    kit_done(&k);
}

TEST(a_record_is_not_given_before_it_is_on_disk)
{
    struct kit k;
    struct reader rd = {0};
    struct kit_wait w;

    log_setup(2, LOG_OFF, LOG_TEXT);
    kit_init(&k);
    kit_open(&k);
    subscribe(&k, &rd, 0);
    kit_turns(&k, 2);
    kit_push(&k, &w, STR("lost"));
    fault_at(1);
    kit_turns(&k, 2);
    fault_at(0);
    CHECK(w.failed);
    kit_append(&k, STR("kept"));
    kit_turns(&k, 2);
    CHECK_STR(buf_str(&rd.got), "1:kept ");
    buf_done(&rd.got);
    kit_done(&k);
}

TEST(subscribing_after_a_record_that_does_not_exist_is_refused)
{
    struct kit k;
    struct event_sub s = {.on_record = on_record, .after = 1};

    kit_init(&k);
    kit_open(&k);
    CHECK_ERR(event_sub_start(k.log, &s), ERR_INVALID, "no record 1");
    kit_done(&k);
}

TEST(a_paused_subscriber_goes_on_where_it_was)
{
    struct kit k;
    struct reader rd = {.pause_every = 2};

    kit_init(&k);
    kit_open(&k);
    kit_fill(&k, 5);
    subscribe(&k, &rd, 0);
    kit_turns(&k, 3);
    CHECK_INT(rd.records, 2);
    kit_append(&k, STR("six"));
    CHECK_INT(rd.records, 2);
    for (unsigned i = 2; i < 4; i++) {
        event_sub_resume(&rd.sub);
        kit_turns(&k, 2);
        CHECK_INT(rd.records, i * 2);
    }
    CHECK_INT(rd.caught_up, 0);
    event_sub_resume(&rd.sub);
    kit_turns(&k, 2);
    CHECK_INT(rd.caught_up, 1);
    buf_done(&rd.got);
    kit_done(&k);
}

TEST(a_slow_subscriber_is_dropped_and_the_fast_one_gets_all)
{
    struct kit k;
    struct reader fast = {0}, slow = {.pause_every = 1, .sub.queue_records = 10};
    struct reader big = {.pause_every = 1, .sub.queue_bytes = 500};

    kit_init(&k);
    kit_open(&k);
    kit_fill(&k, 20); /* history is not queue */
    subscribe(&k, &fast, 0);
    subscribe(&k, &slow, 0);
    subscribe(&k, &big, 0);
    kit_turns(&k, 2);
    CHECK_INT(slow.records, 1);
    kit_fill(&k, 10);
    kit_turns(&k, 2);
    CHECK_INT(slow.ended, 0);
    CHECK_INT(big.ended, 1);
    kit_fill(&k, 1);
    kit_turns(&k, 2);
    CHECK_INT(slow.ended, 1);
    CHECK_INT(slow.why, ERR_LIMIT);
    CHECK_INT(fast.records, 31);
    kit_fill(&k, 5);
    kit_turns(&k, 2);
    CHECK(slow.ended == 1 && slow.records == 1 && fast.records == 36 && fast.ended == 0);
    event_sub_resume(&slow.sub); /* nothing to resume */
    buf_done(&fast.got);
    buf_done(&slow.got);
    buf_done(&big.got);
    kit_done(&k);
    CHECK_INT(fast.why, ERR_CLOSED);
}

TEST(a_large_commit_does_not_drop_one_that_keeps_up)
{
    struct kit k;
    struct reader rd = {.sub.queue_records = 4};
    struct event_record r = kit_record(STR("x"));

    kit_init(&k);
    kit_open(&k);
    subscribe(&k, &rd, 0);
    for (unsigned i = 0; i < 5000; i++)
        CHECK_OK(event_log_append(k.log, &r, NULL));
    kit_turns(&k, 20);
    CHECK_INT(rd.records, 5000);
    buf_done(&rd.got);
    kit_done(&k);
}

TEST(a_subscriber_may_stop_and_free_itself_in_its_callback)
{
    struct kit k;
    struct reader rd = {.stop_at_first = true}, other = {0};

    kit_init(&k);
    kit_open(&k);
    kit_fill(&k, 3);
    subscribe(&k, &rd, 0);
    subscribe(&k, &other, 0);
    kit_turns(&k, 3);
    CHECK_INT(rd.records, 1);
    CHECK_INT(other.records, 3);
    buf_done(&rd.got);
    buf_done(&other.got);
    kit_done(&k);
}

TEST(a_subscriber_may_free_the_log_in_its_callback)
{
    struct kit k;
    struct reader rd = {.free_log = true}, other = {0};

    kit_init(&k);
    kit_open(&k);
    kit_fill(&k, 3);
    subscribe(&k, &rd, 0);
    subscribe(&k, &other, 0);
    kit_turns(&k, 3);
    CHECK(rd.records == 1 && rd.ended == 1 && rd.why == ERR_CLOSED);
    CHECK(other.records == 0 && other.ended == 1);
    buf_done(&rd.got);
    buf_done(&other.got);
    kit_done(&k);
}

TEST(a_subscriber_may_filter)
{
    struct kit k;
    struct event_filter f = {.id = STR("no such")};
    struct reader rd = {.sub.filter = &f, .sub.queue_records = 1};

    kit_init(&k);
    kit_open(&k);
    subscribe(&k, &rd, 0);
    kit_fill(&k, 10);
    kit_turns(&k, 2);
    CHECK(rd.records == 0 && rd.ended == 0);
    CHECK_INT(rd.sub.after, 10);
    buf_done(&rd.got);
    kit_done(&k);
}

TEST(a_subscriber_hears_of_damage)
{
    struct kit k;
    struct reader rd = {0};

    kit_init(&k);
    kit_open(&k);
    kit_fill(&k, 3);
    kit_damage_second(&k);
    subscribe(&k, &rd, 0);
    kit_turns(&k, 2);
    CHECK(rd.records == 1 && rd.ended == 1 && rd.why == ERR_CORRUPT);
    buf_done(&rd.got);
    kit_done(&k);
}

/* Subscribers join at random places of a log that grows by a thread's commits meanwhile. */
TEST(history_and_live_records_meet_without_gap_under_load)
{
    enum { N = 3000, SUBS = 30 };
    struct kit k;
    static struct reader rds[SUBS];
    unsigned joined = 0;
    struct event_info info;

    kit_init(&k);
    k.options.inline_sync = false;
    kit_open(&k);
    for (unsigned i = 0; i < N; i++) {
        struct event_record r = kit_record(STR("some payload that is not very long"));
        CHECK_OK(event_log_append(k.log, &r, NULL));
        if (i % 7 == 0)
            CHECK_OK(loop_turn(k.loop, 0));
        if (i % 100 == 50 && joined < SUBS) {
            event_log_info(k.log, &info);
            rds[joined].pause_every = joined % 3 == 0 ? 40 : 0;
            subscribe(&k, &rds[joined], info.last_seq * joined / SUBS);
            joined++;
        }
        for (unsigned s = 0; s < joined; s++)
            event_sub_resume(&rds[s].sub);
    }
    for (bool all = false; !all;) {
        CHECK_OK(loop_turn(k.loop, 5));
        all = true;
        for (unsigned s = 0; s < joined; s++) {
            event_sub_resume(&rds[s].sub);
            all = all && rds[s].last == N;
        }
    }
    for (unsigned s = 0; s < joined; s++) {
        CHECK_INT(rds[s].ended, 0);
        buf_done(&rds[s].got);
    }
    kit_done(&k);
}
