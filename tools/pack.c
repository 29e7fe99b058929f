// SPDX-License-Identifier: Apache-2.0
/* pack.c — pack FILE OUT: raw deflate data, as small as zlib makes it; see base/embed.h. */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define MAX (16u << 20)

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "pack: %s: %m\n", what);
    exit(1);
}

int main(int argc, char **argv)
{
    unsigned char *text = malloc(MAX), *packed = malloc(MAX);
    z_stream z = {0};

    if (argc != 3 || !text || !packed)
        die("usage: pack FILE OUT");
    FILE *in = fopen(argv[1], "re");
    size_t len = in ? fread(text, 1, MAX, in) : MAX;
    if (len == MAX)
        die(argv[1]);
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        die("zlib");
    z.next_in = text;
    z.avail_in = (uInt)len;
    z.next_out = packed;
    z.avail_out = MAX;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        die("zlib");
    FILE *out = fopen(argv[2], "we");
    if (!out || fwrite(packed, 1, z.total_out, out) != z.total_out || fclose(out))
        die(argv[2]);
    return 0;
}
