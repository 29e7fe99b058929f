// SPDX-License-Identifier: Apache-2.0
/* age.c — see age.h. */
#include "cli/age.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

static void put_seconds(uint64_t s, char text[32])
{
    if (s < 120)
        snprintf(text, 32, "%" PRIu64 "s", s);
    else if (s < 7200)
        snprintf(text, 32, "%" PRIu64 "m", s / 60);
    else if (s < 172800)
        snprintf(text, 32, "%" PRIu64 "h", s / 3600);
    else
        snprintf(text, 32, "%" PRIu64 "d", s / 86400);
}

void cli_put_span(struct buf *out, uint64_t ns)
{
    char text[32];

    put_seconds(ns / NS_PER_S, text);
    buf_add_cstr(out, text);
}

void cli_put_age(struct buf *out, uint64_t wall_ns)
{
    uint64_t now = clock_wall_ns(&clock_system);
    char text[32] = "-";

    if (wall_ns <= now)
        put_seconds((now - wall_ns) / NS_PER_S, text);
    buf_addf(out, "%-6s  ", text);
}
