// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"
#include "test/edit_kit.h"

#define CAT "Here's the result of running `cat -n` on {}:\n"

TEST(edit_view_numbers_lines)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a", STR("one\ntwo\nthree\n"));
    CHECK_STR(kit_view(&k, "a", NULL),
              kit_says(&k, CAT "     1\tone\n     2\ttwo\n     3\tthree\n     4\t\n", "a"));
    CHECK_STR(k.r.diff, "");
    CHECK_STR(kit_view(&k, "a", "[]"), kit_view(&k, "a", "null"));
    kit_put(&k, "cr", STR("one\r\ntwo\rthree"));
    CHECK_STR(kit_view(&k, "cr", NULL),
              kit_says(&k, CAT "     1\tone\n     2\ttwo\n     3\tthree\n", "cr"));
}

TEST(edit_view_range)
{
    static const struct {
        const char *range, *says;
    } rows[] = {
        {"[2, 3]", CAT "     2\ttwo\n     3\tthree\n"},
        {"[2, -1]", CAT "     2\ttwo\n     3\tthree\n"},
        {"[2, 10]", "NOTE: We only show up to 3 since there're only 3 lines in this file.\n" CAT
                    "     2\ttwo\n     3\tthree\n"},
        {"[1, 1]", CAT "     1\tone\n"},
        {"[true, 1]", CAT "     1\tone\n"},
        {"[0, 1]",
         "ERROR:\nInvalid `view_range` parameter: [0, 1]. Its first element `0` should be "
         "within the range of lines of the file: [1, 3]."},
        {"[4, 9]",
         "ERROR:\nInvalid `view_range` parameter: [4, 9]. Its first element `4` should be "
         "within the range of lines of the file: [1, 3]."},
        {"[3, 2]", "ERROR:\nInvalid `view_range` parameter: [3, 2]. Its second element `2` should "
                   "be greater than or equal to the first element `3`."},
        {"[3, -2]", "ERROR:\nInvalid `view_range` parameter: [3, -2]. Its second element `-2` "
                    "should be greater than or equal to the first element `3`."},
        {"[1]",
         "ERROR:\nInvalid `view_range` parameter: [1]. It should be a list of two integers."},
        {"[1, \"it's\", null]", "ERROR:\nInvalid `view_range` parameter: [1, \"it's\", None]. It "
                                "should be a list of two integers."},
        {"[1, 2.0]",
         "ERROR:\nInvalid `view_range` parameter: [1, 2.0]. It should be a list of two integers."},
    };
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a", STR("one\ntwo\nthree\n"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(kit_view(&k, "a", rows[i].range), kit_says(&k, rows[i].says, "a"));
    kit_put(&k, "e", STR(""));
    CHECK_HAS(kit_view(&k, "e", "[1, 1]"), "range of lines of the file: [1, 0].");
    kit_put(&k, "u", STR("a\n\n"));
    CHECK_STR(kit_view(&k, "u", "[1, 2]"), kit_says(&k, CAT "     1\ta\n     2\t\n", "u"));
}

TEST(edit_view_is_cut_at_16000_code_points)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct buf b;

    kit_init(&k);
    buf_init(&b, 1u << 20);
    for (int i = 0; i < 16000; i++)
        buf_add_cstr(&b, "é");
    kit_put(&k, "fits", buf_str(&b));
    CHECK(str_find(kit_view(&k, "fits", NULL), STR("clipped")) < 0);
    buf_add_cstr(&b, "x");
    kit_put(&k, "over", buf_str(&b));
    CHECK(str_ends(
        kit_view(&k, "over", NULL),
        STR("é<response clipped><NOTE>Due to the max output limit, only part of this file has been "
            "shown to you. You should retry this tool after you have searched inside the file with "
            "`grep -n` in order to find the line numbers of what you are looking for.</NOTE>\n")));
    buf_reset(&b);
    for (int i = 0; i < 16000; i++)
        buf_addf(&b, "Line %d\n", i);
    kit_put(&k, "many", buf_str(&b));
    CHECK_HAS(kit_view(&k, "many", NULL),
              "Due to the max output limit, only part of this file has been shown to you.");
    CHECK(str_find(kit_view(&k, "many", "[15000, 15010]"), STR("clipped")) < 0);
    buf_done(&b);
}

TEST(edit_view_directory)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    CHECK(mkdir(kit_path(&k, "d").p, 0755) == 0 && mkdir(kit_path(&k, "d/sub").p, 0755) == 0);
    CHECK(mkdir(kit_path(&k, "d/.downloads").p, 0755) == 0);
    kit_put(&k, "d/a.txt", STR(""));
    kit_put(&k, "d/sub/f.py", STR(""));
    kit_put(&k, "d/sub/.hid", STR(""));
    kit_put(&k, "d/.downloads/x", STR(""));
    CHECK(mkdir(kit_path(&k, "d/sub/deep").p, 0755) == 0);
    kit_put(&k, "d/sub/deep/no", STR(""));
    kit_put(&k, "d/sub-x", STR(""));
    CHECK_STR(
        kit_view(&k, "d//./", NULL),
        kit_says(&k,
                 "Here's the files and directories up to 2 levels deep in {}, excluding hidden "
                 "items:\n{}/\n{}/a.txt\n{}/sub/\n{}/sub-x\n{}/sub/deep/\n{}/sub/f.py\n\n1 hidden "
                 "files/directories in this directory are excluded. You can use 'ls -la {}' to see "
                 "them.",
                 "d"));
    CHECK_STR(kit_view(&k, "d/sub/deep", NULL),
              kit_says(&k,
                       "Here's the files and directories up to 2 levels deep in {}, excluding "
                       "hidden items:\n{}/\n{}/no",
                       "d/sub/deep"));
    CHECK_STR(kit_view(&k, "d", "[1, 2]"),
              "ERROR:\nInvalid `view_range` parameter: [1, 2]. The `view_range` parameter is not "
              "allowed when `path` points to a directory.");
}

TEST(edit_view_directory_with_hostile_names)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    CHECK(mkdir(kit_path(&k, "$(touch pwned) ; 'x'").p, 0755) == 0);
    kit_put(&k, "$(touch pwned) ; 'x'/new\nline", STR(""));
    kit_put(&k, "$(touch pwned) ; 'x'/bad\xff\x1b[31m", STR(""));
    CHECK(symlink(".", kit_path(&k, "$(touch pwned) ; 'x'/loop").p) == 0);
    CHECK(symlink("nowhere", kit_path(&k, "$(touch pwned) ; 'x'/dangling").p) == 0);
    CHECK_STR(kit_view(&k, "$(touch pwned) ; 'x'", NULL),
              kit_says(&k,
                       "Here's the files and directories up to 2 levels deep in {}, excluding "
                       "hidden items:\n{}/\n{}/bad\xef\xbf\xbd\\x1b[31m\n{}/dangling\n{}/loop/\n"
                       "{}/loop/bad\xef\xbf\xbd\\x1b[31m\n{}/loop/dangling\n{}/loop/loop/\n"
                       "{}/loop/new\\nline\n{}/new\\nline",
                       "$(touch pwned) ; 'x'"));
    CHECK(access(kit_path(&k, "pwned").p, F_OK) < 0);
}

TEST(edit_view_directory_is_cut)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    char name[64];

    kit_init(&k);
    CHECK(mkdir(kit_path(&k, "d").p, 0755) == 0);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "d/%040d", i);
        kit_put(&k, name, STR(""));
    }
    struct str got = kit_view(&k, "d", NULL);
    CHECK(
        str_ends(got, STR("<response clipped><NOTE>Due to the max output limit, only part of this "
                          "directory has been shown to you. You should use `ls -la` instead to "
                          "view large directories incrementally.</NOTE>")));
    struct str head = kit_says(&k,
                               "Here's the files and directories up to 2 levels deep in {}, "
                               "excluding hidden items:\n",
                               "d");
    ptrdiff_t end = str_find(got, STR("<response"));
    CHECK_INT(utf8_count(str_first(got, (size_t)end)) - head.len, 16000 + 1); /* d got its slash */
}

TEST(edit_view_document_needs_a_converter)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "x.pdf", STR("%PDF\0\xff"));
    CHECK_STR(
        kit_view(&k, "x.pdf", NULL),
        kit_says(&k,
                 "ERROR:\nError in converting file to Markdown: no converter for this kind of "
                 "file. Please use Python code to read {}",
                 "x.pdf"));
}

static fallible shout(const struct editor *ed, struct str path, struct arena *a,
                      struct str *ret_text)
{
    (void)ed;
    char *out = arena_alloc(a, 20000);
    memset(out, 'x', 20000);
    *ret_text = str_ends(path, STR("long.pdf")) ? str_n(out, 20000) : STR("# Title");
    return NULL;
}

TEST(edit_view_document_is_shown_as_markdown)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    k.ed.to_markdown = shout;
    kit_put(&k, "x.Docx", STR("PK\0"));
    kit_put(&k, "long.pdf", STR("%PDF"));
    CHECK_STR(kit_view(&k, "x.Docx", NULL),
              kit_says(&k,
                       "Here's the content of the file {} displayed in Markdown format:\n# Title\n",
                       "x.Docx"));
    CHECK(str_ends(kit_view(&k, "long.pdf", NULL),
                   STR("xxx<response clipped><NOTE>Due to the max output limit, only part of this "
                       "file has been shown to you. Please use Python libraries to view the entire "
                       "file or search for specific content within the file.</NOTE>\n")));
}
