// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"

#include <stdio.h>

#include "base/own.h"
#include "base/rng.h"
#include "test/test.h"

TEST(map_hash_is_siphash_1_3)
{
    /* of "", 00, 00 01, … with key 00 01 … 0f: the vectors in the tests of Rust's core library */
    static const uint64_t want[] = {0xabac0158050fc4dcu, 0xc9f49bf37d57ca93u, 0x82cb9b024dc7d44du,
                                    0x8bf80ab8e7ddf7fbu, 0xcf75576088d38328u, 0xdef9d52f49533b67u,
                                    0xc50d2b50c59f22a7u, 0xd3927d989bb11140u, 0x369095118d299a8eu,
                                    0x25a48eb36c063de4u};
    const uint64_t seed[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
    unsigned char data[ARRAY_LEN(want)];

    for (size_t n = 0; n < ARRAY_LEN(want); n++) {
        data[n] = (unsigned char)n;
        CHECK(map_hash(seed, data, n) == want[n]);
    }
}

TEST(map_finds_what_was_put_and_gives_what_it_replaces)
{
    own_done(map) m;
    int one, two;

    map_init(&m);
    CHECK(map_get(&m, STR("a")) == NULL);
    CHECK(map_del(&m, STR("a")) == NULL);
    CHECK(map_put(&m, STR("a"), &one) == NULL);
    CHECK(map_get(&m, STR("a")) == &one);
    CHECK(map_put(&m, STR("a"), &two) == &one);
    CHECK_INT(m.count, 1);
    CHECK(map_put(&m, STR(""), &one) == NULL);
    CHECK(map_get(&m, (struct str){NULL, 0}) == &one);
    CHECK(map_get(&m, STR("a\0")) == NULL);
    CHECK(map_del(&m, STR("a")) == &two);
    CHECK(map_get(&m, STR("a")) == NULL);
    CHECK_INT(m.count, 1);
}

TEST(map_replaces_the_key_too_so_that_the_old_value_may_go)
{
    own_done(map) m;
    char first[] = "key", second[] = "key";
    int v;

    map_init(&m);
    map_put(&m, str_of(first), &v);
    map_put(&m, str_of(second), &v);
    memset(first, 'x', 3);
    CHECK(map_get(&m, STR("key")) == &v);
}

#define KEYS 500
static char names[KEYS][16];

/* Against an array that says what should be there, with puts and deletes in random order. */
TEST(map_agrees_with_a_plain_array_over_random_puts_and_deletes)
{
    own_done(map) m;
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 11);
    static int values[KEYS];
    bool there[KEYS] = {false};
    size_t count = 0;

    map_init(&m);
    for (int i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof names[i], "k%d", i);
    for (int round = 0; round < 100000; round++) {
        /* swings between nearly empty and nearly full */
        bool put = rng_below(rng, 100) < (round / 5000 % 2 ? 20u : 80u);
        size_t i = rng_below(rng, KEYS);
        void *want = there[i] ? &values[i] : NULL;
        struct str key = str_of(names[i]);
        CHECK(map_get(&m, key) == want);
        CHECK((put ? map_put(&m, key, &values[i]) : map_del(&m, key)) == want);
        count += (size_t)put - (size_t)there[i];
        there[i] = put;
        CHECK_INT(m.count, count);
    }
    size_t seen = 0;
    MAP_EACH(slot, &m) {
        CHECK(there[(int *)slot->value - values]);
        seen++;
    }
    CHECK_INT(seen, count);
}

/* All in one chain that wraps round the end of the table. */
TEST(map_deletion_closes_the_gap_in_a_chain_that_wraps_round)
{
    own_done(map) m;
    struct str keys[6];
    size_t found = 0;
    static char text[40000][16];
    int v[6];

    map_init(&m);
    map_put(&m, STR("grow"), &v[0]);
    map_del(&m, STR("grow"));
    for (int i = 0; found < 6 && i < 40000; i++) {
        snprintf(text[i], sizeof text[i], "%d", i);
        struct str key = str_of(text[i]);
        size_t home = map_hash(m.seed, key.p, key.len) & (m.cap - 1);
        if (home == m.cap - 2 || (found >= 4 && home == 0))
            keys[found++] = key;
    }
    CHECK_INT(found, 6);
    for (size_t gone = 0; gone < 6; gone++) {
        for (size_t i = 0; i < 6; i++)
            map_put(&m, keys[i], &v[i]);
        map_del(&m, keys[gone]);
        for (size_t i = 0; i < 6; i++)
            CHECK(map_get(&m, keys[i]) == (i == gone ? NULL : &v[i]));
    }
}

TEST(map_seeds_differ_and_an_empty_map_has_nothing_to_visit)
{
    own_done(map) a, b;

    map_init(&a);
    map_init(&b);
    CHECK(a.seed[0] != b.seed[0] && a.seed[1] != b.seed[1]);
    MAP_EACH(slot, &a)
        FAIL("%p is in an empty map", (void *)slot);
}
