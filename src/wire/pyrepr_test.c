// SPDX-License-Identifier: Apache-2.0
/* pyrepr_test.c — repr() of trees, ours against Python's byte for byte. */
#include <stdio.h>

#include "base/rng.h"
#include "base/utf8.h"
#include "test/json/python.h"
#include "test/wire/kit.h"
#include "wire/pyrepr.h"

static struct str repr(const struct json *v)
{
    struct buf b;

    buf_init(&b, 64 << 20);
    pyrepr_add(&b, v);
    return kit_keep(&b);
}

#define REPR(text) repr(kit_tree(STR(text)))

TEST(pyrepr_prints_what_python_prints)
{
    CHECK_STR(repr(NULL), "None");
    CHECK_STR(REPR("null"), "None");
    CHECK_STR(REPR("[true, false, null]"), "[True, False, None]");
    CHECK_STR(REPR("{}"), "{}");
    CHECK_STR(REPR("[]"), "[]");
    CHECK_STR(REPR("[[], {}, [{}]]"), "[[], {}, [{}]]");
    CHECK_STR(REPR("{\"a\": 1, \"b\": [2, {\"c\": -3}], \"d\": {}}"),
              "{'a': 1, 'b': [2, {'c': -3}], 'd': {}}");
    CHECK_STR(REPR("[1.0, 1e16, 1e-7, 0.1, 99999999999999999999]"),
              "[1.0, 1e+16, 1e-07, 0.1, 99999999999999999999]");
    CHECK_STR(REPR("\"it's\""), "\"it's\"");
    CHECK_STR(REPR("\"it's \\\"so\\\"\""), "'it\\'s \"so\"'");
    CHECK_STR(REPR("\"\\\"so\\\"\""), "'\"so\"'");
    CHECK_STR(REPR("\"a\\nb\\tc\\rd\\\\e\\u0000\\u001b\\u007f\\u0085\\u00a0\\u00ad\""),
              "'a\\nb\\tc\\rd\\\\e\\x00\\x1b\\x7f\\x85\\xa0\\xad'");
    CHECK_STR(REPR("\"é日😀\\u2028\\ufeff\\udc00\\ud83d\\ue000\""),
              "'é日😀\\u2028\\ufeff\\udc00\\ud83d\\ue000'");
    CHECK_STR(REPR("\"\\udb80\\udc00\""), "'\\U000f0000'");
    arena_done(&kit_arena);
}

TEST(pyrepr_prints_a_member_without_its_siblings)
{
    CHECK_STR(repr(json_get(kit_quoted("{'a':[1],'b':2}"), STR("a"))), "[1]");
    CHECK_STR(repr(json_get(kit_quoted("{'a':1,'b':2}"), STR("a"))), "1");
    CHECK_STR(repr(json_get(kit_quoted("{'a':{},'b':2}"), STR("a"))), "{}");
    arena_done(&kit_arena);
}

TEST(pyrepr_stops_at_the_limit_of_its_buffer)
{
    own_done(buf) b;

    buf_init(&b, 10);
    pyrepr_add(&b, kit_tree(STR("[\"0123456789abcdef\",[[[[[[1,2,3]]]]]]]")));
    CHECK(b.over_limit);
    CHECK(b.len <= 10);
    arena_done(&kit_arena);
}

TEST_LIMIT(pyrepr_knows_printable_characters_as_python_does, 120)
{
    /* Characters younger than this Python's tables have no category there: skip them. */
    static const char script[] =
        "import sys, unicodedata\n"
        "c = map(chr, range(0x110000))\n"
        "print(''.join('?' if unicodedata.category(x) == 'Cn' else '01'[x.isprintable()]\n"
        "              for x in c), end='')\n";
    own_done(buf) answers;
    unsigned checked = 0;

    buf_init(&answers, 4 << 20);
    python_script(script, STR(""), &answers);
    CHECK_INT(answers.len, 0x110000);
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        if (answers.p[cp] == '?')
            continue;
        if (pyrepr_is_printable(cp) != (answers.p[cp] == '1'))
            FAIL("U+%04X", cp);
        checked++;
    }
    CHECK(checked > 280000);
}

/* --- random trees --- */

struct maker {
    struct rng *rng;
    struct buf *out;
    unsigned left;
};

static unsigned below(struct maker *m, unsigned n)
{
    return (unsigned)rng_below(m->rng, n);
}

static void make_string(struct maker *m)
{
    static const char *const ready[] = {"'",       "\\\"",    "\\\\",    "\\n",     "\\u0000",
                                        "\\u00ad", "\\ud83d", "\\u2028", "\\ufffd", "é",
                                        "😀",       "\\ue001", " ",       "\\u200b", "日本"};

    buf_add_char(m->out, '"');
    for (unsigned n = below(m, 8); n--;) {
        if (below(m, 3) == 0)
            buf_addf(m->out, "\\u%04x", below(m, 0x0c00)); /* all of it older than the oracle */
        else if (below(m, 2))
            buf_add_cstr(m->out, ready[below(m, ARRAY_LEN(ready))]);
        else
            buf_add_char(m->out, (char)('a' + below(m, 26)));
    }
    buf_add_char(m->out, '"');
}

static void make_leaf(struct maker *m)
{
    static const char *const ready[] = {"null", "true",      "false",
                                        "-0.0", "1e22",      "1e-5",
                                        "NaN",  "-Infinity", "123456789012345678901234567890",
                                        "-0"};

    switch (below(m, 4)) {
    case 0:
        return buf_add_cstr(m->out, ready[below(m, ARRAY_LEN(ready))]);
    case 1:
        return buf_addf(m->out, "%d", (int)below(m, 2000) - 1000);
    case 2:
        return buf_addf(m->out, "%u.%ue%d", below(m, 1000), below(m, 100000),
                        (int)below(m, 60) - 30);
    default:
        return make_string(m);
    }
}

static void make_value(struct maker *m, unsigned depth)
{
    bool object = below(m, 2);

    if (m->left == 0 || depth > 10 || below(m, 3) == 0)
        return make_leaf(m);
    m->left--;
    buf_add_char(m->out, object ? '{' : '[');
    for (unsigned i = 0, n = below(m, 5); i < n; i++) {
        if (i)
            buf_add_char(m->out, ',');
        if (object) {
            make_string(m);
            buf_add_char(m->out, ':');
        }
        make_value(m, depth + 1);
    }
    buf_add_char(m->out, object ? '}' : ']');
}

TEST_LIMIT(pyrepr_prints_random_trees_as_python, 120)
{
    static const char script[] =
        "import sys, json\n"
        "for l in open(sys.stdin.fileno(), encoding='utf-8', newline='\\n'):\n"
        "    sys.stdout.buffer.write(repr(json.loads(l)).encode() + b'\\n')\n";
    struct rng_fixed fixed;
    own_done(buf) text;
    own_done(buf) answers;
    struct maker m = {.rng = rng_fixed_init(&fixed, 7), .out = &text};

    buf_init(&text, 64 << 20);
    buf_init(&answers, 64 << 20);
    for (unsigned i = 0; i < 4000; i++) {
        m.left = 30;
        make_value(&m, 0);
        buf_add_char(&text, '\n');
    }
    python_script(script, buf_str(&text), &answers);
    struct str rest = buf_str(&text), line, wants = buf_str(&answers), want;
    while (str_cut(&rest, '\n', &line)) {
        struct json *v;
        CHECK(str_cut(&wants, '\n', &want));
        CHECK_OK(json_parse(&kit_arena, line, &(struct json_limits){.allow_nan = true}, &v));
        CHECK_STR(repr(v), want);
        arena_reset(&kit_arena);
    }
    CHECK_INT(wants.len, 0);
    arena_done(&kit_arena);
}
