// SPDX-License-Identifier: Apache-2.0
/* sse.c — the same events whether the stream comes whole, in pieces or byte by byte; and what is
 * put is read back. The first byte chooses the size of the pieces. */
#include "net/sse.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_event(void *ctx, const struct sse_event *e)
{
    buf_addf(ctx, "%zu,%zu,%zu,%lld:", e->id.len, e->event.len, e->data.len,
             (long long)e->retry_ms);
    buf_add(ctx, e->id);
    buf_add(ctx, e->event);
    buf_add(ctx, e->data);
}

static bool run(struct str text, size_t piece, size_t limit, struct buf *ret_events)
{
    struct sse_parser p;
    struct err *e = NULL;

    buf_init(ret_events, 64u << 20);
    sse_parser_init(&p, limit, on_event, ret_events);
    for (size_t at = 0; at < text.len && !e; at += piece)
        e = sse_parser_feed(&p, str_first(str_from(text, at), piece));
    sse_parser_done(&p);
    bool ok = !e;
    err_free(e);
    return ok;
}

static void same(struct str text, size_t piece, size_t limit)
{
    struct buf whole, cut;
    bool ok = run(text, text.len ? text.len : 1, limit, &whole);

    if (run(text, piece, limit, &cut) != ok || !str_eq(buf_str(&whole), buf_str(&cut)))
        abort();
    buf_done(&whole);
    buf_done(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str text = str_n(data + 1, size - 1);
    same(text, data[0] % 16 + 1u, 1u << 20);
    same(text, data[0] % 16 + 1u, 20);

    struct buf wire, events;
    buf_init(&wire, 64u << 20);
    sse_put(&wire, STR("1"), STR("e"), text);
    if (!run(buf_str(&wire), 7, 1u << 20, &events) || events.len == 0)
        abort();
    buf_done(&wire);
    buf_done(&events);
    return 0;
}
