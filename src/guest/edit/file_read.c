// SPDX-License-Identifier: Apache-2.0
/* file_read.c — reading for the default implementation; every text here is compared by clients. */
#include "guest/edit/file_read.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/b64.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "guest/edit/answer.h"
#include "guest/edit/binary.h"
#include "guest/edit/space.h"
#include "guest/edit/text.h"

static const struct {
    struct str suffix, mime;
} media[] = {
    {STR_INIT(".png"), STR_INIT("image/png")},
    {STR_INIT(".jpg"), STR_INIT("image/jpeg")},
    {STR_INIT(".jpeg"), STR_INIT("image/jpeg")},
    {STR_INIT(".bmp"), STR_INIT("image/bmp")},
    {STR_INIT(".gif"), STR_INIT("image/gif")},
    {STR_INIT(".pdf"), STR_INIT("application/pdf")},
    {STR_INIT(".mp4"), STR_INIT("video/mp4")},
    {STR_INIT(".webm"), STR_INIT("video/webm")},
    {STR_INIT(".ogg"), STR_INIT("video/mp4")}, /* Python has no type for it and falls back */
    /* upstream calls these binary; a model that hears wants them as it wants pictures */
    {STR_INIT(".mp3"), STR_INIT("audio/mpeg")},
    {STR_INIT(".wav"), STR_INIT("audio/x-wav")},
    {STR_INIT(".m4a"), STR_INIT("audio/mp4")},
    {STR_INIT(".flac"), STR_INIT("audio/flac")},
};

/* By the end of the path, so that ".png" alone counts as well. */
static struct str media_type(struct str path)
{
    for (size_t i = 0; i < ARRAY_LEN(media); i++) {
        size_t n = media[i].suffix.len;
        if (path.len >= n && str_eq_nocase(str_from(path, path.len - n), media[i].suffix))
            return media[i].mime;
    }
    return (struct str){NULL, 0};
}

/* [*first, *last) of n lines: the arithmetic of the original, odd ends included. */
static void file_read_select(size_t n, int64_t start, int64_t end, size_t *ret_first,
                             size_t *ret_last)
{
    int64_t lines = (int64_t)n;
    start = start < 0 ? 0 : start > lines ? lines : start;

    if (end == -1) {
        *ret_first = (size_t)start;
        *ret_last = n;
        return;
    }
    end = end < 0 ? 0 : end > lines ? lines : end;
    int64_t begin = start < lines - 2 ? start : lines - 2;
    begin = begin < 0 ? 0 : begin;
    end = end > begin + 1 ? end : begin + 1;
    *ret_first = (size_t)begin;
    *ret_last = (size_t)(end < lines ? end : lines);
}

static void read_media(struct arena *a, struct str mime, struct str raw, struct edit_result *r)
{
    struct str head = STR("data:"), mid = STR(";base64,");
    size_t n = head.len + mime.len + mid.len;
    char *out = arena_alloc(a, n + b64_len(raw.len));

    if (!out)
        return;
    memcpy(out, head.p, head.len);
    memcpy(out + head.len, mime.p, mime.len);
    memcpy(out + head.len + mime.len, mid.p, mid.len);
    n += b64_encode(raw.p, raw.len, out + n, false, true);
    r->content = str_n(out, n);
}

static void read_text(struct arena *a, const struct file_read_args *args, struct str raw,
                      struct edit_result *r)
{
    size_t first, last;

    if (!utf8_valid(raw)) {
        answer(a, r, EDIT_ERROR, "File could not be decoded as utf-8: {}.", r->path);
        return;
    }
    struct str view = text_universal(a, raw);
    file_read_select(text_count_lines(view), args->start, args->end, &first, &last);
    r->content = arena_copy(a, text_lines(view, first, last));
}

static void file_read_explain(const struct edit_space *s, struct arena *a, const struct err *e,
                              struct edit_result *r)
{
    if (space_is_outside(e))
        answer_outside(a, r);
    else if (err_errno(e) == ENOENT)
        answer(a, r, EDIT_ERROR, "File not found: {}. Your current working directory is {}.",
               r->path, s->cwd);
    else if (err_errno(e) == EISDIR)
        answer(a, r, EDIT_ERROR, "Path is a directory: {}. You can only read files", r->path);
    else if (err_code(e) == ERR_TOO_LARGE)
        answer(a, r, EDIT_ERROR, "File is too large to be read: {}.", r->path);
    else
        answer_oserror(a, r, e, r->path);
}

bool file_read_refuses(const struct edit_space *s, struct str path, struct edit_result *ret_result)
{
    if (answer_is_document(path) || !binary_file(s, path))
        return false;
    *ret_result = (struct edit_result){
        .kind = EDIT_ERROR, .content = STR("ERROR_BINARY_FILE"), .path = path, .diff = STR("")};
    return true;
}

fallible file_read(const struct edit_space *s, const struct file_read_args *args, struct arena *a,
                   struct edit_result *ret_result)
{
    struct edit_result r = {.path = space_join(a, s->cwd, args->path), .diff = STR("")};
    own_done(buf) raw;
    struct stat st;

    buf_init(&raw, FILE_READ_MAX_BYTES);
    TRY(arena_check(a));
    struct str mime = media_type(r.path);
    bool is_media = mime.p && !args->refuse_media;
    struct err *e = space_load(s, r.path, &raw, &st);
    if (e && err_code(e) == ERR_NO_MEMORY)
        return e;
    if (!is_media && (binary_name(r.path) || binary_bytes(buf_str(&raw))))
        answer(a, &r, EDIT_ERROR, "ERROR_BINARY_FILE");
    else if (e)
        file_read_explain(s, a, e, &r);
    else if (mime.p)
        read_media(a, mime, buf_str(&raw), &r);
    else
        read_text(a, args, buf_str(&raw), &r);
    err_free(e);
    TRY(arena_check(a));
    *ret_result = r;
    return NULL;
}
