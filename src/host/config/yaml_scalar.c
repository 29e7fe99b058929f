// SPDX-License-Identifier: Apache-2.0
/* yaml_scalar.c — which plain words of YAML 1.1 are not strings; the rules are those of PyYAML's
 * resolver, which differ from the specification in small ways (1e3 is a string, 1.0e+3 is not). */
#include <stdlib.h>

#include "host/config/yaml_reader.h"

static bool in_list(struct str s, const char *const *words)
{
    for (; *words; words++)
        if (str_eq(s, str_of(*words)))
            return true;
    return false;
}

static bool is_null(struct str s)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};

    return in_list(s, words);
}

static bool to_bool(struct str s, bool *ret_value)
{
    static const char *const yes[] = {"yes",  "Yes", "YES", "true", "True",
                                      "TRUE", "on",  "On",  "ON",   NULL};
    static const char *const no[] = {"no",    "No",  "NO",  "false", "False",
                                     "FALSE", "off", "Off", "OFF",   NULL};

    *ret_value = in_list(s, yes);
    return *ret_value || in_list(s, no);
}

static struct str skip_sign(struct str s, bool *ret_negative)
{
    *ret_negative = s.len && s.p[0] == '-';
    return s.len && (s.p[0] == '-' || s.p[0] == '+') ? str_from(s, 1) : s;
}

/* How many characters from the front are digits of the base or underscores. */
static size_t scalar_span(struct str s, unsigned base)
{
    size_t n = 0;

    while (n < s.len && (str_digit(s.p[n]) < base || s.p[n] == '_'))
        n++;
    return n;
}

/* The ":59" parts of a base-sixty number, at least one; what is left goes to *s. */
static bool skip_sixties(struct str *s)
{
    unsigned parts = 0;

    while (s->len >= 2 && s->p[0] == ':' && str_is_digit(s->p[1])) {
        size_t digits = s->len >= 3 && str_is_digit(s->p[2]) ? 2 : 1;
        if (digits == 2 && s->p[1] > '5')
            break;
        *s = str_from(*s, 1 + digits);
        parts++;
    }
    return parts > 0;
}

enum form { NOT_A_NUMBER, BASE_2, BASE_8, BASE_10, BASE_16, SIXTIES, FLOAT, FLOAT_SIXTIES };

static bool is_float_tail(struct str s) /* after the point */
{
    s = str_from(s, scalar_span(s, 10));
    if (s.len == 0)
        return true;
    if ((s.p[0] | 0x20) != 'e' || s.len < 3 || (s.p[1] != '-' && s.p[1] != '+'))
        return false;
    for (size_t i = 2; i < s.len; i++)
        if (!str_is_digit(s.p[i]))
            return false;
    return true;
}

static enum form form_of(struct str s, bool signed_)
{
    if (s.len > 2 && s.p[0] == '0' && s.p[1] == 'b' && scalar_span(str_from(s, 2), 2) == s.len - 2)
        return BASE_2;
    if (s.len > 2 && s.p[0] == '0' && s.p[1] == 'x' && scalar_span(str_from(s, 2), 16) == s.len - 2)
        return BASE_16;
    if (s.len > 1 && s.p[0] == '.' && str_is_digit(s.p[1]))
        return !signed_ && is_float_tail(str_from(s, 1)) ? FLOAT : NOT_A_NUMBER;
    if (!s.len || !str_is_digit(s.p[0]))
        return NOT_A_NUMBER;
    struct str rest = str_from(s, scalar_span(s, 10));
    if (rest.len && rest.p[0] == '.')
        return is_float_tail(str_from(rest, 1)) ? FLOAT : NOT_A_NUMBER;
    if (rest.len == 0) {
        if (s.p[0] != '0' || s.len == 1)
            return BASE_10;
        return scalar_span(str_from(s, 1), 8) == s.len - 1 ? BASE_8 : NOT_A_NUMBER;
    }
    if (!skip_sixties(&rest))
        return NOT_A_NUMBER;
    if (rest.len == 0)
        return s.p[0] == '0' ? NOT_A_NUMBER : SIXTIES;
    return rest.p[0] == '.' && scalar_span(str_from(rest, 1), 10) == rest.len - 1 ? FLOAT_SIXTIES
                                                                                  : NOT_A_NUMBER;
}

static fallible make_int(struct arena *a, struct str s, unsigned base, bool negative,
                         struct json **ret_value)
{
    uint64_t v = 0, max = negative ? (uint64_t)1 << 63 : INT64_MAX, part = 0;

    for (size_t i = 0; i <= s.len; i++) {
        char c = i < s.len ? s.p[i] : ':';
        if (c == '_')
            continue;
        if (c == ':') { /* digits of base sixty; a number without ':' has one */
            if (v > (max - part) / 60)
                return err_new(ERR_INVALID, "the number does not fit in 64 bits");
            v = v * 60 + part;
            part = 0;
            continue;
        }
        unsigned d = str_digit(c);
        if (part > (max - d) / base)
            return err_new(ERR_INVALID, "the number does not fit in 64 bits");
        part = part * base + d;
    }
    *ret_value = json_new_int(a, negative ? (int64_t)(0 - v) : (int64_t)v);
    return arena_check(a);
}

static fallible make_float(struct arena *a, struct str s, bool negative, struct json **ret_value)
{
    struct str copy = arena_copy(a, s);
    double v = 0;
    size_t n = 0;

    TRY(arena_check(a));
    char *p = (char *)copy.p, *at = p;
    for (size_t i = 0; i < copy.len; i++)
        if (p[i] != '_')
            p[n++] = p[i];
    p[n] = '\0';
    for (char *colon; (colon = strchr(at, ':')); at = colon + 1)
        v = v * 60 + strtod(at, NULL);
    v = at == p ? strtod(at, NULL) : v * 60 + strtod(at, NULL);
    *ret_value = json_new_double(a, negative ? -v : v);
    return arena_check(a);
}

/* NULL in *ret_value: not a number. */
static fallible to_number(struct arena *a, struct str text, struct json **ret_value)
{
    static const char *const infinite[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nan[] = {".nan", ".NaN", ".NAN", NULL};
    bool negative;
    struct str s = skip_sign(text, &negative);

    *ret_value = NULL;
    if (in_list(s, infinite))
        *ret_value = json_new_double(a, negative ? -__builtin_inf() : __builtin_inf());
    else if (in_list(text, nan))
        *ret_value = json_new_double(a, __builtin_nan(""));
    switch (form_of(s, s.len != text.len)) {
    case NOT_A_NUMBER:
        return arena_check(a);
    case BASE_2:
        return make_int(a, str_from(s, 2), 2, negative, ret_value);
    case BASE_8:
        return make_int(a, str_from(s, 1), 8, negative, ret_value);
    case BASE_16:
        return make_int(a, str_from(s, 2), 16, negative, ret_value);
    case BASE_10:
    case SIXTIES:
        return make_int(a, s, 10, negative, ret_value);
    case FLOAT:
    case FLOAT_SIXTIES:
        return make_float(a, s, negative, ret_value);
    }
    return NULL;
}

fallible yaml_resolve(struct arena *a, struct str text, struct str tag, struct json **ret_value)
{
    bool plain = tag.len == 0, b;

    *ret_value = NULL;
    if (str_eq(tag, STR("str")) || str_eq(tag, STR("timestamp")))
        *ret_value = json_new_str(a, text);
    else if ((plain || str_eq(tag, STR("null"))) && is_null(text))
        *ret_value = json_new(a, JSON_NULL);
    else if ((plain || str_eq(tag, STR("bool"))) && to_bool(text, &b))
        *ret_value = json_new_bool(a, b);
    else if (plain || str_eq(tag, STR("int")) || str_eq(tag, STR("float")))
        TRY(to_number(a, text, ret_value));
    if (*ret_value && (*ret_value)->type == JSON_INT && str_eq(tag, STR("float")))
        *ret_value = json_new_double(a, (double)(*ret_value)->i);
    if (*ret_value && (*ret_value)->type == JSON_DOUBLE && str_eq(tag, STR("int")))
        *ret_value = NULL;
    if (plain && !*ret_value)
        *ret_value = json_new_str(a, text);
    return arena_check(a);
}
