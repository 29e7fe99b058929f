// SPDX-License-Identifier: Apache-2.0
/* inflate_test.c — our reader of deflate data against zlib's writer, and against damage. */
#include "base/inflate.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "test/test.h"

#define TEXT_MAX (200u << 10)

/* Something of words, runs and noise, so that every kind of block and code appears. */
static void make_text(struct buf *b, uint64_t seed, size_t len)
{
    struct rng_fixed r;
    struct rng *rng = rng_fixed_init(&r, seed);
    unsigned char dice[3];

    buf_init(b, TEXT_MAX);
    while (b->len < len) {
        rng->fill(rng, dice, sizeof dice);
        if (dice[0] < 80 && b->len > 300) {
            size_t n = (dice[1] & 63) + 3, back = (size_t)dice[2] * (b->len / 256) + n;
            char piece[80];
            if (back <= b->len) {
                memcpy(piece, b->p + b->len - back, n);
                buf_add_mem(b, piece, n);
            }
        } else if (dice[0] < 100) {
            for (int i = 0; i < dice[1] * 3; i++)
                buf_add_char(b, (char)dice[2]);
        } else {
            buf_add_char(b, (char)(dice[0] < 200 ? 'a' + dice[1] % 9 : dice[1]));
        }
    }
    b->len = len;
    CHECK(!buf_failed(b));
}

static void pack(struct buf *packed, struct str text, int level, int strategy)
{
    z_stream z = {0};

    buf_init(packed, 2 * TEXT_MAX);
    CHECK(deflateInit2(&z, level, Z_DEFLATED, -15, 8, strategy) == Z_OK);
    z.next_in = (Bytef *)(text.p ? text.p : "");
    z.avail_in = (uInt)text.len;
    z.next_out = (Bytef *)buf_reserve(packed, TEXT_MAX + 4096);
    z.avail_out = TEXT_MAX + 4096;
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    buf_commit(packed, z.total_out);
    deflateEnd(&z);
}

/* In pieces of the size given; the last answer. */
static enum inflated unpack(struct str packed, size_t piece, struct buf *out)
{
    own_free struct inflate *z = mem_new(sizeof *z);
    enum inflated how;

    buf_init(out, 2 * TEXT_MAX);
    inflate_init(z);
    for (;;) {
        struct str in = str_first(packed, piece), some;
        size_t had = in.len;
        how = inflate_next(z, &in, had == packed.len, &some);
        buf_add(out, some);
        packed = str_from(packed, had - in.len);
        if (how == INFLATE_END || how == INFLATE_CORRUPT)
            return how;
        CHECK(how == INFLATE_SOME || in.len == 0);
        CHECK(how == INFLATE_SOME || packed.len);
    }
}

TEST(deflated_data_comes_back_whatever_packed_it_and_however_it_is_cut)
{
    static const size_t sizes[] = {0, 1, 300, 33000, 70000, 200000};
    static const size_t pieces[] = {1, 7, 8, 9, 4096, 1u << 20};
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE};

    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        own_done(buf) text;
        make_text(&text, s, sizes[s]);
        for (int level = 0; level <= 9; level += 3)
            for (size_t k = 0; k < ARRAY_LEN(strategies); k++) {
                own_done(buf) packed, out;
                pack(&packed, buf_str(&text), level, strategies[k]);
                enum inflated how = unpack(buf_str(&packed), pieces[(s + k) % 6], &out);
                CHECK_INT(how, INFLATE_END);
                CHECK(str_eq(buf_str(&out), buf_str(&text)));
            }
    }
}

TEST(deflated_data_that_is_cut_off_is_refused_at_every_length)
{
    for (int level = 0; level <= 9; level += 9) {
        own_done(buf) text, packed;
        make_text(&text, 5, 2000);
        pack(&packed, buf_str(&text), level, Z_DEFAULT_STRATEGY);
        for (size_t n = 0; n < packed.len; n++) {
            own_done(buf) out;
            CHECK_INT(unpack(str_first(buf_str(&packed), n), 1u << 20, &out), INFLATE_CORRUPT);
            buf_done(&out);
            CHECK_INT(unpack(str_first(buf_str(&packed), n), 3, &out), INFLATE_CORRUPT);
        }
    }
}

/* What zlib takes we take, with the same result; what it refuses we refuse. */
TEST(damaged_deflated_data_is_judged_as_zlib_does)
{
    own_done(buf) text, packed;
    own_free unsigned char *theirs = mem_new(2 * TEXT_MAX);
    struct rng_fixed r;
    struct rng *rng = rng_fixed_init(&r, 77);
    unsigned refused = 0, taken = 0;

    make_text(&text, 9, 3000);
    pack(&packed, buf_str(&text), 9, Z_DEFAULT_STRATEGY);
    for (int i = 0; i < 4000; i++) {
        uint16_t dice[2];
        z_stream z = {0};
        own_done(buf) out;
        rng->fill(rng, dice, sizeof dice);
        size_t at = i & 1 ? dice[0] % 100u : dice[0] % packed.len;
        char was = packed.p[at];
        packed.p[at] = (char)(was ^ (1 << dice[1] % 8));
        enum inflated how = unpack(buf_str(&packed), 1u << 20, &out);
        CHECK(inflateInit2(&z, -15) == Z_OK);
        z.next_in = (Bytef *)packed.p;
        z.avail_in = (uInt)packed.len;
        z.next_out = theirs;
        z.avail_out = 2 * TEXT_MAX;
        int rc = inflate(&z, Z_FINISH);
        CHECK_INT(how == INFLATE_END, rc == Z_STREAM_END);
        if (rc == Z_STREAM_END)
            CHECK(str_eq(buf_str(&out), str_n(theirs, z.total_out)));
        *(rc == Z_STREAM_END ? &taken : &refused) += 1;
        inflateEnd(&z);
        packed.p[at] = was;
    }
    CHECK(refused > 100 && taken > 100);
}

TEST(a_whole_stream_is_unpacked_up_to_the_limit_given)
{
    own_done(buf) text, packed, out;

    make_text(&text, 3, 100000);
    pack(&packed, buf_str(&text), 6, Z_DEFAULT_STRATEGY);
    buf_init(&out, 100000);
    CHECK_OK(inflate_all(buf_str(&packed), &out));
    CHECK(str_eq(buf_str(&out), buf_str(&text)));
    buf_done(&out);
    buf_init(&out, 99999);
    CHECK_ERR(inflate_all(buf_str(&packed), &out), ERR_TOO_LARGE, "");
    buf_reset(&out);
    CHECK_ERR(inflate_all(STR("\xff\xff"), &out), ERR_CORRUPT, "damaged");
}
