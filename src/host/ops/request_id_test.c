// SPDX-License-Identifier: Apache-2.0
#include "host/ops/request_id.h"

#include "test/test.h"

TEST(ids_of_requests_are_words_that_break_nothing)
{
    static const char *const good[] = {"a", "0", "Root=1-67891233-abcdef012345678912345678",
                                       "3f0d6a1e-0b1c-4c4e-9d8b-0a1b2c3d4e5f", "a.b_c:d+e/f=@"};
    static const char *const bad[] = {"", " ", "a b", "a\tb", "a\"b", "a\\b", "{}", "caf\303\251"};
    char longest[REQUEST_ID_MAX + 2];

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK(request_id_ok(str_of(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!request_id_ok(str_of(bad[i])));
    memset(longest, 'x', sizeof longest);
    CHECK(request_id_ok(str_n(longest, REQUEST_ID_MAX)));
    CHECK(!request_id_ok(str_n(longest, REQUEST_ID_MAX + 1)));
}
