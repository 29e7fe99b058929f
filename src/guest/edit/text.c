// SPDX-License-Identifier: Apache-2.0
/* text.c — line ends and splicing; the encodings are in encoding.c. */
#include "guest/edit/text.h"

#include <string.h>

struct str text_universal(struct arena *a, struct str text)
{
    size_t n = 0;

    if (text.len == 0 || !memchr(text.p, '\r', text.len))
        return text;
    char *out = arena_alloc(a, text.len);
    if (!out)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] != '\r')
            out[n++] = text.p[i];
        else if (i + 1 == text.len || text.p[i + 1] != '\n')
            out[n++] = '\n';
    }
    return str_n(out, n);
}

struct str text_line_end(struct str text)
{
    size_t lf = 0, crlf = 0, cr = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '\n')
            lf++;
        else if (text.p[i] == '\r' && i + 1 < text.len && text.p[i + 1] == '\n')
            crlf++, i++;
        else if (text.p[i] == '\r')
            cr++;
    }
    if (crlf > lf && crlf >= cr)
        return STR("\r\n");
    return cr > lf ? STR("\r") : STR("\n");
}

/* The offset in text of a place in its view. */
static size_t text_offset(const struct text *t, size_t in_view)
{
    size_t at = 0;

    if (t->view.p == t->text.p)
        return in_view;
    for (size_t v = 0; v < in_view; v++, at++)
        if (t->text.p[at] == '\r' && at + 1 < t->text.len && t->text.p[at + 1] == '\n')
            at++;
    return at;
}

static size_t add_lines(char *out, struct str s, struct str end)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] != '\n') {
            out[n++] = s.p[i];
            continue;
        }
        memcpy(out + n, end.p, end.len);
        n += end.len;
    }
    return n;
}

/* A \r that ended a line must not become half of a \r\n with what now comes after it, nor must one
 * before it. */
void text_part(char *out, size_t n, struct str next)
{
    if (str_starts(next, STR("\n")))
        while (n && out[n - 1] == '\r')
            out[--n] = '\n';
}

static size_t text_join(char *out, size_t n, struct str next)
{
    text_part(out, n, next);
    if (next.len)
        memcpy(out + n, next.p, next.len);
    return n + next.len;
}

static size_t same_start(struct str a, struct str b)
{
    size_t n = 0;

    while (n < a.len && n < b.len && a.p[n] == b.p[n])
        n++;
    return n;
}

static size_t same_end(struct str a, struct str b)
{
    size_t n = 0;

    while (n < a.len && n < b.len && a.p[a.len - n - 1] == b.p[b.len - n - 1])
        n++;
    return n;
}

struct str text_splice(struct arena *a, const struct text *t, size_t from, size_t to,
                       struct str with)
{
    struct str end = text_line_end(t->text);
    bool has_lines = t->view.len && memchr(t->view.p, '\n', t->view.len);
    if (has_lines) /* else there is no style to keep, and it is taken as it came */
        with = text_universal(a, with);
    size_t same = same_start(str_n(t->view.p + from, to - from), with);
    from += same;
    with = str_from(with, same);
    same = same_end(str_n(t->view.p + from, to - from), with);
    to -= same;
    with = str_first(with, with.len - same);

    size_t head = text_offset(t, from);
    struct str tail = str_from(t->text, text_offset(t, to));
    size_t wide = with.len + text_count_char(with, '\n') * (end.len - 1);
    char *new_lines = arena_alloc(a, wide), *out = arena_alloc(a, head + wide + tail.len);
    if (!out || !new_lines)
        return (struct str){NULL, 0};
    size_t n = text_join(out, 0, str_first(t->text, head));
    n = text_join(out, n, str_n(new_lines, add_lines(new_lines, with, end)));
    return str_n(out, text_join(out, n, tail));
}

size_t text_count_char(struct str s, char c)
{
    size_t n = 0;

    for (const char *p = s.p, *end = s.p + s.len; p && p < end; n++) {
        p = memchr(p, c, (size_t)(end - p));
        if (!p)
            break;
        p++;
    }
    return n;
}

size_t text_count_lines(struct str view)
{
    return text_count_char(view, '\n') + (view.len && view.p[view.len - 1] != '\n');
}

size_t text_line_at(struct str view, size_t n)
{
    size_t at = 0;

    for (; n && at < view.len; n--) {
        const char *p = memchr(view.p + at, '\n', view.len - at);
        at = p ? (size_t)(p - view.p) + 1 : view.len;
    }
    return at;
}

struct str text_lines(struct str view, size_t from, size_t to)
{
    size_t start = text_line_at(view, from);
    struct str rest = str_from(view, start);

    return str_first(rest, to > from ? text_line_at(rest, to - from) : 0);
}
