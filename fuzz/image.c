// SPDX-License-Identifier: Apache-2.0
/* image.c — any bytes as an image archive: pieces that lie inside it, or an error. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "image/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct archive_piece *p, size_t size)
{
    if (p->at > size || p->size > size - p->at)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct archive a;
    struct buf out;
    int fd = memfd_create("image", MFD_CLOEXEC);

    if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
        abort();
    struct err *e = archive_read(fd, size, &a);
    if (!e) {
        check(&a.config, size);
        for (uint32_t i = 0; i < a.layer_count; i++)
            check(&a.layers[i], size);
        if (!memchr(a.name, '\0', sizeof a.name))
            abort();
    }
    err_free(e);
    buf_init(&out, 1u << 20);
    err_free(archive_config(str_n(data, size), &out));
    buf_done(&out);
    close(fd);
    return 0;
}
