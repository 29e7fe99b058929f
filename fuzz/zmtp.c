// SPDX-License-Identifier: Apache-2.0
/* zmtp.c — the ZMTP reader: any split tells the same, and nothing is kept over the limit.
 *
 * Byte 0: role, small limit, handshake given for free; byte 1 seeds the splits. Messages go through
 * the Jupyter parser as well. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/rng.h"
#include "guest/jupyter/message.h"
#include "guest/jupyter/zmtp.h"

enum { IS_SUB = 1, SMALL = 2, SHAKEN = 4 };
#define LIMIT (64u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t mix(uint64_t seen, const struct zmtp *z, enum zmtp_event ev, size_t limit)
{
    const uint64_t seed[2] = {seen, ev};
    size_t total = 0;
    struct arena a;
    struct message m;

    if (ev == ZMTP_FAIL)
        return map_hash(seed, err_text(z->why), strlen(err_text(z->why)));
    if (ev != ZMTP_MESSAGE)
        return map_hash(seed, "", 0);
    for (unsigned i = 0; i < z->message.count; i++) {
        const uint64_t part_seed[2] = {seen, i + z->message.dropped_bytes};
        seen = map_hash(part_seed, z->message.parts[i].p, z->message.parts[i].len);
        total += z->message.parts[i].len;
    }
    if (total > limit)
        abort();
    arena_init(&a, 1u << 20);
    err_free(message_parse_head(&z->message, &a, &m));
    err_free(message_parse(&z->message, STR("key"), &a, &m));
    arena_done(&a);
    return seen;
}

/* max: longest piece; 0: all at once. Gives a hash of all that was told. */
static uint64_t run(uint8_t flags, struct str in, size_t max, uint64_t seed)
{
    size_t limit = flags & SMALL ? 100 : LIMIT;
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, seed);
    struct zmtp z;
    uint64_t seen = 0;

    zmtp_init(&z, flags & IS_SUB ? ZMTP_SUB : ZMTP_DEALER, limit);
    while (in.len) {
        struct str piece = str_first(in, max ? 1 + rng_below(rng, max) : in.len);
        in = str_from(in, piece.len);
        own_free char *copy = malloc(piece.len ? piece.len : 1);
        memcpy(copy, piece.p, piece.len);
        struct str rest = str_n(copy, piece.len);
        for (;;) {
            enum zmtp_event ev = zmtp_next(&z, &rest);
            if (ev == ZMTP_NONE)
                break;
            seen = mix(seen, &z, ev, limit);
        }
        if (rest.len || z.body.cap > limit || z.command.cap > ZMTP_COMMAND_MAX)
            abort();
    }
    zmtp_done(&z);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_done(buf) in;

    buf_init(&in, 16u << 20);
    if (size < 3)
        return 0;
    if (data[0] & SHAKEN) {
        struct str router = STR("\4\x1c\5READY\13Socket-Type\0\0\0\6ROUTER");
        struct str pub = STR("\4\x19\5READY\13Socket-Type\0\0\0\3PUB");
        zmtp_put_greeting(&in);
        buf_add(&in, data[0] & IS_SUB ? pub : router);
    }
    buf_add_mem(&in, data + 2, size - 2);
    uint64_t whole = run(data[0], buf_str(&in), 0, 0);
    if (run(data[0], buf_str(&in), 1, 0) != whole ||
        run(data[0], buf_str(&in), 9, data[1]) != whole ||
        run(data[0], buf_str(&in), 1 + in.len / 2, data[1]) != whole)
        abort();
    return 0;
}
