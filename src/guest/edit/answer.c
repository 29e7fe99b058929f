// SPDX-License-Identifier: Apache-2.0
/* answer.c — filling in the forms of the contract. */
#include "guest/edit/answer.h"

#include <assert.h>

#include "guest/edit/pytext.h"
#include "guest/edit/space.h"

void answer_add_form(struct buf *b, const char *form, const struct str *pieces, size_t count)
{
    struct str rest = str_of(form);
    size_t used = 0;

    for (ptrdiff_t at; (at = str_find(rest, STR("{}"))) >= 0; used++) {
        assert(used < count);
        buf_add(b, str_first(rest, (size_t)at));
        buf_add(b, pieces[used]);
        rest = str_from(rest, (size_t)at + 2);
    }
    assert(used == count);
    buf_add(b, rest);
}

void answer_buf(struct arena *a, struct edit_result *r, enum edit_kind kind, const struct buf *b)
{
    if (buf_failed(b))
        a->failed = true; /* one place to ask afterwards */
    r->kind = kind;
    r->content = arena_copy(a, buf_str(b));
}

void answer_form(struct arena *a, struct edit_result *r, enum edit_kind kind, const char *form,
                 const struct str *pieces, size_t count)
{
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    answer_add_form(&b, form, pieces, count);
    answer_buf(a, r, kind, &b);
}

void answer_oserror(struct arena *a, struct edit_result *r, const struct err *e, struct str path)
{
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    py_add_oserror(&b, e, path);
    answer_buf(a, r, EDIT_EXCEPTION, &b);
}

void answer_outside(struct arena *a, struct edit_result *r)
{
    answer(a, r, EDIT_ERROR,
           "You're not allowed to access this path: {}. You can only access paths inside the "
           "workspace.",
           r->path);
}

bool answer_is_document(struct str path)
{
    static const struct str suffixes[] = {
        STR_INIT(".docx"), STR_INIT(".xlsx"), STR_INIT(".pptx"), STR_INIT(".pdf"),
        STR_INIT(".mp3"),  STR_INIT(".wav"),  STR_INIT(".m4a"),  STR_INIT(".flac"),
    };
    struct str suffix = space_suffix(path);

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (str_eq_nocase(suffix, suffixes[i]))
            return true;
    return false;
}
