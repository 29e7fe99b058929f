// SPDX-License-Identifier: Apache-2.0
/* pyrepr.c — repr() of strings, numbers, lists and dicts; see pyrepr.h.
 *
 * Nothing recurses: a peer chooses the depth. */
#include "wire/pyrepr.h"

#include "base/utf8.h"

/* --- strings --- */

/* As utf8_decode, but a lone surrogate, three bytes in a tree, is one character. */
static size_t pyrepr_decode(struct str s, uint32_t *ret_cp)
{
    const unsigned char *u = (const unsigned char *)s.p;

    if (s.len >= 3 && u[0] == 0xed && (u[1] & 0xe0) == 0xa0 && (u[2] & 0xc0) == 0x80) {
        *ret_cp = 0xd000u | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
        return 3;
    }
    return utf8_decode(s, ret_cp);
}

static void add_escaped(struct buf *out, uint32_t cp)
{
    if (cp == '\n')
        buf_add(out, STR("\\n"));
    else if (cp == '\r')
        buf_add(out, STR("\\r"));
    else if (cp == '\t')
        buf_add(out, STR("\\t"));
    else
        buf_addf(out, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
}

static void add_char(struct buf *out, uint32_t cp, char quote)
{
    char bytes[4];

    if (cp == '\\' || cp == (unsigned char)quote) {
        buf_add_char(out, '\\');
        buf_add_char(out, (char)cp);
    } else if (cp < 0x7f ? cp >= ' ' : pyrepr_is_printable(cp)) {
        buf_add_mem(out, bytes, utf8_encode(cp, bytes));
    } else {
        add_escaped(out, cp);
    }
}

static bool is_plain(char c, char quote)
{
    return c >= ' ' && c < 0x7f && c != '\\' && c != quote;
}

void pyrepr_add_str(struct buf *out, struct str s)
{
    bool single = str_find_char(s, '\'') >= 0, twofold = str_find_char(s, '"') >= 0;
    char quote = single && !twofold ? '"' : '\'';

    buf_add_char(out, quote);
    while (s.len && !buf_failed(out)) {
        size_t n = 0;
        while (n < s.len && is_plain(s.p[n], quote))
            n++;
        buf_add(out, str_first(s, n));
        s = str_from(s, n);
        if (!s.len)
            break;
        uint32_t cp;
        n = pyrepr_decode(s, &cp);
        add_char(out, cp, quote);
        s = str_from(s, n);
    }
    buf_add_char(out, quote);
}

/* --- trees --- */

static void add_double(struct buf *out, double d)
{
    char text[JSON_DOUBLE_MAX];

    buf_add(out, str_n(text, json_format_double(d, text)));
}

static void add_leaf(struct buf *out, const struct json *v)
{
    switch ((enum json_type)v->type) {
    case JSON_NULL:
        return buf_add(out, STR("None"));
    case JSON_BOOL:
        return buf_add(out, v->b ? STR("True") : STR("False"));
    case JSON_INT:
        return buf_addf(out, "%lld", (long long)v->i);
    case JSON_BIGINT:
        return buf_add(out, v->s);
    case JSON_DOUBLE:
        return add_double(out, v->d);
    case JSON_STR:
        return pyrepr_add_str(out, v->s);
    case JSON_ARRAY:
        return buf_add_char(out, '[');
    case JSON_OBJECT:
        return buf_add_char(out, '{');
    }
}

static const struct json *pyrepr_pop(struct buf *stack)
{
    const struct json *v;

    stack->len -= sizeof v;
    memcpy(&v, stack->p + stack->len, sizeof v);
    return v;
}

static const struct json *pyrepr_top(const struct buf *stack)
{
    const struct json *v;

    memcpy(&v, stack->p + stack->len - sizeof v, sizeof v);
    return v;
}

static void add_key(struct buf *out, const struct json *in, const struct json *v)
{
    if (in->type != JSON_OBJECT)
        return;
    pyrepr_add_str(out, v->key);
    buf_add(out, STR(": "));
}

/* Puts the closing brackets after v; gives the next value, NULL at the end. */
static const struct json *add_closing(struct buf *out, struct buf *open, const struct json *v)
{
    while (open->len && !v->next) {
        v = pyrepr_pop(open);
        buf_add_char(out, v->type == JSON_OBJECT ? '}' : ']');
    }
    if (!open->len)
        return NULL;
    buf_add(out, STR(", "));
    add_key(out, pyrepr_top(open), v->next);
    return v->next;
}

void pyrepr_add(struct buf *out, const struct json *v)
{
    own_done(buf) open; /* pointers to the containers we are in */

    buf_init(&open, SIZE_MAX / 2);
    if (!v)
        return buf_add(out, STR("None"));
    while (v && !buf_failed(out)) {
        add_leaf(out, v);
        if ((v->type == JSON_ARRAY || v->type == JSON_OBJECT) && v->first) {
            buf_add_mem(&open, &v, sizeof v);
            if (buf_failed(&open)) {
                out->no_memory = true;
                return;
            }
            add_key(out, v, v->first);
            v = v->first;
            continue;
        }
        if (v->type == JSON_ARRAY || v->type == JSON_OBJECT)
            buf_add_char(out, v->type == JSON_OBJECT ? '}' : ']');
        v = add_closing(out, &open, v);
    }
}
