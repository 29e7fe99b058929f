// SPDX-License-Identifier: Apache-2.0
/* editor_change.c — str_replace and insert. Both find their place in the \n view and are then made
 * in the text as it is in the file. */
#include "guest/edit/editor_inner.h"
#include "guest/edit/pytext.h"

#define CONTEXT_LINES 4

struct hits {
    size_t count, first;
    struct buf lines; /* "1, 7" */
};

/* Not overlapping, as re.finditer; the empty string is everywhere. */
static void find_hits(struct str view, struct str what, struct hits *h)
{
    size_t line = 1, counted = 0, told = 0, at = 0;

    h->count = 0;
    buf_reset(&h->lines);
    while (at <= view.len) {
        ptrdiff_t next = what.len ? str_find(str_from(view, at), what) : 0;
        if (next < 0)
            break;
        at += (size_t)next;
        line += text_count_char(str_n(view.p + counted, at - counted), '\n');
        counted = at;
        if (h->count++ == 0)
            h->first = at;
        if (line != told)
            buf_addf(&h->lines, told ? ", %zu" : "%zu", line);
        told = line;
        at += what.len ? what.len : 1;
    }
}

static bool find_one(struct job *j, struct str *old_str, struct str *new_str, size_t *ret_at)
{
    struct hits h = {.count = 0};
    struct str view = j->old.view;

    buf_init(&h.lines, SIZE_MAX / 2);
    find_hits(view, *old_str, &h);
    if (h.count == 0) {
        *old_str = py_strip(*old_str);
        *new_str = py_strip(*new_str);
        find_hits(view, *old_str, &h);
    }
    if (h.count == 0)
        job_fail(j, "No replacement was performed, old_str `{}` did not appear verbatim in {}.",
                 *old_str, j->path);
    else if (h.count > 1)
        job_fail(
            j,
            "No replacement was performed. Multiple occurrences of old_str `{}` in lines [{}]. "
            "Please ensure it is unique.",
            *old_str, buf_str(&h.lines));
    *ret_at = h.first;
    if (buf_failed(&h.lines))
        j->a->failed = true;
    buf_done(&h.lines);
    return h.count == 1;
}

struct change {
    struct str text, view; /* of the file from now on */
    size_t first, last;    /* lines of the snippet, from 1; last may be past the end */
    struct str what;       /* in "… on {what}" */
    const char *closing;
};

static void change_commit(struct job *j, const struct change *c)
{
    struct str snippet = text_lines(c->view, c->first - 1, c->last);
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    answer_add(&b, "The file {} has been edited. ", j->path);
    view_add(&b, snippet, c->what, c->first);
    if (j->args->lint) {
        j->r->lint_at = b.len;
        j->r->old_text = j->old.view;
        j->r->new_text = c->view;
    }
    buf_add_cstr(&b, c->closing);
    answer_buf(j->a, j->r, EDIT_OK, &b);
    if (!j->a->failed && job_diff(j, j->old.view, c->view))
        job_save(j, c->text, &j->old.raw, false);
}

static size_t change_less(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t lines_before(size_t n)
{
    return n > CONTEXT_LINES ? n - CONTEXT_LINES : 0;
}

void change_replace(struct job *j)
{
    struct str old_str = j->args->old_str, new_str = j->args->new_str;
    size_t at;

    if (!old_str.p) {
        job_fail(j, "Parameter `old_str` is required for command: str_replace.");
        return;
    }
    if (new_str.p && str_eq(old_str, new_str)) {
        job_fail(j,
                 "Invalid `new_str` parameter: {}. No replacement was performed. `new_str` and "
                 "`old_str` must be different.",
                 new_str);
        return;
    }
    if (!new_str.p)
        new_str = STR("");
    if (!job_validate(j) || !job_load(j) || !find_one(j, &old_str, &new_str, &at))
        return;
    size_t line = text_count_char(str_first(j->old.view, at), '\n') + 1;
    struct change c = {
        .text = text_splice(j->a, &j->old, at, at + old_str.len, new_str),
        .first = lines_before(line) + 1,
        .last = line + CONTEXT_LINES + text_count_char(new_str, '\n'),
        .what = arena_printf(j->a, "a snippet of " STR_FMT, STR_ARG(j->path)),
        .closing = "Review the changes and make sure they are as expected. Edit the file again if "
                   "necessary.",
    };
    c.view = text_universal(j->a, c.text);
    change_commit(j, &c);
}

/* Python compares whatever number it is; ours must be whole. */
static bool insert_place(struct job *j, size_t n, size_t *ret_line)
{
    const struct json *v = j->args->insert_line;
    int64_t line = -1;

    if (v->type == JSON_STR)
        str_to_i64(py_strip(v->s), &line);
    else if (v->type == JSON_INT)
        line = v->i;
    else if (v->type == JSON_BOOL)
        line = v->b;
    else if (v->type == JSON_DOUBLE && v->d >= 0 && v->d <= (double)n &&
             v->d == (double)(int64_t)v->d)
        line = (int64_t)v->d;
    if (line >= 0 && (uint64_t)line <= n) {
        *ret_line = (size_t)line;
        return true;
    }
    job_fail(
        j,
        "Invalid `insert_line` parameter: {}. It should be within the range of allowed values: "
        "[0, {}]",
        v->type == JSON_STR ? job_number(j, line) : job_repr(j, v), job_number(j, (long long)n));
    return false;
}

/* new_str as whole lines, after a line end that was missing before them. */
static struct str whole_lines(struct job *j, struct str before, struct str new_str)
{
    bool glue = before.len && before.p[before.len - 1] != '\n';
    char *out = arena_alloc(j->a, new_str.len + 2);
    size_t n = 0;

    if (!out)
        return STR("");
    if (glue)
        out[n++] = '\n';
    if (new_str.len)
        memcpy(out + n, new_str.p, new_str.len);
    n += new_str.len;
    out[n++] = '\n';
    return str_n(out, n);
}

void change_insert(struct job *j)
{
    const struct json *where = j->args->insert_line;
    struct str new_str = j->args->new_str;
    size_t line;

    if (!where || where->type == JSON_NULL || !new_str.p) {
        bool has_line = where && where->type != JSON_NULL;
        job_fail(j, "Parameter `{}` is required for command: insert.",
                 has_line ? STR("new_str") : STR("insert_line"));
        return;
    }
    if (!job_validate(j) || !job_load(j))
        return;
    struct str view = j->old.view;
    size_t n = text_count_lines(view), m = text_count_char(new_str, '\n') + 1;
    if (!insert_place(j, n, &line))
        return;
    size_t at = text_line_at(view, line);
    struct str lines = whole_lines(j, str_first(view, at), new_str);
    struct change c = {
        .text = text_splice(j->a, &j->old, at, at, lines),
        .first = lines_before(line) + 1,
        .last = change_less(n + m, line + CONTEXT_LINES + m),
        .what = STR("a snippet of the edited file"),
        .closing = "Review the changes and make sure they are as expected (correct indentation, no "
                   "duplicate lines, etc). Edit the file again if necessary.",
    };
    c.view = text_universal(j->a, c.text);
    change_commit(j, &c);
}
