// SPDX-License-Identifier: Apache-2.0
/* files_body.c — what is asked about changes: what is taken is bounded, its paths are plain, and it
 * says the same when the child of the launcher reads it. */
#include <stdlib.h>
#include <string.h>

#include "wire/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct arena *a, const struct wire_files *f)
{
    own_done(buf) text;
    struct wire_files again;
    struct json *tree;
    struct jw w;

    buf_init(&text, 16u << 20);
    if (!f->limit || f->limit > WIRE_PAGE_MOST)
        abort();
    for (const struct json *p = f->paths ? f->paths->first : NULL; p; p = p->next)
        if (p->s.p[0] != '/' || str_find(p->s, STR("/../")) >= 0)
            abort();
    jw_init(&w, &text, JW_WEB);
    wire_put_files(&w, f);
    struct err *e = json_parse(a, buf_str(&text), NULL, &tree);
    if (!e)
        e = wire_decode_files(tree, &again);
    if (e || again.offset != f->offset || again.limit != f->limit || again.force != f->force ||
        !again.paths != !f->paths)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_files f;
    struct json *body;
    struct arena a;

    arena_init(&a, 32u << 20);
    struct err *e = json_parse(&a, str_n(data, size), NULL, &body);
    if (!e)
        e = wire_decode_files(body, &f);
    if (!e)
        check(&a, &f);
    err_free(e);
    arena_done(&a);
    return 0;
}
