// SPDX-License-Identifier: Apache-2.0
/* part_test.c — in what order parts open. */
#include "host/part/part.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "test/test.h"

static const struct host_part web = {.name = "web", .needs = PART_NEEDS("rows", "keys")};
static const struct host_part keys = {.name = "keys", .needs = PART_NEEDS("rows")};
static const struct host_part rows = {.name = "rows"};
static const struct host_part hen = {.name = "hen", .needs = PART_NEEDS("egg")};
static const struct host_part egg = {.name = "egg", .needs = PART_NEEDS("hen")};
static const struct host_part alone = {.name = "alone"};

static fallible sorted_names(const struct host_part *const *parts, size_t count, struct buf *into)
{
    own_free const struct host_part **sorted = NULL;

    TRY(parts_sort(parts, count, &sorted));
    for (size_t i = 0; i < count; i++)
        buf_addf(into, "%s ", sorted[i]->name);
    return NULL;
}

TEST(parts_come_after_what_they_need_and_else_by_name)
{
    const struct host_part *one[] = {&web, &keys, &rows, &alone};
    const struct host_part *other[] = {&alone, &rows, &web, &keys};
    own_done(buf) names;

    buf_init(&names, 4096);
    CHECK_OK(sorted_names(one, ARRAY_LEN(one), &names));
    CHECK_STR(buf_str(&names), "alone rows keys web ");
    buf_reset(&names);
    CHECK_OK(sorted_names(other, ARRAY_LEN(other), &names));
    CHECK_STR(buf_str(&names), "alone rows keys web ");
}

TEST(parts_that_cannot_be_in_order_are_named)
{
    const struct host_part *absent[] = {&keys}, *circle[] = {&hen, &egg}, *twice[] = {&rows, &rows};
    own_done(buf) names;

    buf_init(&names, 4096);
    CHECK_ERR(sorted_names(absent, 1, &names), ERR_INTERNAL,
              "part 'keys' needs 'rows', which is not there");
    CHECK_ERR(sorted_names(circle, 2, &names), ERR_INTERNAL, "which needs it too");
    CHECK_ERR(sorted_names(twice, 2, &names), ERR_INTERNAL, "the same name");
}
