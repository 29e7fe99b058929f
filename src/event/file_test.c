// SPDX-License-Identifier: Apache-2.0
#include "event/file.h"

#include <stdlib.h>

#include "base/log.h"
#include "test/event_kit.h"

#define RECORD (104 + 4 + 1) /* on disk: kind "note", one byte of payload */

static void start(struct kit *k, unsigned n)
{
    log_setup(2, LOG_OFF, LOG_TEXT);
    kit_init(k);
    kit_open(k);
    kit_fill(k, n);
}

static struct event_info info_of(struct kit *k)
{
    struct event_info info;

    event_log_info(k->log, &info);
    return info;
}

static void expect_read(struct kit *k, const char *want)
{
    own_done(buf) got;

    buf_init(&got, 4096);
    CHECK_STR(kit_read(k, &(struct event_query){0}, &got), want);
}

static void restore(struct kit *k, const struct buf *log, const struct buf *index)
{
    kit_put(k, "log", buf_str(log));
    kit_put(k, "log.idx", buf_str(index));
}

TEST(a_tail_torn_at_any_byte_is_cut_and_reported)
{
    struct kit k;

    start(&k, 3);
    kit_close(&k);
    own_done(buf) log = kit_slurp(&k, "log");
    own_done(buf) index = kit_slurp(&k, "log.idx");
    CHECK_INT(log.len, 64 + 3 * RECORD);
    for (int indexed = 0; indexed < 3; indexed++) /* behind by one, as it was, lost */
        for (size_t len = 64 + 2 * RECORD; len < log.len; len++) {
            kit_put(&k, "log", str_first(buf_str(&log), len));
            kit_put(&k, "log.idx",
                    str_first(buf_str(&index), indexed == 0   ? index.len - 16
                                               : indexed == 1 ? index.len
                                                              : 0));
            kit_open(&k);
            struct event_repair r = info_of(&k).repair;
            CHECK_INT(r.cut_bytes, len - (64 + 2 * RECORD));
            if (r.cut_bytes)
                CHECK(r.cut_offset == 64 + 2 * RECORD && r.cut_seq == 3);
            CHECK_INT(r.lost_records, indexed == 1);
            expect_read(&k, "1:1 2:2 ");
            CHECK_INT(kit_append(&k, STR("new")), 3);
            kit_close(&k);
            CHECK_INT(kit_verify(&k).state, EVENT_OK);
            CHECK_INT(kit_verify(&k).index, EVENT_INDEX_OK);
        }
    kit_done(&k);
}

/* Detected by verify, and opening either refuses or reports what it cut; with check_all nothing
 * damaged is ever given. */
TEST(a_flipped_bit_in_any_byte_is_detected)
{
    struct kit k;

    start(&k, 3);
    kit_close(&k);
    k.options.check_all = true;
    own_done(buf) log = kit_slurp(&k, "log");
    own_done(buf) index = kit_slurp(&k, "log.idx");
    for (size_t at = 0; at < log.len * 2; at++) {
        size_t i = at / 2;
        uint64_t seq = i < 64 ? 0 : (i - 64) / RECORD + 1;
        log.p[i] ^= (char)(1 << (at % 8));
        restore(&k, &log, &index);
        if (at % 2)
            CHECK(unlinkat(k.dir, "log.idx", 0) == 0);
        struct event_verdict v = kit_verify(&k);
        CHECK_INT(v.state, seq < 3 ? EVENT_CORRUPT : EVENT_TORN);
        CHECK_INT(v.bad_seq, seq);
        CHECK_INT(v.bad_offset, seq ? 64 + (seq - 1) * RECORD : 0);
        struct err *e = event_log_open(k.loop, k.dir, STR("log"), &k.options, &k.log);
        if (seq < 3) {
            char place[64];
            snprintf(place, sizeof place, "offset %llu", (unsigned long long)v.bad_offset);
            CHECK_ERR(e, ERR_CORRUPT, place);
            own_done(buf) after = kit_slurp(&k, "log");
            CHECK_STR(buf_str(&after), buf_str(&log)); /* nothing was cut */
        } else {
            CHECK_OK(e);
            CHECK_INT(info_of(&k).repair.cut_bytes, RECORD);
            CHECK_INT(info_of(&k).repair.lost_records, at % 2 == 0);
            kit_close(&k);
        }
        log.p[i] ^= (char)(1 << (at % 8));
    }
    kit_done(&k);
}

TEST(damage_names_the_record_and_its_offset)
{
    struct kit k;

    start(&k, 5);
    kit_close(&k);
    own_done(buf) log = kit_slurp(&k, "log");
    log.p[64 + RECORD + 80] ^= 1;
    kit_put(&k, "log", buf_str(&log));
    CHECK(unlinkat(k.dir, "log.idx", 0) == 0);
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("log"), NULL, &k.log), ERR_CORRUPT,
              "valid record 3 at offset 282 follows damage: record 2 at offset 173 of 'log' does "
              "not match its hash");
    kit_done(&k);
}

TEST(records_of_another_log_are_not_accepted)
{
    struct kit k;

    start(&k, 3);
    kit_close(&k);
    own_done(buf) log = kit_slurp(&k, "log");
    memcpy(log.p + 64 + RECORD, log.p + 64, RECORD); /* record 1 again in the place of 2 */
    kit_put(&k, "log", buf_str(&log));
    k.options.check_all = true;
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("log"), &k.options, &k.log), ERR_CORRUPT,
              "out of sequence");
    kit_done(&k);
}

/* Three records in one commit; the disk took the pages of the last but not of the first. */
static void lose_middle_of_commit(struct kit *k, bool index_knows, bool index_there)
{
    struct event_record r = kit_record(STR("x"));

    start(k, 2);
    own_done(buf) index = kit_slurp(k, "log.idx");
    for (unsigned i = 0; i < 3; i++)
        CHECK_OK(event_log_append(k->log, &r, NULL));
    kit_close(k);
    own_done(buf) log = kit_slurp(k, "log");
    memset(log.p + 64 + 2ul * RECORD, 0, 20);
    kit_put(k, "log", buf_str(&log));
    if (!index_knows)
        kit_put(k, "log.idx", buf_str(&index));
    if (!index_there)
        CHECK(unlinkat(k->dir, "log.idx", 0) == 0);
}

TEST(a_commit_that_reached_the_disk_in_part_is_cut_whole)
{
    struct kit k;

    lose_middle_of_commit(&k, false, true);
    kit_open(&k);
    CHECK_INT(info_of(&k).repair.cut_bytes, 3 * RECORD);
    expect_read(&k, "1:1 2:2 ");
    kit_done(&k);
}

TEST(the_same_hole_is_damage_if_the_index_knows_the_records)
{
    struct kit k;

    lose_middle_of_commit(&k, true, true);
    kit_open(&k); /* looks at the tail only, unless told otherwise */
    own_done(buf) got = {.limit_bytes = 4096};
    CHECK_ERR(event_log_read(k.log, &(struct event_query){0}, kit_collect, &got, NULL), ERR_CORRUPT,
              "record 3");
    kit_close(&k);
    k.options.check_all = true;
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("log"), &k.options, &k.log), ERR_CORRUPT,
              "record 3");
    kit_done(&k);
}

TEST(the_same_hole_is_damage_if_there_is_no_index_to_ask)
{
    struct kit k;

    lose_middle_of_commit(&k, false, false);
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("log"), NULL, &k.log), ERR_CORRUPT, "record 3");
    kit_done(&k);
}

TEST(a_later_commit_is_witness_against_cutting_even_if_the_index_is_old)
{
    struct kit k;

    start(&k, 1);
    own_done(buf) index = kit_slurp(&k, "log.idx");
    kit_fill(&k, 3); /* records 2, 3, 4: each says that the one before was synced */
    kit_close(&k);
    own_done(buf) log = kit_slurp(&k, "log");
    log.p[64 + RECORD + 90] ^= 4;
    restore(&k, &log, &index);
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("log"), NULL, &k.log), ERR_CORRUPT, "record 2");
    kit_done(&k);
}

/* A payload that holds a whole record of the same shape must not count as one behind damage. */
TEST(a_payload_cannot_imitate_a_record)
{
    struct kit k;
    struct buf fake;
    struct event_chain chain = {.seq = 7};
    struct event_record r = kit_record(STR("forged"));

    start(&k, 1);
    buf_init(&fake, 4096);
    CHECK(event_record_put(&fake, &r, /* marker= */ 42, 7, &chain));
    kit_append(&k, buf_str(&fake));
    kit_close(&k);
    own_done(buf) log = kit_slurp(&k, "log");
    kit_put(&k, "log", str_first(buf_str(&log), log.len - 10));
    CHECK(unlinkat(k.dir, "log.idx", 0) == 0);
    kit_open(&k);
    expect_read(&k, "1:1 ");
    kit_done(&k);
    buf_done(&fake);
}

static void expect_index_repaired(struct kit *k, const char *how)
{
    kit_open(k);
    struct event_repair r = info_of(k).repair;
    if (r.cut_bytes || r.lost_records)
        FAIL("index %s: the log was taken for damaged", how);
    expect_read(k, "1:1 2:2 3:3 4:4 5:5 6:6 ");
    own_done(buf) got;
    buf_init(&got, 1000);
    CHECK_STR(kit_read(k, &(struct event_query){.descending = true, .limit = 2}, &got), "6:6 5:5 ");
    CHECK_STR(kit_read(k, &(struct event_query){.after = 2, .limit = 2}, &got), "3:3 4:4 ");
    kit_close(k);
}

TEST(an_index_lost_cut_or_overwritten_is_rebuilt)
{
    struct kit k;

    start(&k, 6);
    kit_close(&k);
    own_done(buf) index = kit_slurp(&k, "log.idx");
    CHECK_INT(index.len, 64 + 6 * 16);
    for (size_t len = 0; len <= index.len; len++) {
        kit_put(&k, "log.idx", str_first(buf_str(&index), len));
        expect_index_repaired(&k, "cut");
        CHECK_INT(kit_verify(&k).index, EVENT_INDEX_OK);
    }
    CHECK(unlinkat(k.dir, "log.idx", 0) == 0);
    expect_index_repaired(&k, "lost");
    for (size_t i = 0; i < index.len; i++) {
        index.p[i] ^= 0x55;
        kit_put(&k, "log.idx", buf_str(&index));
        expect_index_repaired(&k, "flipped");
        index.p[i] ^= 0x55;
    }
    memset(index.p + 64, 0xff, index.len - 64);
    kit_put(&k, "log.idx", buf_str(&index));
    expect_index_repaired(&k, "garbage");
    memset(index.p, 0, index.len);
    kit_put(&k, "log.idx", buf_str(&index));
    expect_index_repaired(&k, "zeros");
    kit_done(&k);
}

TEST(an_index_that_names_the_wrong_record_is_noticed_when_used)
{
    struct kit k;
    own_done(buf) got;

    buf_init(&got, 1000);
    start(&k, 6);
    kit_close(&k);
    own_done(buf) index = kit_slurp(&k, "log.idx");
    memcpy(index.p + 64 + 16, index.p + 64 + 32, 16); /* 2 leads to 3 */
    kit_put(&k, "log.idx", buf_str(&index));
    CHECK_INT(kit_verify(&k).state, EVENT_BAD_INDEX);
    kit_open(&k);
    CHECK_STR(kit_read(&k, &(struct event_query){.after = 1, .limit = 1}, &got), "2:2 ");
    CHECK_INT(kit_verify(&k).state, EVENT_OK);
    kit_done(&k);
}

TEST(a_log_whose_making_was_interrupted_is_made_anew)
{
    struct kit k;

    start(&k, 0);
    kit_close(&k);
    own_done(buf) log = kit_slurp(&k, "log");
    CHECK_INT(log.len, 64);
    for (size_t len = 0; len < 64; len++) {
        kit_put(&k, "log", str_first(buf_str(&log), len));
        kit_open(&k);
        CHECK_INT(kit_append(&k, STR("x")), 1);
        kit_close(&k);
    }
    kit_put(&k, "log", STR("something else"));
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("log"), NULL, &k.log), ERR_CORRUPT,
              "not an event log");
    kit_done(&k);
}

/* --- every call of open, append, sync, read fails once --- */

static void use_log(struct kit *k, struct kit_wait *w, unsigned n)
{
    own_done(buf) got = {.limit_bytes = 4096};
    struct err *e = event_log_open(k->loop, k->dir, STR("log"), &k->options, &k->log);

    for (unsigned i = 0; i < n; i++)
        w[i] = (struct kit_wait){.a.done = kit_on_done};
    if (e) {
        err_free(e);
        k->log = NULL;
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        struct event_record r = kit_record(STR("more"));
        err_free(event_log_append(k->log, &r, &w[i].a));
        err_free(loop_turn(k->loop, 0));
        err_free(loop_turn(k->loop, 0));
    }
    for (int down = 0; down < 2; down++)
        err_free(event_log_read(k->log, &(struct event_query){.descending = down}, kit_collect,
                                &got, NULL));
    event_log_free(k->log);
    k->log = NULL;
    err_free(loop_turn(k->loop, 0));
    err_free(loop_turn(k->loop, 0));
}

static void sweep(struct kit *k, const struct buf *log, const struct buf *index, unsigned before)
{
    struct kit_wait w[3];
    unsigned fds = test_open_fds();

    for (unsigned n = 1;; n++) {
        if (log)
            restore(k, log, index);
        else
            unlinkat(k->dir, "log", 0), unlinkat(k->dir, "log.idx", 0);
        fault_at(n);
        use_log(k, w, 3);
        bool fired = fault_fired();
        fault_at(0);
        CHECK_INT(test_open_fds(), fds);
        uint64_t acked = before;
        for (unsigned i = 0; i < 3; i++) {
            CHECK(w[i].calls <= 1);
            if (w[i].calls && !w[i].failed)
                acked = w[i].a.seq;
        }
        kit_open(k);
        struct event_info info = info_of(k);
        if (info.last_seq < acked || info.repair.lost_records)
            FAIL("fault at call %u: %llu acknowledged, %llu there", n, (unsigned long long)acked,
                 (unsigned long long)info.last_seq);
        kit_close(k);
        CHECK_INT(kit_verify(k).state, EVENT_OK);
        if (!fired) {
            CHECK(n > 10);
            CHECK_INT(acked, before + 3);
            return;
        }
    }
}

TEST(any_failing_call_is_reported_and_loses_nothing_acknowledged)
{
    struct kit k;

    start(&k, 3);
    kit_close(&k);
    own_done(buf) log = kit_slurp(&k, "log");
    own_done(buf) index = kit_slurp(&k, "log.idx");
    sweep(&k, NULL, NULL, 0);
    sweep(&k, &log, &index, 3);
    index.len = 0; /* lost */
    sweep(&k, &log, &index, 3);
    log.len -= 5; /* torn */
    sweep(&k, &log, &index, 2);
    kit_done(&k);
}
