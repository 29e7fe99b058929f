// SPDX-License-Identifier: Apache-2.0
#include "event/verify.h"

#include <stdlib.h>

#include "base/log.h"
#include "event/format.h"
#include "test/event_kit.h"

TEST(verify_counts_records_bytes_and_ids)
{
    struct kit k;
    struct event_info info;

    kit_init(&k);
    kit_open(&k);
    kit_fill(&k, 9);
    event_log_info(k.log, &info);
    struct event_verdict v = kit_verify(&k); /* while it is open */
    CHECK(v.state == EVENT_OK && v.index == EVENT_INDEX_OK);
    CHECK(v.records == 9 && v.first_seq == 1 && v.last_seq == 9 && v.bytes == info.bytes);
    CHECK(memcmp(v.head, info.head, sizeof v.head) == 0);
    kit_done(&k);
}

TEST(verify_changes_nothing)
{
    struct kit k;

    kit_init(&k);
    kit_open(&k);
    kit_fill(&k, 2);
    kit_close(&k);
    own_done(buf) log = kit_slurp(&k, "log");
    kit_put(&k, "log", str_first(buf_str(&log), log.len - 3));
    CHECK_INT(kit_verify(&k).state, EVENT_TORN);
    own_done(buf) after = kit_slurp(&k, "log");
    CHECK_STR(buf_str(&after), str_first(buf_str(&log), log.len - 3));
    kit_done(&k);
}

TEST(verify_knows_a_log_cut_at_a_boundary_by_its_index)
{
    struct kit k;

    kit_init(&k);
    kit_open(&k);
    kit_fill(&k, 3);
    kit_close(&k);
    own_done(buf) log = kit_slurp(&k, "log");
    kit_put(&k, "log", str_first(buf_str(&log), log.len - 109));
    struct event_verdict v = kit_verify(&k);
    CHECK_INT(v.state, EVENT_CORRUPT);
    CHECK_INT(v.bad_seq, 3);
    CHECK_HAS(str_of(v.why), "missing");
    kit_done(&k);
}

TEST(verify_takes_any_file)
{
    struct kit k;
    struct event_verdict v;

    kit_init(&k);
    CHECK_ERR(event_verify(k.dir, -1, &v), ERR_INVALID, "regular");
    kit_put(&k, "log", STR(""));
    CHECK_INT(kit_verify(&k).state, EVENT_CORRUPT);
    kit_put(&k, "log", STR("croftlog but nothing like one, although it is long enough for one!!"));
    CHECK_HAS(str_of(kit_verify(&k).why), "does not match its hash");
    kit_done(&k);
}

/* A file made to be slow: a beginning of a large record every few bytes. */
TEST(verify_bounds_its_search_behind_damage)
{
    struct kit k;
    struct event_header h = {.marker = 7};
    size_t n = 18u << 20;
    uint8_t *p = calloc(1, n);
    struct event_chain chain = {.seq = 4};
    struct event_record r = kit_record(STR("x"));
    own_done(buf) one = {.limit_bytes = 4096};

    CHECK(event_record_put(&one, &r, h.marker, 0, &chain));
    one.p[10] = (char)0xf0; /* nearly 16 MB long */
    event_header_put(p, &h);
    for (size_t at = 80; at + 200 < n; at += 40)
        memcpy(p + at, one.p, 40);
    kit_init(&k);
    kit_put(&k, "log", str_n(p, n));
    struct event_verdict v = kit_verify(&k);
    CHECK_INT(v.state, EVENT_CORRUPT);
    CHECK_INT(v.bad_offset, 64);
    kit_done(&k);
    free(p);
}
