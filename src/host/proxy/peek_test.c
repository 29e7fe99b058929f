// SPDX-License-Identifier: Apache-2.0
#include "host/proxy/peek.h"

#include "test/test.h"

static void check(const char *text, unsigned depth, const char *want)
{
    struct str got = peek_member(str_of(text), depth, STR("action"));

    CHECK_STR(got, want);
}

TEST(peek_finds_a_member_wherever_it_stands)
{
    check("{\"action\":{\"action\":\"run\",\"args\":{}}}", 2, "run");
    check(
        "{ \"action\" : {\n\"args\":{\"action\":\"no\",\"x\":[{\"action\":\"no\"}]}, \"action\"\t:"
        " \"read\"}}",
        2, "read");
    check("{\"action\":{\"message\":\"\\\"action\\\":\\\"no\\\" }}} \\\\\",\"action\":\"edit\"", 2,
          "edit");
    check("{\"action\":\"run\"}", 1, "run");
}

TEST(peek_says_nothing_rather_than_something_wrong)
{
    check("", 1, "");
    check("{\"action\":{\"action\":\"ru", 2, "");
    check("{\"action\":{\"action\":\"r\\u0075n\"}}", 2, "");
    check("{\"action\":{\"action\":7,\"args\":{}}}", 2, "");
    check("{\"action\":{\"x\":\"action\",\"y\":\"run\"}}", 2, "");
    check("}}]]{\"a\":\"action", 1, "");
    check("{\"action\":{\"args\":{\"action\":\"no\"}}}", 2, "");
}
