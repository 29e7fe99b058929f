// SPDX-License-Identifier: Apache-2.0
/* clock.c — the system's clock and the three ways it is written. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t system_mono(const struct clock *c)
{
    (void)c;
    return read_clock(CLOCK_MONOTONIC);
}

static uint64_t system_wall(const struct clock *c)
{
    (void)c;
    return read_clock(CLOCK_REALTIME);
}

const struct clock clock_system = {system_mono, system_wall};

/* Not by libc, which looks for time zones and is four times as long. Years begin in March here: the
 * odd day is the last of them, and months begin at day (153 * month + 2) / 5. */
bool clock_split(int64_t wall_s, struct tm *ret_tm)
{
    int64_t days = wall_s / 86400, second = wall_s % 86400;

    if (second < 0) {
        second += 86400;
        days--;
    }
    int64_t since = days + 719468, era = since / 146097; /* of 400 years, from March of year 0 on */
    if (since % 146097 < 0)
        era--;
    unsigned day = (unsigned)(since - era * 146097);
    unsigned year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    unsigned month = (5 * day + 2) / 153;
    int64_t since_1900 = era * 400 + year + (month > 9) - 1900;
    *ret_tm = (struct tm){
        .tm_year = (int)since_1900,
        .tm_mon = (int)(month > 9 ? month - 10 : month + 2),
        .tm_mday = (int)(day - (153 * month + 2) / 5 + 1),
        .tm_wday = (int)((days % 7 + 11) % 7), /* 1970 began on a Thursday */
        .tm_hour = (int)second / 3600,
        .tm_min = (int)second / 60 % 60,
        .tm_sec = (int)second % 60,
    };
    return since_1900 == ret_tm->tm_year;
}

size_t clock_format_iso(uint64_t wall_ns, bool with_zone, char out[CLOCK_ISO_MAX])
{
    unsigned us = (unsigned)(wall_ns % NS_PER_S / 1000);
    struct tm tm;

    clock_split((int64_t)(wall_ns / NS_PER_S), &tm);
    size_t n =
        (size_t)snprintf(out, CLOCK_ISO_MAX, "%04u-%02u-%02uT%02u:%02u:%02u",
                         (tm.tm_year + 1900) % 10000u, (tm.tm_mon + 1) % 100u, tm.tm_mday % 100u,
                         tm.tm_hour % 100u, tm.tm_min % 100u, tm.tm_sec % 100u);
    if (us)
        n += (size_t)snprintf(out + n, CLOCK_ISO_MAX - n, ".%06u", us);
    if (with_zone)
        n += (size_t)snprintf(out + n, CLOCK_ISO_MAX - n, "+00:00");
    return n;
}

/* Takes exactly `digits` digits off the front. */
static bool digits_off(struct str *s, size_t digits, unsigned min, unsigned max, unsigned *ret)
{
    uint64_t v;

    if (s->len < digits || !str_to_u64(str_first(*s, digits), &v) || v < min || v > max)
        return false;
    *s = str_from(*s, digits);
    *ret = (unsigned)v;
    return true;
}

static bool char_off(struct str *s, char c)
{
    if (!s->len || s->p[0] != c)
        return false;
    *s = str_from(*s, 1);
    return true;
}

static uint64_t fraction_off(struct str *s)
{
    uint64_t ns = 0, unit = NS_PER_S / 10;

    for (; s->len && s->p[0] >= '0' && s->p[0] <= '9'; *s = str_from(*s, 1), unit /= 10)
        ns += (uint64_t)(s->p[0] - '0') * unit;
    return ns;
}

static bool zone_off(struct str *s, int *ret_minutes)
{
    unsigned h, m;

    *ret_minutes = 0;
    if (!s->len || char_off(s, 'Z') || char_off(s, 'z'))
        return true;
    bool minus = s->p[0] == '-';
    if (!minus && s->p[0] != '+')
        return false;
    *s = str_from(*s, 1);
    if (!digits_off(s, 2, 0, 23, &h) || !char_off(s, ':') || !digits_off(s, 2, 0, 59, &m))
        return false;
    *ret_minutes = (int)(h * 60 + m) * (minus ? -1 : 1);
    return true;
}

static bool date_off(struct str *s, struct tm *tm)
{
    static const uint8_t days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    unsigned y, m, d;

    if (!digits_off(s, 4, 1970, 2261, &y) || !char_off(s, '-') || !digits_off(s, 2, 1, 12, &m) ||
        !char_off(s, '-') || !digits_off(s, 2, 1, days[m - 1], &d))
        return false;
    bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    *tm = (struct tm){.tm_year = (int)y - 1900, .tm_mon = (int)m - 1, .tm_mday = (int)d};
    return leap || m != 2 || d <= 28;
}

/* The second 60 of a leap second is the first of the next minute, as Unix counts. */
static bool time_off(struct str *s, struct tm *tm, uint64_t *ret_ns)
{
    unsigned h, m, sec = 0;

    if (!digits_off(s, 2, 0, 23, &h) || !char_off(s, ':') || !digits_off(s, 2, 0, 59, &m))
        return false;
    *ret_ns = 0;
    if (char_off(s, ':')) {
        if (!digits_off(s, 2, 0, 60, &sec))
            return false;
        if (char_off(s, '.')) {
            if (!s->len || s->p[0] < '0' || s->p[0] > '9')
                return false;
            *ret_ns = fraction_off(s);
        }
    }
    tm->tm_hour = (int)h;
    tm->tm_min = (int)m;
    tm->tm_sec = (int)sec;
    return true;
}

static bool parse_iso(struct str s, uint64_t *ret_wall_ns)
{
    struct tm tm;
    uint64_t ns = 0;
    int zone = 0;

    if (!date_off(&s, &tm))
        return false;
    if (s.len) {
        if (!char_off(&s, 'T') && !char_off(&s, 't') && !char_off(&s, ' '))
            return false;
        if (!time_off(&s, &tm, &ns) || !zone_off(&s, &zone))
            return false;
    }
    time_t t = timegm(&tm) - zone * 60;
    if (s.len || t < 0)
        return false;
    *ret_wall_ns = (uint64_t)t * NS_PER_S + ns;
    return true;
}

fallible clock_parse_iso(struct str text, uint64_t *ret_wall_ns)
{
    if (parse_iso(text, ret_wall_ns))
        return NULL;
    return err_new(ERR_INVALID, "'" STR_FMT "' is not a time like 2026-11-15T09:06:31Z",
                   STR_ARG(str_first(text, 64)));
}

void clock_format_http(uint64_t wall_s, char out[CLOCK_HTTP_LEN + 1])
{
    static const char days[] = "SunMonTueWedThuFriSat",
                      months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm;

    clock_split((int64_t)wall_s, &tm);
    snprintf(out, CLOCK_HTTP_LEN + 1, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
             days + tm.tm_wday * 3, tm.tm_mday % 100u, months + tm.tm_mon * 3,
             (tm.tm_year + 1900) % 10000u, tm.tm_hour % 100u, tm.tm_min % 100u, tm.tm_sec % 100u);
}
