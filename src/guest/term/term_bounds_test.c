// SPDX-License-Identifier: Apache-2.0
/* term_bounds_test.c — what is kept, counted, answered and survived; what sequences draw is in
 * term_test.c. */
#include "test/test.h"
#include "guest/term/term_kit.h"

static void check_rest(const struct term *t, struct str first, struct str last, size_t lines)
{
    own_done(buf) got;
    size_t count = 1;

    text_of(t, &got);
    for (size_t i = 0; i < got.len; i++)
        count += got.p[i] == '\n';
    CHECK(str_starts(buf_str(&got), first));
    CHECK(str_ends(buf_str(&got), last));
    CHECK_INT(count, lines);
}

static void feed_lines(struct term *t, unsigned from, unsigned to)
{
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    for (unsigned i = from; i <= to; i++)
        buf_addf(&b, "Line %u\r\n", i);
    term_feed(t, buf_str(&b));
}

TEST(term_joins_a_line_longer_than_the_screen_is_wide)
{
    own(term) t = term_new(&(struct term_config){0});
    char line[1502];

    memset(line, 'x', 1500);
    line[1500] = '\r';
    line[1501] = '\n';
    term_feed(t, str_n(line, sizeof line));
    check_text(t, "1500", "whole", str_n(line, 1500));
}

TEST(term_keeps_the_newest_lines_and_counts_the_others)
{
    own(term) t = term_new(&(struct term_config){0});

    feed_lines(t, 1, 5000);
    check_rest(t, STR("Line 1\n"), STR("\nLine 5000"), 5000);
    CHECK_INT(term_dropped_lines(t), 0);
    feed_lines(t, 5001, 50000);
    check_rest(t, STR("Line 39001\n"), STR("\nLine 50000"), 11000);
    CHECK_INT(term_dropped_lines(t), 39000);
}

TEST(term_keeps_as_many_lines_whatever_the_height)
{
    for (unsigned rows = 1; rows < 3000; rows = rows * 3 + 1) {
        own(term) t = term_new(&(struct term_config){.rows = rows});
        feed_lines(t, 1, 50000);
        check_rest(t, STR("Line 39001\n"), STR("\nLine 50000"), 11000);
        CHECK_INT(term_dropped_lines(t), 39000);
    }
}

TEST(term_keeps_its_lines_when_the_screen_is_cleared)
{
    own(term) t = term_new(&(struct term_config){.history_lines = 100, .rows = 40});

    feed_lines(t, 1, 100);
    term_feed(t, STR("\033[H\033[2J\033[3J"));
    check_rest(t, STR("Line 1\n"), STR("Line 100"), 100);
    feed_lines(t, 101, 103);
    check_rest(t, STR("Line 4\n"), STR("Line 103"), 100);
    CHECK_INT(term_dropped_lines(t), 3);
}

TEST(term_never_shows_more_rows_than_lines_kept)
{
    own(term) t = term_new(&(struct term_config){.history_lines = 3, .rows = 100});

    feed_lines(t, 1, 10);
    check_text(t, "three", "whole", STR("Line 8\nLine 9\nLine 10"));
    CHECK_INT(term_dropped_lines(t), 7);
}

TEST(term_drops_whole_lines_beyond_the_bytes_kept)
{
    own(term) t = term_new(&(struct term_config){.rows = 2, .history_bytes = 20});

    feed_lines(t, 1, 6); /* the last is on the screen, five left it, seven bytes each */
    check_text(t, "bytes", "whole", STR("Line 4\nLine 5\nLine 6"));
    CHECK_INT(term_dropped_lines(t), 3);
}

TEST(term_cuts_a_line_that_is_too_long_alone_and_counts_it_once)
{
    own(term) t = term_new(&(struct term_config){.columns = 10, .rows = 1, .history_bytes = 25});

    for (unsigned i = 0; i < 20; i++)
        term_feed(t, STR("\xc3\xa9\xc3\xa9|\xc3\xa9\xc3\xa9")); /* two make a row of 18 bytes */
    CHECK_INT(term_dropped_lines(t), 1);
    check_text(t, "cut", "at a character",
               STR("\xc3\xa9|\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9|\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9|"
                   "\xc3\xa9\xc3\xa9"
                   "\xc3\xa9\xc3\xa9|\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9|\xc3\xa9\xc3\xa9"));
    term_feed(t, STR("\r\nnext\r\n"));
    check_text(t, "cut", "and dropped later", STR("next"));
    CHECK_INT(term_dropped_lines(t), 1);
}

static size_t text_length(const struct term *t)
{
    own_done(buf) got;

    text_of(t, &got);
    return got.len;
}

TEST(term_is_bounded_for_a_line_without_end)
{
    own(term) t = term_new(&(struct term_config){.history_bytes = 1u << 20});
    own_free char *piece = malloc(1u << 20);

    memset(piece, 'x', 1u << 20);
    for (unsigned i = 0; i < 64; i++)
        term_feed(t, str_n(piece, 1u << 20));
    CHECK(text_length(t) <= (1u << 20) + 1000 * 1000);
    CHECK(text_length(t) >= 1u << 20);
    CHECK_INT(term_dropped_lines(t), 1);
    memset(piece, ' ', 1u << 20);
    for (unsigned i = 0; i < 8; i++)
        term_feed(t, str_n(piece, 1u << 20));
    term_feed(t, STR("!"));
    CHECK(text_length(t) <= (1u << 20) + 1000 * 1000);
}

TEST(term_is_bounded_for_marks_without_end)
{
    own(term) t = term_new(&small_size);

    term_feed(t, STR("a"));
    for (unsigned i = 0; i < 1000000; i++)
        term_feed(t, STR("\xcc\x81"));
    CHECK(text_length(t) <= 64);
    CHECK(text_length(t) >= 32);
    for (unsigned i = 0; i < 20000; i++) /* over and over: what is overwritten leaves garbage */
        term_feed(t, STR("\ra\xcc\x81"
                         "b\xcc\x81\xcc\x81\xcc\x81\xcc\x81"));
    check_text(t, "marks", "overwritten",
               STR("a\xcc\x81"
                   "b\xcc\x81\xcc\x81\xcc\x81\xcc\x81"));
    term_feed(t, STR("\r"));
    for (unsigned i = 0; i < 10; i++) {
        term_feed(t, STR("c"));
        for (unsigned k = 0; k < 200; k++)
            term_feed(t, STR("\xcc\x81"));
    }
    CHECK(text_length(t) <= 640);
}

TEST(term_does_not_swallow_what_follows_an_endless_string)
{
    own(term) t = term_new(&(struct term_config){0});
    own_free char *piece = malloc(1u << 20);

    memset(piece, 'x', 1u << 20);
    term_feed(t, STR("a\033P"));
    term_feed(t, str_n(piece, 1u << 20));
    term_feed(t, STR("yyyyyyyy\r\nshown"));
    own_done(buf) got;
    text_of(t, &got);
    CHECK(str_ends(buf_str(&got), STR("yy\nshown")));
}

static void check_reply(struct term *t, struct str ask, const char *answer)
{
    term_feed(t, ask);
    CHECK_STR(term_replies(t), answer);
}

TEST(term_answers_what_programs_ask)
{
    own(term) t = term_new(&small_size);

    check_reply(t, STR("\033[5n"), "\033[0n");
    check_reply(t, STR("\033[6n"), "\033[1;1R");
    check_reply(t, STR("ab\r\nc\033[6n"), "\033[2;2R");
    check_reply(t, STR("\033[?6n"), "\033[?2;2R");
    check_reply(t, STR("\r0123456789\033[6n"), "\033[2;10R");
    check_reply(t, STR("\033[2;4r\033[?6h\033[2;3H\033[6n"), "\033[2;3R");
    check_reply(t, STR("\033[c"), "\033[?1;2c");
    check_reply(t, STR("\033[0c\033Z"), "\033[?1;2c\033[?1;2c");
    check_reply(t, STR("\033[>c"), "\033[>0;0;0c");
    check_reply(t, STR("\033[=c\033[1c\033[?1;2c\033[7n"), "");
    check_reply(t, STR("x"), "");
    for (unsigned i = 0; i < 3; i++)
        term_feed(t, STR("\033[5n"));
    CHECK_STR(term_replies(t), "\033[0n");
}

TEST(term_answers_only_so_much_at_once)
{
    own(term) t = term_new(&small_size);
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    for (unsigned i = 0; i < 5000; i++)
        buf_add_cstr(&b, "\033[5n");
    term_feed(t, buf_str(&b));
    CHECK_INT(term_replies(t).len, 4096);
    check_reply(t, STR("\033[5n"), "\033[0n");
}

TEST(term_version_grows_with_the_text_and_rests_with_it)
{
    own(term) t = term_new(&small_size);
    uint64_t before = term_version(t);

    term_feed(t, STR("\033[31m\033]0;x\007\r\033[6n\033[?25l\a"));
    CHECK_INT(term_version(t), before);
    term_feed(t, STR("x"));
    CHECK(term_version(t) > before);
    before = term_version(t);
    term_feed(t, STR("\033[2J"));
    CHECK(term_version(t) > before);
    before = term_version(t);
    term_feed(t, STR("\033[?1049h"));
    CHECK(term_version(t) > before);
    before = term_version(t);
    term_reset(t);
    CHECK(term_version(t) > before);
}

TEST(term_is_as_new_after_a_reset)
{
    own(term) t = term_new(&(struct term_config){.columns = 10, .rows = 4, .history_lines = 5});

    feed_lines(t, 1, 20);
    term_feed(t, STR("\033[3g\033[2;3r\033[?6h\033[?7l\033[4h\033(0\033[?1049hq\xe2\x82"));
    term_reset(t);
    CHECK_INT(term_dropped_lines(t), 0);
    check_text(t, "reset", "empty", STR(""));
    term_feed(t, STR("q\tx0\r\n2"));
    check_text(t, "reset", "used", STR("q       x0\n2"));
}

TEST(term_text_adds_to_what_is_there)
{
    own(term) t = term_new(&small_size);
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    buf_add_cstr(&b, "before \n ");
    term_text(t, &b);
    CHECK_STR(buf_str(&b), "before \n ");
    term_feed(t, STR("x"));
    term_text(t, &b);
    CHECK_STR(buf_str(&b), "before \n x");
}

static void put_everything(struct buf *b)
{
    buf_init(b, SIZE_MAX / 2);
    for (unsigned i = 0; i < 3000; i++)
        buf_addf(b, "line %u\r\n", i);
    buf_add_cstr(b, "\xe4\xb8\xad\xcc\x81\033[?1049hx\xe4\xb8\xad\033[?1049l\033[4habc\033[2J");
}

TEST(term_survives_a_lack_of_memory_and_says_so)
{
    own_done(buf) everything;

    put_everything(&everything);
    for (unsigned n = 1;; n++) {
        fault_at(n);
        struct term *t = term_new(&(struct term_config){.rows = 30});
        if (t)
            term_feed(t, buf_str(&everything));
        bool fired = fault_fired();
        fault_at(0);
        if (t) {
            CHECK_INT(term_no_memory(t), fired);
            term_feed(t, STR("\033c\r\nstill here"));
            own_done(buf) got;
            text_of(t, &got);
            CHECK(str_ends(buf_str(&got), STR("still here")));
        }
        term_free(t);
        if (!fired)
            break;
    }
}
