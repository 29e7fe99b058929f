// SPDX-License-Identifier: Apache-2.0
/* age.c — see age.h. */
#include "cli/age.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

void cli_put_age(struct buf *out, uint64_t wall_ns)
{
    uint64_t now = clock_wall_ns(&clock_system);
    char text[32] = "-";

    if (wall_ns <= now) {
        uint64_t s = (now - wall_ns) / NS_PER_S;
        if (s < 120)
            snprintf(text, sizeof text, "%" PRIu64 "s", s);
        else if (s < 7200)
            snprintf(text, sizeof text, "%" PRIu64 "m", s / 60);
        else if (s < 172800)
            snprintf(text, sizeof text, "%" PRIu64 "h", s / 3600);
        else
            snprintf(text, sizeof text, "%" PRIu64 "d", s / 86400);
    }
    buf_addf(out, "%-6s  ", text);
}
