// SPDX-License-Identifier: Apache-2.0
/* wrap.c — see wrap.h. */
#include "base/wrap.h"

#include "base/utf8.h"

static struct str next_word(struct str *text)
{
    size_t from = 0, to;

    while (from < text->len && (text->p[from] == ' ' || text->p[from] == '\n'))
        from++;
    for (to = from; to < text->len && text->p[to] != ' ' && text->p[to] != '\n';)
        to++;
    struct str word = str_first(str_from(*text, from), to - from);
    *text = str_from(*text, to);
    return word;
}

void wrap_put_words(struct buf *out, struct str text, size_t column, size_t indent)
{
    struct str word;

    for (bool first = true; (word = next_word(&text)).len; first = false) {
        size_t width = utf8_count(word);
        if (column > indent && column + !first + width > WRAP_COLUMNS) {
            buf_addf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            buf_add_char(out, ' ');
            column++;
        }
        buf_add(out, word);
        column += width;
    }
}

static bool stands_alone(struct str line)
{
    return line.p[0] == '\n' || line.p[0] == ' ';
}

static size_t line_len(struct str text)
{
    ptrdiff_t end = str_find_char(text, '\n');

    return end < 0 ? text.len : (size_t)end + 1;
}

static size_t paragraph_len(struct str text)
{
    size_t n = line_len(text);

    while (n < text.len && !stands_alone(text) && !stands_alone(str_from(text, n)))
        n += line_len(str_from(text, n));
    return n;
}

void wrap_put_text(struct buf *out, struct str text)
{
    while (text.len) {
        size_t n = paragraph_len(text);
        struct str part = str_first(text, n - (text.p[n - 1] == '\n'));
        if (stands_alone(text))
            buf_add(out, part);
        else
            wrap_put_words(out, part, 0, 0);
        buf_add_char(out, '\n');
        text = str_from(text, n);
    }
}
