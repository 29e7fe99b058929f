// SPDX-License-Identifier: Apache-2.0
#include "wire/unique.h"

#include "base/arena.h"
#include "test/test.h"

static fallible check(const char *text)
{
    own_done(arena) a;
    struct json *tree;

    arena_init(&a, 64u << 20);
    CHECK_OK(json_parse(&a, str_of(text), NULL, &tree));
    return wire_check_unique(str_of(text), tree);
}

TEST(a_member_that_is_there_twice_is_named)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"{\"a\":1,\"b\":2,\"a\":1}", "a: it is there twice"},
        {"{\"a\":1, \"\\u0061\" :2}", "a: it is there twice"},
        {"{\"environment\":{\"A\":\"1\",\"A\":\"2\"}}", "environment.A: it is there twice"},
        {"[{\"x\":1},{\"x\":1},{\"y\":{\"z\":1,\"z\":1}}]", "y.z: it is there twice"},
        {"{\"m\":[{\"t\":1},{\"t\":2,\"t\":3}]}", "m.t: it is there twice"},
        {"{\"a\":{\"b\":1},\"a\":{\"b\":1}}", "a: it is there twice"},
        {"{\"\":1,\"\":2}", ": it is there twice"},
        {"{\"a\\\"b\":1,\"a\\\"b\":2}", "a\"b: it is there twice"},
        {"[[[[[[[[[[[[[[[[[[{\"a\":1,\"a\":1}]]]]]]]]]]]]]]]]]]", "the body: a member is"},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_ERR(check(bad[i].text), ERR_UNPROCESSABLE, bad[i].why);
}

TEST(members_of_different_objects_may_have_one_name)
{
    static const char *const good[] = {
        "{}",
        "7",
        "\"a:b\"",
        "{\"a\":{\"a\":{\"a\":\"a:\\\"a\\\":\"}},\"b\":[{\"a\":1},{\"a\":2}]}",
        "{\"a\":\"\\\\\",\"b\":\":\"}",
        "{\"A\":1,\"a\":2}",
    };

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK_OK(check(good[i]));
}
