// SPDX-License-Identifier: Apache-2.0
/* toml_word.c — TOML values that are one word: booleans, numbers, dates and times.
 *
 * The word is cut out first and judged whole, so that an error can show it. Only a date may hold a
 * space, and only before a time. */
#include "base/toml_reader.h"

#include <stdlib.h>

static bool is_word_char(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '.' || c == ':';
}

/* --- dates and times --- */

/* Takes exactly n digits. */
static bool take_number(struct str *s, size_t n, unsigned *ret_value)
{
    unsigned v = 0;

    if (s->len < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!str_is_digit(s->p[i]))
            return false;
        v = v * 10 + (unsigned)(s->p[i] - '0');
    }
    *s = str_from(*s, n);
    *ret_value = v;
    return true;
}

static bool take_char(struct str *s, char c)
{
    if (s->len == 0 || s->p[0] != c)
        return false;
    *s = str_from(*s, 1);
    return true;
}

static unsigned days_in(unsigned year, unsigned month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && leap ? 29 : days[month - 1];
}

/* What is wrong, or NULL. */
static const char *check_date(struct str *s)
{
    unsigned year, month, day;

    if (!take_number(s, 4, &year) || !take_char(s, '-') || !take_number(s, 2, &month) ||
        !take_char(s, '-') || !take_number(s, 2, &day))
        return "a date is written 1979-05-27";
    if (month < 1 || month > 12)
        return "there is no such month";
    if (day < 1 || day > days_in(year, month))
        return "the month has no such day";
    return NULL;
}

static const char *check_time(struct str *s)
{
    unsigned hour, minute, second;

    if (!take_number(s, 2, &hour) || !take_char(s, ':') || !take_number(s, 2, &minute) ||
        !take_char(s, ':') || !take_number(s, 2, &second))
        return "a time is written 07:32:00";
    if (hour > 23 || minute > 59 || second > 60) /* 60 is a leap second */
        return "there is no such time of day";
    if (take_char(s, '.')) {
        if (s->len == 0 || !str_is_digit(s->p[0]))
            return "a fraction of a second needs digits";
        while (s->len && str_is_digit(s->p[0]))
            *s = str_from(*s, 1);
    }
    return NULL;
}

static const char *check_offset(struct str *s)
{
    unsigned hour, minute;

    if (s->len == 0 || take_char(s, 'Z') || take_char(s, 'z'))
        return NULL;
    if (!take_char(s, '+') && !take_char(s, '-'))
        return "an offset is written Z or +02:00";
    if (!take_number(s, 2, &hour) || !take_char(s, ':') || !take_number(s, 2, &minute))
        return "an offset is written Z or +02:00";
    return hour > 23 || minute > 59 ? "there is no such offset" : NULL;
}

static const char *check_moment(struct str word, bool has_date)
{
    const char *wrong = has_date ? check_date(&word) : check_time(&word);

    if (!wrong && has_date && word.len) {
        if (word.p[0] != 'T' && word.p[0] != 't' && word.p[0] != ' ')
            return "a date is written 1979-05-27";
        word = str_from(word, 1);
        wrong = check_time(&word);
        if (!wrong)
            wrong = check_offset(&word);
    }
    if (!wrong && word.len)
        wrong = has_date ? "something follows the date" : "something follows the time";
    return wrong;
}

/* As written, with 'T' between and 'Z' at the end. */
static fallible make_moment(struct toml *t, struct str word, struct json **ret_value)
{
    if (memchr(word.p, ' ', word.len) || memchr(word.p, 't', word.len) ||
        memchr(word.p, 'z', word.len)) {
        word = arena_copy(t->arena, word);
        if (!word.p)
            return arena_check(t->arena);
        char *p = (char *)word.p;
        if (word.len > 10)
            p[10] = 'T';
        if (p[word.len - 1] == 'z')
            p[word.len - 1] = 'Z';
    }
    *ret_value = json_new_str(t->arena, word);
    return *ret_value ? NULL : arena_check(t->arena);
}

/* --- numbers --- */

/* Digits with single underscores between them; gives how many characters, 0 if none fit. */
static size_t word_digits(struct str s, unsigned base)
{
    size_t n = 0;

    for (; n < s.len; n++) {
        if (str_digit(s.p[n]) < base)
            continue;
        if (s.p[n] != '_' || n == 0 || n + 1 == s.len || s.p[n - 1] == '_')
            break;
    }
    return n && s.p[n - 1] == '_' ? n - 1 : n;
}

/* False on overflow. */
static bool word_accumulate(struct str s, unsigned base, bool negative, int64_t *ret_value)
{
    uint64_t v = 0, max = negative ? (uint64_t)1 << 63 : INT64_MAX;

    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] == '_')
            continue;
        unsigned d = str_digit(s.p[i]);
        if (v > (max - d) / base)
            return false;
        v = v * base + d;
    }
    *ret_value = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static fallible make_int(struct toml *t, size_t at, struct str number, unsigned base, bool negative,
                         struct json **ret_value)
{
    int64_t v;

    if (!word_accumulate(number, base, negative, &v))
        return toml_error(t, at, "the number does not fit in 64 bits");
    *ret_value = json_new_int(t->arena, v);
    return *ret_value ? NULL : arena_check(t->arena);
}

static fallible make_double(struct toml *t, double d, struct json **ret_value)
{
    *ret_value = json_new_double(t->arena, d);
    return *ret_value ? NULL : arena_check(t->arena);
}

/* What is wrong with the unsigned decimal s, or NULL; says whether it is a float. */
static const char *check_decimal(struct str s, bool *ret_float)
{
    size_t whole = word_digits(s, 10);
    struct str rest = str_from(s, whole);

    *ret_float = false;
    if (!whole)
        return "it is not a value (strings need quotes)";
    if (whole > 1 && s.p[0] == '0')
        return "a number cannot begin with 0";
    if (take_char(&rest, '.')) {
        size_t n = word_digits(rest, 10);
        if (!n)
            return "digits must follow the point";
        rest = str_from(rest, n);
        *ret_float = true;
    }
    if (take_char(&rest, 'e') || take_char(&rest, 'E')) {
        if (!take_char(&rest, '+'))
            take_char(&rest, '-');
        size_t n = word_digits(rest, 10);
        if (!n)
            return "digits must follow the exponent";
        rest = str_from(rest, n);
        *ret_float = true;
    }
    if (rest.len && rest.p[0] == '_')
        return "an underscore must stand between two digits";
    return rest.len ? "it is not a value (strings need quotes)" : NULL;
}

static fallible read_float(struct toml *t, struct str word, struct json **ret_value)
{
    struct str copy = arena_copy(t->arena, word);
    size_t n = 0;

    if (!copy.p)
        return arena_check(t->arena);
    char *p = (char *)copy.p;
    for (size_t i = 0; i < copy.len; i++)
        if (p[i] != '_')
            p[n++] = p[i];
    p[n] = '\0';
    return make_double(t, strtod(p, NULL), ret_value);
}

static fallible bad_word(const struct toml *t, size_t at, struct str word, const char *why)
{
    struct str shown = str_first(word, 40);

    return toml_error(t, at, "'" STR_FMT "%s': %s", STR_ARG(shown), word.len > 40 ? "…" : "", why);
}

static fallible read_number(struct toml *t, size_t at, struct str word, struct json **ret_value)
{
    bool negative = word.p[0] == '-', sign = negative || word.p[0] == '+', is_float;
    struct str s = str_from(word, sign);

    if (str_eq(s, STR("inf")))
        return make_double(t, negative ? -__builtin_inf() : __builtin_inf(), ret_value);
    if (str_eq(s, STR("nan")))
        return make_double(t, negative ? -__builtin_nan("") : __builtin_nan(""), ret_value);
    if (s.len > 2 && s.p[0] == '0' && strchr("xob", s.p[1])) {
        unsigned base = s.p[1] == 'x' ? 16 : s.p[1] == 'o' ? 8 : 2;
        struct str number = str_from(s, 2);
        if (sign)
            return bad_word(t, at, word, "no sign may stand before 0x, 0o or 0b");
        if (word_digits(number, base) != number.len)
            return bad_word(t, at, word, "the digits do not fit the prefix");
        return make_int(t, at, number, base, false, ret_value);
    }
    const char *wrong = check_decimal(s, &is_float);
    if (wrong)
        return bad_word(t, at, word, wrong);
    return is_float ? read_float(t, word, ret_value) : make_int(t, at, s, 10, negative, ret_value);
}

/* --- the word --- */

static bool looks_like_date(struct str s)
{
    return s.len >= 5 && str_is_digit(s.p[0]) && str_is_digit(s.p[1]) && str_is_digit(s.p[2]) &&
           str_is_digit(s.p[3]) && s.p[4] == '-';
}

static bool looks_like_time(struct str s)
{
    return s.len >= 3 && str_is_digit(s.p[0]) && str_is_digit(s.p[1]) && s.p[2] == ':';
}

fallible toml_read_word(struct toml *t, struct json **ret_value)
{
    size_t start = t->at;

    while (is_word_char(toml_peek(t)))
        t->at++;
    struct str word = str_n(t->text.p + start, t->at - start);
    if (!word.len)
        return toml_expected(t, "a value");
    bool date = looks_like_date(word);
    if (date && word.len == 10 && toml_peek(t) == ' ' &&
        looks_like_time(str_from(toml_rest(t), 1))) {
        t->at++;
        while (is_word_char(toml_peek(t)))
            t->at++;
        word = str_n(t->text.p + start, t->at - start);
    }
    if (date || looks_like_time(word)) {
        const char *wrong = check_moment(word, date);
        return wrong ? bad_word(t, start, word, wrong) : make_moment(t, word, ret_value);
    }
    bool yes = str_eq(word, STR("true"));
    if (!yes && !str_eq(word, STR("false")))
        return read_number(t, start, word, ret_value);
    *ret_value = json_new_bool(t->arena, yes);
    return *ret_value ? NULL : arena_check(t->arena);
}
