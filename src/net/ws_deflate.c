// SPDX-License-Identifier: Apache-2.0
/* ws_deflate.c — zlib, one message at a time; see ws_deflate.h for the choices.
 *
 * A sender cuts 00 00 ff ff off each message, and the receiver puts it back. Then the data must end
 * exactly between two blocks: so a message cut short is found. */
#include "net/ws_deflate.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"

#define DEFLATE_MEM_LEVEL 5
#define TAIL_LEN          4

struct ws_inflate {
    z_stream z;
};

/* Ours, so that zlib's memory can be made to fail in tests too. */
static void *zlib_alloc(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return calloc(count, size);
}

static void zlib_free(void *unused, void *p)
{
    (void)unused;
    free(p);
}

static bool deflate_all(z_stream *z, struct str data, struct buf *out)
{
    z->next_in = (Bytef *)data.p;
    z->avail_in = (uInt)data.len;
    do {
        char *room = out->len == out->limit_bytes ? NULL : buf_reserve(out, 1);
        if (!room)
            return false;
        size_t size = out->cap - out->len;
        z->next_out = (Bytef *)room;
        z->avail_out = (uInt)size;
        if (deflate(z, Z_SYNC_FLUSH) != Z_OK)
            return false;
        buf_commit(out, size - z->avail_out);
    } while (z->avail_out == 0);
    return true;
}

bool ws_deflate(struct str data, unsigned bits, struct buf *out)
{
    z_stream z = {.zalloc = zlib_alloc, .zfree = zlib_free};

    if (data.len < WS_DEFLATE_MIN || data.len > UINT32_MAX / 2)
        return false;
    /* zlib's smallest raw window is 2^9, of which it uses 250 bytes: that fits 2^8 as well. */
    int window = bits < 9 ? 9 : bits > WS_DEFLATE_BITS ? WS_DEFLATE_BITS : (int)bits;
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, -window, DEFLATE_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    buf_init(out, data.len);
    bool done = buf_reserve(out, data.len / 4) && deflate_all(&z, data, out) && out->len > TAIL_LEN;
    deflateEnd(&z);
    if (!done) {
        buf_done(out);
        return false;
    }
    out->len -= TAIL_LEN;
    return true;
}

struct ws_inflate *ws_inflate_new(unsigned bits)
{
    struct ws_inflate *f = mem_try(sizeof *f);

    if (!f)
        return NULL;
    f->z.zalloc = zlib_alloc;
    f->z.zfree = zlib_free;
    if (inflateInit2(&f->z, -(int)bits) != Z_OK) {
        free(f);
        return NULL;
    }
    return f;
}

void ws_inflate_free(struct ws_inflate *f)
{
    if (!f)
        return;
    inflateEnd(&f->z);
    free(f);
}

/* A final block ends the stream for zlib, not for us: what follows may refer to what was before. */
static enum ws_inflated start_again(z_stream *z)
{
    uInt size = 0;

    if (inflateGetDictionary(z, NULL, &size) != Z_OK)
        return WS_INFLATE_CORRUPT;
    own_free Bytef *window = malloc(size ? size : 1);
    if (!window)
        return WS_INFLATE_NO_MEMORY;
    if (inflateGetDictionary(z, window, &size) != Z_OK || inflateReset(z) != Z_OK)
        return WS_INFLATE_CORRUPT;
    if (size == 0)
        return WS_INFLATED;
    int result = inflateSetDictionary(z, window, size);
    return result == Z_OK          ? WS_INFLATED
           : result == Z_MEM_ERROR ? WS_INFLATE_NO_MEMORY
                                   : WS_INFLATE_CORRUPT;
}

/* Only Z_BLOCK stops there, and calling inflate once more would lose the mark. */
static bool between_blocks(const z_stream *z, int flush)
{
    return flush == Z_BLOCK && (z->data_type & 128);
}

static enum ws_inflated inflate_piece(z_stream *z, struct str piece, int flush, struct buf *into)
{
    z->next_in = (Bytef *)piece.p;
    z->avail_in = (uInt)piece.len;
    do {
        bool full = into->len == into->limit_bytes;
        char beyond, *room = full ? &beyond : buf_reserve(into, 1);
        if (!room)
            return WS_INFLATE_NO_MEMORY;
        size_t size = full ? 1 : into->cap - into->len;
        z->next_out = (Bytef *)room;
        z->avail_out = (uInt)(size > UINT32_MAX ? UINT32_MAX : size);
        size = z->avail_out;
        int result = inflate(z, flush);
        size_t got = size - z->avail_out;
        if (full && got)
            return WS_INFLATE_FULL;
        buf_commit(into, got);
        if (result == Z_MEM_ERROR)
            return WS_INFLATE_NO_MEMORY;
        if (result == Z_STREAM_END) {
            enum ws_inflated again = start_again(z);
            if (again != WS_INFLATED)
                return again;
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return WS_INFLATE_CORRUPT;
        }
    } while (z->avail_in || (z->avail_out == 0 && !between_blocks(z, flush)));
    return WS_INFLATED;
}

enum ws_inflated ws_inflate_add(struct ws_inflate *f, struct str piece, struct buf *into)
{
    return inflate_piece(&f->z, piece, Z_NO_FLUSH, into);
}

enum ws_inflated ws_inflate_end(struct ws_inflate *f, bool forget, struct buf *into)
{
    enum ws_inflated result = inflate_piece(&f->z, STR("\0\0\xff\xff"), Z_BLOCK, into);

    if (result == WS_INFLATED && !between_blocks(&f->z, Z_BLOCK))
        result = WS_INFLATE_CORRUPT;
    if (result == WS_INFLATED && forget && inflateReset(&f->z) != Z_OK)
        result = WS_INFLATE_CORRUPT;
    return result;
}
