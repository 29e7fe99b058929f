// SPDX-License-Identifier: Apache-2.0
#include "host/runtime/inner.h"
#include "test/test.h"

TEST(slow_starts_elsewhere_do_not_hold_up_the_rest)
{
    for (int here = 0; here < 2; here++) {
        struct sbx_driver d = {.caps = here ? SBX_IS_HERE : 0};
        struct manager m = {.config = {.driver = &d}, .queue.called = LAUNCHER_MOST};
        struct runtime r = {.manager = &m};

        list_init(&m.queue.urgent);
        list_init(&m.queue.waiting);
        list_init(&r.op.queued);
        CHECK_INT(queue_enter(&r, false), !here);
        list_del(&r.op.queued);
    }
}
