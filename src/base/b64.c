// SPDX-License-Identifier: Apache-2.0
/* b64.c — see b64.h. Decoding reads the standard alphabet only: a '-' or '_' is refused. */
#include "base/b64.h"

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* 64 + value for a letter, 0 for any other byte */
#define LETTER 64u
static const uint8_t values[256] = {
    [0x20] = 0, 0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   126, 0,   0,   0,   127,
    116,        117, 118, 119, 120, 121, 122, 123, 124, 125, 0,   0,   0,   0,   0,   0,
    0,          64,  65,  66,  67,  68,  69,  70,  71,  72,  73,  74,  75,  76,  77,  78,
    79,         80,  81,  82,  83,  84,  85,  86,  87,  88,  89,  0,   0,   0,   0,   0,
    0,          90,  91,  92,  93,  94,  95,  96,  97,  98,  99,  100, 101, 102, 103, 104,
    105,        106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 0,   0,   0,   0,   0,
};

size_t b64_encode(const void *p, size_t n, char *out, bool url_safe, bool padding)
{
    const char *letters = url_safe ? safe : standard;
    const uint8_t *in = p;
    char *to = out;

    for (; n >= 3; n -= 3, in += 3) {
        uint32_t v = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
        *to++ = letters[v >> 18];
        *to++ = letters[v >> 12 & 63];
        *to++ = letters[v >> 6 & 63];
        *to++ = letters[v & 63];
    }
    if (n) {
        uint32_t v = (uint32_t)in[0] << 16 | (n == 2 ? (uint32_t)in[1] << 8 : 0);
        *to++ = letters[v >> 18];
        *to++ = letters[v >> 12 & 63];
        if (n == 2)
            *to++ = letters[v >> 6 & 63];
        for (; padding && n < 3; n++)
            *to++ = '=';
    }
    return (size_t)(to - out);
}

void b64_add(struct buf *b, struct str data)
{
    if (!data.len)
        return;
    /* the length must not wrap round on its way to the limit check */
    size_t n = data.len > SIZE_MAX / 2 ? SIZE_MAX : b64_len(data.len);
    char *to = buf_reserve(b, n);

    if (to)
        buf_commit(b, b64_encode(data.p, data.len, to, false, true));
}

/* Four characters to three bytes; UINT32_MAX if any is not of the alphabet. */
static uint32_t b64_quad(const uint8_t *in)
{
    uint32_t a = values[in[0]], b = values[in[1]], c = values[in[2]], d = values[in[3]];

    if (!(a & b & c & d & LETTER))
        return UINT32_MAX;
    return (a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63);
}

static fallible b64_refuse(struct str text, size_t from)
{
    for (size_t i = from; i < text.len; i++)
        if (!values[(uint8_t)text.p[i]] && (text.p[i] != '=' || i + 2 < text.len))
            return err_new(ERR_INVALID, "base64: byte 0x%02x at %zu is no letter of it",
                           (uint8_t)text.p[i], i);
    return err_new(ERR_INVALID, "base64: wrong end");
}

/* The last four characters, of which up to two are padding. */
static bool last_quad(const uint8_t *in, uint8_t **to)
{
    unsigned pad = in[3] != '=' ? 0 : in[2] != '=' ? 1 : 2;
    uint8_t full[4] = {in[0], in[1], pad == 2 ? 'A' : in[2], pad ? 'A' : in[3]};
    uint32_t v = b64_quad(full);

    if (v == UINT32_MAX || (pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff)))
        return false;
    *(*to)++ = (uint8_t)(v >> 16);
    if (pad < 2)
        *(*to)++ = (uint8_t)(v >> 8);
    if (pad < 1)
        *(*to)++ = (uint8_t)v;
    return true;
}

fallible b64_decode(struct str text, struct buf *into)
{
    const uint8_t *in = (const uint8_t *)text.p;

    if (text.len == 0)
        return NULL;
    if (text.len % 4)
        return err_new(ERR_INVALID, "base64: %zu letters are not a multiple of four", text.len);
    size_t pad = in[text.len - 1] != '=' ? 0 : in[text.len - 2] != '=' ? 1 : 2;
    size_t size = text.len / 4 * 3 - pad;
    uint8_t *to = (uint8_t *)buf_reserve(into, size);
    if (!to)
        return buf_check(into);
    size_t at = 0;
    for (; at + 4 < text.len; at += 4) {
        uint32_t v = b64_quad(in + at);
        if (v == UINT32_MAX)
            return b64_refuse(text, at);
        *to++ = (uint8_t)(v >> 16);
        *to++ = (uint8_t)(v >> 8);
        *to++ = (uint8_t)v;
    }
    if (!last_quad(in + at, &to))
        return b64_refuse(text, at);
    buf_commit(into, size);
    return NULL;
}
