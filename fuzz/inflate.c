// SPDX-License-Identifier: Apache-2.0
/* inflate — any bytes as deflate data: taken or refused as zlib does, with the same result, whole
 * and byte by byte. */
#include <stdlib.h>
#include <zlib.h>

#include "base/inflate.h"
#include "base/mem.h"
#include "base/own.h"

#define MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool cond)
{
    if (!cond)
        abort();
}

static bool byte_by_byte(struct str packed, struct buf *out)
{
    own_free struct inflate *z = mem_new(sizeof *z);
    enum inflated how;

    inflate_init(z);
    do {
        struct str in = str_first(packed, 1), some;
        how = inflate_next(z, &in, packed.len <= 1, &some);
        buf_add(out, some);
        packed = str_from(packed, (packed.len ? 1 : 0) - in.len);
    } while (how == INFLATE_SOME || how == INFLATE_MORE);
    return how == INFLATE_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char theirs[MAX];
    struct str packed = str_n(data, size);
    struct buf whole, pieces;
    z_stream z = {
        .next_in = (Bytef *)data, .avail_in = (uInt)size, .next_out = theirs, .avail_out = MAX};

    buf_init(&whole, SIZE_MAX / 2);
    buf_init(&pieces, SIZE_MAX / 2);
    struct err *e = inflate_all(packed, &whole);
    bool good = byte_by_byte(packed, &pieces);
    must(good == !e);
    must(!good || str_eq(buf_str(&whole), buf_str(&pieces)));
    must(inflateInit2(&z, -15) == Z_OK);
    int rc = inflate(&z, Z_FINISH);
    if (rc == Z_STREAM_END)
        must(good && str_eq(buf_str(&whole), str_n(theirs, z.total_out)));
    else if (z.avail_out)
        must(!good);
    inflateEnd(&z);
    err_free(e);
    buf_done(&whole);
    buf_done(&pieces);
    return 0;
}
