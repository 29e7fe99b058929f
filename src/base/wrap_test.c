// SPDX-License-Identifier: Apache-2.0
#include "base/wrap.h"

#include "test/test.h"

#define TEN "nine-long "

static struct str text_wrapped(struct buf *b, const char *text)
{
    buf_init(b, 4096);
    wrap_put_text(b, str_of(text));
    return buf_str(b);
}

TEST(wrap_fills_lines_up_to_the_last_column)
{
    own_done(buf) fits, over, wide;

    CHECK_STR(text_wrapped(&fits, TEN TEN TEN TEN TEN TEN TEN "ten-letter"),
              TEN TEN TEN TEN TEN TEN TEN "ten-letter\n");
    CHECK_STR(text_wrapped(&over, TEN TEN TEN TEN TEN TEN TEN "eleven-long"),
              TEN TEN TEN TEN TEN TEN "nine-long\neleven-long\n");
    CHECK_STR(text_wrapped(&wide, TEN TEN TEN TEN TEN TEN TEN "ten-lettör"),
              TEN TEN TEN TEN TEN TEN TEN "ten-lettör\n");
}

TEST(wrap_joins_lines_of_a_paragraph_and_keeps_those_that_are_indented)
{
    own_done(buf) b, none;

    CHECK_STR(text_wrapped(&b, "one\ntwo\n\n  kept   so\n  and so\nthree\nfour"),
              "one two\n\n  kept   so\n  and so\nthree four\n");
    CHECK_STR(text_wrapped(&none, ""), "");
}

TEST(wrap_indents_later_lines_and_cuts_no_word)
{
    own_done(buf) b;

    buf_init(&b, 4096);
    wrap_put_words(&b, STR(TEN TEN TEN TEN TEN), 40, 30);
    CHECK_STR(buf_str(&b), TEN TEN TEN "nine-long\n                              nine-long");
}
