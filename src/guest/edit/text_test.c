// SPDX-License-Identifier: Apache-2.0
#include "guest/edit/pytext.h"
#include "guest/edit/text.h"
#include "test/edit_kit.h"

/* A file, an edit of its view, the file after it. */
static const struct {
    const char *what;
    struct str before;
    const char *from, *to;
    struct str after;
} rows[] = {
    {"utf-8", STR_INIT("é\nb\n"), "b", "ü", STR_INIT("é\nü\n")},
    {"mark", STR_INIT("\xef\xbb\xbfx\n"), "x", "y", STR_INIT("\xef\xbb\xbfy\n")},
    {"mark, at the very start", STR_INIT("\xef\xbb\xbfx"), "x", "", STR_INIT("\xef\xbb\xbf")},
    {"latin-1", STR_INIT("caf\xe9\nb\x80\x9f\n"), "b", "ü", STR_INIT("caf\xe9\n\xfc\x80\x9f\n")},
    {"latin-1 seen as such", STR_INIT("caf\xe9"), "é", "e", STR_INIT("cafe")},
    {"utf-16le", STR_INIT("\xff\xfe\xe9\0\r\0\n\0b\0"), "b", "𝄞\n",
     STR_INIT("\xff\xfe\xe9\0\r\0\n\0\x34\xd8\x1e\xdd\r\0\n\0")},
    {"utf-16be", STR_INIT("\xfe\xff\0\xe9\0\n\xd8\x34\xdd\x1e"), "𝄞", "€",
     STR_INIT("\xfe\xff\0\xe9\0\n\x20\xac")},
    {"not utf-16: half a pair", STR_INIT("\xfe\xfe\xd8\n"), "þþ", "x", STR_INIT("x\xd8\n")},
    {"crlf", STR_INIT("a\r\nb\r\nc\r\n"), "b\n", "x\ny\n", STR_INIT("a\r\nx\r\ny\r\nc\r\n")},
    {"crlf asked for with crlf", STR_INIT("a\r\nb\r\n"), "b", "x\r\ny",
     STR_INIT("a\r\nx\r\ny\r\n")},
    {"lf asked for with crlf", STR_INIT("a\nb\n"), "b", "x\r\ny", STR_INIT("a\nx\ny\n")},
    {"no line ends: as it came", STR_INIT("a"), "a", "x\r\ny", STR_INIT("x\r\ny")},
    {"cr", STR_INIT("a\rb\rc"), "b", "x\ny", STR_INIT("a\rx\ry\rc")},
    {"mixed, lines around stay", STR_INIT("a\r\nb\nc\rd\n"), "a\nb\nc\nd", "a\nB\nc\nd",
     STR_INIT("a\r\nB\nc\rd\n")},
    {"mixed, one line end taken", STR_INIT("a\r\nb\nc\n"), "a\nb", "ab", STR_INIT("ab\nc\n")},
    {"two line ends stay two", STR_INIT("a\rX\nb\nc\n"), "X", "", STR_INIT("a\n\nb\nc\n")},
    {"two line ends stay two, in cr", STR_INIT("a\rb\rX\nc\r"), "X", "y\n",
     STR_INIT("a\rb\ry\n\nc\r")},
    {"many line ends stay as many", STR_INIT("a\nb\r\r\r"), "a", "a\n\n",
     STR_INIT("a\n\n\nb\r\r\r")},
    {"nul", STR_INIT("日本語のテ\0\n"), "語", "x", STR_INIT("日本x\xe3\x81\xaeテ\0\n")},
};

TEST(edit_keeps_encoding_and_line_ends)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena a;
        struct text t;
        struct str raw, why;

        arena_init(&a, 1u << 20);
        text_decode(&a, rows[i].before, &t);
        ptrdiff_t at = str_find(t.view, str_of(rows[i].from));
        if (at < 0)
            FAIL("%s: not there", rows[i].what);
        struct str text =
            text_splice(&a, &t, (size_t)at, (size_t)at + strlen(rows[i].from), str_of(rows[i].to));
        CHECK(text_encode(&a, text, t.encoding, &raw, &why));
        if (!str_eq(raw, rows[i].after))
            FAIL("%s: got '" STR_FMT "'", rows[i].what, STR_ARG(raw));
        CHECK(text_encode(&a, t.text, t.encoding, &raw, &why));
        CHECK_STR(raw, rows[i].before);
        arena_done(&a);
    }
}

TEST(edit_of_files_keeps_encoding_and_line_ends)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (str_find(rows[i].before, STR("\xfe\xfe")) >= 0)
            continue;
        kit_put(&k, "f", rows[i].before);
        CHECK(str_starts(kit_replace(&k, "f", rows[i].from, rows[i].to), STR("The file ")));
        CHECK_STR(kit_get(&k, "f"), rows[i].after);
        kit_edit(&k, (struct editor_args){.lint = false}, "undo_edit", "f");
        CHECK_STR(kit_get(&k, "f"), rows[i].before);
    }
}

TEST(edit_says_what_an_encoding_cannot_hold)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "f", STR("caf\xe9\nb\n"));
    CHECK_STR(kit_replace(&k, "f", "b", "x中y"),
              kit_says(&k,
                       "ERROR:\nRan into 'latin-1' codec can't encode character '\\u4e2d' in "
                       "position 6: ordinal not in range(256) while trying to write to {}",
                       "f"));
    CHECK_STR(k.r.diff, "");
    CHECK_HAS(kit_replace(&k, "f", "b", "中国"),
              "can't encode characters in position 5-6: ordinal not in range(256)");
    CHECK_HAS(kit_replace(&k, "f", "b", "😀"), "character '\\U0001f600' in position 5: ordinal");
    CHECK_STR(kit_get(&k, "f"), "caf\xe9\nb\n");
    CHECK_HAS(kit_edit(&k, (struct editor_args){.lint = false}, "undo_edit", "f"),
              "No edit history");
    CHECK_STR(
        kit_edit(&k, (struct editor_args){.file_text = STR("\xed\xb0\x80")}, "create", "n"),
        kit_says(&k,
                 "ERROR:\nRan into 'utf-8' codec can't encode character '\\udc00' in position "
                 "0: surrogates not allowed while trying to write to {}",
                 "n"));
}

TEST(edit_counts_and_cuts_lines)
{
    CHECK_INT(text_count_lines(STR("")), 0);
    CHECK_INT(text_count_lines(STR("a")), 1);
    CHECK_INT(text_count_lines(STR("a\n")), 1);
    CHECK_INT(text_count_lines(STR("a\n\nb")), 3);
    CHECK_STR(text_lines(STR("a\nb\nc"), 1, 2), "b\n");
    CHECK_STR(text_lines(STR("a\nb\nc"), 2, 9), "c");
    CHECK_STR(text_lines(STR("a\nb\nc"), 9, 12), "");
    CHECK_STR(text_lines(STR("a\n"), 1, 1), "");
}

TEST(edit_prints_like_python)
{
    struct buf b;
    struct err *e = err_sysno(2, "x");

    buf_init(&b, 1000);
    py_add_repr(&b, STR("it's \"\\\n\x7f\x1b é\xc2\xa0 日 😀 \xe2\x80\xa8 \xff \xed\xa0\x80"));
    CHECK_STR(buf_str(&b), "'it\\'s \"\\\\\\n\\x7f\\x1b é\\xa0 日 😀 \\u2028 \\udcff \\ud800'");
    buf_reset(&b);
    py_add_oserror(&b, e, STR("/x"));
    CHECK_STR(buf_str(&b), "[Errno 2] No such file or directory: '/x'");
    CHECK_STR(py_strip(STR("\t\x1c \xe3\x80\x80x y\xc2\x85\n")), "x y");
    CHECK_STR(py_strip(STR("\xe2\x80\x8b")), "\xe2\x80\x8b"); /* no space to Python */
    CHECK_STR(py_strip(STR(" \n ")), "");
    err_free(e);
    buf_done(&b);
}
