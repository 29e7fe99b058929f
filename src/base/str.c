// SPDX-License-Identifier: Apache-2.0
/* str.c — slices; see str.h. */
#include "base/str.h"

#include <stdlib.h>

static char str_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (str_lower(a.p[i]) != str_lower(b.p[i]))
            return false;
    return true;
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.p, b.p, n) : 0;

    if (order)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq(str_first(s, prefix.len), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq(str_from(s, s.len - suffix.len), suffix);
}

ptrdiff_t str_find(struct str s, struct str what)
{
    if (what.len == 0)
        return 0;
    const char *hit = s.len ? memmem(s.p, s.len, what.p, what.len) : NULL;
    return hit ? hit - s.p : -1;
}

ptrdiff_t str_find_char(struct str s, char c)
{
    const char *hit = s.len ? memchr(s.p, c, s.len) : NULL;
    return hit ? hit - s.p : -1;
}

bool str_cut(struct str *s, char sep, struct str *ret_head)
{
    ptrdiff_t at = str_find_char(*s, sep);

    if (at < 0) {
        *ret_head = *s;
        *s = str_from(*s, s->len);
        return false;
    }
    *ret_head = str_first(*s, (size_t)at);
    *s = str_from(*s, (size_t)at + 1);
    return true;
}

bool str_fits(struct str s, const char *words, bool (*fits)(struct str s, struct str word))
{
    struct str rest = str_of(words), word;

    while (rest.len) {
        str_cut(&rest, ' ', &word);
        if (fits(s, word))
            return true;
    }
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
    while (s.len && is_space(s.p[0]))
        s = str_from(s, 1);
    while (s.len && is_space(s.p[s.len - 1]))
        s.len--;
    return s;
}

bool str_to_u64(struct str s, uint64_t *ret_value)
{
    uint64_t v = 0;

    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return false;
    }
    *ret_value = v;
    return true;
}

bool str_to_i64(struct str s, int64_t *ret_value)
{
    bool minus = s.len && s.p[0] == '-';
    uint64_t v;

    if (!str_to_u64(minus ? str_from(s, 1) : s, &v))
        return false;
    if (v > (uint64_t)INT64_MAX + minus)
        return false;
    *ret_value = minus ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static bool is_decimal(char c)
{
    return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

bool str_to_double(struct str s, double *ret_value)
{
    char text[512], *end; /* the longest exact double has 767 digits; no client sends it */

    if (s.len == 0 || s.len >= sizeof text)
        return false;
    for (size_t i = 0; i < s.len; i++) /* strtod would also take spaces, hex, inf and nan */
        if (!is_decimal(s.p[i]))
            return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    double v = strtod(text, &end);
    if (end != text + s.len || v - v != 0)
        return false;
    *ret_value = v;
    return true;
}

unsigned str_distance(struct str a, struct str b)
{
    unsigned row[65];

    if (a.len > 64 || b.len > 64)
        return 64;
    for (unsigned j = 0; j <= b.len; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            unsigned change = diagonal + (str_lower(a.p[i - 1]) != str_lower(b.p[j - 1]));
            unsigned add = row[j - 1] + 1, drop = row[j] + 1;
            diagonal = row[j];
            row[j] = change < add ? change : add;
            if (drop < row[j])
                row[j] = drop;
        }
    }
    return row[b.len];
}
