// SPDX-License-Identifier: Apache-2.0
/* file_write.c — writing for the default implementation. Lines that stay keep the ends they had;
 * the original turned them all into \n, and glued new text to an unterminated last line. */
#include "guest/edit/file_write.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "guest/edit/answer.h"
#include "guest/edit/file_read.h"
#include "guest/edit/pytext.h"
#include "guest/edit/space.h"
#include "guest/edit/text.h"

#define NEW_FILE_MODE 0664

/* The index a Python slice of n things begins or ends at. */
static size_t slice_index(int64_t i, size_t n)
{
    if (i < 0)
        return (uint64_t)-i < n ? n - (size_t)-i : 0;
    return (uint64_t)i < n ? (size_t)i : n;
}

/* The start of line n in text, with any line ends. */
static size_t raw_line_at(struct str text, size_t n)
{
    size_t at = 0;

    while (n && at < text.len) {
        char c = text.p[at++];
        if (c == '\r' && at < text.len && text.p[at] == '\n')
            at++;
        n -= c == '\n' || c == '\r';
    }
    return at;
}

static void add_lines(struct buf *b, struct str content, struct str end)
{
    struct str line;
    bool more;

    do {
        more = str_cut(&content, '\n', &line);
        buf_add(b, line);
        buf_add(b, end);
    } while (more);
}

static void add_merged(struct arena *a, struct buf *b, struct str old,
                       const struct file_write_args *args)
{
    size_t n = text_count_lines(text_universal(a, old));
    bool is_whole = args->start == 0 && args->end == -1;
    struct str end = is_whole ? STR("\n") : text_line_end(old);
    struct str tail = str_from(old, raw_line_at(old, slice_index(args->end, n)));
    struct str content = is_whole ? args->content : text_universal(a, args->content);

    if (args->start != 0)
        buf_add(b, str_first(old, raw_line_at(old, slice_index(args->start, n))));
    if (b->len && b->p[b->len - 1] != '\n' && b->p[b->len - 1] != '\r')
        buf_add(b, end);
    text_part(b->p, b->len, content.len ? content : end);
    add_lines(b, content, end);
    if (args->end == -1)
        return;
    text_part(b->p, b->len, tail);
    buf_add(b, tail);
}

static void file_write_explain(struct arena *a, const struct err *e, struct str path,
                               struct edit_result *r)
{
    if (space_is_outside(e))
        answer_outside(a, r);
    else if (err_errno(e) == ENOENT)
        answer(a, r, EDIT_ERROR, "File not found: {}", r->path);
    else if (err_errno(e) == EISDIR)
        answer(a, r, EDIT_ERROR, "Path is a directory: {}. You can only write to files", r->path);
    else if (err_code(e) == ERR_TOO_LARGE)
        answer(a, r, EDIT_ERROR, "File is too large to be written: {}.", r->path);
    else
        answer_oserror(a, r, e, path);
}

static void explain_owner(struct arena *a, const struct err *e, struct edit_result *r)
{
    own_done(buf) why;

    buf_init(&why, SIZE_MAX / 2);
    py_add_oserror(&why, e, r->path);
    answer(a, r, EDIT_ERROR, "File {} written, but failed to change ownership and permissions: {}",
           r->path, buf_str(&why));
}

static fallible file_write_save(const struct edit_space *s, struct arena *a,
                                const struct space_save *job, struct edit_result *r)
{
    own(err) owner = NULL;

    r->content = STR("");
    own(err) e = space_save(s, job, &owner);
    if (e && err_code(e) == ERR_NO_MEMORY)
        return take(&e);
    if (e)
        file_write_explain(a, e, r->path, r);
    else if (owner)
        explain_owner(a, owner, r);
    return NULL;
}

/* The new bytes of the file, or an answer that says why not: then false. */
static bool file_write_compose(struct arena *a, const struct file_write_args *args,
                               const struct str *old, struct buf *out, struct edit_result *r)
{
    struct str unused, why;

    if (!text_encode(a, args->content, TEXT_UTF8, &unused, &why)) {
        answer(a, r, EDIT_EXCEPTION, "{}", why);
        return false;
    }
    if (!old) {
        add_lines(out, args->content, STR("\n"));
        return true;
    }
    if (!utf8_valid(*old)) {
        answer(a, r, EDIT_ERROR, "File could not be decoded as utf-8: {}", r->path);
        return false;
    }
    add_merged(a, out, *old, args);
    return true;
}

/* Parents first, then the old content; *ret_is_new says there was none. False: answered. */
static bool file_write_prepare(const struct edit_space *s, struct arena *a, struct buf *old,
                               struct stat *st, bool *ret_is_new, struct edit_result *r)
{
    struct str failed;
    own(err) dirs = space_make_parents(s, r->path, &failed);

    if (dirs && space_is_outside(dirs))
        answer_outside(a, r);
    else if (dirs)
        answer_oserror(a, r, dirs, failed);
    if (dirs)
        return false;
    own(err) e = space_load(s, r->path, old, st);
    *ret_is_new = e && err_errno(e) == ENOENT;
    if (e && !*ret_is_new)
        file_write_explain(a, e, r->path, r);
    return !e || *ret_is_new;
}

fallible file_write(const struct edit_space *s, const struct file_write_args *args, struct arena *a,
                    struct edit_result *ret_result)
{
    struct edit_result r = {.path = space_join(a, s->cwd, args->path), .diff = STR("")};
    own_done(buf) old;
    own_done(buf) out;
    struct stat st;
    bool is_new;

    buf_init(&old, FILE_READ_MAX_BYTES);
    buf_init(&out, SIZE_MAX / 2);
    TRY(arena_check(a));
    struct str old_data = STR("");
    if (file_write_prepare(s, a, &old, &st, &is_new, &r)) {
        old_data = buf_str(&old);
        bool ok = file_write_compose(a, args, is_new ? NULL : &old_data, &out, &r);
        TRY(buf_check(&out));
        TRY(arena_check(a));
        struct space_save job = {.path = r.path,
                                 .data = buf_str(&out),
                                 .old = is_new ? NULL : &st,
                                 .old_data = old_data,
                                 .mode = NEW_FILE_MODE};
        if (ok)
            TRY(file_write_save(s, a, &job, &r));
    }
    TRY(arena_check(a));
    *ret_result = r;
    return NULL;
}
