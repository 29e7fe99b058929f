// SPDX-License-Identifier: Apache-2.0
#include "base/plain.h"

#include "test/test.h"

static struct str put(struct buf *b, void (*how)(struct buf *, struct str), struct str text)
{
    buf_reset(b);
    how(b, text);
    return buf_str(b);
}

TEST(plain_names_stay_as_they_are_or_are_quoted)
{
    own_done(buf) b;

    buf_init(&b, 4096);
    CHECK_STR(put(&b, plain_put_name, STR("a b/ö")), "a b/ö");
    CHECK_STR(put(&b, plain_put_name, STR("\033]0;x\a")), "\"\\033]0;x\\007\"");
    CHECK_STR(put(&b, plain_put_name, STR("a\nb\"\\")), "\"a\\nb\\\"\\\\\"");
    CHECK_STR(put(&b, plain_put_name, STR("\xe2\x80\xae")), "\"\\342\\200\\256\"");
    CHECK_STR(put(&b, plain_put_name, STR("\xff")), "\"\\377\"");
    CHECK_STR(put(&b, plain_put_name, STR("")), "\"\"");
}

TEST(plain_cells_are_as_wide_as_asked_for)
{
    own_done(buf) b;

    buf_init(&b, 4096);
    plain_put_cell(&b, STR("ö"), 3);
    plain_put_cell(&b, STR(""), 2);
    plain_put_cell(&b, STR("longer"), 2);
    CHECK_STR(buf_str(&b), "ö    longer");
}

TEST(plain_lines_keep_their_ends_and_nothing_a_terminal_acts_on)
{
    own_done(buf) b;

    buf_init(&b, 4096);
    CHECK_STR(put(&b, plain_put_lines, STR("one\ttwo ö\nthree")), "one\ttwo ö\nthree");
    CHECK_STR(put(&b, plain_put_lines, STR("\033[2J\r\x9b\xc2\x9b")),
              "\\x1b[2J\\x0d\\x9b\\xc2\\x9b");
    CHECK_STR(put(&b, plain_put_lines, STR("\xef\xbf\xbd \xe2\x80\xae")),
              "\xef\xbf\xbd \\xe2\\x80\\xae");
}
