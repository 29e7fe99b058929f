// SPDX-License-Identifier: Apache-2.0
/* json_write.c — JSON byte for byte as Python's json.dumps prints it; see json.h.
 *
 * Whatever bytes a string holds, what comes out is valid: ill-formed UTF-8 becomes U+FFFD. */
#include <math.h>

#include "base/dtoa.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "base/json_walk.h"

#define AFTER_KEY 0x80000000u /* in jw.flags: a name was written, its value comes next */

static const char two_digits[] = "00010203040506070809101112131415161718192021222324"
                                 "25262728293031323334353637383940414243444546474849"
                                 "50515253545556575859606162636465666768697071727374"
                                 "75767778798081828384858687888990919293949596979899";

/* Ends at end; gives the first character. */
static char *put_digits_before(char *end, uint64_t u)
{
    while (u >= 100) {
        end -= 2;
        memcpy(end, two_digits + u % 100 * 2, 2);
        u /= 100;
    }
    if (u >= 10) {
        end -= 2;
        memcpy(end, two_digits + u * 2, 2);
        return end;
    }
    *--end = (char)('0' + u);
    return end;
}

/* --- doubles --- */

static char *put_exponent(char *to, int exponent)
{
    unsigned e = (unsigned)(exponent < 0 ? -exponent : exponent);

    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    if (e >= 100) {
        *to++ = (char)('0' + e / 100);
        e %= 100;
    }
    memcpy(to, two_digits + e * 2, 2);
    return to + 2;
}

/* n digits with the point after the first `whole` of them, as repr() lays them out. */
static char *put_decimal(char *to, const char *digits, int n, int whole)
{
    if (whole <= -4 || whole > 16) {
        *to++ = digits[0];
        if (n > 1) {
            *to++ = '.';
            memcpy(to, digits + 1, (size_t)n - 1);
            to += n - 1;
        }
        return put_exponent(to, whole - 1);
    }
    if (whole <= 0) {
        memcpy(to, "0.000", 5);
        memcpy(to + 2 - whole, digits, (size_t)n);
        return to + 2 - whole + n;
    }
    if (n <= whole) {
        memcpy(to, digits, (size_t)n);
        memset(to + n, '0', (size_t)(whole - n));
        memcpy(to + whole, ".0", 2);
        return to + whole + 2;
    }
    memcpy(to, digits, (size_t)whole);
    to[whole] = '.';
    memcpy(to + whole + 1, digits + whole, (size_t)(n - whole));
    return to + n + 1;
}

static size_t put_word(char *out, bool minus, const char *word)
{
    size_t n = strlen(word);

    if (minus)
        *out = '-';
    memcpy(out + minus, word, n);
    return n + minus;
}

size_t json_format_double(double d, char out[JSON_DOUBLE_MAX])
{
    char digits[20], *end = digits + sizeof digits;

    if (isnan(d))
        return put_word(out, false, "nan");
    if (isinf(d))
        return put_word(out, d < 0, "inf");
    if (d == 0)
        return put_word(out, signbit(d), "0.0");
    struct decimal t = dtoa_shortest(fabs(d));
    const char *first = put_digits_before(end, t.digits);
    int n = (int)(end - first);
    char *to = out;
    if (d < 0)
        *to++ = '-';
    return (size_t)(put_decimal(to, first, n, n + t.exp10) - out);
}

/* --- strings --- */

static unsigned put_u(char *to, unsigned unit)
{
    static const char hex[] = "0123456789abcdef";

    to[0] = '\\';
    to[1] = 'u';
    to[2] = hex[unit >> 12 & 15];
    to[3] = hex[unit >> 8 & 15];
    to[4] = hex[unit >> 4 & 15];
    to[5] = hex[unit & 15];
    return 6;
}

#define ESCAPE_MAX 12 /* a surrogate pair */

/* ASCII that may not stand as it is; gives the bytes written. */
static unsigned put_ascii_escape(char *to, unsigned char c)
{
    static const char names[128] = {['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                                    ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't'};

    if (!names[c])
        return put_u(to, c);
    to[0] = '\\';
    to[1] = names[c];
    return 2;
}

/* How many bytes of ill-formed UTF-8 Python's errors="replace" turns into one U+FFFD. */
static unsigned broken_len(const char *p, const char *end)
{
    const unsigned char *u = (const unsigned char *)p;
    size_t left = (size_t)(end - p);
    unsigned char low = 0x80, high = 0xbf;

    if (u[0] < 0xe0 || u[0] > 0xf4 || left < 2)
        return 1;
    if (u[0] == 0xe0)
        low = 0xa0;
    if (u[0] == 0xed)
        high = 0x9f;
    if (u[0] == 0xf0)
        low = 0x90;
    if (u[0] == 0xf4)
        high = 0x8f;
    if (u[1] < low || u[1] > high)
        return 1;
    return u[0] >= 0xf0 && left > 2 && (u[2] & 0xc0) == 0x80 ? 3 : 2;
}

/* The non-ASCII character at *p; gives the bytes written. */
static unsigned put_wide(char *to, const char **p, const char *end, bool ascii)
{
    const unsigned char *u = (const unsigned char *)*p;
    unsigned n = json_utf8_len(*p, end, true), c;

    if (n == 0) {
        *p += broken_len(*p, end);
        if (ascii)
            return put_u(to, 0xfffd);
        memcpy(to, "\xef\xbf\xbd", 3);
        return 3;
    }
    *p += n;
    bool surrogate = u[0] == 0xed && u[1] >= 0xa0;
    if (!ascii && !surrogate) {
        memcpy(to, u, n);
        return n;
    }
    if (n == 2)
        return put_u(to, (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu));
    if (n == 3)
        return put_u(to, (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu));
    c = (u[0] & 7u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
    c -= 0x10000;
    put_u(to, 0xd800 + (c >> 10));
    return 6 + put_u(to + 6, 0xdc00 + (c & 0x3ff));
}

/* One character that does not stand for itself; at most ESCAPE_MAX bytes. */
static inline char *put_escape(char *to, const char **p, const char *end, bool ascii)
{
    if ((signed char)**p < 0)
        return to + put_wide(to, p, end, ascii);
    return to + put_ascii_escape(to, (unsigned char)*(*p)++);
}

/* Output is never shorter than input. So reserving room for the rest of the input and its quote
 * never refuses a text that would have fitted. */
static inline void put_string_mode(struct buf *b, struct str s, bool ascii)
{
    const char *p = s.len ? s.p : "", *end = p + s.len;
    char *to = buf_reserve(b, s.len + 2), spare[ESCAPE_MAX];
    size_t len = b->len;

    if (!to)
        return;
    for (*to++ = '"';;) {
        p = json_copy_plain(p, end, &to, !ascii);
        if (p == end)
            break;
        size_t used = (size_t)(to - b->p);
        if (__builtin_expect(b->cap - used >= (size_t)(end - p) + ESCAPE_MAX, 1)) {
            to = put_escape(to, &p, end, ascii);
            continue;
        }
        size_t n = (size_t)(put_escape(spare, &p, end, ascii) - spare);
        b->len = used;
        to = buf_reserve(b, n + (size_t)(end - p) + 1);
        b->len = len; /* all of the string or nothing */
        if (!to)
            return;
        memcpy(to, spare, n);
        to += n;
    }
    *to++ = '"';
    b->len = (size_t)(to - b->p);
}

static void put_string(struct buf *b, struct str s, bool ascii)
{
    if (ascii)
        put_string_mode(b, s, true);
    else
        put_string_mode(b, s, false);
}

/* --- the writer --- */

void jw_init(struct jw *w, struct buf *out, unsigned flags)
{
    *w = (struct jw){.out = out, .flags = flags & ~AFTER_KEY};
}

static void put_line(struct jw *w)
{
    size_t n = (size_t)w->depth * 2;
    char *to = buf_reserve(w->out, n + 1);

    if (!to)
        return;
    *to = '\n';
    memset(to + 1, ' ', n);
    buf_commit(w->out, n + 1);
}

/* The separator between the last value and this one. */
static void put_separator(struct jw *w)
{
    if (w->depth == 0)
        return;
    if (w->comma)
        buf_add_mem(w->out, ", ", w->flags & JW_SPACED && !(w->flags & JW_INDENT2) ? 2 : 1);
    if (w->flags & JW_INDENT2)
        put_line(w);
}

void jw_key(struct jw *w, struct str key)
{
    put_separator(w);
    put_string(w->out, key, w->flags & JW_ASCII);
    buf_add_mem(w->out, ": ", w->flags & (JW_SPACED | JW_INDENT2) ? 2 : 1);
    w->flags |= AFTER_KEY;
}

static void before_value(struct jw *w, const char *key)
{
    if (key)
        jw_key(w, str_of(key));
    else if (!(w->flags & AFTER_KEY))
        put_separator(w);
    w->flags &= ~AFTER_KEY;
    w->comma = true;
}

static void write_begin(struct jw *w, const char *key, char bracket)
{
    before_value(w, key);
    buf_add_char(w->out, bracket);
    w->depth++;
    w->comma = false;
}

static void write_end(struct jw *w, char bracket)
{
    w->depth--;
    if (w->comma && w->flags & JW_INDENT2)
        put_line(w);
    buf_add_char(w->out, bracket);
    w->comma = true;
}

void jw_begin_object(struct jw *w, const char *key)
{
    write_begin(w, key, '{');
}

void jw_end_object(struct jw *w)
{
    write_end(w, '}');
}

void jw_begin_array(struct jw *w, const char *key)
{
    write_begin(w, key, '[');
}

void jw_end_array(struct jw *w)
{
    write_end(w, ']');
}

void jw_raw(struct jw *w, const char *key, struct str json)
{
    before_value(w, key);
    buf_add(w->out, json);
}

void jw_str(struct jw *w, const char *key, struct str s)
{
    before_value(w, key);
    put_string(w->out, s, w->flags & JW_ASCII);
}

void jw_null(struct jw *w, const char *key)
{
    jw_raw(w, key, STR("null"));
}

void jw_cstr(struct jw *w, const char *key, const char *s)
{
    if (s)
        jw_str(w, key, str_of(s));
    else
        jw_null(w, key);
}

void jw_uint(struct jw *w, const char *key, uint64_t u)
{
    char digits[20], *end_of = digits + sizeof digits, *first = put_digits_before(end_of, u);

    jw_raw(w, key, str_n(first, (size_t)(end_of - first)));
}

void jw_int(struct jw *w, const char *key, int64_t i)
{
    char digits[20], *end_of = digits + sizeof digits;
    char *first = put_digits_before(end_of, i < 0 ? 0 - (uint64_t)i : (uint64_t)i);

    if (i < 0)
        *--first = '-';
    jw_raw(w, key, str_n(first, (size_t)(end_of - first)));
}

void jw_bool(struct jw *w, const char *key, bool b)
{
    jw_raw(w, key, b ? STR("true") : STR("false"));
}

void jw_double(struct jw *w, const char *key, double d)
{
    char text[JSON_DOUBLE_MAX];

    if (isfinite(d))
        jw_raw(w, key, str_n(text, json_format_double(d, text)));
    else if (!(w->flags & JW_ALLOW_NAN))
        jw_null(w, key);
    else if (isnan(d))
        jw_raw(w, key, STR("NaN"));
    else
        jw_raw(w, key, d < 0 ? STR("-Infinity") : STR("Infinity"));
}

/* A value without children, or the opening bracket. */
static void put_node(struct jw *w, const struct json *v)
{
    switch ((enum json_type)v->type) {
    case JSON_NULL:
        return jw_null(w, NULL);
    case JSON_BOOL:
        return jw_bool(w, NULL, v->b);
    case JSON_INT:
        return jw_int(w, NULL, v->i);
    case JSON_BIGINT:
        return jw_raw(w, NULL, v->s);
    case JSON_DOUBLE:
        return jw_double(w, NULL, v->d);
    case JSON_STR:
        return jw_str(w, NULL, v->s);
    case JSON_ARRAY:
        return jw_begin_array(w, NULL);
    case JSON_OBJECT:
        return jw_begin_object(w, NULL);
    }
}

/* Each turn writes one node; `open` holds the containers it is in. */
static bool put_tree(struct jw *w, const struct json *v, struct json_stack *open)
{
    for (;;) {
        put_node(w, v);
        if (v->type == JSON_ARRAY || v->type == JSON_OBJECT) {
            if (!json_stack_push(open, v))
                return false;
            if (v->first) {
                v = v->first;
                if (open->at[open->len - 1]->type == JSON_OBJECT)
                    jw_key(w, v->key);
                continue;
            }
            v = json_stack_pop(open);
            write_end(w, v->type == JSON_OBJECT ? '}' : ']');
        }
        while (open->len && !v->next) {
            v = json_stack_pop(open);
            write_end(w, v->type == JSON_OBJECT ? '}' : ']');
        }
        if (!open->len)
            return true;
        v = v->next;
        if (open->at[open->len - 1]->type == JSON_OBJECT)
            jw_key(w, v->key);
    }
}

void jw_value(struct jw *w, const char *key, const struct json *v)
{
    struct json_stack open;

    if (!v)
        return jw_null(w, key);
    if (key)
        jw_key(w, str_of(key));
    json_stack_init(&open);
    unsigned depth = w->depth;
    if (!put_tree(w, v, &open)) {
        w->out->no_memory = true;
        w->depth = depth;
    }
    json_stack_done(&open);
}

void json_write(struct buf *out, const struct json *v, unsigned flags)
{
    struct jw w;

    jw_init(&w, out, flags);
    jw_value(&w, NULL, v);
}
