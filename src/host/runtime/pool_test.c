// SPDX-License-Identifier: Apache-2.0
#include "host/runtime/inner.h"
#include "test/test.h"

static const uint64_t begun_ns = NS_PER_S;

static unsigned pace(unsigned claiming, unsigned ready, uint64_t busy_ms)
{
    struct manager m = {.pools.claiming = claiming, .pools.busy_ns = begun_ns};

    return pool_pace(&m, ready, 32, begun_ns + busy_ms * NS_PER_MS);
}

TEST(a_pool_waits_with_its_refill_while_claims_come)
{
    CHECK_INT(pace(1, 31, 0), 0);
    CHECK_INT(pace(0, 16, 10), 0); /* the next may follow */
    CHECK_INT(pace(0, 9, 10), 0);
}

TEST(a_pool_that_runs_dry_is_refilled_although_claims_come)
{
    CHECK(pace(1, 8, 1) > 1);
    CHECK(pace(4, 0, 1) > 1);
    CHECK_INT(pace(5, 0, 1), 0); /* many at once go first, and are told sooner */
}

TEST(a_stream_of_claims_has_its_pool_refilled_one_at_a_time)
{
    CHECK_INT(pace(1, 31, 1000), 1);
    CHECK_INT(pace(0, 9, 1000), 1);
    CHECK(pace(1, 8, 1000) > 1);
}

TEST(a_pool_nobody_claims_from_is_refilled_at_once)
{
    struct manager m = {0};

    CHECK(pool_pace(&m, 31, 32, begun_ns) > 1);
}
