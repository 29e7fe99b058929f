// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"
#include "guest/edit/diff.h"
#include "test/edit_kit.h"
#include "test/json/python.h"

static struct str unified(struct arena *a, struct str old_text, struct str new_text)
{
    struct str text;

    CHECK_OK(diff_unified(a, old_text, new_text, STR("/w/a b.txt "), &text));
    return text;
}

static void make_text(struct rng *rng, struct buf *b, unsigned lines, unsigned kinds)
{
    while (lines--)
        buf_addf(b, "line %u%s\n", (unsigned)rng_below(rng, kinds),
                 rng_below(rng, 20) ? "" : " \t\xc2\xa0");
    if (rng_below(rng, 3) == 0)
        buf_add_cstr(b, "no end");
}

/* Copies most lines, drops and changes some. */
static void change_text(struct rng *rng, struct str old_text, struct buf *b, unsigned kinds)
{
    struct str line;

    while (old_text.len) {
        bool ended = str_cut(&old_text, '\n', &line);
        unsigned what = (unsigned)rng_below(rng, 12);
        if (what == 0)
            continue;
        if (what == 1)
            buf_addf(b, "line %u\n", (unsigned)rng_below(rng, kinds));
        buf_add(b, line);
        if (ended)
            buf_add_char(b, '\n');
    }
}

static const char script[] =
    "import sys, difflib\n"
    "d = sys.stdin.buffer.read().decode()\n"
    "out = []\n"
    "for pair in d.split('\\x01')[:-1]:\n"
    "    old, new = pair.split('\\x02')\n"
    "    out.append('\\n'.join(x.rstrip() for x in difflib.unified_diff(old.split('\\n'),"
    " new.split('\\n'), fromfile='/w/a b.txt ', tofile='/w/a b.txt ', n=0)) + '\\x01')\n"
    "sys.stdout.buffer.write(''.join(out).encode())\n";

TEST_LIMIT(edit_diff_equals_difflib, 60)
{
    struct buf input, old_text, new_text, want, got;
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 7);
    struct arena a;

    buf_init(&input, 64u << 20);
    buf_init(&old_text, 1u << 20);
    buf_init(&new_text, 1u << 20);
    buf_init(&want, 64u << 20);
    buf_init(&got, 64u << 20);
    arena_init(&a, 256u << 20);
    for (unsigned i = 0; i < 400; i++) {
        unsigned kinds = 1 + (unsigned)rng_below(rng, i % 3 ? 300 : 8);
        buf_reset(&old_text);
        buf_reset(&new_text);
        make_text(rng, &old_text, (unsigned)rng_below(rng, i % 10 ? 30 : 700), kinds);
        change_text(rng, buf_str(&old_text), &new_text, kinds);
        buf_add(&input, buf_str(&old_text));
        buf_add_char(&input, 2);
        buf_add(&input, buf_str(&new_text));
        buf_add_char(&input, 1);
        buf_add(&got, unified(&a, buf_str(&old_text), buf_str(&new_text)));
        buf_add_char(&got, 1);
    }
    python_script(script, buf_str(&input), &want);
    CHECK_STR(buf_str(&got), buf_str(&want));
    arena_done(&a);
    buf_done(&input);
    buf_done(&old_text);
    buf_done(&new_text);
    buf_done(&want);
    buf_done(&got);
}

TEST(edit_diff_of_the_contract)
{
    struct arena a;

    arena_init(&a, 1u << 20);
    CHECK_STR(unified(&a, STR("one\ntwo\nthree\n"), STR("one\nTWO\nthree\n")),
              "--- /w/a b.txt\n+++ /w/a b.txt\n@@ -2 +2 @@\n-two\n+TWO");
    CHECK_STR(unified(&a, STR(""), STR("one\ntwo\n")),
              "--- /w/a b.txt\n+++ /w/a b.txt\n@@ -0,0 +1,2 @@\n+one\n+two");
    CHECK_STR(unified(&a, STR(""), STR("text")),
              "--- /w/a b.txt\n+++ /w/a b.txt\n@@ -1 +1 @@\n-\n+text");
    CHECK_STR(unified(&a, STR("same"), STR("same")), "");
    arena_done(&a);
}

/* What difflib would take minutes for. */
TEST(edit_diff_of_large_texts_is_quick_and_right)
{
    struct buf old_text, new_text;
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 9);
    struct arena a;
    struct diff d;

    buf_init(&old_text, 64u << 20);
    buf_init(&new_text, 64u << 20);
    arena_init(&a, 256u << 20);
    for (unsigned i = 0; i < 100000; i++) {
        buf_addf(&old_text, "%u\n", (unsigned)rng_below(rng, 2000));
        buf_addf(&new_text, "%u\n", (unsigned)rng_below(rng, 2000));
    }
    CHECK_OK(diff_lines(&a, buf_str(&old_text), buf_str(&new_text), &d));
    CHECK(d.count >= 1);
    CHECK_INT(d.changes[d.count - 1].old_to, 100000);
    buf_reset(&new_text);
    buf_add(&new_text, buf_str(&old_text));
    new_text.p[new_text.len / 2] = 'x';
    CHECK_OK(diff_lines(&a, buf_str(&old_text), buf_str(&new_text), &d));
    CHECK(d.count == 1 || d.count == 2); /* 2 only if the byte was a line end */
    arena_done(&a);
    buf_done(&old_text);
    buf_done(&new_text);
}
