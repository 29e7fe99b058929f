// SPDX-License-Identifier: Apache-2.0
/* websocket.c — the frame codec and its inflate path: any split tells the same, within the limit.
 *
 * Byte 0: role, compression, context, small limit, frames built for the input; byte 1 seeds the
 * splits. Built frames (first byte, length byte, payload) lead past the head into the payload. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/rng.h"
#include "net/ws_frame.h"

enum { IS_CLIENT = 1, DEFLATE = 2, CONTEXT = 4, SMALL = 8, BUILT = 16 };
#define LIMIT       (64u << 10)
#define SMALL_LIMIT 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t limit_of(uint8_t flags)
{
    return flags & SMALL ? SMALL_LIMIT : LIMIT;
}

static uint64_t mix(uint64_t seen, const struct ws_event *ev)
{
    const uint64_t seed[2] = {seen, (uint64_t)ev->kind << 32 | (uint32_t)ev->code};

    return map_hash(seed, ev->data.p, ev->data.len);
}

/* max: longest piece; 0: all at once. Gives a hash of all that was told. */
static uint64_t run(uint8_t flags, struct str in, size_t max, uint64_t seed)
{
    struct ws_deflate_terms terms = {
        .on = flags & DEFLATE, .receive_bits = 15, .receive_forgets = !(flags & CONTEXT)};
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, seed);
    struct ws_reader r;
    uint64_t seen = 0;

    ws_reader_init(&r, flags & IS_CLIENT ? WS_CLIENT : WS_SERVER, limit_of(flags), &terms);
    while (in.len) {
        struct str piece = str_first(in, max ? 1 + rng_below(rng, max) : in.len);
        in = str_from(in, piece.len);
        own_free char *copy = malloc(piece.len ? piece.len : 1);
        memcpy(copy, piece.p, piece.len);
        struct str rest = str_n(copy, piece.len);
        for (;;) {
            struct ws_event ev = ws_reader_next(&r, &rest);
            if (ev.kind == WS_EV_NONE)
                break;
            if (ev.data.len > limit_of(flags) + WS_CONTROL_MAX)
                abort();
            seen = mix(seen, &ev);
        }
        if (rest.len || r.message.cap > limit_of(flags))
            abort();
        if (!r.kind && (r.message.p || (r.inflate && terms.receive_forgets)))
            abort(); /* nothing is held between messages */
    }
    ws_reader_done(&r);
    return seen;
}

static void build(uint8_t flags, struct str in, struct buf *out)
{
    const uint8_t key[4] = {1, 2, 3, 4};

    while (in.len >= 2) {
        uint8_t head[WS_HEAD_MAX];
        struct str payload = str_first(str_from(in, 2), (uint8_t)in.p[1]);
        bool masked = !(flags & IS_CLIENT);
        size_t n = ws_head_put(head, (uint8_t)in.p[0], payload.len, masked ? key : NULL);
        buf_add_mem(out, head, n);
        char *to = buf_reserve(out, payload.len ? payload.len : 1);
        if (masked)
            ws_mask_copy(to, payload.p, payload.len, key, 0);
        else if (payload.len)
            memcpy(to, payload.p, payload.len);
        buf_commit(out, payload.len);
        in = str_from(in, 2 + payload.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_done(buf) built;

    buf_init(&built, 64u << 20);
    if (size < 3)
        return 0;
    struct str in = str_n(data + 2, size - 2);
    if (data[0] & BUILT) {
        build(data[0], in, &built);
        in = buf_str(&built);
    }
    uint64_t whole = run(data[0], in, 0, 0);
    if (run(data[0], in, 1, 0) != whole || run(data[0], in, 9, data[1]) != whole ||
        run(data[0], in, 1 + in.len / 2, data[1]) != whole)
        abort();
    return 0;
}
