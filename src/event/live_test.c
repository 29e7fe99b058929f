// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "event/inner.h"
#include "test/event_kit.h"

/* Writes "1:kept " for a record, "live " for a live one, "-3 " before one after three missed. */
struct reader {
    struct event_sub sub;
    struct buf got;
    struct kit *k;
    unsigned lives, ended;
    uint64_t missed;
    bool pause, stop, free_log, answer;
};

static void on_record(struct event_sub *s, const struct event_record *r)
{
    kit_collect(r, &container_of(s, struct reader, sub)->got);
}

static void live_push(struct kit *k, struct str payload)
{
    const struct event_record r = kit_record(payload);

    CHECK_OK(event_live(event_log_sink(k->log), &r));
}

static void on_live(struct event_sub *s, const struct event_record *r, uint64_t missed)
{
    struct reader *rd = container_of(s, struct reader, sub);

    CHECK_INT(r->seq, 0);
    rd->lives++;
    rd->missed += missed;
    if (missed)
        buf_addf(&rd->got, "-%u ", (unsigned)missed);
    buf_addf(&rd->got, STR_FMT " ", STR_ARG(str_first(r->payload, 40)));
    if (rd->answer)
        live_push(rd->k, STR("again"));
    rd->answer = false;
    if (rd->pause)
        event_sub_pause(s);
    if (rd->stop)
        event_sub_stop(s);
    if (rd->free_log)
        event_log_free(take(&rd->k->log));
}

static void on_end(struct event_sub *s, const struct err *why)
{
    CHECK_INT(err_code(why), ERR_CLOSED);
    container_of(s, struct reader, sub)->ended++;
}

static void subscribe(struct kit *k, struct reader *rd)
{
    struct event_info info;

    event_log_info(k->log, &info);
    rd->sub.on_record = on_record;
    rd->sub.on_live = on_live;
    rd->sub.on_end = on_end;
    rd->sub.after = info.last_seq;
    rd->k = k;
    buf_init(&rd->got, 1u << 20);
    CHECK_OK(event_sub_start(k->log, &rd->sub));
}

static void open_with(struct kit *k, struct reader *rd)
{
    kit_init(k);
    kit_open(k);
    subscribe(k, rd);
    kit_turns(k, 2);
}

static void close_all(struct kit *k, struct reader *rd)
{
    CHECK(list_empty(&k->log->lives));
    CHECK_INT(k->log->live_count + k->log->live_bytes, 0);
    buf_done(&rd->got);
    kit_done(k);
}

TEST(live_records_come_between_the_durable_ones_they_were_sent_between)
{
    struct kit_wait w[2];
    struct reader rd = {0};
    struct kit k;

    open_with(&k, &rd);
    live_push(&k, STR("a"));
    kit_push(&k, &w[0], STR("kept"));
    live_push(&k, STR("b"));
    live_push(&k, STR("c"));
    kit_push(&k, &w[1], STR("too"));
    live_push(&k, STR("d"));
    CHECK_INT(rd.lives, 0); /* never from inside */
    kit_turns(&k, 3);
    CHECK_STR(buf_str(&rd.got), "a 1:kept b c 2:too d ");
    live_push(&k, STR("e"));
    kit_turns(&k, 1);
    CHECK_STR(buf_str(&rd.got), "a 1:kept b c 2:too d e ");
    close_all(&k, &rd);
}

TEST(live_records_are_not_stored_and_not_for_later_subscribers)
{
    struct reader rd = {0}, later = {0};
    own_done(buf) text;
    struct kit k;

    buf_init(&text, 1u << 20);
    open_with(&k, &rd);
    kit_append(&k, STR("kept"));
    live_push(&k, STR("gone"));
    subscribe(&k, &later);
    kit_turns(&k, 3);
    CHECK_STR(buf_str(&rd.got), "1:kept gone ");
    CHECK_INT(later.got.len, 0);
    CHECK_STR(kit_read(&k, &(struct event_query){0}, &text), "1:kept ");
    CHECK_INT(kit_verify(&k).records, 1);
    event_sub_stop(&rd.sub);
    event_sub_stop(&later.sub);
    live_push(&k, STR("nobody")); /* costs nothing */
    buf_done(&later.got);
    close_all(&k, &rd);
}

TEST(a_slow_subscriber_misses_the_oldest_live_records_and_is_told_how_many)
{
    struct reader slow = {.pause = true}, fast = {0};
    char text[16];
    struct kit k;

    open_with(&k, &slow);
    subscribe(&k, &fast);
    for (unsigned i = 1; i <= EVENT_LIVE_RECORDS + 10; i++) {
        live_push(&k, str_n(text, (size_t)snprintf(text, sizeof text, "%u", i)));
        if (i % 100 == 0)
            kit_turns(&k, 1);
    }
    kit_append(&k, STR("kept"));
    kit_turns(&k, 2);
    CHECK_INT(fast.lives, EVENT_LIVE_RECORDS + 10);
    CHECK_INT(fast.missed, 0);
    CHECK_HAS(buf_str(&fast.got), "4106 1:kept ");
    CHECK_STR(buf_str(&slow.got), "1 ");
    slow.pause = false;
    event_sub_resume(&slow.sub);
    kit_turns(&k, 2);
    CHECK(str_starts(buf_str(&slow.got), STR("1 -9 11 12 ")));
    CHECK_HAS(buf_str(&slow.got), "4106 1:kept ");
    CHECK_INT(slow.lives + slow.missed, EVENT_LIVE_RECORDS + 10);
    buf_done(&fast.got);
    close_all(&k, &slow);
}

TEST(large_live_records_are_bounded_by_their_bytes)
{
    struct reader slow = {.pause = true};
    own_free char *large = mem_new(EVENT_LIVE_BYTES);
    struct kit k;

    open_with(&k, &slow);
    memset(large, 'x', EVENT_LIVE_BYTES);
    live_push(&k, STR("first"));
    kit_turns(&k, 1);
    for (unsigned i = 0; i < 10; i++)
        live_push(&k, str_n(large, EVENT_LIVE_BYTES / 4));
    CHECK_INT(k.log->live_count, 3);
    CHECK(k.log->live_bytes <= EVENT_LIVE_BYTES);
    const struct event_record r = kit_record(str_n(large, EVENT_LIVE_BYTES));
    CHECK_ERR(event_log_live(k.log, &r), ERR_TOO_LARGE, "the limit is");
    slow.pause = false;
    event_sub_resume(&slow.sub);
    kit_turns(&k, 1);
    CHECK_INT(slow.missed, 7);
    close_all(&k, &slow);
}

TEST(a_subscriber_that_wants_no_live_records_gets_none)
{
    struct reader rd = {0};
    struct kit k;

    kit_init(&k);
    kit_open(&k);
    subscribe(&k, &rd);
    rd.sub.on_live = NULL;
    live_push(&k, STR("a"));
    kit_append(&k, STR("kept"));
    kit_turns(&k, 1);
    CHECK_STR(buf_str(&rd.got), "1:kept ");
    close_all(&k, &rd);
}

TEST(live_records_pass_the_filter_of_their_subscriber)
{
    const struct str kinds[] = {STR("token")};
    const struct event_filter tokens = {.kinds = kinds, .kind_count = 1};
    struct reader rd = {.sub.filter = &tokens};
    struct event_record r = kit_record(STR("a token"));
    struct kit k;

    open_with(&k, &rd);
    live_push(&k, STR("a note"));
    r.kind = STR("token");
    CHECK_OK(event_log_live(k.log, &r));
    kit_turns(&k, 1);
    CHECK_STR(buf_str(&rd.got), "a token ");
    close_all(&k, &rd);
}

TEST(a_subscriber_may_send_stop_and_free_the_log_while_it_is_given_a_live_record)
{
    struct reader rd = {.answer = true}, other = {0};
    struct kit k;

    open_with(&k, &rd);
    subscribe(&k, &other);
    live_push(&k, STR("a"));
    kit_turns(&k, 2);
    CHECK_STR(buf_str(&rd.got), "a again ");
    rd.stop = true;
    live_push(&k, STR("b"));
    live_push(&k, STR("c"));
    kit_turns(&k, 2);
    CHECK_STR(buf_str(&rd.got), "a again b ");
    CHECK_STR(buf_str(&other.got), "a again b c ");
    other.free_log = true;
    live_push(&k, STR("d"));
    live_push(&k, STR("e"));
    kit_turns(&k, 2);
    CHECK_STR(buf_str(&other.got), "a again b c d ");
    CHECK_INT(other.ended, 1);
    buf_done(&rd.got);
    buf_done(&other.got);
    kit_done(&k);
}

TEST(live_records_behind_a_commit_that_failed_come_all_the_same)
{
    struct reader rd = {0};
    struct kit_wait w;
    struct kit k;

    log_setup(STDERR_FILENO, LOG_OFF, LOG_TEXT);
    open_with(&k, &rd);
    kit_append(&k, STR("kept"));
    kit_push(&k, &w, STR("lost"));
    live_push(&k, STR("a"));
    fault_always("pwrite");
    kit_turns(&k, 2);
    fault_always(NULL);
    CHECK(w.failed);
    CHECK_STR(buf_str(&rd.got), "1:kept a ");
    kit_append(&k, STR("new"));
    kit_turns(&k, 1);
    CHECK_STR(buf_str(&rd.got), "1:kept a 2:new ");
    close_all(&k, &rd);
}

TEST(a_live_record_without_memory_is_refused_and_the_log_goes_on)
{
    const struct event_record r = kit_record(STR("a"));
    struct reader rd = {0};
    struct kit k;

    open_with(&k, &rd);
    fault_at(1);
    CHECK_ERR(event_log_live(k.log, &r), ERR_NO_MEMORY, "memory");
    fault_at(0);
    live_push(&k, STR("b"));
    kit_turns(&k, 1);
    CHECK_STR(buf_str(&rd.got), "b ");
    close_all(&k, &rd);
}
