// SPDX-License-Identifier: Apache-2.0
/* fuzz/json.c — what is read, written and read again is the same, in every mode.
 *
 * The first byte chooses the limits and the writer's flags; the rest is the document. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "fuzz/json: %s\n", #cond);                                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void check(struct str text, const struct json_limits *limits, unsigned flags)
{
    own_done(arena) a;
    own_done(buf) once;
    own_done(buf) twice;
    struct json *v, *again;

    arena_init(&a, 32 << 20);
    buf_init(&once, 32 << 20);
    buf_init(&twice, 32 << 20);
    own(err) e = json_parse(&a, text, limits, &v);
    if (e)
        return;
    json_write(&once, v, flags);
    MUST(!buf_failed(&once));
    const struct json_limits wider = {.depth = limits->depth, .allow_nan = limits->allow_nan};
    own(err) refused = json_parse(&a, buf_str(&once), &wider, &again);
    if (refused)
        fprintf(stderr, "%.*s\n%s\n", (int)once.len, once.p, err_text(refused));
    MUST(!refused);
    if (!limits->allow_nan) /* NaN is unequal to itself, and null when it may not be written */
        MUST(json_equal(v, again) && json_equal(again, v));
    json_write(&twice, again, flags);
    MUST(str_eq(buf_str(&once), buf_str(&twice)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct json_limits limits = {
        .size_bytes = data[0] & 0x10 ? 100 : 0,
        .depth = data[0] & 0x20 ? 3 : 0,
        .allow_nan = data[0] & 0x80,
    };
    struct str text = str_n(data + 1, size - 1);
    if (data[0] & 0x40) { /* an arena that runs out somewhere */
        own_done(arena) small;
        struct json *v;
        arena_init(&small, size * 8);
        err_free(json_parse(&small, text, &limits, &v));
    }
    check(text, &limits, data[0] & 15u);
    return 0;
}
