// SPDX-License-Identifier: Apache-2.0
#include "base/list.h"

#include "test/test.h"

struct item {
    int n;
    struct list link;
};

TEST(list_keeps_the_order_of_adding_and_survives_removal_inside_a_loop)
{
    struct list head;
    struct item items[3] = {{.n = 1}, {.n = 2}, {.n = 3}};
    int seen = 0;

    list_init(&head);
    CHECK(LIST_FIRST(&head, struct item, link) == NULL);
    list_add(&head, &items[1].link);
    list_add(&head, &items[2].link);
    list_push(&head, &items[0].link);
    LIST_EACH(it, &head, struct item, link) {
        seen = seen * 10 + it->n;
        if (it->n == 2)
            list_del(&it->link);
    }
    CHECK_INT(seen, 123);
    seen = 0;
    LIST_EACH(it, &head, struct item, link)
        seen = seen * 10 + it->n;
    CHECK_INT(seen, 13);
    list_del(&items[1].link); /* again: harmless */
    CHECK(!list_empty(&head));
}
