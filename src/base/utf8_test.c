// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rng.h"
#include "test/test.h"

/* After Markus Kuhn's stress test: boundaries, lone bytes, cut, overlong and illegal forms. */
static const struct {
    struct str text;
    bool valid;
    size_t refused_at; /* bytes until it is certain; 0: never, only at the end */
} cases[] = {
    {STR_INIT(""), true, 0},
    {STR_INIT("plain ascii, longer than two machine words"), true, 0},
    {STR_INIT("κόσμε"), true, 0},
    {STR_INIT("日本語 and ascii between 日本語 and 0123456789abcdef"), true, 0},
    {STR_INIT("\0"), true, 0},
    {STR_INIT("\x7f"), true, 0},
    {STR_INIT("\xc2\x80"), true, 0},
    {STR_INIT("\xdf\xbf"), true, 0},
    {STR_INIT("\xe0\xa0\x80"), true, 0},
    {STR_INIT("\xed\x9f\xbf"), true, 0},
    {STR_INIT("\xee\x80\x80"), true, 0},
    {STR_INIT("\xef\xbf\xbf"), true, 0},
    {STR_INIT("\xf0\x90\x80\x80"), true, 0},
    {STR_INIT("\xf4\x8f\xbf\xbf"), true, 0},
    {STR_INIT("\x80"), false, 1},
    {STR_INIT("\xbf"), false, 1},
    {STR_INIT("0123456789abcdef\x80"), false, 17},
    {STR_INIT("0123456\x80"), false, 8},
    {STR_INIT("\xc0\xaf"), false, 1},
    {STR_INIT("\xc1\xbf"), false, 1},
    {STR_INIT("\xe0\x80\xaf"), false, 2},
    {STR_INIT("\xe0\x9f\xbf"), false, 2},
    {STR_INIT("\xed\xa0\x80"), false, 2},
    {STR_INIT("\xed\xbf\xbf"), false, 2},
    {STR_INIT("\xf0\x80\x80\xaf"), false, 2},
    {STR_INIT("\xf0\x8f\xbf\xbf"), false, 2},
    {STR_INIT("\xf4\x90\x80\x80"), false, 2},
    {STR_INIT("\xf5\x80\x80\x80"), false, 1},
    {STR_INIT("\xf8\x88\x80\x80\x80"), false, 1},
    {STR_INIT("\xfc\x84\x80\x80\x80\x80"), false, 1},
    {STR_INIT("\xfe"), false, 1},
    {STR_INIT("\xff"), false, 1},
    {STR_INIT("\xc3"), false, 0},
    {STR_INIT("\xe2\x82"), false, 0},
    {STR_INIT("\xf0\x9f\x92"), false, 0},
    {STR_INIT("\xc3 "), false, 2},
    {STR_INIT("\xe2\x82 "), false, 3},
    {STR_INIT("\xe2\xc3\xa4"), false, 2},
    {STR_INIT("\xf0\x9f\x92 "), false, 4},
};

TEST(utf8_takes_what_rfc_3629_takes)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (utf8_valid(cases[i].text) != cases[i].valid)
            FAIL("case %zu is %svalid", i, cases[i].valid ? "" : "in");
}

TEST(utf8_fed_byte_by_byte_refuses_at_the_first_impossible_byte)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t state = 0;
        size_t at = 0, refused_at = 0;
        for (; at < cases[i].text.len && !refused_at; at++)
            if (!utf8_feed(&state, str_n(cases[i].text.p + at, 1)))
                refused_at = at + 1;
        if (refused_at != cases[i].refused_at)
            FAIL("case %zu refused at %zu, want %zu", i, refused_at, cases[i].refused_at);
        if (!refused_at)
            CHECK_INT(state == 0, cases[i].valid);
    }
}

TEST(utf8_round_trips_every_code_point)
{
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        char out[4];
        uint32_t back;
        size_t n = utf8_encode(cp, out);
        bool surrogate = cp >= 0xd800 && cp <= 0xdfff;
        CHECK_INT(n, cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4);
        CHECK_INT(utf8_decode(str_n(out, n), &back), n);
        CHECK_INT(back, surrogate ? 0xfffd : cp);
    }
    char out[4];
    CHECK_INT(utf8_encode(0x110000, out), 3);
    CHECK_STR(str_n(out, 3), "\xef\xbf\xbd");
}

TEST(utf8_decode_gives_a_broken_byte_alone)
{
    uint32_t cp = 0;

    CHECK_INT(utf8_decode(STR("\xe2\x82"), &cp), 1);
    CHECK_INT(cp, 0xfffd);
    CHECK_INT(utf8_decode(STR("\x80"), &cp), 1);
    CHECK_INT(cp, 0xfffd);
    CHECK_INT(utf8_decode(STR("\xe2\x82\xac!"), &cp), 3);
    CHECK_INT(cp, 0x20ac);
}

TEST(utf8_counts_code_points_and_finds_their_bytes)
{
    struct str s = STR("0123456789abcdef0123456789ä€😀\xe2\x82!");

    CHECK_INT(utf8_count(s), 26 + 3 + 2 + 1);
    CHECK_INT(utf8_offset(s, 0), 0);
    CHECK_INT(utf8_offset(s, 3), 3);
    CHECK_INT(utf8_offset(s, 26), 26);
    CHECK_INT(utf8_offset(s, 27), 28);
    CHECK_INT(utf8_offset(s, 28), 31);
    CHECK_INT(utf8_offset(s, 29), 35);
    CHECK_INT(utf8_offset(s, 30), 36);
    CHECK_INT(utf8_offset(s, 32), s.len);
    CHECK_INT(utf8_offset(s, 1000), s.len);
    CHECK_INT(utf8_count((struct str){NULL, 0}), 0);
}

static const char *replaced(struct buf *b, struct str s)
{
    buf_reset(b);
    utf8_add_replaced(b, s);
    return buf_cstr(b);
}

TEST(utf8_replaces_each_maximal_broken_part_once)
{
    own_done(buf) b;

    buf_init(&b, 1000);
    CHECK_STR(replaced(&b, STR("ok €")), "ok €");
    CHECK_STR(replaced(&b, STR("a\xe2\x82z")), "a\xef\xbf\xbdz");
    CHECK_STR(replaced(&b, STR("\xf0\x9f\x92")), "\xef\xbf\xbd");
    CHECK_STR(replaced(&b, STR("\xf0\x80")), "\xef\xbf\xbd\xef\xbf\xbd");
    CHECK_STR(replaced(&b, STR("\xed\xa0\x80")), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    CHECK_STR(replaced(&b, STR("\xe2\xe2\x82\xac")), "\xef\xbf\xbd€");
}

TEST(utf8_replacing_stops_at_the_limit_without_a_hole)
{
    own_done(buf) b;

    buf_init(&b, 8);
    utf8_add_replaced(&b, STR("abc\xff"
                              "0123456789\xff!"));
    CHECK(b.over_limit);
    CHECK_STR(buf_str(&b), "abc\xef\xbf\xbd");
}

/* One byte of length, then bytes: mostly lead and continuation bytes at the edges of ranges. */
static void write_samples(struct buf *all, unsigned count)
{
    static const uint8_t edges[] = {'a',  0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                    0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed,
                                    0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 7);

    for (unsigned i = 0; i < count; i++) {
        size_t n = rng_below(rng, 41), from = n > 20 ? rng_below(rng, n) : 0;
        buf_add_char(all, (char)n);
        for (size_t j = 0; j < n; j++) {
            uint8_t c = rng_below(rng, 8) ? edges[rng_below(rng, sizeof edges)]
                                          : (uint8_t)rng_below(rng, 256);
            buf_add_char(all, (char)(j < from ? 'x' : c)); /* also after the run of ASCII */
        }
    }
}

TEST(utf8_replacement_and_validity_equal_python)
{
    own_done(buf) samples, want, got;
    char command[1200], path[512];
    own_fd dir = test_dir_fd();

    if (system("python3 -c pass") != 0)
        SKIP("python3 is not here");
    buf_init(&samples, 10 << 20);
    buf_init(&want, 40 << 20);
    buf_init(&got, 40 << 20);
    write_samples(&samples, 50000);
    CHECK_OK(fd_replace_file(dir, "in", buf_str(&samples), 0600));
    snprintf(command, sizeof command,
             "cd '%s' && python3 -c '\n"
             "d = open(\"in\", \"rb\").read()\nout = open(\"out\", \"wb\")\ni = 0\n"
             "while i < len(d):\n"
             "    s = d[i + 1:i + 1 + d[i]]\n    i += 1 + d[i]\n"
             "    r = s.decode(\"utf-8\", \"replace\").encode()\n"
             "    out.write(b\"01\"[r == s:][:1] + r + b\"\\n\")\n'",
             test_dir());
    CHECK_INT(system(command), 0);
    snprintf(path, sizeof path, "%s/out", test_dir());
    CHECK_OK(fd_read_file(path, &want));
    for (size_t i = 0; i < samples.len; i += 1 + (uint8_t)samples.p[i]) {
        struct str s = str_n(samples.p + i + 1, (uint8_t)samples.p[i]);
        buf_add_char(&got, utf8_valid(s) ? '1' : '0');
        utf8_add_replaced(&got, s);
        buf_add_char(&got, '\n');
    }
    CHECK_STR(buf_str(&got), buf_str(&want));
}

TEST(lower_case_is_that_of_python)
{
    static const uint32_t pairs[][2] = {
        {'A', 'a'},         {'Z', 'z'},          {'@', '@'},       {'[', '['},
        {'a', 'a'},         {0xc4, 0xe4},        {0xd7, 0xd7},     {0xdf, 0xdf},
        {0x100, 0x101},     {0x101, 0x101},      {0x102, 0x103},   {0x130, 0x130},
        {0x178, 0xff},      {0x394, 0x3b4},      {0x3a3, 0x3c3},   {0x416, 0x436},
        {0x531, 0x561},     {0x10a0, 0x2d00},    {0x1e9e, 0xdf},   {0x2126, 0x3c9},
        {0x13a0, 0xab70},   {0xff21, 0xff41},    {0x4e00, 0x4e00}, {0x10400, 0x10428},
        {0x1e900, 0x1e922}, {0x10ffff, 0x10ffff}};

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        CHECK_INT(utf8_lower(pairs[i][0]), pairs[i][1]);
}
