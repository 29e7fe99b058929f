// SPDX-License-Identifier: Apache-2.0
/* http_response.c — heads of answers are parsed or refused, and any split of the body gives the
 * same bytes. The first byte chooses method and size of the pieces. */
#include <stdlib.h>

#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(struct str part, struct str whole)
{
    if (part.len && (part.p < whole.p || part.p + part.len > whole.p + whole.len))
        abort();
}

/* Where the head ends, however often it is asked while the bytes come in. */
static size_t find_end(struct str text, size_t piece, bool *ret_ok)
{
    size_t scanned = 0, end = 0;
    struct err *e = NULL;

    for (size_t have = 0; have < text.len && !end && !e;) {
        have = have + piece < text.len ? have + piece : text.len;
        e = http_head_end(str_first(text, have), &scanned, &end);
    }
    *ret_ok = !e;
    err_free(e);
    return *ret_ok ? end : 0;
}

/* Decodes the body in pieces; gives whether all was fine, what came out and what was left over. */
static bool decode(const struct http_head *head, struct str text, size_t piece, struct buf *ret_out,
                   size_t *ret_left)
{
    struct http_body b;
    struct err *e = NULL;
    size_t at = 0;

    buf_init(ret_out, 64u << 20);
    http_body_init(&b, head);
    while (at < text.len && !b.done && !e) {
        struct str in = str_first(str_from(text, at), piece), got = {0};
        size_t had = in.len;
        do {
            e = http_body_next(&b, &in, &got);
            if (!e)
                buf_add(ret_out, got);
        } while (!e && got.len);
        if (!e && in.len && !b.done)
            abort(); /* all input is taken unless the body ended */
        at += had - in.len;
    }
    if (!e)
        e = http_body_eof(&b);
    *ret_left = text.len - at;
    bool ok = !e;
    err_free(e);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct str methods[] = {STR_INIT("GET"), STR_INIT("HEAD"), STR_INIT("CONNECT"),
                                         STR_INIT("POST")};
    if (size == 0)
        return 0;
    struct str text = str_n(data + 1, size - 1), method = methods[data[0] % 4];
    size_t piece = data[0] / 4 % 16 + 1u;
    bool ok, ok_cut;
    size_t end = find_end(text, text.len + 1, &ok);
    if (ok && find_end(text, piece, &ok_cut) != end)
        abort();
    if (!end)
        return 0;

    struct arena a;
    struct http_head head;
    arena_init(&a, 1u << 20);
    struct err *e = http_parse_response(&a, str_first(text, end), method, &head);
    if (!e) {
        struct buf whole, cut;
        size_t left, left_cut;
        for (size_t i = 0; i < head.header_count; i++) {
            inside(head.headers[i].name, text);
            inside(head.headers[i].value, text);
        }
        ok = decode(&head, str_from(text, end), size, &whole, &left);
        ok_cut = decode(&head, str_from(text, end), piece, &cut, &left_cut);
        if (ok != ok_cut || !str_eq(buf_str(&whole), buf_str(&cut)) || (ok && left != left_cut))
            abort();
        buf_done(&whole);
        buf_done(&cut);
    }
    err_free(e);
    arena_done(&a);
    return 0;
}
