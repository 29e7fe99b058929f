// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/log.h"
#include "event/log.h"
#include "test/event_kit.h"

static void fill_ten(struct kit *k)
{
    kit_init(k);
    kit_open(k);
    kit_fill(k, 10);
}

TEST(reading_starts_after_the_id_asked_for)
{
    struct kit k;
    own_done(buf) got;

    buf_init(&got, 1000);
    fill_ten(&k);
    CHECK_STR(kit_read(&k, &(struct event_query){.after = 7}, &got), "8:8 9:9 10:10 ");
    CHECK_STR(kit_read(&k, &(struct event_query){.after = 10}, &got), "");
    CHECK_STR(kit_read(&k, &(struct event_query){.after = 99}, &got), "");
    CHECK_STR(kit_read(&k, &(struct event_query){.after = 3, .descending = true}, &got),
              "2:2 1:1 ");
    CHECK_STR(kit_read(&k, &(struct event_query){.after = 1, .descending = true}, &got), "");
    CHECK_STR(
        kit_read(&k, &(struct event_query){.after = 99, .limit = 1, .descending = true}, &got),
        "10:10 ");
    kit_done(&k);
}

TEST(an_empty_log_has_empty_pages)
{
    struct kit k;
    own_done(buf) got;

    buf_init(&got, 1000);
    kit_init(&k);
    kit_open(&k);
    CHECK_STR(kit_read(&k, &(struct event_query){0}, &got), "");
    CHECK_STR(kit_read(&k, &(struct event_query){.descending = true}, &got), "");
    kit_done(&k);
}

TEST(pages_of_any_size_give_every_record_once_in_both_orders)
{
    struct kit k;
    own_done(buf) got;
    const char *want[] = {"1:1 2:2 3:3 4:4 5:5 6:6 7:7 8:8 9:9 10:10 ",
                          "10:10 9:9 8:8 7:7 6:6 5:5 4:4 3:3 2:2 1:1 "};

    buf_init(&got, 1000);
    fill_ten(&k);
    for (int down = 0; down < 2; down++)
        for (size_t limit = 1; limit < 12; limit++) {
            struct event_query q = {.descending = down, .limit = limit};
            struct event_page page = {.next = 1};
            unsigned pages = 0;
            buf_reset(&got);
            while (page.next) {
                CHECK_OK(event_log_read(k.log, &q, kit_collect, &got, &page));
                CHECK(page.count <= limit);
                q.after = page.next;
                pages++;
            }
            CHECK_STR(buf_str(&got), want[down]);
            CHECK_INT(pages, (10 + limit - 1) / limit);
        }
    kit_done(&k);
}

static bool stop_at_once(const struct event_record *r, void *arg)
{
    kit_collect(r, arg);
    return false;
}

TEST(the_caller_may_end_a_page)
{
    struct kit k;
    struct event_page page;
    own_done(buf) got;

    buf_init(&got, 1000);
    fill_ten(&k);
    CHECK_OK(event_log_read(k.log, &(struct event_query){.after = 4}, stop_at_once, &got, &page));
    CHECK_STR(buf_str(&got), "5:5 ");
    CHECK_INT(page.next, 5);
    kit_done(&k);
}

static bool payload_is_even(const struct event_record *r, void *arg)
{
    (*(unsigned *)arg)++;
    return (r->payload.p[r->payload.len - 1] - '0') % 2 == 0;
}

static void fill_kinds(struct kit *k)
{
    const struct str kinds[] = {STR("action"), STR("observation"), STR("state")};

    kit_init(k);
    kit_open(k);
    for (unsigned i = 1; i <= 9; i++) {
        char text[8], id[8];
        struct event_record r = {
            .kind = kinds[i % 3],
            .wall_ns = 100ull * i,
            .id = str_n(id, (size_t)snprintf(id, sizeof id, "id-%u", i)),
            .payload = str_n(text, (size_t)snprintf(text, sizeof text, "%u", i)),
        };
        CHECK_OK(event_log_append(k->log, &r, NULL));
    }
    kit_turns(k, 2);
}

TEST(filters_choose_by_kind_time_id_and_predicate)
{
    struct kit k;
    own_done(buf) got;
    unsigned asked = 0;
    struct str kinds[] = {STR("observation"), STR("action")};
    struct event_filter f = {.kinds = kinds, .kind_count = 1};
    struct event_query q = {.filter = &f};

    buf_init(&got, 1000);
    fill_kinds(&k);
    CHECK_STR(kit_read(&k, &q, &got), "1:1 4:4 7:7 ");
    f.kind_count = 2;
    q.descending = true;
    q.limit = 4;
    CHECK_STR(kit_read(&k, &q, &got), "9:9 7:7 6:6 4:4 ");
    f = (struct event_filter){.from_ns = 300, .until_ns = 600};
    CHECK_STR(kit_read(&k, &q, &got), "5:5 4:4 3:3 ");
    f = (struct event_filter){.id = STR("id-8")};
    CHECK_STR(kit_read(&k, &q, &got), "8:8 ");
    f = (struct event_filter){.match = payload_is_even, .arg = &asked, .from_ns = 500};
    CHECK_STR(kit_read(&k, &q, &got), "8:8 6:6 ");
    CHECK_INT(asked, 5); /* the predicate is asked last */
    kit_done(&k);
}

TEST(a_filter_that_finds_nothing_stops_at_the_scan_limit)
{
    struct kit k;
    struct event_filter f = {.id = STR("none")};
    struct event_query q = {.filter = &f, .scan_limit = 4};
    struct event_page page;
    own_done(buf) got;

    buf_init(&got, 1000);
    fill_ten(&k);
    CHECK_OK(event_log_read(k.log, &q, kit_collect, &got, &page));
    CHECK(page.count == 0 && page.next == 4);
    q.descending = true;
    CHECK_OK(event_log_read(k.log, &q, kit_collect, &got, &page));
    CHECK(page.count == 0 && page.next == 7);
    kit_done(&k);
}

struct order {
    uint64_t last;
    bool down;
    size_t bytes;
};

static bool check_order(const struct event_record *r, void *arg)
{
    struct order *o = arg;

    CHECK_INT(r->seq, o->down ? o->last - 1 : o->last + 1);
    CHECK(r->payload.len >= 8 && memcmp(r->payload.p, &r->seq, 8) == 0);
    o->last = r->seq;
    o->bytes += r->payload.len;
    return true;
}

/* Larger than a piece, larger than a stretch, and many small ones between. */
TEST(records_of_all_sizes_come_back_in_both_orders)
{
    struct kit k;
    char *bytes = calloc(1, 3u << 20);
    size_t total = 0;
    uint64_t n = 1000;

    kit_init(&k);
    kit_open(&k);
    for (uint64_t i = 1; i <= n; i++) {
        size_t len = i % 97 == 0 ? (3u << 20) : i % 31 == 0 ? 300000 : 8 + i % 700;
        struct event_record r = kit_record(str_n(bytes, len));
        memcpy(bytes, &i, sizeof i);
        CHECK_OK(event_log_append(k.log, &r, NULL));
        total += len;
        if (i % 50 == 0)
            kit_turns(&k, 2);
    }
    for (int down = 0; down < 2; down++) {
        struct order o = {.down = down, .last = down ? n + 1 : 0};
        CHECK_OK(event_log_read(k.log, &(struct event_query){.descending = down}, check_order, &o,
                                NULL));
        CHECK_INT(o.last, down ? 1 : n);
        CHECK_INT(o.bytes, total);
    }
    kit_done(&k);
    free(bytes);
}

TEST(a_record_damaged_while_the_log_is_open_is_not_given)
{
    struct kit k;
    own_done(buf) got;

    buf_init(&got, 1000);
    kit_init(&k);
    kit_open(&k);
    kit_fill(&k, 3);
    kit_damage_second(&k);
    for (int down = 0; down < 2; down++)
        CHECK_ERR(event_log_read(k.log, &(struct event_query){.descending = down}, kit_collect,
                                 &got, NULL),
                  ERR_CORRUPT, "record 2 at offset 173 of 'log' does not match its hash");
    kit_done(&k);
}
