// SPDX-License-Identifier: Apache-2.0
#include "host/subids/subids.h"
#include "test/test.h"

TEST(the_longest_range_of_a_user_counts)
{
    struct str text = STR("# ids\nyou:1:9\nme:100000:1000\nme:200000:65536\n1000:300000:70000\n"
                          "me:999:5000\nme:4294967295:1\nme:0:99999\nme:5:\nme:-5:7");
    uint32_t first = 0, count = 0;

    CHECK(subids_parse(text, STR("me"), 1000, &first, &count));
    CHECK_INT(first, 300000);
    CHECK_INT(count, 70000);
    CHECK(subids_parse(text, STR("me"), 77, &first, &count));
    CHECK_INT(first, 200000);
    CHECK(!subids_parse(text, STR("m"), 77, &first, &count));
    CHECK(!subids_parse(STR(""), STR(""), 77, &first, &count));
}

TEST(a_namespace_has_only_the_ids_of_its_map)
{
    struct str map = STR("         0       1000          1\n         1     100000      65535\n");

    CHECK(subids_has(STR("0 0 4294967295\n"), 100000, 65536));
    CHECK(subids_has(map, 1, 65535));
    CHECK(subids_has(map, 65535, 1));
    CHECK(!subids_has(map, 0, 2)); /* not in one piece */
    CHECK(!subids_has(map, 65535, 2));
    CHECK(!subids_has(map, 100000, 65536));
    CHECK(!subids_has(STR(""), 1, 1));
}
