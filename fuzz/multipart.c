// SPDX-License-Identifier: Apache-2.0
/* multipart.c — the same parts and bytes whether the form comes whole or in pieces. The first byte
 * chooses the size of the pieces; the boundary is "B". */
#include "net/multipart.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static fallible on_part(void *ctx, const struct multipart_part *p)
{
    struct str f = p->filename;

    if (str_find_char(f, '/') >= 0 || str_find_char(f, '\\') >= 0 || str_find_char(f, '\0') >= 0 ||
        str_eq(f, STR("..")))
        abort();
    buf_addf(ctx, "\n[%zu,%zu,%zu]", p->name.len, f.len, p->content_type.len);
    buf_add(ctx, p->name);
    buf_add(ctx, f);
    buf_add(ctx, p->content_type);
    return NULL;
}

static fallible on_data(void *ctx, struct str piece)
{
    if (piece.len == 0)
        abort();
    buf_add(ctx, piece);
    return NULL;
}

static fallible on_part_end(void *ctx)
{
    buf_add_cstr(ctx, "\n[end]");
    return NULL;
}

static bool run(struct str body, size_t piece, struct buf *ret_log)
{
    static const struct multipart_events events = {on_part, on_data, on_part_end};
    struct multipart *m = NULL;

    buf_init(ret_log, 64u << 20);
    struct err *e = multipart_new(STR("multipart/form-data; boundary=B"), &events, ret_log, &m);
    for (size_t at = 0; at < body.len && !e; at += piece)
        e = multipart_feed(m, str_first(str_from(body, at), piece));
    if (!e)
        e = multipart_end(m);
    multipart_free(m);
    bool ok = !e;
    err_free(e);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str body = str_n(data + 1, size - 1);
    struct buf whole, cut;
    bool ok = run(body, body.len + 1, &whole);
    if (run(body, data[0] % 16 + 1u, &cut) != ok || !str_eq(buf_str(&whole), buf_str(&cut)))
        abort();
    buf_done(&whole);
    buf_done(&cut);

    struct multipart *m;
    struct err *e = multipart_new(body, &(struct multipart_events){0}, NULL, &m);
    if (!e)
        multipart_free(m);
    err_free(e);
    return 0;
}
