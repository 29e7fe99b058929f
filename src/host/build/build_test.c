// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/own.h"
#include "host/build/inner.h"
#include "test/test.h"

static void put(struct list *to, struct build *b, const char *key)
{
    snprintf(b->key_name, sizeof b->key_name, "%s", key);
    list_add(to, &b->link);
}

TEST(a_build_of_another_key_does_not_wait_behind_all_of_one_that_works)
{
    struct builds all = {.dir = -1};
    struct build b[5] = {0};

    list_init(&all.waiting);
    list_init(&all.working);
    CHECK(!build_next(&all));
    put(&all.working, &b[0], "many");
    put(&all.waiting, &b[1], "many");
    CHECK(build_next(&all) == &b[1]); /* nobody else wants the place */
    put(&all.waiting, &b[2], "many");
    put(&all.waiting, &b[3], "few");
    put(&all.waiting, &b[4], "few");
    CHECK(build_next(&all) == &b[3]);
    list_del(&b[3].link);
    put(&all.working, &b[3], "few");
    CHECK(build_next(&all) == &b[1]); /* alike: the first that came */
    list_del(&b[0].link);
    CHECK(build_next(&all) == &b[1]);
}
