// SPDX-License-Identifier: Apache-2.0
/* build_hear.c — what the sandbox of a build says: the same whole or in pieces, within its bounds.
 * The first byte chooses the size of the pieces, and whether it is asked for its FROMs. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/build/inner.h"
#include "sandbox/native/msg.h"

#define IMAGE_BYTES 1000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool run(struct builds *all, bool scanning, struct str words, size_t piece, struct build *b)
{
    struct err *e = NULL;

    *b = (struct build){.builds = all, .dir = all->dir, .archive = -1, .scanning = scanning};
    buf_init(&b->said, BUILD_LOG);
    for (size_t at = 0; at < words.len && !e; at += piece)
        e = build_hear(b, str_first(str_from(words, at), piece));
    if (b->base_count > BUILD_BASES || b->said.len > BUILD_LOG || (scanning && b->taking) ||
        b->left > IMAGE_BYTES || (b->archive >= 0 && lseek(b->archive, 0, SEEK_END) > IMAGE_BYTES))
        abort();
    for (unsigned i = 0; i < b->base_count; i++)
        if (native_image_check(b->bases[i]))
            abort();
    bool ok = !e;
    err_free(e);
    return ok;
}

static void end(struct build *b)
{
    buf_done(&b->said);
    if (b->archive >= 0)
        close(b->archive);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct builds all;
    static struct build one, other;

    if (size == 0)
        return 0;
    if (!all.config.image_bytes) {
        all.config.image_bytes = IMAGE_BYTES;
        all.dir = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    struct str words = str_n(data + 1, size - 1);
    bool scanning = data[0] & 0x80;
    bool ok = run(&all, scanning, words, words.len + 1, &one);
    if (run(&all, scanning, words, data[0] % 16 + 1u, &other) != ok ||
        one.base_count != other.base_count ||
        memcmp(one.bases, other.bases, sizeof one.bases) != 0 || one.taking != other.taking ||
        one.left != other.left || one.failed != other.failed || one.scanned != other.scanned)
        abort();
    if (ok && !str_eq(buf_str(&one.said), buf_str(&other.said)))
        abort();
    end(&one);
    end(&other);
    return 0;
}
