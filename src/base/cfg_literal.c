// SPDX-License-Identifier: Apache-2.0
/* cfg_literal.c — Python literals, as ast.literal_eval reads them, into the JSON tree.
 *
 * Tuples become arrays; keys of dicts that are not strings become the text json.dumps would give
 * them. JSON's own true, false and null are taken too, which Python would refuse. */
#include "base/cfg.h"

#include <stdlib.h>

#include "base/utf8.h"

#define MAX_DEPTH 64

struct lit {
    struct arena *arena;
    struct str text;
    size_t at;
    unsigned depth;
};

static fallible read_literal(struct lit *l, struct json **ret_value);

static fallible literal_wrong(const struct lit *l, const char *what)
{
    return err_new(ERR_INVALID, "character %zu: %s", utf8_count(str_first(l->text, l->at)) + 1,
                   what);
}

static int literal_peek(const struct lit *l)
{
    return l->at < l->text.len ? (unsigned char)l->text.p[l->at] : -1;
}

static void skip_space(struct lit *l)
{
    for (;;) {
        int c = literal_peek(l);
        if (c == '#') /* a comment runs to the end of its line */
            while (literal_peek(l) >= 0 && literal_peek(l) != '\n')
                l->at++;
        else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f')
            l->at++;
        else
            return;
    }
}

static bool is_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* --- strings --- */

/* Up to max digits of the base; -1 if there are fewer than min. */
static int64_t take_digits(struct lit *l, unsigned base, unsigned min, unsigned max)
{
    int64_t v = 0;
    unsigned n = 0;

    for (; n < max; n++, l->at++) {
        unsigned d = str_digit((char)literal_peek(l));
        if (d >= base)
            break;
        v = v * base + d;
    }
    return n < min ? -1 : v;
}

static fallible put_code_point(struct lit *l, struct buf *out, int64_t cp)
{
    char bytes[4];

    if (cp < 0 || cp > 0x10ffff)
        return literal_wrong(l, "the escape is not a character");
    buf_add_mem(out, bytes, utf8_encode((uint32_t)cp, bytes));
    return NULL;
}

/* After the backslash. */
static fallible read_escape(struct lit *l, struct buf *out)
{
    static const char letters[] = "abfnrtv\\'\"", bytes[] = "\a\b\f\n\r\t\v\\'\"";
    int c = literal_peek(l);
    const char *found = c > 0 ? strchr(letters, c) : NULL;

    if (c >= '0' && c <= '7')
        return put_code_point(l, out, take_digits(l, 8, 1, 3));
    l->at++;
    if (found) {
        buf_add_char(out, bytes[found - letters]);
        return NULL;
    }
    switch (c) {
    case 'x':
        return put_code_point(l, out, take_digits(l, 16, 2, 2));
    case 'u':
        return put_code_point(l, out, take_digits(l, 16, 4, 4));
    case 'U':
        return put_code_point(l, out, take_digits(l, 16, 8, 8));
    case 'N':
        return literal_wrong(l, "characters by name are not supported");
    case '\n':
        return NULL; /* the string goes on in the next line */
    case -1:
        return literal_wrong(l, "the string is not closed");
    default: /* Python keeps what it does not know */
        buf_add_char(out, '\\');
        buf_add_char(out, (char)c);
        return NULL;
    }
}

static fallible read_quoted(struct lit *l, bool raw, struct buf *out)
{
    char quote = (char)literal_peek(l);
    struct str rest = str_from(l->text, l->at);
    bool triple = rest.len >= 3 && rest.p[1] == quote && rest.p[2] == quote;

    l->at += triple ? 3 : 1;
    for (;;) {
        int c = literal_peek(l);
        rest = str_from(l->text, l->at);
        if (c < 0 || (c == '\n' && !triple))
            return literal_wrong(l, "the string is not closed");
        if (c == quote && !triple)
            break;
        if (c == quote && rest.len >= 3 && rest.p[1] == quote && rest.p[2] == quote)
            break;
        l->at++;
        if (c == '\\' && raw) {
            buf_add_char(out, '\\');
            if (literal_peek(l) >= 0)
                buf_add_char(out, l->text.p[l->at++]);
        } else if (c == '\\') {
            TRY(read_escape(l, out));
        } else {
            buf_add_char(out, (char)c);
        }
    }
    l->at += triple ? 3 : 1;
    return NULL;
}

/* True at a quote, or at a prefix (r, u, b, rb, br) before one. */
static bool at_string(const struct lit *l, size_t *ret_prefix, bool *ret_raw)
{
    static const char *const prefixes[] = {"", "r", "u", "b", "rb", "br"};
    struct str rest = str_from(l->text, l->at);
    size_t n = 0;

    while (n < rest.len && n < 3 && rest.p[n] != '"' && rest.p[n] != '\'')
        n++;
    if (n == rest.len || n == 3)
        return false;
    struct str prefix = str_first(rest, n);
    *ret_prefix = n;
    *ret_raw = memchr(prefix.p, 'r', n) || memchr(prefix.p, 'R', n);
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (str_eq_nocase(prefix, str_of(prefixes[i])))
            return true;
    return false;
}

/* One string, or several side by side. */
static fallible read_string(struct lit *l, struct json **ret_value)
{
    own_done(buf) out;
    size_t prefix;
    bool raw;

    buf_init(&out, l->text.len * 2 + 16);
    while (at_string(l, &prefix, &raw)) {
        l->at += prefix;
        TRY(read_quoted(l, raw, &out));
        skip_space(l);
    }
    TRY(buf_check(&out));
    *ret_value = json_new_str(l->arena, arena_copy(l->arena, buf_str(&out)));
    return arena_check(l->arena);
}

/* --- numbers and names --- */

static bool to_int(struct str s, bool negative, int64_t *ret_value)
{
    unsigned base = 10;
    uint64_t v = 0, max = negative ? (uint64_t)1 << 63 : INT64_MAX;

    if (s.len > 2 && s.p[0] == '0' && strchr("xXoObB", s.p[1])) {
        base = (s.p[1] | 0x20) == 'x' ? 16 : (s.p[1] | 0x20) == 'o' ? 8 : 2;
        s = str_from(s, 2);
    }
    if (!s.len || s.p[s.len - 1] == '_')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (c == '_' && (i == 0 ? base != 10 : s.p[i - 1] != '_'))
            continue;
        unsigned d = str_digit(c);
        if (d >= base || v > (max - d) / base)
            return false;
        v = v * base + d;
    }
    if (base == 10 && s.p[0] == '0' && v)
        return false; /* 010 is an error in Python 3 */
    *ret_value = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static fallible read_number(struct lit *l, struct json **ret_value)
{
    bool negative = literal_peek(l) == '-';
    int64_t i;
    double d;

    if (negative || literal_peek(l) == '+')
        l->at++;
    skip_space(l);
    size_t start = l->at;
    while (is_word(literal_peek(l)) || ((literal_peek(l) == '-' || literal_peek(l) == '+') &&
                                        l->at > start && (l->text.p[l->at - 1] | 0x20) == 'e' &&
                                        !str_starts(str_from(l->text, start), STR("0x"))))
        l->at++;
    struct str word = str_n(l->text.p + start, l->at - start);
    if (to_int(word, negative, &i)) {
        *ret_value = json_new_int(l->arena, i);
    } else if (word.len && (word.p[0] == '.' || (word.p[0] >= '0' && word.p[0] <= '9')) &&
               strpbrk(arena_cstr(l->arena, word) ?: "", ".eE") && str_to_double(word, &d)) {
        *ret_value = json_new_double(l->arena, negative ? -d : d);
    } else {
        l->at = start;
        return literal_wrong(l, "not a number that can be read");
    }
    return arena_check(l->arena);
}

static fallible read_name(struct lit *l, struct json **ret_value)
{
    static const struct {
        const char *word;
        enum json_type type;
        bool value;
    } names[] = {{"None", JSON_NULL, false},  {"null", JSON_NULL, false},
                 {"True", JSON_BOOL, true},   {"true", JSON_BOOL, true},
                 {"False", JSON_BOOL, false}, {"false", JSON_BOOL, false}};
    size_t start = l->at;

    while (is_word(literal_peek(l)))
        l->at++;
    struct str word = str_n(l->text.p + start, l->at - start);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!str_eq(word, str_of(names[i].word)))
            continue;
        *ret_value = names[i].type == JSON_NULL ? json_new(l->arena, JSON_NULL)
                                                : json_new_bool(l->arena, names[i].value);
        return arena_check(l->arena);
    }
    l->at = start;
    return literal_wrong(l, word.len ? "a name is not a literal (strings need quotes)"
                                     : "a value should be here");
}

/* --- containers --- */

/* Up to end, which is left where it stands; -1 is the end of the text. */
static fallible read_items(struct lit *l, int end, struct json *array, bool *ret_comma)
{
    struct json *value;

    *ret_comma = false;
    for (;;) {
        skip_space(l);
        if (literal_peek(l) == end)
            return NULL;
        TRY(read_literal(l, &value));
        json_push(array, value);
        skip_space(l);
        if (literal_peek(l) == end)
            return NULL;
        if (literal_peek(l) != ',')
            return literal_wrong(l, end == ']'   ? "',' or ']' should be here"
                                    : end == ')' ? "',' or ')' should be here"
                                                 : "something follows the value");
        *ret_comma = true;
        l->at++;
    }
}

static fallible read_sequence(struct lit *l, struct json **ret_value)
{
    bool tuple = literal_peek(l) == '(', comma;
    struct json *array = json_new(l->arena, JSON_ARRAY);

    if (!array)
        return arena_check(l->arena);
    l->at++;
    TRY(read_items(l, tuple ? ')' : ']', array, &comma));
    l->at++;
    *ret_value = tuple && !comma && array->count == 1 ? array->first : array; /* (x) is x */
    return NULL;
}

static fallible key_text(struct lit *l, const struct json *key, struct str *ret_text)
{
    own_done(buf) out;

    buf_init(&out, 256);
    if (key->type == JSON_STR) {
        *ret_text = key->s;
        return NULL;
    }
    if (key->type == JSON_ARRAY || key->type == JSON_OBJECT)
        return literal_wrong(l, "a key must be a string or a number");
    json_write(&out, key, JW_PYTHON);
    *ret_text = arena_copy(l->arena, buf_str(&out));
    return arena_check(l->arena);
}

static fallible read_dict(struct lit *l, struct json **ret_value)
{
    struct json *dict = json_new(l->arena, JSON_OBJECT), *key, *value;
    struct str name;

    if (!dict)
        return arena_check(l->arena);
    l->at++;
    for (;;) {
        skip_space(l);
        if (literal_peek(l) == '}')
            break;
        TRY(read_literal(l, &key));
        TRY(key_text(l, key, &name));
        skip_space(l);
        if (literal_peek(l) != ':')
            return literal_wrong(l, "':' should be here");
        l->at++;
        TRY(read_literal(l, &value));
        json_set(dict, name, value);
        skip_space(l);
        if (literal_peek(l) == '}')
            break;
        if (literal_peek(l) != ',')
            return literal_wrong(l, "',' or '}' should be here");
        l->at++;
    }
    l->at++;
    *ret_value = dict;
    return NULL;
}

static fallible read_literal(struct lit *l, struct json **ret_value)
{
    size_t prefix;
    bool raw;
    struct err *e;

    skip_space(l);
    if (++l->depth > MAX_DEPTH)
        return literal_wrong(l, "nested too deep");
    int c = literal_peek(l);
    if (c == '[' || c == '(')
        e = read_sequence(l, ret_value);
    else if (c == '{')
        e = read_dict(l, ret_value);
    else if (at_string(l, &prefix, &raw))
        e = read_string(l, ret_value);
    else if (c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9'))
        e = read_number(l, ret_value);
    else
        e = read_name(l, ret_value);
    l->depth--;
    return e;
}

fallible cfg_parse_literal(struct arena *a, struct str text, struct json **ret_value)
{
    struct lit l = {.arena = a, .text = text};
    struct json *array = json_new(a, JSON_ARRAY);
    bool comma;

    if (!array)
        return arena_check(a);
    TRY(read_items(&l, -1, array, &comma));
    if (!array->count)
        return literal_wrong(&l, "a value should be here");
    *ret_value = comma ? array : array->first; /* 'a', 'b' is a tuple without its brackets */
    return NULL;
}
