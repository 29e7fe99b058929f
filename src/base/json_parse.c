// SPDX-License-Identifier: Apache-2.0
/* json_parse.c — one pass over the text, no recursion; see json.h.
 *
 * While a container is open its `next` points to the container around it: the nodes themselves are
 * the stack, so depth costs nothing. Functions give the place they read up to, or NULL with the
 * error in the parser. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/dtoa.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "base/json_walk.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

struct parser {
    const char *start, *end;
    struct arena *arena;
    struct json *open; /* innermost container */
    struct json *root;
    struct str key; /* of the value to come */
    unsigned depth, max_depth;
    bool allow_nan;
    struct json_index index;
    struct err *err;
};

/* Line and column as Python counts them: from 1, in characters. */
__attribute__((cold, format(printf, 3, 4))) static const char *
fail(struct parser *s, const char *at, const char *fmt, ...)
{
    char what[160];
    size_t line = 1, column = 1;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    for (const char *p = s->start; p < at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xc0) != 0x80) {
            column++;
        }
    }
    s->err =
        err_new(ERR_INVALID, "line %zu column %zu: %s%s", line, column, what,
                at == s->end && strncmp(what, "expected", 8) == 0 ? ", but the text ends" : "");
    return NULL;
}

__attribute__((cold)) static const char *fail_memory(struct parser *s)
{
    s->err = s->arena->failed ? arena_check(s->arena) : err_no_memory();
    return NULL;
}

static inline const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* --- strings --- */

/* Bytes being decoded at the end of the arena; the room not needed goes back to it. */
struct text {
    char *p;
    size_t len, cap;
};

static void text_begin(struct text *t, struct arena *a)
{
    *t = (struct text){a->at, 0, (size_t)(a->end - a->at)};
    a->at = a->end;
}

static struct str text_end(struct text *t, struct arena *a)
{
    a->at = t->p + ((t->len + 7) & ~(size_t)7);
    return str_n(t->p, t->len);
}

/* Decoding never makes a string longer, so room up to the closing quote is room enough. */
static bool text_more(struct text *t, struct parser *s, const char *p)
{
    const char *quote = p;

    while (quote < s->end && *quote != '"')
        quote += 1 + (*quote == '\\' && quote + 1 < s->end);
    size_t cap = (t->len + (size_t)(quote - p) + 32) & ~(size_t)7;
    char *more = arena_alloc(s->arena, cap);
    if (!more)
        return false;
    if (t->len)
        memcpy(more, t->p, t->len);
    t->p = more;
    t->cap = cap;
    return true;
}

static const char *fail_string(struct parser *s, const char *p)
{
    unsigned c = (unsigned char)*p;

    if (c < 0x20)
        return fail(s, p, "control character \\u%04x in a string must be escaped", c);
    return fail(s, p, "the text is not UTF-8 here (byte 0x%02x)", c);
}

static int parse_hex4(const char *p, const char *end)
{
    int v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        unsigned d = str_digit(p[i]);
        if (d > 15)
            return -1;
        v = v * 16 + (int)d;
    }
    return v;
}

/* Surrogates included: alone they become three bytes as well. */
static unsigned put_code_point(char *to, unsigned c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3f));
        to[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3f));
    to[2] = (char)(0x80 | (c >> 6 & 0x3f));
    to[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* p stands behind "\u"; room for four bytes at *to. */
static const char *read_unicode(struct parser *s, const char *p, char **to)
{
    int c = parse_hex4(p, s->end);

    if (c < 0)
        return fail(s, p - 2, "expected four hexadecimal digits after \\u");
    p += 4;
    if (c >= 0xd800 && c < 0xdc00 && s->end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        int low = parse_hex4(p + 2, s->end);
        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
            p += 6;
        }
    }
    *to += put_code_point(*to, (unsigned)c);
    return p;
}

/* p stands at the backslash. */
static const char *read_escape(struct parser *s, const char *p, char **to)
{
    static const char meaning[128] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                      ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};

    if (s->end - p < 2)
        return fail(s, s->end, "a string is never closed");
    char c = p[1];
    if (c == 'u')
        return read_unicode(s, p + 2, to);
    if (c < 0 || !meaning[(unsigned char)c])
        return fail(s, p, "no such escape in a string");
    *(*to)++ = meaning[(unsigned char)c];
    return p + 2;
}

/* p: the first byte of the string that is not plain and not its end. */
static const char *read_decoded(struct parser *s, const char *from, const char *p,
                                struct str *ret_text)
{
    struct text t;
    size_t head = (size_t)(p - from);

    text_begin(&t, s->arena);
    if (t.cap < head + 16 && !text_more(&t, s, from))
        return fail_memory(s);
    memcpy(t.p, from, head);
    t.len = head;
    for (;;) {
        size_t room = t.cap - t.len, left = (size_t)(s->end - p);
        char *to = t.p + t.len;
        if (unlikely(room < 16)) {
            if (!text_more(&t, s, p))
                return fail_memory(s);
            continue;
        }
        p = json_copy_plain(p, p + (left < room ? left : room), &to, true);
        t.len = (size_t)(to - t.p);
        if (unlikely(t.cap - t.len < 4))
            continue;
        if (unlikely(p == s->end))
            return fail(s, p, "a string is never closed");
        if (*p == '"') {
            *ret_text = text_end(&t, s->arena);
            return p + 1;
        }
        if (*p == '\\') {
            p = read_escape(s, p, &to);
            if (unlikely(!p))
                return NULL;
        } else {
            unsigned n = (unsigned char)*p < 0x20 ? 0 : json_utf8_len(p, s->end, false);
            if (unlikely(n == 0))
                return fail_string(s, p);
            for (unsigned i = 0; i < n; i++)
                *to++ = *p++;
        }
        t.len = (size_t)(to - t.p);
    }
}

/* p stands behind the opening quote. */
static inline const char *read_string(struct parser *s, const char *p, struct str *ret_text)
{
    const char *from = p;

    for (;;) {
        p = json_skip_plain(p, s->end);
        if (unlikely(p == s->end))
            return fail(s, p, "a string is never closed");
        if (likely(*p == '"')) {
            *ret_text = str_n(from, (size_t)(p - from));
            return p + 1;
        }
        if (*p == '\\')
            return read_decoded(s, from, p, ret_text);
        do {
            unsigned n = (unsigned char)*p < 0x20 ? 0 : json_utf8_len(p, s->end, false);
            if (unlikely(n == 0))
                return fail_string(s, p);
            p += n;
        } while (p < s->end && (signed char)*p < 0);
    }
}

/* --- numbers --- */

static inline bool is_digit(const char *p, const char *end)
{
    return p < end && (unsigned char)(*p - '0') < 10;
}

static const char *set_double(struct parser *s, struct json *v, double d, struct str text)
{
    if (isinf(d) && !s->allow_nan)
        return fail(s, text.p, "the number %.*s%s is too large for a double",
                    (int)(text.len < 40 ? text.len : 40), text.p, text.len < 40 ? "" : "...");
    v->type = JSON_DOUBLE;
    v->d = d;
    return text.p + text.len;
}

/* For numbers with more digits than dtoa_nearest takes. In the text, no byte after a number can
 * continue it for strtod; a number at the very end is copied, to end it. */
static const char *set_double_slowly(struct parser *s, struct json *v, struct str text)
{
    const char *copy = text.p;

    if (text.p + text.len == s->end && !(copy = arena_cstr(s->arena, text)))
        return fail_memory(s);
    return set_double(s, v, strtod(copy, NULL), text);
}

static bool read_exponent(const char **p, const char *end, int64_t *ret_exp10)
{
    bool minus = false;
    int64_t e = 0;

    (*p)++;
    if (*p < end && (**p == '-' || **p == '+'))
        minus = *(*p)++ == '-';
    if (!is_digit(*p, end))
        return false;
    for (; is_digit(*p, end); (*p)++)
        if (e < 1000000000)
            e = e * 10 + (**p - '0');
    *ret_exp10 = minus ? -e : e;
    return true;
}

/* from: the sign or first digit. p: the '.' or 'e' behind the whole part. m: that part's digits. */
static const char *read_real(struct parser *s, const char *from, const char *p, uint64_t m,
                             struct json *v)
{
    const char *first = from + (*from == '-');
    size_t digits = (size_t)(p - first);
    int64_t exp10 = 0, fraction = 0;

    if (*p == '.') {
        const char *point = p++;
        for (; is_digit(p, s->end); p++)
            m = m * 10 + (uint64_t)(*p - '0');
        fraction = p - point - 1;
        if (fraction == 0)
            return fail(s, p, "expected a digit after '.' in a number");
        digits += (size_t)fraction;
    }
    if (p < s->end && (*p == 'e' || *p == 'E') && !read_exponent(&p, s->end, &exp10))
        return fail(s, p, "expected a digit in the exponent of a number");
    for (; digits > 19 && (*first == '0' || *first == '.'); first++)
        digits -= *first == '0';
    struct str text = str_n(from, (size_t)(p - from));
    double d;
    if (digits > 19 || !dtoa_nearest(m, exp10 - fraction, &d))
        return set_double_slowly(s, v, text);
    return set_double(s, v, *from == '-' ? -d : d, text);
}

static const char *read_word(struct parser *s, const char *p, struct json *v);

static const char *read_number(struct parser *s, const char *p, struct json *v)
{
    const char *from = p;
    bool minus = *p == '-';
    uint64_t m = 0;

    p += minus;
    const char *first = p;
    for (; is_digit(p, s->end); p++)
        m = m * 10 + (uint64_t)(*p - '0');
    size_t n = (size_t)(p - first);
    if (unlikely(n == 0))
        return p < s->end && *p == 'I' ? read_word(s, from, v)
                                       : fail(s, p, "expected a digit after '-'");
    if (unlikely(*first == '0' && n > 1))
        return fail(s, first, "a number may not begin with 0");
    if (p < s->end && (*p == '.' || *p == 'e' || *p == 'E'))
        return read_real(s, from, p, m, v);
    if (likely(n < 19 || (n == 19 && m <= (uint64_t)INT64_MAX + minus))) {
        v->type = JSON_INT;
        v->i = (int64_t)(minus ? 0 - m : m);
    } else {
        v->type = JSON_BIGINT;
        v->s = str_n(from, (size_t)(p - from));
    }
    return p;
}

/* --- the other values --- */

static const char *read_word(struct parser *s, const char *p, struct json *v)
{
    static const struct {
        struct str word;
        uint8_t type;
        bool b;
        double d;
    } words[] = {
        {STR("null"), JSON_NULL, false, 0},
        {STR("true"), JSON_BOOL, true, 0},
        {STR("false"), JSON_BOOL, false, 0},
        {STR("NaN"), JSON_DOUBLE, false, NAN},
        {STR("Infinity"), JSON_DOUBLE, false, INFINITY},
        {STR("-Infinity"), JSON_DOUBLE, false, -INFINITY},
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct str word = words[i].word;
        if (!str_starts(str_n(p, (size_t)(s->end - p)), word))
            continue;
        v->type = words[i].type;
        if (v->type == JSON_BOOL)
            v->b = words[i].b;
        if (v->type != JSON_DOUBLE)
            return p + word.len;
        if (!s->allow_nan)
            return fail(s, p, "%.*s is not allowed here", (int)word.len, word.p);
        v->d = words[i].d;
        return p + word.len;
    }
    if (p < s->end && (signed char)*p < 0 && json_utf8_len(p, s->end, false) == 0)
        return fail_string(s, p);
    return fail(s, p, "expected a value");
}

/* p: in front of a member's name; the name goes to s->key. Gives the start of the value. */
static inline const char *read_key(struct parser *s, const char *p, const char *expected)
{
    const char *end = s->end;

    if (unlikely(p == end || *p != '"'))
        return fail(s, p, "expected %s in an object", expected);
    p = read_string(s, p + 1, &s->key);
    if (unlikely(!p))
        return NULL;
    p = skip_space(p, end);
    if (unlikely(p == end || *p != ':'))
        return fail(s, p, "expected ':' after a name in an object");
    return skip_space(p + 1, end);
}

static inline void parse_append(struct parser *s, struct json *v)
{
    if (s->open)
        json_append(s->open, v);
    else
        s->root = v;
}

/* The innermost container is complete; p stands behind its bracket. */
static const char *close_one(struct parser *s, const char *p)
{
    struct json *v = s->open;

    s->open = v->next;
    v->next = NULL;
    s->depth--;
    if (v->type == JSON_ARRAY || v->count < 2)
        return p;
    return likely(json_merge_duplicates(&s->index, v)) ? p : fail_memory(s);
}

/* Gives the start of the first value inside, or the place behind an empty container. */
static const char *open_one(struct parser *s, const char *p, struct json *v)
{
    bool object = *p == '{';

    if (unlikely(s->depth == s->max_depth))
        return fail(s, p, "nested deeper than %u levels", s->max_depth);
    s->depth++;
    parse_append(s, v);
    v->type = object ? JSON_OBJECT : JSON_ARRAY;
    v->first = v->last = NULL;
    v->next = s->open;
    s->open = v;
    s->key = (struct str){NULL, 0};
    return skip_space(p + 1, s->end);
}

/* Behind a value: closes the containers that end here and gives the start of the next value. At the
 * document's end it gives NULL with no error, and the end in *ret_end. */
static inline const char *next_value(struct parser *s, const char *p, const char **ret_end)
{
    const char *end = s->end;

    for (;;) {
        p = skip_space(p, end);
        if (!s->open) {
            *ret_end = p;
            return NULL;
        }
        bool object = s->open->type == JSON_OBJECT;
        if (unlikely(p == end))
            break;
        if (likely(*p == ',')) {
            p = skip_space(p + 1, end);
            if (object)
                return read_key(s, p, "a name in double quotes after ','");
            s->key = (struct str){NULL, 0};
            return p;
        }
        if (*p != (object ? '}' : ']'))
            break;
        p = close_one(s, p + 1);
        if (unlikely(!p))
            return NULL;
    }
    return fail(s, p,
                s->open->type == JSON_OBJECT ? "expected ',' or '}' in an object"
                                             : "expected ',' or ']' in an array");
}

static const char *read_document(struct parser *s, const char *p)
{
    const char *end = s->end;

    p = skip_space(p, end);
    while (p) {
        struct json *v = arena_alloc(s->arena, sizeof *v);
        if (unlikely(!v))
            return fail_memory(s);
        v->count = 0;
        v->key = s->key;
        v->next = NULL;
        char c = p < end ? *p : 0;
        if (c == '"') {
            v->type = JSON_STR;
            p = read_string(s, p + 1, &v->s);
        } else if (c == '{' || c == '[') {
            p = open_one(s, p, v);
            if (unlikely(!p))
                return NULL;
            if (p == end || *p != c + 2) { /* '}' is '{' + 2, ']' is '[' + 2 */
                if (c == '{')
                    p = read_key(s, p, "a name in double quotes or '}'");
                continue;
            }
            p = close_one(s, p + 1);
        } else if (c == '-' || (unsigned char)(c - '0') < 10) {
            p = read_number(s, p, v);
        } else {
            p = read_word(s, p, v);
        }
        if (unlikely(!p))
            return NULL;
        if (c != '{' && c != '[')
            parse_append(s, v);
        const char *rest = NULL;
        p = next_value(s, p, &rest);
        if (rest)
            return rest;
    }
    return NULL;
}

fallible json_parse(struct arena *a, struct str text, const struct json_limits *limits,
                    struct json **ret_value)
{
    size_t limit = limits && limits->size_bytes ? limits->size_bytes : JSON_DEFAULT_SIZE;
    struct parser s = {
        .start = text.len ? text.p : "",
        .arena = a,
        .max_depth = limits && limits->depth ? limits->depth : JSON_DEFAULT_DEPTH,
        .allow_nan = limits && limits->allow_nan,
    };

    if (text.len > limit)
        return err_new(ERR_TOO_LARGE, "JSON text of %zu bytes, more than %zu are not taken",
                       text.len, limit);
    s.end = s.start + text.len;
    if (str_starts(text, STR("\xef\xbb\xbf"))) /* json.loads(bytes) skips a byte order mark too */
        s.start += 3;
    json_index_init(&s.index);
    const char *rest = read_document(&s, s.start);
    json_index_done(&s.index);
    if (rest && rest < s.end)
        fail(&s, rest, "nothing may follow the document");
    if (s.err)
        return s.err;
    *ret_value = s.root;
    return NULL;
}
