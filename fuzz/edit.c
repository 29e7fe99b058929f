// SPDX-License-Identifier: Apache-2.0
/* edit — an edit of any bytes gives what a naive one of the \n view gives, the bytes around it
 * stay, and a diff applied to the old text gives the new.
 *
 * Input: two bytes of place, then file and replacement, parted by the last 0xf8 (never in UTF-8).
 */
#include <stdlib.h>

#include "base/buf.h"
#include "guest/edit/binary.h"
#include "guest/edit/diff.h"
#include "guest/edit/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool cond)
{
    if (!cond)
        abort();
}

static struct str glue(struct arena *a, struct str x, struct str y, struct str z)
{
    struct buf b;

    buf_init(&b, SIZE_MAX / 2);
    buf_add(&b, x);
    buf_add(&b, y);
    buf_add(&b, z);
    struct str s = arena_copy(a, buf_str(&b));
    buf_done(&b);
    return s;
}

static struct str nth_piece(struct str text, size_t n)
{
    struct str line = {NULL, 0};

    for (size_t i = 0; i <= n; i++)
        str_cut(&text, '\n', &line);
    return line;
}

/* The pieces of new_text, made of the old ones and the changes. */
static void check_diff(struct arena *a, struct str old_text, struct str new_text)
{
    struct diff d;
    struct buf b;
    size_t pieces = text_count_char(old_text, '\n') + 1, at = 0, n = 0;
    struct err *e = diff_lines(a, old_text, new_text, &d);

    must(!e);
    buf_init(&b, SIZE_MAX / 2);
    for (size_t i = 0; i <= d.count; i++) {
        size_t stop = i < d.count ? d.changes[i].old_from : pieces;
        for (; at < stop; at++) {
            if (n++)
                buf_add_char(&b, '\n');
            buf_add(&b, nth_piece(old_text, at));
        }
        if (i == d.count)
            break;
        must(d.changes[i].new_from == n && d.changes[i].old_from >= at);
        for (; n < d.changes[i].new_to; n++) {
            if (n)
                buf_add_char(&b, '\n');
            buf_add(&b, nth_piece(new_text, n));
        }
        at = d.changes[i].old_to;
    }
    must(str_eq(buf_str(&b), new_text));
    buf_done(&b);
}

static size_t boundary(struct str s, size_t at)
{
    while (at < s.len && ((unsigned char)s.p[at] & 0xc0) == 0x80)
        at++;
    return at;
}

static void check_edit(struct arena *a, const struct text *t, struct str with, size_t x, size_t y)
{
    struct str raw, why;
    size_t from = boundary(t->view, t->view.len ? x * t->view.len / 255 : 0);
    size_t to = boundary(t->view, from + (y * (t->view.len - from) / 255));
    bool has_lines = t->view.len && memchr(t->view.p, '\n', t->view.len);
    struct str asked = has_lines ? text_universal(a, with) : with;
    struct str text = text_splice(a, t, from, to, with);
    struct str view = text_universal(a, text);
    struct str naive = glue(a, str_first(t->view, from), asked, str_from(t->view, to));

    must(str_eq(view, text_universal(a, naive)));
    must(text_count_lines(view) <= text_count_lines(naive) + text_count_char(with, '\r') + 1);
    if (text_encode(a, text, t->encoding, &raw, &why) && t->encoding != TEXT_LATIN1) {
        struct text again;
        text_decode(a, raw, &again);
        must(str_eq(again.view, view) || again.encoding != t->encoding);
    }
    if (t->view.len < 2000 && view.len < 2000)
        check_diff(a, t->view, view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct text t;
    struct str raw, why;

    if (size < 2)
        return 0;
    struct str file = str_n(data + 2, size - 2), with = STR("");
    const char *cut = file.len ? memrchr(file.p, 0xf8, file.len) : NULL;
    if (cut) {
        with = str_from(file, (size_t)(cut - file.p) + 1);
        file = str_first(file, (size_t)(cut - file.p));
    }
    arena_init(&a, 64u << 20);
    binary_bytes(file);
    text_decode(&a, file, &t);
    must(text_encode(&a, t.text, t.encoding, &raw, &why) && str_eq(raw, file));
    check_edit(&a, &t, with, data[0], data[1]);
    arena_done(&a);
    return 0;
}
