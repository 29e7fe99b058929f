// SPDX-License-Identifier: Apache-2.0
/* output_test.c — what is cut, what is stripped, and that the rest is left alone. */
#include "guest/jupyter/output.h"

#include "test/test.h"

static void check_plain(const char *in, const char *want)
{
    own_done(buf) out;

    buf_init(&out, 4096);
    output_add_plain(&out, str_of(in));
    CHECK_STR(buf_str(&out), want);
}

TEST(output_loses_colours_and_no_other_sequence)
{
    check_plain("\033[33mLorem ipsum\033[0m", "Lorem ipsum");
    check_plain("Lorem \033[38;25mIpsum\033[0m sit\namet.", "Lorem Ipsum sit\namet.");
    check_plain("\033[38;5;32mx\033[0m", "x");
    check_plain("\033[1m\033[46m\033[31my", "y");
    check_plain("\033[m\033[1;2;3;4mz\033[2K\033[;1m", "\033[m\033[1;2;3;4mz\033[2K\033[;1m");
    check_plain("\033[31", "\033[31");
    check_plain("\033", "\033");
    check_plain("\033\033[0m\033[", "\033\033[");
}

TEST(output_strips_what_python_calls_space)
{
    CHECK_STR(output_rstrip(STR("a \t\r\n\v\f\x1c\x1f")), "a");
    CHECK_STR(output_rstrip(STR("a\xc2\xa0\xc2\x85\xe2\x80\x83\xe3\x80\x80")), "a");
    CHECK_STR(output_rstrip(STR("a\xe2\x80\x8b")), "a\xe2\x80\x8b"); /* U+200B is none */
    CHECK_STR(output_rstrip(STR("\n \n")), "");
    CHECK_STR(output_rstrip(STR("a\x80")), "a\x80");
}

static void check_cut(size_t limit, const char *piece, unsigned count, const char *want)
{
    own_done(output) o;
    own_done(buf) out;

    output_init(&o, limit);
    buf_init(&out, 1u << 20);
    for (unsigned i = 0; i < count; i++)
        output_add(&o, str_of(piece));
    output_content(&o, &out);
    CHECK_STR(buf_str(&out), want);
    CHECK(o.head.len + o.tail.len <= 2 * limit);
}

TEST(output_keeps_both_ends_of_too_much)
{
    check_cut(8, "", 0, "[Code executed successfully with no output]");
    check_cut(8, "ab", 4, "abababab");
    check_cut(8, "abcdefghij", 1, "abcd\n[... Observation truncated due to length ...]\nghij");
    check_cut(8, "abcdefghij", 9, "abcd\n[... Observation truncated due to length ...]\nghij");
    check_cut(8, "a", 1000, "aaaa\n[... Observation truncated due to length ...]\naaaa");
    check_cut(8, "\xe2\x82\xac", 9,
              "\xe2\x82\xac\n[... Observation truncated due to length ...]\n\xe2\x82\xac");
}

TEST(output_is_valid_utf8_also_when_pieces_are_not)
{
    own_done(output) o;
    own_done(buf) out;

    output_init(&o, 0);
    buf_init(&out, 4096);
    output_add(&o, STR("\xe2\x82"));
    output_add(&o, STR("\xac \xff"));
    output_content(&o, &out);
    CHECK_STR(buf_str(&out), "\xe2\x82\xac \xef\xbf\xbd");
}

TEST(output_takes_so_many_images_and_says_so)
{
    own_done(output) o;
    own_done(buf) out;

    output_init(&o, 0);
    buf_init(&out, 4096);
    for (unsigned i = 0; i <= OUTPUT_IMAGES_MAX; i++)
        output_add_png(&o, STR("iVBO\n"));
    CHECK_INT(o.image_count, OUTPUT_IMAGES_MAX);
    CHECK_STR(output_image(&o, 0), "data:image/png;base64,iVBO");
    CHECK_STR(output_image(&o, OUTPUT_IMAGES_MAX - 1), "data:image/png;base64,iVBO");
    output_content(&o, &out);
    CHECK_STR(buf_str(&out), "[image dropped: the cell shows too much]");
}

TEST(output_that_could_not_be_kept_is_marked)
{
    for (unsigned n = 1;; n++) {
        own_done(output) o;
        own_done(buf) out;
        output_init(&o, 64);
        buf_init(&out, 4096);
        fault_at(n);
        for (unsigned i = 0; i < 40; i++)
            output_add(&o, STR("0123456789"));
        bool fired = fault_fired();
        fault_at(0);
        output_content(&o, &out);
        CHECK_HAS(buf_str(&out), "[... Observation truncated due to length ...]");
        if (!fired)
            return;
    }
}
