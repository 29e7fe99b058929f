// SPDX-License-Identifier: Apache-2.0
/* cfg_value.c — one value: from text, from a tree, into the settings struct. */
#include "base/cfg_row.h"

#include <stdio.h>

/* Takes "12" or "1.5" off the front: the whole part, and the fraction in billionths. */
static bool take_number(struct str *s, uint64_t *ret_whole, uint64_t *ret_billionths)
{
    size_t n = 0, first;
    uint64_t fraction = 0, scale = 1000000000;

    while (n < s->len && str_is_digit(s->p[n]))
        n++;
    if (!str_to_u64(str_first(*s, n), ret_whole))
        return false;
    *s = str_from(*s, n);
    if (s->len && s->p[0] == '.') {
        for (n = first = 1; n < s->len && str_is_digit(s->p[n]); n++) {
            scale /= 10;
            fraction += scale * (uint64_t)(s->p[n] - '0');
        }
        if (n == first)
            return false;
        *s = str_from(*s, n);
    }
    *ret_billionths = fraction;
    return true;
}

/* whole.fraction times unit, added to *sum; false on overflow. */
static bool add_scaled(uint64_t *sum, uint64_t whole, uint64_t billionths, uint64_t unit)
{
    uint64_t v;
    uint64_t part = (uint64_t)((unsigned __int128)billionths * unit / 1000000000);

    return !__builtin_mul_overflow(whole, unit, &v) && !__builtin_add_overflow(v, part, &v) &&
           !__builtin_add_overflow(*sum, v, sum);
}

fallible cfg_parse_size(struct str text, uint64_t *ret_bytes)
{
    static const char letters[] = "kmgtp";
    struct str s = str_trim(text);
    uint64_t whole, fraction, bytes = 0;
    unsigned shift = 0;

    if (!take_number(&s, &whole, &fraction))
        return err_new(ERR_INVALID, "'" STR_FMT "' is not a size such as 512M or 2GiB",
                       STR_ARG(text));
    s = str_trim(s);
    const char *letter = s.len ? strchr(letters, s.p[0] | 0x20) : NULL;
    if (letter) {
        shift = (unsigned)(letter - letters + 1) * 10;
        s = str_from(s, 1);
        if (s.len && (s.p[0] == 'i' || s.p[0] == 'I'))
            s = str_from(s, 1);
    }
    if (s.len && !str_eq_nocase(s, STR("b")))
        return err_new(ERR_INVALID, "'" STR_FMT "' is not a size such as 512M or 2GiB",
                       STR_ARG(text));
    if (!add_scaled(&bytes, whole, fraction, (uint64_t)1 << shift))
        return err_new(ERR_INVALID, "'" STR_FMT "' is too large a size", STR_ARG(text));
    *ret_bytes = bytes;
    return NULL;
}

fallible cfg_parse_ms(struct str text, uint64_t *ret_ms)
{
    static const struct {
        struct str word;
        uint64_t ms;
    } units[] = {{STR_INIT("ms"), 1},      {STR_INIT("s"), 1000},     {STR_INIT("m"), 60000},
                 {STR_INIT("h"), 3600000}, {STR_INIT("d"), 86400000}, {STR_INIT(""), 1000}};
    struct str s = str_trim(text);
    uint64_t whole, fraction, ms = 0;

    do {
        size_t i = 0;
        bool number = take_number(&s, &whole, &fraction);
        size_t letters = 0;
        while (letters < s.len && !str_is_digit(s.p[letters]))
            letters++;
        while (i < ARRAY_LEN(units) && !str_eq(units[i].word, str_first(s, letters)))
            i++;
        if (!number || i == ARRAY_LEN(units))
            return err_new(ERR_INVALID, "'" STR_FMT "' is not a duration such as 500ms, 30s or 5m",
                           STR_ARG(text));
        if (!add_scaled(&ms, whole, fraction, units[i].ms))
            return err_new(ERR_INVALID, "'" STR_FMT "' is too long a duration", STR_ARG(text));
        s = str_from(s, letters);
    } while (s.len);
    *ret_ms = ms;
    return NULL;
}

/* --- errors --- */

static void describe_range(const struct cfg_row *row, const char *what, char *out, size_t size)
{
    if (row->min || row->max)
        snprintf(out, size, "%s from %lld to %lld", what, (long long)row->min, (long long)row->max);
    else
        snprintf(out, size, "%s", what);
}

const char *cfg_row_choices(const struct cfg_row *row, struct buf *out)
{
    if (!row->put_choices)
        return row->choices;
    buf_reset(out);
    row->put_choices(out);
    return buf_cstr(out);
}

static void describe_choices(const char *choices, char *out, size_t size)
{
    int n = snprintf(out, size, "one of ");

    for (const char *c = choices; *c && (size_t)n < size; c++)
        n += snprintf(out + n, size - (size_t)n, *c == '|' ? ", " : "%c", *c);
}

/* "a whole number from 1 to 65535": completes "is not …". */
static void value_describe(const struct cfg_row *row, char *out, size_t size)
{
    static const char *const words[] = {
        [CFG_TYPE_BOOL] = "true or false",
        [CFG_TYPE_INT] = "a whole number",
        [CFG_TYPE_UINT] = "a whole number, 0 or more",
        [CFG_TYPE_DOUBLE] = "a number",
        [CFG_TYPE_STR] = "text in quotes",
        [CFG_TYPE_SECRET] = "text in quotes",
        [CFG_TYPE_SIZE] = "a size such as 512M or 2GiB",
        [CFG_TYPE_MS] = "a duration such as 500ms, 30s or 5m",
        [CFG_TYPE_LIST] = "a list of strings such as ['a', 'b']",
        [CFG_TYPE_DICT] = "a table such as {'KEY': 'value'}",
    };

    own_done(buf) text;

    buf_init(&text, CHOICES_BYTES);
    const char *choices = cfg_row_choices(row, &text);
    if (choices)
        describe_choices(choices, out, size);
    else if (row->type == CFG_TYPE_INT || (row->type == CFG_TYPE_UINT && row->max))
        describe_range(row, "a whole number", out, size);
    else if (row->type == CFG_TYPE_DOUBLE)
        describe_range(row, "a number", out, size);
    else if (row->type == CFG_TYPE_SIZE && row->max)
        describe_range(row, "a size in bytes", out, size);
    else if (row->type == CFG_TYPE_MS && row->max)
        describe_range(row, "a duration in milliseconds", out, size);
    else
        snprintf(out, size, "%s", words[row->type]);
}

static fallible bad_text(const struct cfg_row *row, struct str text)
{
    char want[256];
    struct str shown = row->type == CFG_TYPE_SECRET ? STR("***") : str_first(text, 80);

    value_describe(row, want, sizeof want);
    return err_new(ERR_INVALID, "'" STR_FMT "%s' is not %s", STR_ARG(shown),
                   text.len > 80 ? "…" : "", want);
}

static fallible bad_json(const struct cfg_row *row, const struct json *v)
{
    own_done(buf) shown;
    char want[256];

    buf_init(&shown, 4096);
    if (row->type == CFG_TYPE_SECRET || v->type == JSON_OBJECT || v->type == JSON_ARRAY)
        buf_addf(&shown, "a value of type %s", json_type_word(v));
    else
        json_write(&shown, v, JW_ALLOW_NAN);
    value_describe(row, want, sizeof want);
    struct str s = str_first(buf_str(&shown), 80);
    return err_new(ERR_INVALID, STR_FMT "%s is not %s", STR_ARG(s), shown.len > 80 ? "…" : "",
                   want);
}

/* --- from text --- */

static bool one_of(struct str word, const char *const *words)
{
    for (; *words; words++)
        if (str_eq_nocase(word, str_of(*words)))
            return true;
    return false;
}

static bool text_to_bool(const struct cfg_row *row, struct str text, bool *ret_value)
{
    static const char *const yes[] = {"true", "1", "yes", "on", NULL};
    static const char *const no[] = {"false", "0", "no", "off", NULL};

    if (row->foreign) { /* upstream knows two words for true; everything else is false */
        *ret_value = str_eq_nocase(text, STR("true")) || str_eq(text, STR("1"));
        return true;
    }
    *ret_value = one_of(text, yes);
    return *ret_value || one_of(text, no);
}

static bool in_range(const struct cfg_row *row, double v)
{
    return (!row->min && !row->max) || (v >= (double)row->min && v <= (double)row->max);
}

static bool number_fits(const struct cfg_row *row, const union cfg_value *v)
{
    switch (row->type) {
    case CFG_TYPE_INT:
        return (!row->min && !row->max) || (v->i >= row->min && v->i <= row->max);
    case CFG_TYPE_UINT:
    case CFG_TYPE_SIZE:
    case CFG_TYPE_MS:
        return (!row->min && !row->max) ||
               (v->u >= (uint64_t)row->min && v->u <= (uint64_t)row->max);
    case CFG_TYPE_DOUBLE:
        return in_range(row, v->d);
    default:
        return true;
    }
}

static bool is_choice(const struct cfg_row *row, struct str text)
{
    own_done(buf) names;
    struct str rest, word;

    buf_init(&names, CHOICES_BYTES);
    const char *choices = cfg_row_choices(row, &names);
    if (!choices)
        return true;
    rest = str_of(choices);
    bool more = true;
    while (more) {
        more = str_cut(&rest, '|', &word);
        if (str_eq(word, text))
            return true;
    }
    return false;
}

static bool all_strings(const struct json *list)
{
    for (const struct json *v = list->first; v; v = v->next)
        if (v->type != JSON_STR)
            return false;
    return true;
}

/* "a,b" as well as a literal, for rows of our own. */
static fallible text_to_list(struct arena *a, const struct cfg_row *row, struct str text,
                             struct json **ret_value)
{
    struct str rest = str_trim(text), word;

    if (row->foreign || (rest.len && (rest.p[0] == '[' || rest.p[0] == '('))) {
        TRY(cfg_parse_literal(a, text, ret_value));
        return (*ret_value)->type == JSON_ARRAY && all_strings(*ret_value) ? NULL
                                                                           : bad_text(row, text);
    }
    struct json *list = json_new(a, JSON_ARRAY);
    for (bool more = rest.len > 0; more;) {
        more = str_cut(&rest, ',', &word);
        json_push(list, json_new_str(a, arena_copy(a, str_trim(word))));
    }
    *ret_value = list;
    return arena_check(a);
}

static struct str without_plus(struct str s)
{
    return s.len > 1 && s.p[0] == '+' && str_is_digit(s.p[1]) ? str_from(s, 1) : s;
}

fallible cfg_value_from_text(struct arena *a, const struct cfg_row *row, struct str text,
                             union cfg_value *ret_value)
{
    struct str word = str_trim(text);
    union cfg_value v = {0};
    bool ok = true;

    switch (row->type) {
    case CFG_TYPE_BOOL:
        ok = text_to_bool(row, word, &v.b);
        break;
    case CFG_TYPE_INT:
        ok = str_to_i64(without_plus(word), &v.i);
        break;
    case CFG_TYPE_UINT:
        ok = str_to_u64(without_plus(word), &v.u);
        break;
    case CFG_TYPE_DOUBLE:
        ok = str_to_double(word, &v.d);
        break;
    case CFG_TYPE_STR:
    case CFG_TYPE_SECRET:
        v.s = arena_copy(a, text);
        TRY(arena_check(a));
        ok = is_choice(row, text);
        break;
    case CFG_TYPE_SIZE:
        TRY(cfg_parse_size(word, &v.u));
        break;
    case CFG_TYPE_MS:
        TRY(cfg_parse_ms(word, &v.u));
        break;
    case CFG_TYPE_LIST:
        TRY(text_to_list(a, row, text, &v.j));
        break;
    case CFG_TYPE_DICT:
        TRY(cfg_parse_literal(a, text, &v.j));
        ok = v.j->type == JSON_OBJECT;
        break;
    }
    if (!ok || !number_fits(row, &v))
        return bad_text(row, text);
    *ret_value = v;
    return NULL;
}

/* --- from a tree --- */

static bool json_to_number(const struct cfg_row *row, const struct json *v, union cfg_value *ret)
{
    double d = v->type == JSON_INT ? (double)v->i : v->d;

    if (row->type == CFG_TYPE_DOUBLE) {
        ret->d = d;
        return true;
    }
    if (row->type == CFG_TYPE_MS) { /* a bare number is seconds */
        if (!(d >= 0 && d < 1e15))
            return false;
        ret->u = v->type == JSON_INT ? (uint64_t)v->i * 1000 : (uint64_t)(d * 1000 + 0.5);
        return true;
    }
    if (v->type != JSON_INT)
        return false;
    ret->i = v->i;
    return row->type == CFG_TYPE_INT || v->i >= 0;
}

fallible cfg_value_from_json(struct arena *a, const struct cfg_row *row, const struct json *v,
                             union cfg_value *ret_value, bool *ret_unset)
{
    bool text_row = row->type == CFG_TYPE_STR || row->type == CFG_TYPE_SECRET;
    union cfg_value out = {0};
    bool ok;

    *ret_unset = v->type == JSON_NULL;
    if (*ret_unset)
        return NULL;
    if (row->type == CFG_TYPE_LIST) {
        ok = v->type == JSON_ARRAY && all_strings(v);
        out.j = (struct json *)v;
    } else if (row->type == CFG_TYPE_DICT) {
        ok = v->type == JSON_OBJECT;
        out.j = (struct json *)v;
    } else if (v->type == JSON_STR && text_row) {
        return cfg_value_from_text(a, row, v->s, ret_value);
    } else if (v->type == JSON_STR) { /* "120" for 120: files are judged strictly, like our own */
        struct cfg_row strict = *row;
        strict.foreign = false;
        return cfg_value_from_text(a, &strict, v->s, ret_value);
    } else if (row->type == CFG_TYPE_BOOL) {
        ok = v->type == JSON_BOOL || (v->type == JSON_INT && (v->i == 0 || v->i == 1));
        out.b = v->type == JSON_BOOL ? v->b : v->i == 1;
    } else {
        ok = !text_row && (v->type == JSON_INT || v->type == JSON_DOUBLE) &&
             json_to_number(row, v, &out) && number_fits(row, &out);
    }
    if (!ok)
        return bad_json(row, v);
    *ret_value = out;
    return NULL;
}

/* --- in the struct --- */

static size_t size_of(const struct cfg_row *row)
{
    switch (row->type) {
    case CFG_TYPE_BOOL:
        return sizeof(bool);
    case CFG_TYPE_STR:
    case CFG_TYPE_SECRET:
        return sizeof(struct str);
    case CFG_TYPE_LIST:
    case CFG_TYPE_DICT:
        return sizeof(struct json *);
    default:
        return 8;
    }
}

void cfg_value_store(const struct cfg_row *row, void *into, const union cfg_value *v)
{
    memcpy((char *)into + row->offset, v, size_of(row));
}

void cfg_value_load(const struct cfg_row *row, const void *from, union cfg_value *ret_value)
{
    memset(ret_value, 0, sizeof *ret_value);
    memcpy(ret_value, (const char *)from + row->offset, size_of(row));
}

bool cfg_value_is_set(const struct cfg_row *row, const union cfg_value *v)
{
    switch (row->type) {
    case CFG_TYPE_STR:
    case CFG_TYPE_SECRET:
        return v->s.p != NULL;
    case CFG_TYPE_LIST:
    case CFG_TYPE_DICT:
        return v->j != NULL;
    default:
        return row->otherwise != NULL || v->u != 0;
    }
}
