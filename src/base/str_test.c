// SPDX-License-Identifier: Apache-2.0
#include "base/str.h"

#include "base/own.h"
#include "test/test.h"

static const struct str none = {NULL, 0};

TEST(str_fits_one_of_several_words_or_none)
{
    static const char words[] = "one two three";

    CHECK(str_fits(STR("TWO"), words, str_eq_nocase) && str_fits(STR("three"), words, str_ends));
    CHECK(str_fits(STR("onefold"), words, str_starts));
    CHECK(!str_fits(STR("four"), words, str_starts) && !str_fits(STR(""), words, str_eq_nocase));
    CHECK(!str_fits(STR("one"), "", str_starts));
}

TEST(str_compares_bytes_and_length)
{
    CHECK(str_eq(STR(""), none));
    CHECK(str_eq(STR("a\0b"), STR("a\0b")));
    CHECK(!str_eq(STR("a\0b"), STR("a\0c")));
    CHECK(!str_eq(STR("a"), STR("ab")));
    CHECK(str_eq_nocase(STR("Content-Length"), STR("cONTENT-lENGTH")));
    CHECK(!str_eq_nocase(STR("@["), STR("`{"))); /* the neighbours of the letters */
    CHECK(str_cmp(STR("a"), STR("b")) < 0);
    CHECK(str_cmp(STR("ab"), STR("a")) > 0);
    CHECK(str_cmp(STR("\xff"), STR("a")) > 0);
    CHECK_INT(str_cmp(none, STR("")), 0);
}

TEST(str_slices_never_leave_the_slice)
{
    CHECK_STR(str_from(STR("abc"), 1), "bc");
    CHECK_STR(str_from(STR("abc"), 99), "");
    CHECK_STR(str_first(STR("abc"), 2), "ab");
    CHECK_STR(str_first(STR("abc"), 99), "abc");
    CHECK(str_from(none, 5).p == NULL);
    CHECK_INT(str_of(NULL).len, 0);
}

TEST(str_finds_the_first_hit)
{
    CHECK(str_starts(STR("abc"), STR("ab")) && str_starts(STR("abc"), STR("")));
    CHECK(!str_starts(STR("ab"), STR("abc")));
    CHECK(str_ends(STR("abc"), STR("bc")) && str_ends(none, none));
    CHECK(!str_ends(STR("bc"), STR("abc")));
    CHECK_INT(str_find(STR("abcabc"), STR("ca")), 2);
    CHECK_INT(str_find(STR("abc"), STR("x")), -1);
    CHECK_INT(str_find(none, STR("x")), -1);
    CHECK_INT(str_find(STR("abc"), none), 0);
    CHECK_INT(str_find_char(STR("a\0b"), '\0'), 1);
    CHECK_INT(str_find_char(none, 'a'), -1);
}

TEST(str_cut_gives_the_parts_in_order_and_says_when_it_was_the_last)
{
    struct str rest = STR("a,,b"), head;

    CHECK(str_cut(&rest, ',', &head));
    CHECK_STR(head, "a");
    CHECK(str_cut(&rest, ',', &head));
    CHECK_STR(head, "");
    CHECK(!str_cut(&rest, ',', &head));
    CHECK_STR(head, "b");
    CHECK(!str_cut(&rest, ',', &head));
    CHECK_STR(head, "");
    rest = STR("a,");
    CHECK(str_cut(&rest, ',', &head));
    CHECK_STR(rest, "");
}

TEST(str_trim_takes_white_space_off_both_ends)
{
    CHECK_STR(str_trim(STR(" \t\r\n a b \n")), "a b");
    CHECK_STR(str_trim(STR(" \n")), "");
    CHECK_STR(str_trim(none), "");
}

TEST(str_reads_whole_unsigned_numbers_in_range)
{
    static const char *const wrong[] = {
        "", "-1", "+1", " 1", "1 ", "1x", "0x1", "18446744073709551616", "99999999999999999999"};
    uint64_t v = 7;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        CHECK(!str_to_u64(str_of(wrong[i]), &v));
    CHECK_INT(v, 7);
    CHECK(str_to_u64(STR("18446744073709551615"), &v) && v == UINT64_MAX);
    CHECK(str_to_u64(STR("007"), &v) && v == 7);
}

TEST(str_reads_whole_signed_numbers_in_range)
{
    static const char *const wrong[] = {
        "", "-", "--1", "+1", "9223372036854775808", "-9223372036854775809"};
    int64_t v = 7;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        CHECK(!str_to_i64(str_of(wrong[i]), &v));
    CHECK_INT(v, 7);
    CHECK(str_to_i64(STR("9223372036854775807"), &v) && v == INT64_MAX);
    CHECK(str_to_i64(STR("-9223372036854775808"), &v) && v == INT64_MIN);
    CHECK(str_to_i64(STR("-0"), &v) && v == 0);
}

TEST(str_reads_whole_decimal_fractions_and_nothing_else_strtod_would)
{
    static const char *const wrong[] = {
        "",   " 1", "\v1", "\f1",   "1 ",     "1x",  "0x10",     "inf",    "-inf", "nan",
        "e5", ".",  "1e",  "1e999", "-1e999", "1,5", "infinity", "nan(1)", "1.5.2"};
    double v = 7;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (str_to_double(str_of(wrong[i]), &v))
            FAIL("'%s' was taken for %g", wrong[i], v);
    CHECK(!str_to_double(STR("1\0"), &v));
    CHECK(v == 7);
    CHECK(str_to_double(STR("-2.5e-3"), &v) && v == -2.5e-3);
    CHECK(str_to_double(STR("1e-999"), &v) && v == 0); /* too small is nearly right */
    CHECK(str_to_double(
              STR("0.1000000000000000055511151231257827021181583404541015625000000000000"), &v) &&
          v == 0.1);
}

TEST(str_distance_counts_edits_without_minding_case)
{
    CHECK_INT(str_distance(STR("kitten"), STR("Sitting")), 3);
    CHECK_INT(str_distance(STR("port"), STR("PORT")), 0);
    CHECK_INT(str_distance(none, STR("abc")), 3);
    CHECK_INT(str_distance(STR("abc"), STR("acbc")), 1);
    CHECK_INT(str_distance(STR("0123456789012345678901234567890123456789012345678901234567890123x"),
                           STR("0")),
              64);
}
