// SPDX-License-Identifier: Apache-2.0
/* decode.c — gzip, zstd and xz as a source of bytes.
 *
 * Several members in a row count as one stream, as gzip, zstd and xz all have it. */
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "image/source.h"

#define IN_BYTES   (64u << 10)
#define WINDOW_LOG 27 /* of zstd: 128 MB */
#define XZ_MEMORY  (256ull << 20)

enum kind { PLAIN, GZIP, ZSTD, XZ };

struct decoder {
    struct source source;
    struct source *from;
    enum kind kind;
    unsigned char in[IN_BYTES];
    size_t at, len; /* of in that are not used yet */
    bool eof;       /* of from */
    bool ended;     /* a member ended and nothing followed yet */
    z_stream z;
    lzma_stream xz;
    ZSTD_DStream *zstd;
};

static fallible decode_refill(struct decoder *d)
{
    if (d->at < d->len || d->eof)
        return NULL;
    TRY(d->from->read(d->from, d->in, sizeof d->in, &d->len));
    d->at = 0;
    d->eof = d->len == 0;
    return NULL;
}

static fallible decode_broken(const char *kind)
{
    return err_new(ERR_INVALID, "the %s data is broken or cut short", kind);
}

static fallible step_plain(struct decoder *d, void *p, size_t n, size_t *ret_len)
{
    size_t have = d->len - d->at, got = n < have ? n : have;

    memcpy(p, d->in + d->at, got);
    d->at += got;
    *ret_len = got;
    return NULL;
}

static fallible step_gzip(struct decoder *d, void *p, size_t n, size_t *ret_len)
{
    if (d->ended && inflateReset(&d->z) != Z_OK)
        return decode_broken("gzip");
    d->ended = false;
    d->z.next_in = d->in + d->at;
    d->z.avail_in = (uInt)(d->len - d->at);
    d->z.next_out = p;
    d->z.avail_out = n > (1u << 30) ? 1u << 30 : (uInt)n;
    uInt room = d->z.avail_out;
    int r = inflate(&d->z, Z_NO_FLUSH);
    d->at = d->len - d->z.avail_in;
    *ret_len = room - d->z.avail_out;
    d->ended = r == Z_STREAM_END;
    return r == Z_OK || r == Z_STREAM_END || (r == Z_BUF_ERROR && !d->eof) ? NULL
                                                                           : decode_broken("gzip");
}

static fallible step_zstd(struct decoder *d, void *p, size_t n, size_t *ret_len)
{
    ZSTD_inBuffer in = {d->in, d->len, d->at};
    ZSTD_outBuffer out = {p, n, 0};
    size_t r = ZSTD_decompressStream(d->zstd, &out, &in);

    d->at = in.pos;
    *ret_len = out.pos;
    d->ended = r == 0;
    if (ZSTD_isError(r))
        return decode_broken("zstd");
    return d->eof && r != 0 && !out.pos ? decode_broken("zstd") : NULL;
}

static fallible step_xz(struct decoder *d, void *p, size_t n, size_t *ret_len)
{
    d->xz.next_in = d->in + d->at;
    d->xz.avail_in = d->len - d->at;
    d->xz.next_out = p;
    d->xz.avail_out = n;
    lzma_ret r = lzma_code(&d->xz, d->eof ? LZMA_FINISH : LZMA_RUN);
    d->at = d->len - d->xz.avail_in;
    *ret_len = n - d->xz.avail_out;
    d->ended = r == LZMA_STREAM_END;
    if (r == LZMA_MEMLIMIT_ERROR)
        return err_new(ERR_TOO_LARGE, "the xz data wants more memory than croft gives it");
    return r == LZMA_OK || r == LZMA_STREAM_END ? NULL : decode_broken("xz");
}

static fallible decoder_read(struct source *s, void *p, size_t n, size_t *ret_len)
{
    struct decoder *d = (struct decoder *)s;

    for (;;) {
        TRY(decode_refill(d));
        *ret_len = 0;
        if (d->eof && (d->kind == PLAIN || d->ended))
            return NULL;
        switch (d->kind) {
        case PLAIN:
            TRY(step_plain(d, p, n, ret_len));
            break;
        case GZIP:
            TRY(step_gzip(d, p, n, ret_len));
            break;
        case ZSTD:
            TRY(step_zstd(d, p, n, ret_len));
            break;
        case XZ:
            TRY(step_xz(d, p, n, ret_len));
            if (d->ended) /* it has seen the end of the input */
                d->eof = true;
            break;
        }
        if (*ret_len)
            return NULL;
    }
}

static enum kind kind_of(const unsigned char *p, size_t n)
{
    if (n >= 2 && p[0] == 0x1f && p[1] == 0x8b)
        return GZIP;
    if (n >= 4 && memcmp(p, "\x28\xb5\x2f\xfd", 4) == 0)
        return ZSTD;
    if (n >= 6 && memcmp(p,
                         "\xfd"
                         "7zXZ\0",
                         6) == 0)
        return XZ;
    return PLAIN;
}

static fallible decode_start(struct decoder *d)
{
    TRY(source_fill(d->from, d->in, 512, &d->len));
    d->kind = kind_of(d->in, d->len);
    bool ok = true;
    if (d->kind == GZIP)
        ok = inflateInit2(&d->z, 15 + 16) == Z_OK;
    if (d->kind == XZ)
        ok = lzma_stream_decoder(&d->xz, XZ_MEMORY, LZMA_CONCATENATED) == LZMA_OK;
    if (d->kind == ZSTD) {
        d->zstd = ZSTD_createDStream();
        ok = d->zstd &&
             !ZSTD_isError(ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, WINDOW_LOG));
    }
    return ok ? NULL : err_no_memory();
}

fallible decoder_new(struct source *from, struct decoder **ret)
{
    own(decoder) d = mem_try(sizeof *d);

    if (!d)
        return err_no_memory();
    memset(d, 0, sizeof *d);
    d->source.read = decoder_read;
    d->from = from;
    TRY(decode_start(d));
    *ret = take(&d);
    return NULL;
}

void decoder_free(struct decoder *d)
{
    if (!d)
        return;
    if (d->kind == GZIP)
        inflateEnd(&d->z);
    lzma_end(&d->xz);
    ZSTD_freeDStream(d->zstd);
    free(d);
}

struct source *decoder_source(struct decoder *d)
{
    return &d->source;
}
