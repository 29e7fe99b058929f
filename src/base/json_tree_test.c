// SPDX-License-Identifier: Apache-2.0
/* json_tree_test.c — reading, checking, building and comparing trees. */
#include <math.h>

#include "base/json.h"
#include "test/test.h"

static struct arena arena = {.limit_bytes = 256 << 20};

static struct json *tree(struct str text)
{
    struct json *v;

    CHECK_OK(json_parse(&arena, text, &(struct json_limits){.allow_nan = true}, &v));
    return v;
}

#define TREE(text) tree(STR(text))

static struct str written(const struct json *v)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    json_write(&b, v, JW_WEB);
    struct str s = arena_copy(&arena, buf_str(&b));
    buf_done(&b);
    return s;
}

static void json_tree_test_end(void)
{
    arena_done(&arena);
}

TEST(json_getters_answer_wrong_types_with_the_default)
{
    struct json *v = TREE("{\"s\":\"text\",\"i\":7,\"d\":2.5,\"w\":30.0,\"b\":true,\"n\":null,"
                          "\"a\":[1,2],\"big\":1e300}");

    CHECK_STR(json_get_str(v, "s", STR("other")), "text");
    CHECK_STR(json_get_str(v, "i", STR("other")), "other");
    CHECK_STR(json_get_str(v, "none", STR("other")), "other");
    CHECK_INT(json_get_int(v, "i", -1), 7);
    CHECK_INT(json_get_int(v, "w", -1), 30);
    CHECK_INT(json_get_int(v, "d", -1), -1);
    CHECK_INT(json_get_int(v, "big", -1), -1);
    CHECK_INT(json_get_int(v, "s", -1), -1);
    CHECK_INT(json_get_int(v, "b", -1), -1);
    CHECK(json_get_double(v, "d", -1) == 2.5);
    CHECK(json_get_double(v, "i", -1) == 7.0);
    CHECK(json_get_double(v, "s", -1) == -1);
    CHECK(json_get_bool(v, "b", false));
    CHECK(json_get_bool(v, "i", false) == false);
    CHECK(json_get_bool(v, "n", true));
    CHECK_INT(json_at(json_get(v, STR("a")), 1)->i, 2);
    CHECK(json_at(json_get(v, STR("a")), 2) == NULL);
    CHECK(json_at(v, 0) == NULL);
    CHECK(json_get(NULL, STR("x")) == NULL);
    CHECK(json_get(json_get(v, STR("a")), STR("x")) == NULL);
    CHECK_STR(json_get_str(NULL, "x", STR("other")), "other");
    json_tree_test_end();
}

TEST(json_type_words_are_those_of_the_people)
{
    static const char *const words[] = {"null",   "boolean", "integer", "integer",
                                        "number", "string",  "array",   "object"};
    struct json *v = TREE("[null,true,1,99999999999999999999,1.5,\"\",[],{}]");

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        CHECK_STR(json_type_word(json_at(v, i)), words[i]);
    CHECK_STR(json_type_word(NULL), "nothing");
    json_tree_test_end();
}

TEST(json_want_names_the_field_and_what_was_found)
{
    struct json *v =
        TREE("{\"timeout\":\"abc\",\"n\":null,\"big\":99999999999999999999,\"a\":[],"
             "\"name\":7,\"on\":\"yes\",\"ok\":30,\"w\":30.0,\"f\":1.5,"
             "\"long\":\"0123456789012345678901234567890123456789tail\",\"q\":\"\\u001b\\\"\"}");
    int64_t i = -5;
    bool b = false;
    struct str s = STR("before");

    CHECK_ERR(json_want_int(v, "timeout", 1, 600, &i), ERR_UNPROCESSABLE,
              "field 'timeout' must be an integer between 1 and 600, not \"abc\"");
    CHECK_ERR(json_want_int(v, "n", 1, 600, &i), ERR_UNPROCESSABLE, "not null");
    CHECK_ERR(json_want_int(v, "none", 1, 600, &i), ERR_UNPROCESSABLE,
              "field 'none' is missing, it must be an integer between 1 and 600");
    CHECK_ERR(json_want_int(v, "ok", 1, 29, &i), ERR_UNPROCESSABLE, "between 1 and 29, not 30");
    CHECK_ERR(json_want_int(v, "ok", 31, 99, &i), ERR_UNPROCESSABLE, "between 31 and 99, not 30");
    CHECK_ERR(json_want_int(v, "ok", 31, INT64_MAX, &i), ERR_UNPROCESSABLE,
              "of at least 31, not 30");
    CHECK_ERR(json_want_int(v, "big", INT64_MIN, INT64_MAX, &i), ERR_UNPROCESSABLE,
              "must be an integer, not 99999999999999999999");
    CHECK_ERR(json_want_int(v, "f", 0, 9, &i), ERR_UNPROCESSABLE, "not 1.5");
    CHECK_ERR(json_want_int(v, "a", 0, 9, &i), ERR_UNPROCESSABLE, "not an array");
    CHECK_ERR(json_want_str(v, "name", &s), ERR_UNPROCESSABLE, "'name' must be a string, not 7");
    CHECK_ERR(json_want_bool(v, "on", &b), ERR_UNPROCESSABLE, "must be true or false, not \"yes\"");
    CHECK_ERR(json_want_bool(v, "q", &b), ERR_UNPROCESSABLE, "not \"\\u001b\\\"\"");
    CHECK_ERR(json_want_int(v, "long", 0, 9, &i), ERR_UNPROCESSABLE, "6789\"...");
    CHECK_ERR(json_want_str(TREE("[]"), "name", &s), ERR_UNPROCESSABLE,
              "expected an object with the field 'name', not an array");
    CHECK_ERR(json_want_str(TREE("null"), "name", &s), ERR_UNPROCESSABLE, "not null");
    CHECK_ERR(json_want_str(TREE("\"x\""), "name", &s), ERR_UNPROCESSABLE, "not a string");
    CHECK_ERR(json_want_str(NULL, "name", &s), ERR_UNPROCESSABLE, "'name' is missing");
    CHECK(i == -5 && !b);
    CHECK_STR(s, "before");
    CHECK_OK(json_want_int(v, "ok", 30, 30, &i));
    CHECK_INT(i, 30);
    CHECK_OK(json_want_int(v, "w", 1, 600, &i));
    CHECK_INT(i, 30);
    json_tree_test_end();
}

TEST(json_take_leaves_the_value_alone_when_the_field_is_missing_or_null)
{
    struct json *v = TREE("{\"n\":null,\"i\":7,\"s\":\"x\",\"b\":true}");
    int64_t i = -5;
    bool b = false;
    struct str s = STR("before");

    CHECK_OK(json_take_int(v, "n", 0, 9, &i));
    CHECK_OK(json_take_int(v, "none", 0, 9, &i));
    CHECK_OK(json_take_str(v, "n", &s));
    CHECK_OK(json_take_bool(v, "n", &b));
    CHECK_OK(json_take_bool(NULL, "b", &b));
    CHECK(i == -5 && !b);
    CHECK_STR(s, "before");
    CHECK_ERR(json_take_int(v, "s", 0, 9, &i), ERR_UNPROCESSABLE, "not \"x\"");
    CHECK_ERR(json_take_int(v, "i", 0, 6, &i), ERR_UNPROCESSABLE, "not 7");
    CHECK_ERR(json_take_str(v, "i", &s), ERR_UNPROCESSABLE, "field 'i' must be a string, not 7");
    CHECK_ERR(json_take_bool(v, "i", &b), ERR_UNPROCESSABLE, "not 7");
    CHECK_OK(json_take_int(v, "i", 0, 9, &i));
    CHECK_OK(json_take_str(v, "s", &s));
    CHECK_OK(json_take_bool(v, "b", &b));
    CHECK(i == 7 && b);
    CHECK_STR(s, "x");
    json_tree_test_end();
}

TEST(json_builds_trees_and_replaces_in_place)
{
    struct json *o = json_new(&arena, JSON_OBJECT), *list = json_new(&arena, JSON_ARRAY);

    CHECK(json_set(o, STR("a"), json_new_int(&arena, 1)) == o->first);
    json_set(o, STR("b"), list);
    json_set(o, STR("c"), json_new_bool(&arena, true));
    json_push(list, json_new_double(&arena, 0.5));
    json_push(list, json_new_str(&arena, STR("x")));
    json_push(list, json_new(&arena, JSON_NULL));
    CHECK_STR(written(o), "{\"a\":1,\"b\":[0.5,\"x\",null],\"c\":true}");
    json_set(o, STR("a"), json_new_int(&arena, 2));
    json_set(o, STR("c"), json_new_int(&arena, 3));
    json_set(o, STR("d"), json_new_int(&arena, 4));
    CHECK_STR(written(o), "{\"a\":2,\"b\":[0.5,\"x\",null],\"c\":3,\"d\":4}");
    json_remove(o, STR("d"));
    json_remove(o, STR("a"));
    json_remove(o, STR("none"));
    json_set(o, STR("e"), json_new_int(&arena, 5));
    CHECK_STR(written(o), "{\"b\":[0.5,\"x\",null],\"c\":3,\"e\":5}");
    CHECK_INT(o->count, 3);
    json_remove(o, STR("b"));
    json_remove(o, STR("c"));
    json_remove(o, STR("e"));
    CHECK(o->first == NULL && o->last == NULL && o->count == 0);
    json_remove(NULL, STR("a"));
    json_tree_test_end();
}

TEST(json_builders_pass_a_refusal_on)
{
    struct arena none;

    arena_init(&none, 0);
    struct json *o = json_new(&arena, JSON_OBJECT), *list = json_new(&arena, JSON_ARRAY);
    CHECK(json_new(&none, JSON_OBJECT) == NULL);
    CHECK(json_set(o, STR("a"), json_new_str(&none, STR("x"))) == NULL);
    CHECK(json_set(NULL, STR("a"), list) == NULL);
    CHECK(json_push(list, json_new_double(&none, 1)) == NULL);
    CHECK(json_push(NULL, o) == NULL);
    CHECK(json_new_bool(&none, true) == NULL && json_new_int(&none, 1) == NULL);
    CHECK_STR(written(o), "{}");
    json_tree_test_end();
}

TEST(json_equal_is_pythons)
{
    static const struct {
        struct str a, b;
        bool equal;
    } cases[] = {
        {STR("1"), STR("1.0"), true},
        {STR("1"), STR("true"), true},
        {STR("0.0"), STR("false"), true},
        {STR("0"), STR("-0.0"), true},
        {STR("1"), STR("1.5"), false},
        {STR("0"), STR("null"), false},
        {STR("\"1\""), STR("1"), false},
        {STR("100000000000000000000"), STR("1e20"), true},
        {STR("100000000000000000001"), STR("1e20"), false},
        {STR("-100000000000000000000"), STR("1e20"), false},
        {STR("100000000000000000000"), STR("0.5"), false},
        {STR("100000000000000000000"), STR("Infinity"), false},
        {STR("100000000000000000000"), STR("1"), false},
        {STR("9007199254740993"), STR("9007199254740992.0"), false},
        {STR("9223372036854775807"), STR("9223372036854775808.0"), false},
        {STR("NaN"), STR("NaN"), false},
        {STR("Infinity"), STR("Infinity"), true},
        {STR("[1,[2,3]]"), STR("[1.0,[2,3.0]]"), true},
        {STR("[1,[2,3]]"), STR("[1,[2,4]]"), false},
        {STR("[1,2]"), STR("[1,2,3]"), false},
        {STR("[]"), STR("{}"), false},
        {STR("{\"a\":1,\"b\":[2]}"), STR("{\"b\":[2],\"a\":1}"), true},
        {STR("{\"a\":1,\"b\":[2]}"), STR("{\"b\":[3],\"a\":1}"), false},
        {STR("{\"a\":1,\"b\":2}"), STR("{\"a\":1,\"c\":2}"), false},
        {STR("{\"a\":1}"), STR("{\"a\":1,\"c\":2}"), false},
        {STR("\"\\u00e9\""), STR("\"\xc3\xa9\""), true},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct json *a = tree(cases[i].a), *b = tree(cases[i].b);
        if (json_equal(a, b) != cases[i].equal || json_equal(b, a) != cases[i].equal)
            FAIL("%s == %s is not %d", cases[i].a.p, cases[i].b.p, cases[i].equal);
    }
    CHECK(json_equal(NULL, NULL) && !json_equal(TREE("null"), NULL));
    json_tree_test_end();
}

TEST(json_equal_finds_members_of_large_objects_in_any_order)
{
    struct json *a = json_new(&arena, JSON_OBJECT), *b = json_new(&arena, JSON_OBJECT);

    for (int i = 0; i < 1000; i++) {
        json_set(a, arena_printf(&arena, "key%d", i), json_new_int(&arena, i));
        json_set(b, arena_printf(&arena, "key%d", 999 - i), json_new_int(&arena, 999 - i));
    }
    CHECK(json_equal(a, b));
    json_get(b, STR("key500"))->i = -1;
    CHECK(!json_equal(a, b));
    json_tree_test_end();
}
