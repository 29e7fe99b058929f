// SPDX-License-Identifier: Apache-2.0
/* pytext.c — repr() and str(OSError) of Python. Printable is decided by a short table of what is
 * not, which holds for everything but unassigned code points. */
#include "guest/edit/pytext.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"

static bool py_is_space(uint32_t cp)
{
    return (cp >= 0x09 && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x20) || cp == 0x85 || cp == 0xa0 ||
           cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

struct str py_rstrip(struct str s)
{
    while (s.len) {
        size_t at = s.len - 1;
        uint32_t cp;
        while (at > 0 && s.len - at < 4 && ((unsigned char)s.p[at] & 0xc0) == 0x80)
            at--;
        size_t n = utf8_decode(str_from(s, at), &cp);
        if (n != s.len - at || !py_is_space(cp))
            break;
        s.len = at;
    }
    return s;
}

struct str py_strip(struct str s)
{
    while (s.len) {
        uint32_t cp;
        size_t n = utf8_decode(s, &cp);
        if (!py_is_space(cp))
            break;
        s = str_from(s, n);
    }
    return py_rstrip(s);
}

static bool is_printable(uint32_t cp)
{
    static const struct {
        uint32_t from, to;
    } hidden[] = {
        {0x00, 0x1f},     {0x7f, 0xa0},       {0xad, 0xad},        {0x600, 0x605},
        {0x61c, 0x61c},   {0x6dd, 0x6dd},     {0x70f, 0x70f},      {0x1680, 0x1680},
        {0x180e, 0x180e}, {0x2000, 0x200f},   {0x2028, 0x202f},    {0x205f, 0x206f},
        {0x3000, 0x3000}, {0xd800, 0xf8ff},   {0xfeff, 0xfeff},    {0xfff0, 0xfffb},
        {0xfffe, 0xffff}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff},
    };

    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (cp >= hidden[i].from && cp <= hidden[i].to)
            return false;
    return true;
}

static void add_escaped(struct buf *b, uint32_t cp)
{
    if (cp == '\n' || cp == '\r' || cp == '\t')
        buf_addf(b, "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
    else if (cp < 0x100)
        buf_addf(b, "\\x%02x", (unsigned)cp);
    else
        buf_addf(b, cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
}

/* A surrogate that JSON let through is three bytes the decoder calls broken. */
static bool is_surrogate(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p;

    return s.len >= 3 && p[0] == 0xed && (p[1] & 0xe0) == 0xa0 && (p[2] & 0xc0) == 0x80;
}

void py_add_repr(struct buf *b, struct str s)
{
    char quote = str_find_char(s, '\'') >= 0 && str_find_char(s, '"') < 0 ? '"' : '\'';

    buf_add_char(b, quote);
    while (s.len) {
        uint32_t cp;
        size_t n = utf8_decode(s, &cp);
        if (is_surrogate(s)) {
            n = 3;
            cp = 0xd000u | ((uint32_t)s.p[1] & 0x3f) << 6 | ((uint32_t)s.p[2] & 0x3f);
            add_escaped(b, cp);
        } else if (cp == 0xfffd && n == 1) { /* surrogateescape, as in a file name */
            add_escaped(b, 0xdc00u | (unsigned char)s.p[0]);
        } else if (cp == '\\' || cp == (uint32_t)quote) {
            buf_addf(b, "\\%c", (int)cp);
        } else if (!is_printable(cp)) {
            add_escaped(b, cp);
        } else {
            buf_add(b, str_first(s, n));
        }
        s = str_from(s, n);
    }
    buf_add_char(b, quote);
}

/* Values of a request are at most as deep as the parser allows. */
static void add_children(struct buf *b, const struct json *v)
{
    buf_add_char(b, v->type == JSON_ARRAY ? '[' : '{');
    for (const struct json *c = v->first; c; c = c->next) {
        if (v->type == JSON_OBJECT) {
            py_add_repr(b, c->key);
            buf_add_cstr(b, ": ");
        }
        py_add_repr_json(b, c);
        if (c->next)
            buf_add_cstr(b, ", ");
    }
    buf_add_char(b, v->type == JSON_ARRAY ? ']' : '}');
}

void py_add_repr_json(struct buf *b, const struct json *v)
{
    char number[JSON_DOUBLE_MAX];

    switch (v ? v->type : JSON_NULL) {
    case JSON_BOOL:
        buf_add_cstr(b, v->b ? "True" : "False");
        break;
    case JSON_INT:
        buf_addf(b, "%lld", (long long)v->i);
        break;
    case JSON_BIGINT:
        buf_add(b, v->s);
        break;
    case JSON_DOUBLE:
        buf_add_mem(b, number, json_format_double(v->d, number));
        break;
    case JSON_STR:
        py_add_repr(b, v->s);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        add_children(b, v);
        break;
    default:
        buf_add_cstr(b, "None");
    }
}

/* Only where musl says it differently. */
static const char *errno_text(int errnum)
{
    static const struct {
        int errnum;
        const char *text;
    } words[] = {
        {EIO, "Input/output error"},
        {ENOMEM, "Cannot allocate memory"},
        {EBUSY, "Device or resource busy"},
        {EXDEV, "Invalid cross-device link"},
        {ENFILE, "Too many open files in system"},
        {EMFILE, "Too many open files"},
        {ENAMETOOLONG, "File name too long"},
        {ELOOP, "Too many levels of symbolic links"},
        {EDQUOT, "Disk quota exceeded"},
        {ESTALE, "Stale file handle"},
        {EOVERFLOW, "Value too large for defined data type"},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].errnum == errnum)
            return words[i].text;
    return strerror(errnum);
}

void py_add_oserror(struct buf *b, const struct err *e, struct str path)
{
    int errnum = err_errno(e);

    if (errnum == 0 && path.len && memchr(path.p, '\0', path.len)) {
        buf_add_cstr(b, "embedded null byte");
        return;
    }
    if (errnum == 0) {
        buf_add_cstr(b, err_text(e));
        return;
    }
    buf_addf(b, "[Errno %d] %s: ", errnum, errno_text(errnum));
    py_add_repr(b, path);
}
