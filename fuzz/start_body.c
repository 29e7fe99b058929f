// SPDX-License-Identifier: Apache-2.0
/* start_body.c — the body of POST /start: what is taken has its bounds, and the words of its
 * command are words. */
#include <stdlib.h>
#include <string.h>

#include "host/runtime/words.h"
#include "wire/runtime.h"
#include "wire/unique.h"
#include "wire/wants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct arena *a, const struct json *body)
{
    struct wire_start s;
    const char *const *words;
    size_t count = 0;
    struct err *e = wire_decode_start(body, &s);

    if (!e) {
        if (!s.session_id.len || s.session_id.len > WIRE_SESSION_MAX || !s.image.len ||
            s.resource_factor < 1 || s.resource_factor > WIRE_FACTOR_MAX || s.run_as_user < -1)
            abort();
        e = words_of(a, s.command, &words, &count);
        if (!e && (count > WORDS_MOST || words[count] || (s.command && !count)))
            abort();
        if (!e && !words_port(words, s.environment, 9))
            abort();
        if (!e)
            (void)words_face(words);
    }
    err_free(e);
}

/* What is taken is bounded, and says the same when it is read back. */
static void check_wants(struct arena *a, const struct json *body)
{
    struct wire_wants wants, again;
    bool any = false, back = false;
    own_done(buf) text;
    struct json *tree;
    struct jw w;
    struct err *e = wire_decode_wants(body, &wants, &any);

    buf_init(&text, 1u << 20);
    if (!e && any) {
        if (wants.mount_count > WIRE_MOUNTS || wants.hostname.len > 63)
            abort();
        jw_init(&w, &text, JW_WEB);
        JW_OBJECT(&w, NULL)
            wire_put_wants(&w, &wants);
        e = json_parse(a, buf_str(&text), NULL, &tree);
        if (!e)
            e = wire_decode_wants(tree, &again, &back);
        if (e || again.memory_bytes != wants.memory_bytes || again.cpu_milli != wants.cpu_milli ||
            again.pids != wants.pids || again.mount_count != wants.mount_count)
            abort();
    }
    err_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str id;
    struct json *body;
    struct arena a;

    arena_init(&a, 16u << 20);
    struct err *e = json_parse(&a, str_n(data, size), NULL, &body);
    if (!e) {
        err_free(wire_check_unique(str_n(data, size), body));
        check(&a, body);
        check_wants(&a, body);
        e = wire_decode_runtime_id(body, &id);
    }
    err_free(e);
    arena_done(&a);
    return 0;
}
