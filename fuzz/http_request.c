// SPDX-License-Identifier: Apache-2.0
/* http_request.c — requests on one connection: however the bytes are split, the heads, the bodies
 * and the verdict are the same, and every slice lies inside the input. The first byte chooses the
 * split. */
#include <stdlib.h>

#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reader {
    struct arena arena;
    struct buf story; /* all that was understood */
    struct http_body body;
    size_t at, scanned;
    bool in_body, refused;
};

static void inside(struct str part, struct str whole)
{
    if (part.len && (part.p < whole.p || part.p + part.len > whole.p + whole.len))
        abort();
}

static void refuse(struct reader *r, struct err *e)
{
    buf_addf(&r->story, "[refused %d]", err_http_status(err_code(e)));
    err_free(e);
    r->refused = true;
}

static void got_head(struct reader *r, struct str head)
{
    struct http_head h;
    struct err *e = http_parse_request(&r->arena, head, &h);

    if (e) {
        refuse(r, e);
        return;
    }
    inside(h.method, head);
    inside(h.target, head);
    if (!h.method.len || !h.target.len || h.header_count > HTTP_MAX_HEADERS)
        abort();
    for (size_t i = 0; i < h.header_count; i++) {
        inside(h.headers[i].name, head);
        inside(h.headers[i].value, head);
        if (!http_is_token(h.headers[i].name) || !http_is_field_value(h.headers[i].value))
            abort();
    }
    buf_addf(&r->story, "[%d %llu %d%d%d %zu]", (int)h.framing, (unsigned long long)h.length,
             h.keep_alive, h.expect_continue, h.upgrade, h.header_count);
    http_body_init(&r->body, &h);
    r->in_body = !r->body.done;
}

/* What a connection does with all that has come so far. */
static void read_on(struct reader *r, struct str so_far)
{
    while (!r->refused && r->at < so_far.len) {
        struct str rest = str_from(so_far, r->at), in = rest, piece;
        size_t end = 0;
        struct err *e;
        if (r->in_body) {
            e = http_body_next(&r->body, &in, &piece);
            inside(piece, rest);
            buf_add(&r->story, piece);
            r->at += rest.len - in.len;
            r->in_body = !r->body.done;
            if (e)
                refuse(r, e);
            continue;
        }
        e = http_head_end(rest, &r->scanned, &end);
        if (e) {
            refuse(r, e);
        } else if (end) {
            got_head(r, str_first(rest, end));
            r->at += end;
            r->scanned = 0;
        } else {
            return;
        }
    }
}

static void run(struct reader *r, struct str text, size_t step)
{
    *r = (struct reader){.at = 0};
    arena_init(&r->arena, 16u << 20);
    buf_init(&r->story, 64u << 20);
    for (size_t n = 0; n < text.len;) {
        n = text.len - n < step ? text.len : n + step;
        read_on(r, str_first(text, n));
    }
}

static void done(struct reader *r)
{
    arena_done(&r->arena);
    buf_done(&r->story);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_n(data, size);
    struct reader whole, split;
    uint64_t from, len;

    if (size < 1)
        return 0;
    text = str_from(text, 1);
    if (http_parse_range(text, data[0], &from, &len) == HTTP_RANGE_OK &&
        (from + len > data[0] || !len))
        abort();
    run(&whole, text, SIZE_MAX / 2);
    run(&split, text, data[0] % 32 + 1u);
    if (!str_eq(buf_str(&whole.story), buf_str(&split.story)))
        abort();
    done(&whole);
    done(&split);
    return 0;
}
