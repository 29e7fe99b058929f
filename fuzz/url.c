// SPDX-License-Identifier: Apache-2.0
/* url.c — parts of a URL lie inside it, and decoding undoes encoding. */
#include "net/url.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(struct str part, struct str whole)
{
    if (part.len && (part.p < whole.p || part.p + part.len > whole.p + whole.len) &&
        !str_eq(part, STR("/")))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_n(data, size), back;
    struct arena a;
    struct buf b;
    struct url u;
    struct url_param *params;
    size_t count;

    arena_init(&a, 16u << 20);
    buf_init(&b, 16u << 20);
    struct err *e = url_parse(text, &u);
    if (!e) {
        inside(u.userinfo, text);
        inside(u.host, text);
        inside(u.path, text);
        inside(u.query, text);
        inside(u.fragment, text);
        if (u.host.len == 0 || u.path.p[0] != '/')
            abort();
    }
    err_free(e);
    err_free(url_parse_query(&a, text, &params, &count));
    url_encode(&b, text, size & 1);
    e = url_decode(&a, buf_str(&b), size & 2, &back);
    if (!e != (str_find_char(text, '\0') < 0) || (!e && !str_eq(back, text)))
        abort();
    err_free(e);
    buf_done(&b);
    arena_done(&a);
    return 0;
}
