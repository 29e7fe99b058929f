// SPDX-License-Identifier: Apache-2.0
/* yaml_test.c — what PyYAML's safe_load would give, and what is refused. */
#include "host/config/yaml.h"

#include "test/test.h"

#define LIMIT (256u << 20)

static void check_yaml(const char *text, const char *want)
{
    own_done(arena) a;
    own_done(buf) out;
    struct json *v;

    arena_init(&a, LIMIT);
    buf_init(&out, LIMIT);
    CHECK_OK(yaml_parse(&a, str_of(text), &v));
    json_write(&out, v, JW_PYTHON);
    CHECK_STR(buf_str(&out), want);
}

static void check_refused(const char *text, const char *part)
{
    own_done(arena) a;
    struct json *v;

    arena_init(&a, LIMIT);
    CHECK_ERR(yaml_parse(&a, str_of(text), &v), ERR_INVALID, part);
}

TEST(yaml_plain_words_mean_what_yaml_1_1_says)
{
    check_yaml("[yes, No, ON, off, True, FALSE, y, n, tRUE]",
               "[true, false, true, false, true, false, \"y\", \"n\", \"tRUE\"]");
    check_yaml("[~, null, Null, NULL, '', \"~\", ]", "[null, null, null, null, \"\", \"~\"]");
    check_yaml("[0, -5, +7, 1_000, 010, 0o10, 08, 0x1F, 0b101, 0b12, -0x10]",
               "[0, -5, 7, 1000, 8, \"0o10\", \"08\", 31, 5, \"0b12\", -16]");
    check_yaml("[1:30, 190:20:30, -1:5, 1:60, 01:30, 1:30.5]",
               "[90, 685230, -65, \"1:60\", \"01:30\", 90.5]");
    check_yaml("[1.5, -.5, .5, 1., 1e3, 1.0e3, 1.0e+3, 6.8523015e+5, 1_0.5, 1.2.3]",
               "[1.5, \"-.5\", 0.5, 1.0, \"1e3\", \"1.0e3\", 1000.0, 685230.15, 10.5, \"1.2.3\"]");
    check_yaml("[.inf, -.Inf, +.INF, .nan, .NaN, inf]",
               "[Infinity, -Infinity, Infinity, NaN, NaN, \"inf\"]");
    check_yaml("[2001-12-14, 2001-12-14t21:59:43.10-05:00, 12:30:45]",
               "[\"2001-12-14\", \"2001-12-14t21:59:43.10-05:00\", 45045]");
    check_yaml("['5', \"yes\", !!str 5, !!int '5', !!float 5, ! 5, !!bool 'no', !!null '']",
               "[\"5\", \"yes\", \"5\", 5, 5.0, \"5\", false, null]");
}

TEST(yaml_documents_and_blocks)
{
    check_yaml("", "null");
    check_yaml("# nothing\n", "null");
    check_yaml("--- \na: 1\n...\n", "{\"a\": 1}");
    check_yaml("a:\n  - 1\n  - b: c\n    d:\ne: |\n  x\n  y\nf: >-\n  x\n  y\n",
               "{\"a\": [1, {\"b\": \"c\", \"d\": null}], \"e\": \"x\\ny\\n\", \"f\": \"x y\"}");
    check_yaml("{a: 1, a: 2, b: 3, a: 4}", "{\"a\": 4, \"b\": 3}");
    check_yaml("{1: a, true: b, ~: c, 1.5: d, 'x': e}",
               "{\"1\": \"a\", \"true\": \"b\", \"null\": \"c\", \"1.5\": \"d\", \"x\": \"e\"}");
    check_yaml("- key: node\n  operator: Exists\n  effect: NoSchedule\n",
               "[{\"key\": \"node\", \"operator\": \"Exists\", \"effect\": \"NoSchedule\"}]");
}

TEST(yaml_anchors_and_merge_keys)
{
    check_yaml("a: &x {b: [1]}\nc: *x\nd: [*x]\n",
               "{\"a\": {\"b\": [1]}, \"c\": {\"b\": [1]}, \"d\": [{\"b\": [1]}]}");
    check_yaml("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\": 1, \"b\": 2, \"c\": 2}");
    check_yaml("base: &b {x: 1, y: 2}\nall: {z: 3, <<: *b, y: 4}\n",
               "{\"base\": {\"x\": 1, \"y\": 2}, \"all\": {\"x\": 1, \"y\": 4, \"z\": 3}}");
    check_yaml("- &a {x: 1}\n- &b {x: 2, y: 2}\n- <<: [*a, *b]\n",
               "[{\"x\": 1}, {\"x\": 2, \"y\": 2}, {\"x\": 1, \"y\": 2}]");
    check_yaml("'<<': 1", "{\"<<\": 1}");
}

TEST(yaml_refusals_name_the_place)
{
    check_refused("a: [1, 2\nb: 3", "line 2 column 2: did not find expected ',' or ']'");
    check_refused("a: b: c", "line 1 column 5: mapping values are not allowed");
    check_refused("\ta: 1", "line 1 column 1: found character that cannot start any token");
    check_refused("a: *nobody", "line 1 column 4: no anchor named nobody");
    check_refused("a: &x [*x]", "line 1 column 8: the alias stands inside its own anchor");
    check_refused("a: 1\n---\nb: 2\n", "line 2 column 1: a second document begins here");
    check_refused("a: !!python/object:os.system x", "line 1 column 4: unknown tag");
    check_refused("!x {a: 1}", "unknown tag !x");
    check_refused("a: !!int x", "line 1 column 4: the value does not fit its tag");
    check_refused("? [a]\n: 1\n", "line 1 column 3: a key must be a single word or string");
    check_refused("a: {<<: 5}", "line 1 column 5: '<<' merges mappings only");
    check_refused("a: 99999999999999999999", "line 1 column 4: the number does not fit in 64 bits");
    check_refused("a: \xff", "byte 3: invalid");
}

TEST(yaml_a_billion_laughs_are_refused)
{
    own_done(buf) text;
    own_done(arena) a;
    struct json *v;

    buf_init(&text, LIMIT);
    arena_init(&a, LIMIT);
    buf_add_cstr(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (unsigned i = 1; i < 10; i++)
        buf_addf(&text, "a%u: &a%u [*a%u, *a%u, *a%u, *a%u, *a%u, *a%u, *a%u, *a%u]\n", i, i, i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    CHECK_ERR(yaml_parse(&a, buf_str(&text), &v), ERR_INVALID, "the document grows too large");
}

TEST(yaml_nested_too_deep_is_refused)
{
    own_done(buf) text;
    own_done(arena) a;
    struct json *v;

    buf_init(&text, LIMIT);
    arena_init(&a, LIMIT);
    for (unsigned i = 0; i < 500; i++)
        buf_add_char(&text, '[');
    CHECK_ERR(yaml_parse(&a, buf_str(&text), &v), ERR_INVALID, "nested too deep");
}

TEST_LIMIT(yaml_many_keys_take_no_quadratic_time, 20)
{
    own_done(buf) text;
    own_done(arena) a;
    struct json *v;

    buf_init(&text, LIMIT);
    arena_init(&a, LIMIT);
    for (unsigned i = 0; i < 60000; i++)
        buf_addf(&text, "k%u: %u\n", i % 50000, i);
    CHECK_OK(yaml_parse(&a, buf_str(&text), &v));
    CHECK_INT(v->count, 50000);
    CHECK_INT(v->first->i, 50000);
}

TEST(yaml_survives_every_failing_allocation_of_ours)
{
    static const char text[] = "a: &x [1, 'two']\nb: {<<: {c: 1}, d: *x}\n";

    for (unsigned n = 1;; n++) {
        struct arena a;
        struct json *v;
        arena_init(&a, LIMIT);
        fault_at(n);
        struct err *e = yaml_parse(&a, str_n(text, sizeof text - 1), &v);
        bool fired = fault_fired();
        fault_at(0);
        CHECK((e != NULL) == fired);
        err_free(e);
        arena_done(&a);
        if (!fired)
            break;
    }
}
