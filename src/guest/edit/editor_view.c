// SPDX-License-Identifier: Apache-2.0
/* editor_view.c — showing a file with line numbers, whole or in part. */
#include "base/utf8.h"
#include "guest/edit/editor_inner.h"

#define CLIPPED "<response clipped><NOTE>Due to the max output limit, only part of this file has "
static const char text_clipped[] =
    CLIPPED "been shown to you. You should retry this tool after you have searched inside the file "
            "with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";
static const char document_clipped[] =
    CLIPPED "been shown to you. Please use Python libraries to view the entire file or search for "
            "specific content within the file.</NOTE>";

/* The part of content that is shown; the notice goes behind it if that is not all. */
static struct str view_clip(struct str content)
{
    if (content.len <= EDITOR_MAX_CHARS) /* bytes: then no more code points either */
        return content;
    return str_first(content, utf8_offset(content, EDITOR_MAX_CHARS));
}

void view_add(struct buf *b, struct str content, struct str what, size_t first_line)
{
    struct str shown = view_clip(content), rest = shown, line;
    bool more;

    answer_add(b, "Here's the result of running `cat -n` on {}:\n", what);
    do {
        more = str_cut(&rest, '\n', &line);
        buf_addf(b, "%6zu\t", first_line++);
        buf_add(b, line);
        if (!more && shown.len < content.len)
            buf_add_cstr(b, text_clipped);
        buf_add_char(b, '\n');
    } while (more);
}

static void view_document(struct job *j)
{
    own_done(buf) b;
    struct str text = STR("");

    buf_init(&b, SIZE_MAX / 2);
    own(err) e = j->ed->to_markdown
                     ? j->ed->to_markdown(j->ed, j->path, j->a, &text)
                     : err_new(ERR_UNSUPPORTED, "no converter for this kind of file");
    if (e) {
        job_fail(j, "Error in converting file to Markdown: {}. Please use Python code to read {}",
                 str_of(err_text(e)), j->path);
        return;
    }
    answer_add(&b, "Here's the content of the file {} displayed in Markdown format:\n{}", j->path,
               view_clip(text));
    if (view_clip(text).len < text.len)
        buf_add_cstr(&b, document_clipped);
    buf_add_char(&b, '\n');
    answer_buf(j->a, j->r, EDIT_OK, &b);
}

/* Python's isinstance(x, int): true and false are 1 and 0. */
static bool as_int(const struct json *v, int64_t *ret_value)
{
    if (v && v->type == JSON_BIGINT)
        *ret_value = v->s.len && v->s.p[0] == '-' ? INT64_MIN : INT64_MAX;
    else if (v && v->type == JSON_INT)
        *ret_value = v->i;
    else if (v && v->type == JSON_BOOL)
        *ret_value = v->b;
    else
        return false;
    return true;
}

#define INVALID_RANGE "Invalid `view_range` parameter: {}. "

/* [*first, *last], from 1. */
static bool check_range(struct job *j, const struct json *range, int64_t n, int64_t *ret_first,
                        int64_t *ret_last, bool *ret_clamped)
{
    int64_t first, last;

    if (range->type != JSON_ARRAY || range->count != 2 || !as_int(json_at(range, 0), &first) ||
        !as_int(json_at(range, 1), &last)) {
        job_fail(j, INVALID_RANGE "It should be a list of two integers.", job_repr(j, range));
        return false;
    }
    if (first < 1 || first > n) {
        job_fail(j,
                 INVALID_RANGE "Its first element `{}` should be within the range of lines of the "
                               "file: [1, {}].",
                 job_repr(j, range), job_repr(j, json_at(range, 0)), job_number(j, n));
        return false;
    }
    *ret_clamped = last > n;
    last = last == -1 || last > n ? n : last;
    if (last < first) {
        job_fail(j,
                 INVALID_RANGE "Its second element `{}` should be greater than or equal to the "
                               "first element `{}`.",
                 job_repr(j, range), job_number(j, last), job_number(j, first));
        return false;
    }
    *ret_first = first;
    *ret_last = last;
    return true;
}

static void view_range(struct job *j, const struct json *range)
{
    struct str view = j->old.view;
    int64_t n = (int64_t)text_count_lines(view), first, last;
    bool clamped;
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    if (!check_range(j, range, n, &first, &last, &clamped))
        return;
    struct str lines = text_lines(view, (size_t)first - 1, (size_t)last);
    if (str_ends(lines, STR("\n")))
        lines.len--;
    if (clamped)
        buf_addf(&b, "NOTE: We only show up to %lld since there're only %lld lines in this file.\n",
                 (long long)n, (long long)n);
    view_add(&b, lines, j->path, (size_t)first);
    answer_buf(j->a, j->r, EDIT_OK, &b);
}

static bool is_given(const struct json *range)
{
    if (!range || range->type == JSON_NULL)
        return false;
    return range->type != JSON_ARRAY || range->count > 0; /* Python: an empty list is false */
}

void view_run(struct job *j)
{
    const struct json *range = j->args->view_range;
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    if (S_ISDIR(j->st.st_mode)) {
        if (is_given(range))
            job_fail(j,
                     INVALID_RANGE
                     "The `view_range` parameter is not allowed when `path` points to a directory.",
                     job_repr(j, range));
        else
            directory_run(j);
        return;
    }
    if (!job_validate(j))
        return;
    if (answer_is_document(j->path)) {
        view_document(j);
        return;
    }
    if (!job_load(j))
        return;
    if (is_given(range)) {
        view_range(j, range);
        return;
    }
    view_add(&b, j->old.view, j->path, 1);
    answer_buf(j->a, j->r, EDIT_OK, &b);
}
