// SPDX-License-Identifier: Apache-2.0
/* clock.h — time as an argument, so that a test can choose it. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

struct tm;

struct clock {
    uint64_t (*mono_ns)(const struct clock *c); /* for deadlines */
    uint64_t (*wall_ns)(const struct clock *c); /* since 1970, for people */
};

extern const struct clock clock_system;

static inline uint64_t clock_mono_ns(const struct clock *c)
{
    return c->mono_ns(c);
}

static inline uint64_t clock_wall_ns(const struct clock *c)
{
    return c->wall_ns(c);
}

/* In UTC; tm_yday stays 0. False if the year is out of an int's range. */
bool clock_split(int64_t wall_s, struct tm *ret_tm);
#define CLOCK_ISO_MAX 40
/* As Python's datetime.isoformat() in UTC: "2026-11-15T09:06:31.123456", no fraction when it is
 * zero; with_zone adds "+00:00". Gives the length. */
size_t clock_format_iso(uint64_t wall_ns, bool with_zone, char out[CLOCK_ISO_MAX]);
/* RFC 3339 and the forms above, 'Z' or an offset or none (UTC). */
fallible clock_parse_iso(struct str text, uint64_t *ret_wall_ns);
#define CLOCK_HTTP_LEN 29
/* "Sun, 06 Nov 1994 08:49:37 GMT" */
void clock_format_http(uint64_t wall_s, char out[CLOCK_HTTP_LEN + 1]);
