// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <time.h>

#include "base/rng.h"
#include "test/test.h"

#define AT 1700000000ull /* 2023-11-14T22:13:20Z */

static struct str iso(uint64_t wall_ns, bool with_zone)
{
    static char out[CLOCK_ISO_MAX];
    return str_n(out, clock_format_iso(wall_ns, with_zone, out));
}

TEST(time_is_written_as_python_writes_it)
{
    CHECK_STR(iso(0, false), "1970-01-01T00:00:00");
    CHECK_STR(iso(AT * NS_PER_S, true), "2023-11-14T22:13:20+00:00");
    CHECK_STR(iso(AT * NS_PER_S + 123456789, false), "2023-11-14T22:13:20.123456");
    CHECK_STR(iso(AT * NS_PER_S + 1000, true), "2023-11-14T22:13:20.000001+00:00");
    CHECK_STR(iso(AT * NS_PER_S + 999, false), "2023-11-14T22:13:20"); /* below a microsecond */
    CHECK_STR(iso(951782400 * NS_PER_S, false), "2000-02-29T00:00:00");
    CHECK_STR(iso(UINT64_MAX, true), "2554-07-21T23:34:33.709551+00:00");
}

TEST(time_is_read_in_every_form_it_comes_in)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } forms[] = {
        {"2023-11-14T22:13:20Z", AT * NS_PER_S},
        {"2023-11-14t22:13:20z", AT * NS_PER_S},
        {"2023-11-14 22:13:20", AT * NS_PER_S},
        {"2023-11-14T22:13:20+00:00", AT * NS_PER_S},
        {"2023-11-15T03:43:20+05:30", AT * NS_PER_S},
        {"2023-11-14T14:13:20-08:00", AT * NS_PER_S},
        {"2023-11-14T22:13:20.5Z", AT * NS_PER_S + 500000000},
        {"2023-11-14T22:13:20.123456789999Z", AT * NS_PER_S + 123456789},
        {"2023-11-14T22:13", (AT - 20) * NS_PER_S},
        {"2023-11-14", 1699920000 * NS_PER_S},
        {"1970-01-01T00:00:00Z", 0},
        {"2000-02-29T00:00:00Z", 951782400 * NS_PER_S},
        {"2024-02-29T23:59:59Z", 1709251199 * NS_PER_S},
        {"2016-12-31T23:59:60Z", 1483228800 * NS_PER_S}, /* a leap second */
        {"2261-12-31T23:59:59.999999999Z", 9214646399 * NS_PER_S + 999999999},
    };

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        uint64_t ns = 1;
        CHECK_OK(clock_parse_iso(str_of(forms[i].text), &ns));
        CHECK_INT(ns, forms[i].ns);
    }
}

TEST(what_is_no_time_is_refused_and_named)
{
    static const char *const wrong[] = {
        "",
        "x",
        "2023",
        "2023-11",
        "2023-11-14T",
        "2023-11-14T22",
        "2023-11-14T22:",
        "2023-11-14T22:13:",
        "2023-11-14T22:13:20.",
        "2023-11-14T22:13:20.Z",
        "2023-11-14T22:13.5",
        "2023-11-14T22:13:20+",
        "2023-11-14T22:13:20+05",
        "2023-11-14T22:13:20+0530",
        "2023-11-14T22:13:20 Z",
        "2023-11-14T22:13:20Zx",
        "2023-11-14T24:00:00Z",
        "2023-11-14T22:60:00Z",
        "2023-11-14T22:13:61Z",
        "2023-02-29",
        "2023-04-31",
        "2100-02-29",
        "2023-00-10",
        "2023-13-10",
        "2023-01-00",
        "2023-01-32",
        "1969-12-31T23:59:59Z",
        "2262-01-01",
        "1970-01-01T00:00:00+01:00",
        " 2023-11-14",
        "2023-11-14Z",
        "+023-11-14",
    };
    uint64_t ns = 42;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        CHECK_ERR(clock_parse_iso(str_of(wrong[i]), &ns), ERR_INVALID, wrong[i]);
    CHECK_INT(ns, 42);
}

TEST(time_for_http_has_the_one_form_of_rfc_9110)
{
    char out[CLOCK_HTTP_LEN + 1];

    clock_format_http(784111777, out);
    CHECK_STR(out, "Sun, 06 Nov 1994 08:49:37 GMT");
    clock_format_http(951827696, out);
    CHECK_STR(out, "Tue, 29 Feb 2000 12:34:56 GMT");
    CHECK_INT(strlen(out), CLOCK_HTTP_LEN);
}

static uint64_t always_7(const struct clock *c)
{
    (void)c;
    return 7;
}

TEST(a_clock_can_be_chosen_and_the_system_one_runs)
{
    struct clock mine = {always_7, always_7};
    uint64_t a = clock_mono_ns(&clock_system), b = clock_mono_ns(&clock_system);

    CHECK_INT(clock_mono_ns(&mine) + clock_wall_ns(&mine), 14);
    CHECK(b >= a);
    CHECK(clock_wall_ns(&clock_system) > 1700000000 * NS_PER_S);
}

static void check_split(time_t at)
{
    struct tm want = {0}, got = {0};

    bool fits = gmtime_r(&at, &want) != NULL;
    CHECK_INT(clock_split(at, &got), fits);
    if (!fits)
        return;
    CHECK_INT(got.tm_year, want.tm_year);
    CHECK_INT(got.tm_mon, want.tm_mon);
    CHECK_INT(got.tm_mday, want.tm_mday);
    CHECK_INT(got.tm_wday, want.tm_wday);
    CHECK_INT(got.tm_hour, want.tm_hour);
    CHECK_INT(got.tm_min, want.tm_min);
    CHECK_INT(got.tm_sec, want.tm_sec);
}

TEST(time_is_split_as_libc_splits_it)
{
    static const int64_t ends[] = {INT64_MIN, INT64_MAX, 67768036191676799, -67768040609740800};
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 1);

    for (int64_t day = -200000; day < 200000; day++) { /* more than 400 years either way */
        check_split(day * 86400);
        check_split(day * 86400 - 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        check_split(ends[i]);
        check_split(ends[i] > 0 ? ends[i] - 1 : ends[i] + 1);
        check_split(ends[i] > 0 ? ends[i] / 2 + 1 : ends[i] / 2);
    }
    check_split(67768036191676800);
    check_split(-67768040609740801);
    for (int i = 0; i < 100000; i++)
        check_split((int64_t)rng_u64(rng) >> i % 40);
}
