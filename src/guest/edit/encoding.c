// SPDX-License-Identifier: Apache-2.0
/* encoding.c — UTF-8, UTF-16 and Latin-1, both ways. No iconv: musl's is optional and ours must
 * refuse where it would replace. */
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "guest/edit/pytext.h"
#include "guest/edit/text.h"

#define UTF8_MARK "\xef\xbb\xbf"

static bool has_mark16(struct str raw, bool *ret_big)
{
    const unsigned char *p = (const unsigned char *)raw.p;

    if (raw.len < 2)
        return false;
    *ret_big = p[0] == 0xfe && p[1] == 0xff;
    return *ret_big || (p[0] == 0xff && p[1] == 0xfe);
}

static uint32_t encoding_unit16(struct str raw, size_t at, bool big)
{
    const unsigned char *p = (const unsigned char *)raw.p + at;

    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

/* One code point; 0 if what is there is half a pair or half a unit. */
static size_t encoding_decode16(struct str raw, size_t at, bool big, uint32_t *ret_cp)
{
    if (raw.len - at < 2)
        return 0;
    uint32_t u = encoding_unit16(raw, at, big);
    *ret_cp = u;
    if (u < 0xd800 || u > 0xdfff)
        return 2;
    if (u > 0xdbff || raw.len - at < 4)
        return 0;
    uint32_t low = encoding_unit16(raw, at + 2, big);
    *ret_cp = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    return low >= 0xdc00 && low <= 0xdfff ? 4 : 0;
}

/* Without room only counts. SIZE_MAX if it is not valid. */
static size_t from_utf16(struct str raw, bool big, char *out)
{
    size_t n = 0;

    for (size_t at = 2, step; at < raw.len; at += step) {
        char one[4];
        uint32_t cp;
        step = encoding_decode16(raw, at, big, &cp);
        if (step == 0)
            return SIZE_MAX;
        n += utf8_encode(cp, out ? out + n : one);
    }
    return n;
}

bool text_is_utf16(struct str raw)
{
    bool big;

    return has_mark16(raw, &big) && from_utf16(raw, big, NULL) != SIZE_MAX;
}

static struct str from_latin1(struct arena *a, struct str raw)
{
    size_t high = 0, n = 0;

    for (size_t i = 0; i < raw.len; i++)
        high += (unsigned char)raw.p[i] >> 7;
    char *out = arena_alloc(a, raw.len + high);
    for (size_t i = 0; out && i < raw.len; i++)
        n += utf8_encode((unsigned char)raw.p[i], out + n);
    return str_n(out, n);
}

void text_decode(struct arena *a, struct str raw, struct text *ret_text)
{
    struct text t = {.raw = raw, .text = raw, .encoding = TEXT_UTF8};
    bool big = false;

    if (utf8_valid(raw)) {
        if (str_starts(raw, STR(UTF8_MARK))) {
            t.encoding = TEXT_UTF8_BOM;
            t.text = str_from(raw, strlen(UTF8_MARK));
        }
    } else if (has_mark16(raw, &big) && text_is_utf16(raw)) {
        size_t n = from_utf16(raw, big, NULL);
        char *out = arena_alloc(a, n);
        t.encoding = big ? TEXT_UTF16BE : TEXT_UTF16LE;
        t.text = str_n(out, out ? from_utf16(raw, big, out) : 0);
    } else {
        t.encoding = TEXT_LATIN1;
        t.text = from_latin1(a, raw);
    }
    t.view = text_universal(a, t.text);
    *ret_text = t;
}

/* Finds text that no encoding takes: surrogates that came through JSON, and stray bytes. */
static bool encoding_fits(struct str s, enum text_encoding encoding, size_t *ret_len,
                          uint32_t *ret_cp)
{
    size_t n = utf8_decode(s, ret_cp);
    const unsigned char *p = (const unsigned char *)s.p;
    bool broken = n == 1 && *p >= 0x80;

    if (broken && s.len >= 3 && p[0] == 0xed && (p[1] & 0xe0) == 0xa0) {
        *ret_cp = 0xd000u | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
        n = 3;
    } else if (broken) {
        *ret_cp = 0xdc00u | *p;
    }
    *ret_len = n;
    return !broken && (encoding != TEXT_LATIN1 || *ret_cp < 0x100);
}

static struct str cannot_encode(struct arena *a, struct str s, size_t at,
                                enum text_encoding encoding)
{
    static const char *const names[] = {"utf-8", "utf-8", "utf-16", "utf-16", "latin-1"};
    size_t first = utf8_count(str_first(s, at)), count = 0, n;
    uint32_t cp, start = 0;
    own_done(buf) b;

    buf_init(&b, 256);
    for (struct str rest = str_from(s, at); rest.len; rest = str_from(rest, n), count++) {
        if (encoding_fits(rest, encoding, &n, &cp))
            break;
        start = count ? start : cp;
    }
    buf_addf(&b, "'%s' codec can't encode character", names[encoding]);
    if (count > 1)
        buf_addf(&b, "s in position %zu-%zu: ", first, first + count - 1);
    else
        buf_addf(&b,
                 start < 0x100     ? " '\\x%02x' in position %zu: "
                 : start < 0x10000 ? " '\\u%04x' in position %zu: "
                                   : " '\\U%08x' in position %zu: ",
                 start, first);
    buf_add_cstr(&b,
                 encoding == TEXT_LATIN1 ? "ordinal not in range(256)" : "surrogates not allowed");
    return arena_copy(a, buf_str(&b));
}

/* 0 if all of it fits, else one more than the offset of what does not. */
static size_t first_unfit(struct str text, enum text_encoding encoding)
{
    uint32_t cp;

    if (encoding != TEXT_LATIN1 && utf8_valid(text))
        return 0;
    for (size_t at = 0, n; at < text.len; at += n)
        if (!encoding_fits(str_from(text, at), encoding, &n, &cp))
            return at + 1;
    return 0;
}

static size_t encoding_put16(char *out, uint32_t u, bool big)
{
    out[big ? 0 : 1] = (char)(u >> 8);
    out[big ? 1 : 0] = (char)(u & 0xff);
    return 2;
}

static struct str to_utf16(struct arena *a, struct str text, bool big)
{
    char *out = arena_alloc(a, 2 + 2 * text.len);
    uint32_t cp;

    if (!out)
        return (struct str){NULL, 0};
    size_t n = encoding_put16(out, 0xfeff, big);
    for (size_t at = 0; at < text.len;) {
        at += utf8_decode(str_from(text, at), &cp);
        if (cp >= 0x10000) {
            n += encoding_put16(out + n, 0xd800 + ((cp - 0x10000) >> 10), big);
            cp = 0xdc00 + ((cp - 0x10000) & 0x3ff);
        }
        n += encoding_put16(out + n, cp, big);
    }
    return str_n(out, n);
}

static struct str to_latin1(struct arena *a, struct str text)
{
    char *out = arena_alloc(a, text.len);
    size_t n = 0;
    uint32_t cp;

    for (size_t at = 0; out && at < text.len;) {
        at += utf8_decode(str_from(text, at), &cp);
        out[n++] = (char)cp;
    }
    return str_n(out, n);
}

static struct str with_mark(struct arena *a, struct str text)
{
    struct str mark = STR(UTF8_MARK);
    char *out = arena_alloc(a, mark.len + text.len);

    if (!out)
        return (struct str){NULL, 0};
    memcpy(out, mark.p, mark.len);
    if (text.len)
        memcpy(out + mark.len, text.p, text.len);
    return str_n(out, mark.len + text.len);
}

bool text_encode(struct arena *a, struct str text, enum text_encoding encoding, struct str *ret_raw,
                 struct str *ret_why)
{
    size_t unfit = first_unfit(text, encoding);

    if (unfit) {
        *ret_why = cannot_encode(a, text, unfit - 1, encoding);
        return false;
    }
    switch (encoding) {
    case TEXT_UTF8:
        *ret_raw = text;
        break;
    case TEXT_UTF8_BOM:
        *ret_raw = with_mark(a, text);
        break;
    case TEXT_UTF16LE:
    case TEXT_UTF16BE:
        *ret_raw = to_utf16(a, text, encoding == TEXT_UTF16BE);
        break;
    case TEXT_LATIN1:
        *ret_raw = to_latin1(a, text);
        break;
    }
    return true;
}
