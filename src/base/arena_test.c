// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include "test/test.h"

TEST(arena_gives_memory_that_is_aligned_and_does_not_overlap)
{
    own_done(arena) a;
    char *last = NULL;

    arena_init(&a, 1 << 20);
    for (size_t n = 0; n < 300; n++) {
        char *p = arena_alloc(&a, n);
        CHECK(p != NULL && (uintptr_t)p % 8 == 0 && p != last);
        memset(p, (int)n, n);
        CHECK(!last || (unsigned char)last[0] == (unsigned char)(n - 1) || n == 1);
        last = p;
    }
    CHECK_OK(arena_check(&a));
}

TEST(arena_takes_no_more_than_its_limit)
{
    own_done(arena) a;
    size_t taken = 0;

    arena_init(&a, 5000); /* more than a first chunk, less than a first and a second */
    while (arena_alloc(&a, 8))
        taken += 8;
    CHECK(taken >= 4096 && taken <= 5000);
    CHECK(a.used_bytes <= 5000);
    CHECK_ERR(arena_check(&a), ERR_NO_MEMORY, "5000");
}

TEST(arena_smaller_than_a_chunk_still_holds_its_limit)
{
    own_done(arena) a;

    arena_init(&a, 100);
    CHECK(arena_alloc(&a, 100) != NULL);
    CHECK(arena_alloc(&a, 8) == NULL);
    own_done(arena) b;
    arena_init(&b, 100);
    CHECK(arena_alloc(&b, 101) == NULL);
    CHECK(b.failed && b.chunks == NULL);
}

TEST(arena_refuses_sizes_near_the_end_of_numbers)
{
    own_done(arena) a;

    arena_init(&a, SIZE_MAX);
    for (size_t less = 0; less < 64; less++)
        CHECK(arena_alloc(&a, SIZE_MAX - less) == NULL);
    CHECK(a.failed);
    char *p = arena_alloc(&a, 8);
    CHECK(p != NULL);
    CHECK(arena_grow(&a, p, 8, SIZE_MAX) == NULL);
    CHECK(arena_grow(&a, arena_alloc(&a, 0), 0, SIZE_MAX - 3) == NULL);
    CHECK(arena_copy(&a, str_n("", SIZE_MAX)).p == NULL);
}

TEST(arena_gives_nothing_a_place_too)
{
    own_done(arena) a;

    arena_init(&a, 1000);
    CHECK(arena_alloc(&a, 0) != NULL); /* NULL would read as a refusal */
    CHECK(arena_copy(&a, (struct str){NULL, 0}).p != NULL);
    CHECK_OK(arena_check(&a));
}

TEST(arena_copies_are_terminated_and_formatted_text_fits)
{
    own_done(arena) a;

    arena_init(&a, 10000);
    struct str copy = arena_copy(&a, STR("slice"));
    CHECK_STR(copy, "slice");
    CHECK(copy.p[5] == '\0');
    CHECK_STR(arena_cstr(&a, str_first(STR("slice"), 3)), "sli");
    CHECK_STR(arena_printf(&a, "%s-%d", "x", 42), "x-42");
    CHECK_INT(arena_printf(&a, "%0500d", 1).len, 500);
    uint64_t *zero = arena_new(&a, uint64_t);
    CHECK_INT(*zero, 0);
}

TEST(arena_grows_the_last_one_in_place_and_moves_others)
{
    own_done(arena) a;

    arena_init(&a, 100000);
    char *p = arena_alloc(&a, 10);
    memcpy(p, "0123456789", 10);
    CHECK(arena_grow(&a, p, 10, 100) == p);
    char *next = arena_alloc(&a, 8);
    CHECK(next >= p + 100);
    char *moved = arena_grow(&a, p, 100, 200);
    CHECK(moved != p && moved > next);
    CHECK_STR(str_n(moved, 10), "0123456789");
    CHECK(arena_grow(&a, moved, 200, 50) == moved); /* never larger than it is: stays */
    char *far = arena_grow(&a, moved, 200, 50000);
    CHECK_STR(str_n(far, 10), "0123456789");
    CHECK(arena_grow(&a, NULL, 0, 16) != NULL);
}

TEST(arena_reset_keeps_one_small_chunk_and_forgets_refusals)
{
    own_done(arena) a;

    arena_init(&a, 1 << 20);
    for (int i = 0; i < 100; i++)
        arena_alloc(&a, 4000);
    CHECK(arena_alloc(&a, 2 << 20) == NULL);
    arena_reset(&a);
    CHECK_OK(arena_check(&a));
    CHECK_INT(a.used_bytes, 4032);
    fault_at(1);
    CHECK(arena_alloc(&a, 4000) != NULL); /* without asking the system */
    CHECK(!fault_fired());
    arena_done(&a);
    arena_init(&a, 1 << 20);
    arena_alloc(&a, 100000);
    arena_reset(&a);
    CHECK(a.used_bytes == 0 && a.chunks == NULL); /* a large first one goes */
}

TEST(arena_without_memory_refuses_and_goes_on)
{
    own_done(arena) a;

    arena_init(&a, 1 << 20);
    fault_at(1);
    CHECK(arena_zalloc(&a, 100) == NULL);
    CHECK(fault_fired());
    CHECK_ERR(arena_check(&a), ERR_NO_MEMORY, "memory");
    CHECK(arena_zalloc(&a, 100) != NULL);
}
