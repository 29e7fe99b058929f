// SPDX-License-Identifier: Apache-2.0
/* peek — what is found lies in the text and holds neither quote nor escape; of a text that the JSON
 * parser takes and that says it once, it is what the parser finds. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "host/proxy/peek.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool cond)
{
    if (!cond)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str s = str_n(data, size), got;
    struct arena a;
    struct json *o = NULL;

    for (unsigned depth = 1; depth < 4; depth++) {
        got = peek_member(s, depth, STR("action"));
        must(!got.len || (got.p >= s.p && got.p + got.len <= s.p + s.len));
        must(!got.len || (!memchr(got.p, '"', got.len) && !memchr(got.p, '\\', got.len)));
    }
    arena_init(&a, 4u << 20);
    struct err *e = json_parse(&a, s, NULL, &o);
    const struct json *v = !e && o->type == JSON_OBJECT && o->count == 1 ? o->first : NULL;
    if (v && size < PEEK_BYTES && v->type == JSON_STR && v->s.len && !memchr(s.p, '\\', s.len) &&
        str_eq(v->key, STR("action")))
        must(str_eq(peek_member(s, 1, STR("action")), v->s));
    err_free(e);
    arena_done(&a);
    return 0;
}
