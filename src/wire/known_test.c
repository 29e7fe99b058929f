// SPDX-License-Identifier: Apache-2.0
#include "wire/known.h"

#include "test/test.h"

TEST(a_member_nobody_knows_is_refused_with_the_nearest_name)
{
    static const char *const names[] = {"memory", "cpus", "pids", NULL};
    static const struct {
        const char *body, *said;
    } cases[] = {
        {"{\"memroy\":1}", "memroy: no such field; did you mean 'memory'?"},
        {"{\"cpus\":1,\"cpu\":2}", "cpu: no such field; did you mean 'cpus'?"},
        {"{\"something else\":1}", "something else: no such field"},
        {"[]", "wanted an object"},
    };
    own_done(arena) a;
    struct json *body;

    arena_init(&a, 1u << 20);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_OK(json_parse(&a, str_of(cases[i].body), NULL, &body));
        CHECK_ERR(wire_check_known(body, "", names), ERR_UNPROCESSABLE, cases[i].said);
    }
    CHECK_OK(json_parse(&a, STR("{\"cpus\":1,\"memory\":null}"), NULL, &body));
    CHECK_OK(wire_check_known(body, "", names));
    CHECK_OK(json_parse(&a, STR("{\"md\":1}"), NULL, &body));
    CHECK_ERR(wire_check_known(body, "mounts[2].", names), ERR_UNPROCESSABLE, "mounts[2].md: no");
}
