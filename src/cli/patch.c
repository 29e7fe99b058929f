// SPDX-License-Identifier: Apache-2.0
/* patch.c — see patch.h. Two files are in memory at a time, and what they differ in. */
#include "cli/patch.h"

#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/own.h"
#include "base/plain.h"
#include "guest/edit/diff.h"
#include "host/changes/changes.h"

#define CONTEXT    3
#define DIFF_BYTES (256u << 20) /* for one file */
#define CUT        '\0'         /* ends a last line without a line end, and all of a text */

struct side {
    char letter;
    struct str path; /* .p NULL: there is no file on this side */
    struct buf text;
    struct str *lines; /* of the arena */
    size_t count;
};

struct patch {
    struct buf *out;
    struct arena a;
    struct side old, new;
};

static void put_side_name(struct buf *out, const struct side *s)
{
    own_done(buf) name;

    buf_init(&name, 1u << 17);
    if (!s->path.p) {
        buf_add_cstr(out, "/dev/null");
        return;
    }
    buf_addf(&name, "%c/" STR_FMT, s->letter, STR_ARG(s->path));
    plain_put_name(out, buf_str(&name));
}

static void put_in_words(struct patch *p, const char *why)
{
    put_side_name(p->out, &p->old);
    buf_add_cstr(p->out, " and ");
    put_side_name(p->out, &p->new);
    buf_addf(p->out, " differ: %s\n", why);
}

/* A line of its own at the end is the same on both sides, so that none that is shown is the empty
 * piece behind the last line end. */
static void end_text(struct buf *text)
{
    if (text->len && text->p[text->len - 1] != '\n')
        buf_add(text, str_n("\0\n", 2));
    buf_add_char(text, CUT);
}

static fallible split_lines(struct arena *a, struct side *s)
{
    struct str rest = buf_str(&s->text), line;
    size_t count = 0;

    for (size_t i = 0; i < rest.len; i++)
        count += rest.p[i] == '\n';
    s->lines = arena_alloc(a, (count + 1) * sizeof *s->lines);
    TRY(arena_check(a));
    for (s->count = 0; s->count < count && str_cut(&rest, '\n', &line); s->count++)
        s->lines[s->count] = line;
    return NULL;
}

static void put_line(struct buf *out, char mark, struct str line)
{
    bool cut = line.len && line.p[line.len - 1] == CUT;

    buf_add_char(out, mark);
    buf_add(out, str_first(line, line.len - cut));
    buf_add_cstr(out, cut ? "\n\\ No newline at end of file\n" : "\n");
}

static void put_lines(struct buf *out, char mark, const struct side *s, size_t from, size_t to)
{
    for (; from < to; from++)
        put_line(out, mark, s->lines[from]);
}

static void put_range(struct buf *out, char mark, size_t from, size_t to)
{
    buf_addf(out, "%c%zu", mark, to > from ? from + 1 : from);
    if (to - from != 1)
        buf_addf(out, ",%zu", to - from);
}

/* Changes that have common context are one hunk. */
static size_t put_hunk(struct patch *p, const struct diff *d, size_t first)
{
    size_t last = first;
    const struct diff_change *c = d->changes;

    while (last + 1 < d->count && c[last + 1].old_from - c[last].old_to <= 2 * CONTEXT)
        last++;
    size_t before = c[first].old_from < CONTEXT ? c[first].old_from : CONTEXT;
    size_t left = p->old.count - c[last].old_to, after = left < CONTEXT ? left : CONTEXT;
    buf_add_cstr(p->out, "@@ ");
    put_range(p->out, '-', c[first].old_from - before, c[last].old_to + after);
    buf_add_char(p->out, ' ');
    put_range(p->out, '+', c[first].new_from - before, c[last].new_to + after);
    buf_add_cstr(p->out, " @@\n");
    size_t at = c[first].old_from - before;
    for (size_t i = first; i <= last; i++) {
        put_lines(p->out, ' ', &p->old, at, c[i].old_from);
        put_lines(p->out, '-', &p->old, c[i].old_from, c[i].old_to);
        put_lines(p->out, '+', &p->new, c[i].new_from, c[i].new_to);
        at = c[i].old_to;
    }
    put_lines(p->out, ' ', &p->old, at, at + after);
    return last + 1;
}

static fallible put_hunks(struct patch *p)
{
    struct diff d;

    end_text(&p->old.text);
    end_text(&p->new.text);
    TRY(buf_check(&p->old.text));
    TRY(buf_check(&p->new.text));
    TRY(diff_lines(&p->a, buf_str(&p->old.text), buf_str(&p->new.text), &d));
    if (!d.count)
        return NULL;
    TRY(split_lines(&p->a, &p->old));
    TRY(split_lines(&p->a, &p->new));
    buf_add_cstr(p->out, "--- ");
    put_side_name(p->out, &p->old);
    buf_add_cstr(p->out, "\n+++ ");
    put_side_name(p->out, &p->new);
    buf_add_char(p->out, '\n');
    for (size_t i = 0; i < d.count;)
        i = put_hunk(p, &d, i);
    return NULL;
}

static fallible read_side(struct side *s, const struct changes_source *src, const struct change *c)
{
    bool old = s->letter == 'a';

    buf_init(&s->text, PATCH_FILE_MAX + 16);
    return s->path.p ? changes_read(src, c, old, PATCH_FILE_MAX, &s->text) : NULL;
}

/* What keeps one file from being shown does not keep the others. */
static bool put_why_not(struct patch *p, struct err *e)
{
    enum err_code code = err_code(e);
    bool known = code == ERR_TOO_LARGE || code == ERR_NOT_FOUND || code == ERR_CONFLICT ||
                 code == ERR_FORBIDDEN || code == ERR_LIMIT;

    if (known)
        put_in_words(p, code == ERR_TOO_LARGE   ? "too large to be shown by lines"
                        : code == ERR_NOT_FOUND ? "one is no longer there"
                        : code == ERR_CONFLICT  ? "one was replaced while it was read"
                        : code == ERR_LIMIT     ? "too many lines to be compared"
                                                : "one may not be read");
    return known;
}

static bool is_binary(const struct buf *text)
{
    return text->len && memchr(text->p, CUT, text->len);
}

static fallible put_file(struct patch *p, const struct changes_source *src, const struct change *c)
{
    struct err *e = read_side(&p->old, src, c), *e_new = read_side(&p->new, src, c);

    if (e)
        err_free(e_new);
    else
        e = e_new;
    if (!e && (is_binary(&p->old.text) || is_binary(&p->new.text))) {
        put_in_words(p, "binary");
        return NULL;
    }
    if (!e)
        e = put_hunks(p);
    if (!e || !put_why_not(p, e))
        return e;
    err_free(e);
    return NULL;
}

fallible patch_put(struct buf *out, const struct changes_source *src, const struct change *c)
{
    bool old = S_ISREG(c->old_mode) || c->kind == CHANGE_RENAMED, new = S_ISREG(c->mode);
    struct patch p = {.out = out, .old.letter = 'a', .new.letter = 'b'};

    if (c->mounted || c->kind == CHANGE_MODE || c->kind == CHANGE_SPECIAL || (!old && !new))
        return NULL; /* the line above says all */
    p.old.path = !old ? (struct str){0} : c->kind == CHANGE_RENAMED ? c->from : c->path;
    p.new.path = new ? c->path : (struct str){0};
    arena_init(&p.a, DIFF_BYTES);
    struct err *e = put_file(&p, src, c);
    buf_done(&p.old.text);
    buf_done(&p.new.text);
    arena_done(&p.a);
    return e;
}
