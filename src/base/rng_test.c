// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include "base/own.h"
#include "test/test.h"

TEST(fixed_randomness_repeats_and_depends_on_its_seed)
{
    struct rng_fixed a, b, c;
    uint64_t first = rng_u64(rng_fixed_init(&a, 1));

    CHECK(rng_u64(rng_fixed_init(&b, 1)) == first);
    CHECK(rng_u64(rng_fixed_init(&c, 2)) != first);
    CHECK(rng_u64(&a.rng) != first);
}

TEST(system_randomness_fills_every_byte)
{
    unsigned char seen[300] = {0}, data[300];

    for (int round = 0; round < 8; round++) {
        rng_system()->fill(rng_system(), data, sizeof data);
        for (size_t i = 0; i < sizeof data; i++)
            seen[i] |= data[i];
    }
    for (size_t i = 0; i < sizeof seen; i++)
        CHECK(seen[i] != 0); /* wrong by chance once in 2^64 / 300 */
}

TEST(below_stays_below_and_reaches_all)
{
    struct rng_fixed fixed;
    struct rng *r = rng_fixed_init(&fixed, 5);
    unsigned hits[7] = {0};

    for (int i = 0; i < 7000; i++)
        hits[rng_below(r, 7)]++;
    for (size_t i = 0; i < ARRAY_LEN(hits); i++)
        CHECK(hits[i] > 800 && hits[i] < 1200);
    CHECK_INT(rng_below(r, 1), 0);
}

struct scripted {
    struct rng rng;
    uint64_t values[2];
    size_t at;
};

static void scripted_fill(struct rng *r, void *p, size_t n)
{
    struct scripted *s = container_of(r, struct scripted, rng);

    memcpy(p, &s->values[s->at++], n);
}

TEST(below_draws_again_where_the_rest_would_be_favoured)
{
    /* 2^64 mod 10 is 6: 0 to 5 come once more often than the others */
    struct scripted s = {{scripted_fill}, {5, 16}, 0};

    CHECK_INT(rng_below(&s.rng, 10), 6);
    CHECK_INT(s.at, 2);
}

TEST(uuid_is_version_4_in_its_usual_form)
{
    char a[RNG_UUID_LEN + 1], b[RNG_UUID_LEN + 1];

    for (int round = 0; round < 100; round++) {
        rng_uuid(rng_system(), a);
        CHECK_INT(strlen(a), RNG_UUID_LEN);
        for (size_t i = 0; i < RNG_UUID_LEN; i++) {
            bool dash = i == 8 || i == 13 || i == 18 || i == 23;
            CHECK(dash ? a[i] == '-' : strchr("0123456789abcdef", a[i]) != NULL);
        }
        CHECK(a[14] == '4' && strchr("89ab", a[19]));
    }
    rng_uuid(rng_system(), b);
    CHECK(strcmp(a, b) != 0);
}

TEST(hex_and_tokens_fill_their_room_and_no_more)
{
    char hex[RNG_HEX_LEN + 2], token[12] = "___________";
    struct rng_fixed fixed;

    hex[RNG_HEX_LEN + 1] = '!';
    rng_hex(rng_system(), hex);
    CHECK_INT(strspn(hex, "0123456789abcdef"), RNG_HEX_LEN);
    CHECK(hex[RNG_HEX_LEN + 1] == '!');
    rng_token(rng_fixed_init(&fixed, 9), token, 10);
    CHECK_INT(strlen(token), 9);
    CHECK(token[10] == '_');
    for (size_t i = 0; i < 9; i++)
        CHECK((token[i] | 32) >= 'a' || (token[i] >= '0' && token[i] <= '9'));
    rng_token(rng_system(), token, 1);
    CHECK_STR(token, "");
    rng_token(rng_system(), token, 0);
}
