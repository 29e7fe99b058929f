// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include "test/test.h"

TEST(buf_takes_exactly_its_limit_and_remembers_being_asked_for_more)
{
    own_done(buf) b;

    buf_init(&b, 5);
    buf_add(&b, STR("abc"));
    buf_add(&b, STR("def")); /* all or nothing */
    CHECK_STR(buf_str(&b), "abc");
    buf_add(&b, STR("de")); /* still fits; the refusal stays known */
    CHECK_STR(buf_str(&b), "abcde");
    buf_add_char(&b, 'x');
    CHECK_STR(buf_str(&b), "abcde");
    CHECK_ERR(buf_check(&b), ERR_TOO_LARGE, "more than 5 bytes");
    buf_reset(&b);
    CHECK_OK(buf_check(&b));
    CHECK_INT(b.len, 0);
}

TEST(buf_does_not_pass_its_limit_after_it_was_terminated)
{
    own_done(buf) b;

    buf_init(&b, 4);
    buf_add(&b, STR("full"));
    CHECK_STR(buf_cstr(&b), "full");
    buf_add_char(&b, '!');
    buf_add(&b, STR("and a lot more than four bytes"));
    CHECK_STR(buf_str(&b), "full");
    CHECK(b.over_limit);
}

TEST(buf_with_limit_zero_holds_nothing)
{
    own_done(buf) b;

    buf_init(&b, 0);
    buf_add(&b, STR(""));
    CHECK(!buf_failed(&b));
    CHECK_STR(buf_cstr(&b), "");
    buf_add_char(&b, 'x');
    CHECK_ERR(buf_check(&b), ERR_TOO_LARGE, "0 bytes");
}

TEST(buf_gives_room_for_nothing_without_calling_it_a_refusal)
{
    own_done(buf) b;

    buf_init(&b, 10);
    CHECK(buf_reserve(&b, 0) != NULL);
    CHECK(!buf_failed(&b));
    CHECK(buf_reserve(&b, SIZE_MAX) == NULL);
    CHECK(b.over_limit);
}

TEST(buf_grows_over_many_appends_and_keeps_the_order)
{
    own_done(buf) b;

    buf_init(&b, 1 << 20);
    for (int i = 0; i < 20000; i++)
        buf_addf(&b, "%d,", i);
    CHECK(str_starts(buf_str(&b), STR("0,1,2,3,")));
    CHECK(str_ends(buf_str(&b), STR("19998,19999,")));
    CHECK_INT(b.len, 10 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 10000 * 6);
    CHECK(b.cap < 2 * b.len + 64);
}

TEST(buf_formats_long_text_up_to_the_last_byte_of_the_limit)
{
    own_done(buf) b;

    buf_init(&b, 300);
    buf_addf(&b, "%0300d", 7);
    CHECK_INT(b.len, 300);
    CHECK(b.p[299] == '7' && !buf_failed(&b));
    buf_reset(&b);
    buf_addf(&b, "%0301d", 7);
    CHECK(b.len == 0 && b.over_limit);
}

TEST(buf_consume_drops_from_the_front)
{
    own_done(buf) b;

    buf_init(&b, 100);
    buf_add_cstr(&b, "0123456789");
    buf_consume(&b, 0);
    buf_consume(&b, 3);
    CHECK_STR(buf_str(&b), "3456789");
    buf_consume(&b, 99);
    CHECK_INT(b.len, 0);
}

TEST(buf_commit_keeps_what_was_written_into_the_room)
{
    own_done(buf) b;

    buf_init(&b, 100);
    char *p = buf_reserve(&b, 50);
    memcpy(p, "four", 4);
    buf_commit(&b, 4);
    CHECK_STR(buf_str(&b), "four");
}

TEST(buf_shrinks_to_what_it_holds)
{
    own_done(buf) b;

    buf_init(&b, 1000);
    buf_reserve(&b, 900);
    buf_add(&b, STR("ten bytes."));
    buf_shrink(&b);
    CHECK_INT(b.cap, 10);
    CHECK_STR(buf_str(&b), "ten bytes.");
    buf_reset(&b);
    buf_shrink(&b);
    CHECK(b.p == NULL && b.cap == 0);
}

TEST(buf_can_give_its_memory_away)
{
    own_done(buf) b;

    buf_init(&b, 100);
    buf_add(&b, STR("mine"));
    own_free char *p = buf_steal(&b);
    CHECK_STR(str_n(p, 4), "mine");
    CHECK(b.p == NULL && b.len == 0 && b.limit_bytes == 100);
}

TEST(buf_without_memory_keeps_what_it_had)
{
    own_done(buf) b;

    buf_init(&b, 10000);
    buf_add(&b, STR("kept"));
    fault_at(1);
    buf_addf(&b, "%0500d", 1);
    CHECK(fault_fired());
    CHECK_STR(buf_str(&b), "kept");
    CHECK_ERR(buf_check(&b), ERR_NO_MEMORY, "memory");
    buf_reset(&b);
    fault_at(1);
    CHECK(buf_reserve(&b, 5000) == NULL);
    CHECK(b.no_memory);
}
