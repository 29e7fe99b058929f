// SPDX-License-Identifier: Apache-2.0
/* build_form.c — POST /build: the same names and context whether the form comes whole or in pieces.
 * The first byte chooses the size of the pieces; the boundary is "B". */
#include "host/build/form.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/native/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A directory of this process: several fuzz at once. */
static int scratch(void)
{
    char path[] = "/dev/shm/croft-fuzz-XXXXXX";

    if (!mkdtemp(path))
        abort();
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool run(int dir, struct str body, size_t piece, struct build *b, struct buf *context)
{
    struct form *f = NULL;
    int fd;

    struct builds all = {.config.context_bytes = 1u << 20};
    *b = (struct build){.builds = &all, .dir = dir, .archive = -1};
    buf_init(context, 64u << 20);
    struct err *e = form_new(STR("multipart/form-data; boundary=B"), b, &f);
    for (size_t at = 0; at < body.len && !e; at += piece)
        e = form_feed(f, str_first(str_from(body, at), piece));
    if (!e)
        e = form_end(f);
    form_free(f);
    fd = openat(dir, "context.tar.gz", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        char page[4096];
        for (ssize_t n; (n = read(fd, page, sizeof page)) > 0;)
            buf_add_mem(context, page, (size_t)n);
        close(fd);
        unlinkat(dir, "context.tar.gz", 0);
    }
    bool ok = !e;
    err_free(e);
    return ok;
}

static void check_names(const struct build *b)
{
    if (!b->tag_count || b->tag_count > BUILD_TAGS)
        abort();
    for (unsigned i = 0; i < b->tag_count; i++) {
        struct err *e = native_image_check(b->tags[i]);
        if (e)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int dir = -1;
    static struct build one, other;
    struct buf whole, cut;

    if (size == 0)
        return 0;
    if (dir < 0)
        dir = scratch();
    struct str body = str_n(data + 1, size - 1);
    bool ok = run(dir, body, body.len + 1, &one, &whole);
    if (run(dir, body, data[0] % 16 + 1u, &other, &cut) != ok)
        abort();
    if (ok) {
        check_names(&one);
        if (one.tag_count != other.tag_count ||
            memcmp(one.tags, other.tags, sizeof one.tags) != 0 ||
            !str_eq(buf_str(&whole), buf_str(&cut)))
            abort();
    }
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
