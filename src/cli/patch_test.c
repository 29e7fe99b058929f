// SPDX-License-Identifier: Apache-2.0
#include "cli/patch.h"

#include "test/changes_kit.h"

static struct str lines_of(struct kit *k, size_t i)
{
    buf_reset(&k->text);
    CHECK_OK(patch_put(&k->text, &k->src, &k->c.list[i]));
    return buf_str(&k->text);
}

TEST(patch_of_a_file_that_went_or_changed_since_it_was_listed_says_so)
{
    struct kit k;

    kit_init(&k);
    sh(&k, k.lower, "echo 1 >a && echo 1 >b && echo 1 >c && echo 1 >d");
    sh(&k, k.upper, "echo 2 >a && echo 2 >b && echo 2 >c && echo 2 >d");
    scan(&k);
    CHECK_INT(k.c.count, 4);
    sh(&k, k.lower, "rm a && rm b && mkfifo b");
    sh(&k, k.upper, "head -c 2000000 /dev/zero >c && echo 1 >d");
    CHECK_STR(lines_of(&k, 0), "a/a and b/a differ: one is no longer there\n");
    CHECK_STR(lines_of(&k, 1), "a/b and b/b differ: one was replaced while it was read\n");
    CHECK_STR(lines_of(&k, 2), "a/c and b/c differ: too large to be shown by lines\n");
    CHECK_STR(lines_of(&k, 3), ""); /* the same by now */
    kit_done(&k);
}
