// SPDX-License-Identifier: Apache-2.0
#include "base/rows.h"

#include "test/test.h"

struct colour {
    const char *name;
    int value;
    char odd[3]; /* a size the linker might pad */
};

#define COLOUR(id) ROW(test_colours, struct colour, id)
ROWS_OF(test_colours, struct colour)
ROWS_OF(test_nobody, struct colour)

COLOUR(red) = {.name = "red", .value = 1};
COLOUR(green) = {.name = "green", .value = 2};
COLOUR(blue) = {.name = "blue", .value = 4};

TEST(rows_are_collected_by_the_linker_each_once)
{
    int sum = 0;

    CHECK_INT(ROWS_LEN(test_colours), 3);
    for (size_t i = 0; i < ROWS_LEN(test_colours); i++)
        sum += ROWS_AT(test_colours, i)->value;
    CHECK_INT(sum, 7);
}

TEST(a_table_nobody_adds_to_is_empty_and_links)
{
    CHECK_INT(ROWS_LEN(test_nobody), 0);
}
