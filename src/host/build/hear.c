// SPDX-License-Identifier: Apache-2.0
/* hear.c — what the sandbox of a build says: lines of ours, then the archive, or the log of why
 * there is none. A Dockerfile's commands run there: nothing it says is believed. */
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "host/build/inner.h"
#include "sandbox/native/msg.h"

static fallible take_base(struct build *b, struct str name)
{
    char text[BUILD_NAME] = "";

    if (name.len >= sizeof text || memchr(name.p, '\0', name.len))
        return err_new(ERR_INVALID, "FROM: the name is too long");
    memcpy(text, name.p, name.len);
    TRY_WRAP(native_image_check(text), "FROM");
    if (b->base_count == BUILD_BASES)
        return err_new(ERR_LIMIT, "FROM: more than %d images", BUILD_BASES);
    memcpy(b->bases[b->base_count++], text, sizeof text);
    return NULL;
}

static fallible take_size(struct build *b, struct str text)
{
    uint64_t size;

    if (!str_to_u64(text, &size) || size > b->builds->config.image_bytes)
        return err_new(ERR_TOO_LARGE, "the image is larger than %llu bytes",
                       (unsigned long long)b->builds->config.image_bytes);
    b->archive = openat(b->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (b->archive < 0)
        return err_sys("make a file for the image");
    b->left = size;
    b->taking = true;
    return NULL;
}

static fallible take_line(struct build *b, struct str line)
{
    if (b->scanning && str_starts(line, STR("CROFT-FROM ")))
        return take_base(b, str_from(line, 11));
    if (b->scanning && str_eq(line, STR("CROFT-END")))
        b->scanned = true;
    else if (!b->scanning && str_starts(line, STR("CROFT-OK ")))
        return take_size(b, str_from(line, 9));
    else if (str_starts(line, STR("CROFT-ERR "))) {
        b->failed = true;
        buf_add(&b->said, str_from(line, 10)); /* what follows is its log */
        buf_add_cstr(&b->said, ":\n");
    }
    return NULL;
}

/* Takes lines off piece until the archive, or the log of a failure, begins. */
static fallible take_words(struct build *b, struct str *piece)
{
    while (piece->len && !b->taking && !b->failed) {
        ptrdiff_t end = str_find_char(*piece, '\n');
        size_t n = end < 0 ? piece->len : (size_t)end;
        buf_add(&b->said, str_first(*piece, n));
        *piece = str_from(*piece, n + (end >= 0));
        if (end < 0)
            break;
        own_done(buf) line = b->said;
        buf_init(&b->said, BUILD_LOG);
        TRY(take_line(b, buf_str(&line)));
    }
    return NULL;
}

fallible build_hear(struct build *b, struct str piece)
{
    TRY(take_words(b, &piece));
    if (b->failed) {
        buf_add(&b->said, str_first(piece, BUILD_LOG - b->said.len));
    } else if (b->taking && b->left) {
        struct str part = str_first(piece, b->left < piece.len ? (size_t)b->left : piece.len);
        TRY_WRAP(fd_write_all(b->archive, part), "keep the image");
        b->left -= part.len;
    }
    return NULL;
}
