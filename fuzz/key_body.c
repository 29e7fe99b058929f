// SPDX-License-Identifier: Apache-2.0
/* key_body.c — the body that makes a key: what is taken is bounded, grants no scope that has no
 * word, and says the same when it is told and asked for again. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "host/keys/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct arena *a, const struct key *want)
{
    own_done(buf) text;
    struct json *tree;
    struct key again;
    struct jw w;

    buf_init(&text, 1u << 20);
    if (!memchr(want->name, 0, sizeof want->name) || want->scopes & ~(unsigned)KEY_ALL ||
        want->starts_per_minute > 60000)
        abort();
    jw_init(&w, &text, JW_WEB);
    keys_put_one(&w, NULL, want, NULL);
    struct err *e = json_parse(a, buf_str(&text), NULL, &tree);
    if (!e) { /* what is told of a key is more than may be asked for */
        buf_reset(&text);
        jw_init(&w, &text, JW_WEB);
        JW_OBJECT(&w, NULL) {
            for (const struct json *m = tree->first; m; m = m->next)
                if (!str_ends(m->key, STR("_at")))
                    jw_value(&w, arena_cstr(a, m->key), m);
        }
        e = json_parse(a, buf_str(&text), NULL, &tree);
    }
    if (!e)
        e = keys_parse_want(tree, &again);
    if (e || strcmp(again.name, want->name) != 0 || again.scopes != want->scopes ||
        again.most_runtimes != want->most_runtimes ||
        again.starts_per_minute != want->starts_per_minute)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json *body;
    struct key want;
    struct arena a;

    arena_init(&a, 16u << 20);
    struct err *e = json_parse(&a, str_n(data, size), NULL, &body);
    if (!e)
        e = keys_parse_want(body, &want);
    if (!e)
        check(&a, &want);
    err_free(e);
    arena_done(&a);
    return 0;
}
