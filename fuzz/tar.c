// SPDX-License-Identifier: Apache-2.0
/* tar.c — any bytes, packed or not: clean names to the end, or an error. */
#include <stdlib.h>
#include <string.h>

#include "image/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
    struct str rest = str_of(name), part;

    while (rest.len) {
        str_cut(&rest, '/', &part);
        if (!part.len || str_eq(part, STR(".")) || str_eq(part, STR("..")))
            abort();
    }
}

static void read_all(struct source *from)
{
    struct source_hash hash;
    struct tar t;
    const struct tar_entry *e = NULL;
    struct err *err;
    char piece[1000];

    source_hash_init(&hash, from, 4u << 20);
    tar_init(&t, &hash.source);
    while (!(err = tar_next(&t, &e)) && e) {
        check_name(e->path);
        if (e->type == TAR_HARD_LINK)
            check_name(e->target);
        size_t n = 1;
        if (e->mode & 1) /* half of them are passed over */
            err = tar_read(&t, piece, sizeof piece, &n);
        if (err)
            break;
    }
    err_free(err);
    tar_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source_mem mem;
    struct decoder *d = NULL;

    source_mem_init(&mem, data, size);
    struct err *e = decoder_new(&mem.source, &d);
    if (!e)
        read_all(decoder_source(d));
    err_free(e);
    decoder_free(d);
    return 0;
}
