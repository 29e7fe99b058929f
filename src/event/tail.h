// SPDX-License-Identifier: Apache-2.0
/* tail.h — torn or damaged? What lies behind a broken record decides. Not for users. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct event_tail {
    bool damaged;       /* acknowledged records may lie behind: nothing may be cut */
    const char *reason; /* when damaged and later_seq is 0 */
    uint64_t later_seq; /* a valid record found behind the broken one, 0: none */
    uint64_t later_at;
};

/* Record seq at offset at is broken; acked is how many records the index remembers, or
 * EVENT_COUNT_UNKNOWN. */
fallible event_tail_judge(int fd, uint64_t marker, uint64_t seq, uint64_t at, uint64_t size,
                          uint64_t acked, struct event_tail *ret_tail);
