// SPDX-License-Identifier: Apache-2.0
/* ws_deflate_test.c — one message squeezed and unpacked, in every window and at every limit. */
#include "net/ws_deflate.h"

#include <limits.h>

#include "base/own.h"
#include "base/rng.h"
#include "test/test.h"

#define SIZE 60000

/* Repeats itself at distances up to 2^15, so that a window too large would be noticed. */
static void fill(char *text)
{
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 3);

    for (size_t i = 0; i < SIZE; i++) {
        size_t back = 200 + rng_below(rng, 32000), n = 20 + rng_below(rng, 60);
        if (i > back + n && i + n < SIZE && i % 3) {
            memcpy(text + i, text + i - back, n);
            i += n - 1;
        } else {
            text[i] = (char)('a' + rng_below(rng, 26));
        }
    }
}

static enum ws_inflated unpack(struct str packed, unsigned bits, struct buf *out)
{
    struct ws_inflate *z = ws_inflate_new(bits);

    CHECK(z != NULL);
    enum ws_inflated result = ws_inflate_add(z, packed, out);
    if (result == WS_INFLATED)
        result = ws_inflate_end(z, true, out);
    ws_inflate_free(z);
    return result;
}

TEST(ws_deflate_keeps_within_the_window_agreed)
{
    static char text[SIZE];

    fill(text);
    for (unsigned bits = 8; bits <= 15; bits++) {
        own_done(buf) packed, out;
        buf_init(&packed, 0);
        buf_init(&out, SIZE);
        CHECK(ws_deflate(str_n(text, SIZE), bits, &packed));
        CHECK(packed.len < SIZE);
        CHECK_INT(unpack(buf_str(&packed), bits, &out), WS_INFLATED);
        CHECK(str_eq(buf_str(&out), str_n(text, SIZE)));
    }
}

TEST(ws_deflate_leaves_alone_what_would_not_shrink)
{
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 5);
    char noise[5000], same[WS_DEFLATE_MIN - 1] = {0};
    own_done(buf) out;

    buf_init(&out, 0);
    rng->fill(rng, noise, sizeof noise);
    CHECK(!ws_deflate(str_n(noise, sizeof noise), 15, &out));
    CHECK(!ws_deflate(str_n(same, sizeof same), 15, &out));
    CHECK(!out.p);
}

TEST(ws_inflate_stops_at_the_limit_and_not_before)
{
    static char zeros[SIZE];

    for (size_t limit = SIZE - 1; limit <= SIZE + 1; limit++) {
        own_done(buf) packed, out;
        buf_init(&packed, 0);
        buf_init(&out, limit);
        CHECK(ws_deflate(str_n(zeros, SIZE), 12, &packed));
        CHECK_INT(unpack(buf_str(&packed), 12, &out), limit < SIZE ? WS_INFLATE_FULL : WS_INFLATED);
        CHECK(out.cap <= limit);
    }
}

TEST(ws_deflate_without_memory_says_no)
{
    static char zeros[SIZE];

    for (unsigned n = 1, fired = 1; fired; n++) {
        own_done(buf) packed;
        buf_init(&packed, 0);
        fault_at(n);
        bool done = ws_deflate(str_n(zeros, SIZE), 12, &packed);
        fired = fault_fired();
        fault_at(0);
        CHECK_INT(done, !fired);
        CHECK(done || !packed.p);
    }
}
