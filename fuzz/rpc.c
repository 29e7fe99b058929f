// SPDX-License-Identifier: Apache-2.0
/* fuzz/rpc.c — any bytes as a JSON-RPC message: what is accepted is written as a message that is
 * accepted again and is the same. */
#include "wire/rpc.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool pass(struct arena *a, struct str text, struct buf *out, struct rpc *m)
{
    own(err) e = rpc_parse(a, text, m);

    buf_init(out, 64u << 20);
    if (!e)
        rpc_put(out, m);
    return !e && !buf_failed(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_done(arena) a;
    own_done(buf) once = {0};
    own_done(buf) twice;
    struct rpc m, again;

    arena_init(&a, 256u << 20);
    buf_init(&twice, 0);
    if (!pass(&a, str_n(data, size), &once, &m))
        return 0;
    if (!pass(&a, buf_str(&once), &twice, &again) || again.kind != m.kind ||
        !str_eq(buf_str(&once), buf_str(&twice)))
        abort();
    return 0;
}
