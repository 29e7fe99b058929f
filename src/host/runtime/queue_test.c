// SPDX-License-Identifier: Apache-2.0
#include "host/runtime/inner.h"
#include "test/test.h"
#include "wire/bind.h"

static uint32_t later(unsigned claiming, unsigned at_launcher, unsigned refilling)
{
    struct manager m = {.claiming = claiming, .at_launcher = at_launcher, .refilling = refilling};

    return gate_shell_later(&m, NS_PER_S);
}

TEST(a_shell_waits_longer_only_where_many_are_claimed_at_once)
{
    CHECK_INT(later(1, 1, 0), BIND_ALONE_MS);
    CHECK_INT(later(2, 2, 0), BIND_ALONE_MS);
    CHECK_INT(later(1, 5, 4), BIND_ALONE_MS); /* the pool is nobody who waits */
    CHECK(later(3, 3, 0) > BIND_ALONE_MS);
    CHECK(later(1, 9, 4) > BIND_ALONE_MS); /* others are stopped meanwhile */
    CHECK(later(1000, 24, 0) > later(100, 24, 0));
    CHECK_INT(later(1u << 30, 24, 0), BIND_LATER_MAX);
}

TEST(where_nobody_else_is_busy_there_is_no_crowd)
{
    struct manager few = {.at_launcher = 6, .refilling = 4, .claiming = 2, .crowd_ns = NS_PER_S};
    struct manager stops = {.at_launcher = 7, .refilling = 4};
    struct manager stream = {.crowd_ns = NS_PER_S + 100 * NS_PER_MS};

    CHECK(!gate_is_crowded(&few, NS_PER_S));
    CHECK(gate_is_crowded(&stops, NS_PER_S));
    CHECK(gate_is_crowded(&stream, NS_PER_S));
    CHECK(!gate_is_crowded(&stream, 2 * NS_PER_S));
}

TEST(slow_starts_elsewhere_do_not_hold_up_the_rest)
{
    for (int here = 0; here < 2; here++) {
        struct sbx_driver d = {.caps = here ? SBX_IS_HERE : 0};
        struct manager m = {.config = {.driver = &d}, .at_launcher = LAUNCHER_MOST};
        struct runtime r = {.manager = &m};

        list_init(&m.urgent);
        list_init(&m.waiting);
        list_init(&r.op.queued);
        CHECK_INT(queue_enter(&r, false), !here);
        list_del(&r.op.queued);
    }
}

TEST(a_crowd_that_comes_one_by_one_is_a_crowd)
{
    struct manager m = {.claiming = 1, .at_launcher = 1};
    uint64_t now = NS_PER_S;

    for (unsigned i = 0; i < 1000; i++, now += 20 * NS_PER_MS)
        CHECK_INT(gate_shell_later(&m, now), BIND_ALONE_MS);
    CHECK_INT(gate_shell_later(&m, now), BIND_ALONE_MS);
    CHECK_INT(gate_shell_later(&m, now), BIND_ALONE_MS);
    for (unsigned i = 0; i < 1000; i++, now += NS_PER_MS)
        CHECK(gate_shell_later(&m, now) > BIND_ALONE_MS);
    CHECK_INT(gate_shell_later(&m, now + 100 * NS_PER_MS), BIND_ALONE_MS); /* it is over */
}
