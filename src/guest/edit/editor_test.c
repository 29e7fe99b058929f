// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "test/edit_kit.h"

#define REVIEW                                                                                     \
    "Review the changes and make sure they are as expected. Edit the file again if necessary."
#define REVIEW_INSERT                                                                              \
    "Review the changes and make sure they are as expected (correct indentation, no duplicate "    \
    "lines, etc). Edit the file again if necessary."

static const char three[] = "one\ntwo\nthree\n";

TEST(edit_refuses_in_the_order_of_the_contract)
{
    static const struct {
        const char *command, *name, *says;
    } rows[] = {
        {"create", "a.txt",
         "ERROR:\nInvalid `path` parameter: {}. File already exists at: {}. Cannot overwrite files "
         "using command `create`."},
        {"view", "gone",
         "ERROR:\nInvalid `path` parameter: {}. The path {} does not exist. Please provide a valid "
         "path."},
        {"dance", "gone",
         "ERROR:\nInvalid `path` parameter: {}. The path {} does not exist. Please provide a valid "
         "path."},
        {"undo_edit", "d",
         "ERROR:\nInvalid `path` parameter: {}. The path {} is a directory and only the `view` "
         "command can be used on directories."},
        {"insert", "x.PDF",
         "ERROR:\nInvalid `path` parameter: {}. The path {} points to a binary file (.PDF) and "
         "only "
         "the `view` command can be used on supported binary files."},
        {"create", "new.docx",
         "ERROR:\nInvalid `path` parameter: {}. The path {} points to a binary file (.docx) and "
         "only the `view` command can be used on supported binary files."},
        {"create", "new", "ERROR:\nParameter `file_text` is required for command: create."},
        {"str_replace", "a.txt",
         "ERROR:\nParameter `old_str` is required for command: str_replace."},
        {"insert", "a.txt", "ERROR:\nParameter `insert_line` is required for command: insert."},
        {"dance", "a.txt",
         "ERROR:\nUnrecognized command dance. The allowed commands for the oh_editor tool are: "
         "view, create, str_replace, insert, undo_edit"},
        {"undo_edit", "a.txt", "ERROR:\nNo edit history found for {}."},
        {"undo_edit", "zeros",
         "ERROR:\nFile validation failed for {}: File appears to be binary and this file type "
         "cannot be read or edited by this tool."},
    };
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a.txt", str_of(three));
    kit_put(&k, "x.PDF", STR("%PDF"));
    kit_put(&k, "zeros", STR("a\0b"));
    CHECK(mkdir(kit_path(&k, "d").p, 0755) == 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_STR(kit_edit(&k, (struct editor_args){.lint = false}, rows[i].command, rows[i].name),
                  kit_says(&k, rows[i].says, rows[i].name));
        CHECK_INT(k.r.kind, EDIT_ERROR);
        CHECK_STR(k.r.diff, "");
    }
    CHECK_STR(kit_insert(&k, "a.txt", "1", NULL),
              "ERROR:\nParameter `new_str` is required for command: insert.");
    CHECK_STR(kit_replace(&k, "a.txt", "x", "x"),
              "ERROR:\nInvalid `new_str` parameter: x. No replacement was performed. `new_str` and "
              "`old_str` must be different.");
    CHECK_STR(kit_get(&k, "a.txt"), three);
}

TEST(edit_wants_absolute_paths_and_may_know_which)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct editor_args args = {.command = STR("view"), .path = STR("./a.txt")};

    kit_init(&k);
    CHECK_OK(editor_run(&k.ed, &args, &k.a, &k.r));
    CHECK_STR(k.r.content,
              "ERROR:\nInvalid `path` parameter: a.txt. The path should be an absolute "
              "path, starting with `/`.");
    k.ed.workdir = k.dir;
    CHECK_OK(editor_run(&k.ed, &args, &k.a, &k.r));
    CHECK(str_ends(k.r.content, STR("starting with `/`.")));
    kit_put(&k, "a.txt", STR("x"));
    CHECK_OK(editor_run(&k.ed, &args, &k.a, &k.r));
    CHECK_STR(k.r.content,
              kit_says(&k,
                       "ERROR:\nInvalid `path` parameter: a.txt. The path should be an absolute "
                       "path, starting with `/`. Maybe you meant {}?",
                       "a.txt"));
    CHECK_STR(k.r.path, "./a.txt");
}

TEST(edit_create_writes_the_text_as_it_is)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct stat st;

    kit_init(&k);
    CHECK_STR(kit_edit(&k, (struct editor_args){.file_text = str_of(three)}, "create", "n"),
              kit_says(&k, "File created successfully at: {}", "n"));
    CHECK_STR(kit_get(&k, "n"), three);
    CHECK_STR(k.r.diff, kit_says(&k, "--- {}\n+++ {}\n@@ -0,0 +1,3 @@\n+one\n+two\n+three", "n"));
    kit_edit(&k, (struct editor_args){.file_text = STR("text")}, "create", "m");
    CHECK_STR(k.r.diff, kit_says(&k, "--- {}\n+++ {}\n@@ -1 +1 @@\n-\n+text", "m"));
    CHECK_STR(kit_get(&k, "m"), "text");
    CHECK(stat(kit_path(&k, "m").p, &st) == 0 && (st.st_mode & 07777) == 0644);
    kit_edit(&k, (struct editor_args){.file_text = STR("")}, "create", "empty");
    CHECK_STR(k.r.diff, "");
    CHECK_STR(kit_view(&k, "empty", NULL),
              kit_says(&k, "Here's the result of running `cat -n` on {}:\n     1\t\n", "empty"));
    CHECK_STR(kit_edit(&k, (struct editor_args){.file_text = STR("x")}, "create", "no/such/f"),
              kit_says(&k,
                       "ERROR:\nRan into [Errno 2] No such file or directory: '{}' while trying to "
                       "write to {}",
                       "no/such/f"));
}

TEST(edit_replace_shows_a_snippet_and_a_diff)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a.txt", str_of(three));
    CHECK_STR(kit_replace(&k, "a.txt", "two", "TWO"),
              kit_says(&k,
                       "The file {} has been edited. Here's the result of running `cat -n` on a "
                       "snippet of {}:\n     1\tone\n     2\tTWO\n     3\tthree\n     4\t\n" REVIEW,
                       "a.txt"));
    CHECK_STR(kit_get(&k, "a.txt"), "one\nTWO\nthree\n");
    CHECK_STR(k.r.diff, kit_says(&k, "--- {}\n+++ {}\n@@ -2 +2 @@\n-two\n+TWO", "a.txt"));
    CHECK_INT(k.r.kind, EDIT_OK);
    CHECK_INT(k.r.lint_at, 0);
    kit_put(&k, "t.py", STR("def test():\n\tprint(\"Hello, World!\")"));
    CHECK_STR(
        kit_replace(&k, "t.py", "\tprint(\"Hello, World!\")", "\tprint(\"Hello, Universe!\")"),
        kit_says(&k,
                 "The file {} has been edited. Here's the result of running `cat -n` on a "
                 "snippet of {}:\n     1\tdef test():\n     2\t\tprint(\"Hello, "
                 "Universe!\")\n" REVIEW,
                 "t.py"));
}

TEST(edit_replace_snippet_has_three_lines_before_and_four_after)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a", STR("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n"));
    CHECK_STR(kit_replace(&k, "a", "7", "x\ny"),
              kit_says(&k,
                       "The file {} has been edited. Here's the result of running `cat -n` on a "
                       "snippet of {}:\n     4\t4\n     5\t5\n     6\t6\n     7\tx\n     8\ty\n"
                       "     9\t8\n    10\t9\n    11\t10\n    12\t11\n    13\t\n" REVIEW,
                       "a"));
}

TEST(edit_replace_must_be_unique)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a", STR("test\ntest again\n"));
    CHECK_STR(
        kit_replace(&k, "a", "test", "x"),
        "ERROR:\nNo replacement was performed. Multiple occurrences of old_str `test` in lines "
        "[1, 2]. Please ensure it is unique.");
    kit_put(&k, "b", STR("p\nq\n\nr\n\n\np\nq\n"));
    CHECK_HAS(kit_replace(&k, "b", "p\nq\n", "x"), "in lines [1, 7]. Please");
    kit_put(&k, "c", STR("aaaa a\n"));
    CHECK_HAS(kit_replace(&k, "c", "aa", "x"), "in lines [1]. Please"); /* two, not three */
    kit_put(&k, "d", str_of(three));
    CHECK_HAS(kit_replace(&k, "d", "", "x"),
              "Multiple occurrences of old_str `` in lines [1, 2, 3, 4].");
    CHECK_HAS(kit_replace(&k, "d", " \t\n", "x"),
              "Multiple occurrences of old_str `` in lines [1, 2, 3, 4].");
    CHECK_STR(kit_replace(&k, "d", " four ", "x"),
              kit_says(&k,
                       "ERROR:\nNo replacement was performed, old_str `four` did not appear "
                       "verbatim in {}.",
                       "d"));
    CHECK_STR(kit_get(&k, "d"), three);
}

TEST(edit_replace_tries_again_without_white_space)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a", STR("one\nTWO\n"));
    CHECK(str_starts(kit_replace(&k, "a", "  TWO  ", "  2  "), STR("The file ")));
    CHECK_STR(kit_get(&k, "a"), "one\n2\n");
    CHECK(str_starts(kit_replace(&k, "a", "\xe2\x80\x83one\xc2\xa0", " 1\x1f"), STR("The file ")));
    CHECK_STR(kit_get(&k, "a"), "1\n2\n");
    kit_edit(&k, (struct editor_args){.old_str = STR("1\n")}, "str_replace", "a");
    CHECK_STR(kit_get(&k, "a"), "2\n"); /* no new_str: nothing in its place */
    kit_put(&k, "e", STR(""));
    kit_replace(&k, "e", "", "x");
    CHECK_STR(kit_get(&k, "e"), "x");
}

TEST(edit_insert_shows_what_it_did)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a", STR("a\nb\n"));
    CHECK_STR(kit_insert(&k, "a", "1", "x\ny"),
              kit_says(&k,
                       "The file {} has been edited. Here's the result of running `cat -n` on a "
                       "snippet of the edited file:\n     1\ta\n     2\tx\n     3\ty\n     4\tb\n"
                       "     5\t\n" REVIEW_INSERT,
                       "a"));
    CHECK_STR(kit_get(&k, "a"), "a\nx\ny\nb\n");
    CHECK_STR(k.r.diff, kit_says(&k, "--- {}\n+++ {}\n@@ -1,0 +2,2 @@\n+x\n+y", "a"));
    kit_put(&k, "a", STR("a\nb\n"));
    kit_insert(&k, "a", "1", "");
    CHECK_STR(kit_get(&k, "a"), "a\n\nb\n");
    kit_insert(&k, "a", "\" 0 \"", "top");
    CHECK_STR(kit_get(&k, "a"), "top\na\n\nb\n");
    kit_put(&k, "n", STR(""));
    kit_insert(&k, "n", "0", "only");
    CHECK_STR(kit_get(&k, "n"), "only\n");
}

TEST(edit_insert_snippet_starts_three_lines_before)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a", STR("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n"));
    CHECK_HAS(kit_insert(&k, "a", "7", "x"),
              ":\n     4\t4\n     5\t5\n     6\t6\n     7\t7\n     8\tx\n     9\t8\n    10\t9\n"
              "    11\t10\n    12\t11\n    13\t\nReview");
}

TEST(edit_insert_after_an_unterminated_line_ends_it_first)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a", STR("a\nb"));
    kit_insert(&k, "a", "2", "c");
    CHECK_STR(kit_get(&k, "a"), "a\nb\nc\n");
    kit_put(&k, "w", STR("a\r\nb"));
    kit_insert(&k, "w", "2", "c\nd");
    CHECK_STR(kit_get(&k, "w"), "a\r\nb\r\nc\r\nd\r\n");
    kit_put(&k, "a", STR("a\nb"));
    kit_insert(&k, "a", "1", "c");
    CHECK_STR(kit_get(&k, "a"), "a\nc\nb");
}

TEST(edit_insert_line_must_be_a_line)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a", STR("a\nb\n"));
    CHECK_STR(
        kit_insert(&k, "a", "10", "x"),
        "ERROR:\nInvalid `insert_line` parameter: 10. It should be within the range of allowed "
        "values: [0, 2]");
    CHECK_HAS(kit_insert(&k, "a", "-1", "x"), "parameter: -1. It should be within the range");
    CHECK_HAS(kit_insert(&k, "a", "1.5", "x"), "parameter: 1.5. It should");
    CHECK_HAS(kit_insert(&k, "a", "99999999999999999999", "x"), "parameter: 99999999999999999999.");
    CHECK_STR(kit_insert(&k, "gone", "\"two\"", "x"), /* before anything else */
              "ERROR:\nInvalid insert_line value: 'two'. Expected an integer.");
    CHECK_STR(kit_get(&k, "a"), "a\nb\n");
}

TEST(edit_undo_goes_back_step_by_step)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a", STR("one\r\ntwo"));
    kit_replace(&k, "a", "two", "2");
    kit_insert(&k, "a", "0", "zero");
    CHECK_STR(kit_edit(&k, (struct editor_args){.lint = false}, "undo_edit", "a"),
              kit_says(&k,
                       "Last edit to {} undone successfully. Here's the result of running `cat -n` "
                       "on {}:\n     1\tone\n     2\t2\n",
                       "a"));
    CHECK_STR(k.r.diff, kit_says(&k, "--- {}\n+++ {}\n@@ -1 +0,0 @@\n-zero", "a"));
    kit_edit(&k, (struct editor_args){.lint = false}, "undo_edit", "a");
    CHECK_STR(kit_get(&k, "a"), "one\r\ntwo");
    CHECK_STR(kit_edit(&k, (struct editor_args){.lint = false}, "undo_edit", "a"),
              kit_says(&k, "ERROR:\nNo edit history found for {}.", "a"));
}

static void open_nothing(struct editor_undo *u)
{
    (void)u;
    errno = ENOSPC;
}

TEST(edit_undo_has_no_place_before_the_first_edit_and_no_edit_is_without)
{
    struct kit k;
    struct editor_args change = {.old_str = STR("a"), .new_str = STR("b")};

    kit_init(&k);
    kit_put(&k, "a", STR("a"));
    kit_edit(&k, (struct editor_args){.lint = false}, "view", "a");
    CHECK_HAS(kit_edit(&k, (struct editor_args){.lint = false}, "undo_edit", "a"), "No edit");
    CHECK(k.undo.fd < 0 && faccessat(test_dir_fd(), "h", F_OK, 0) < 0);
    k.undo.open = open_nothing;
    CHECK_HAS(kit_edit(&k, change, "str_replace", "a"), "No space left");
    CHECK_STR(kit_get(&k, "a"), "a");
    k.undo.open = kit_open_undo;
    kit_edit(&k, change, "str_replace", "a");
    CHECK_STR(kit_get(&k, "a"), "b");
    CHECK(k.undo.fd >= 0);
    kit_done(&k);
}

TEST(edit_undo_after_create_succeeds_once_and_does_nothing)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_edit(&k, (struct editor_args){.file_text = STR("x\n")}, "create", "n");
    CHECK_HAS(kit_edit(&k, (struct editor_args){.lint = false}, "undo_edit", "n"), "undone");
    CHECK_STR(kit_get(&k, "n"), "x\n");
    CHECK_HAS(kit_edit(&k, (struct editor_args){.lint = false}, "undo_edit", "n"),
              "No edit history");
}

TEST(edit_undo_keeps_ten_steps_of_a_path)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    char line[16];

    kit_init(&k);
    kit_put(&k, "a", STR("0\n"));
    for (int i = 1; i <= 12; i++) {
        snprintf(line, sizeof line, "%d", i);
        kit_insert(&k, "a", "0", line);
    }
    for (int i = 0; i < 10; i++)
        CHECK_HAS(kit_edit(&k, (struct editor_args){.lint = false}, "undo_edit", "a"), "undone");
    CHECK_HAS(kit_edit(&k, (struct editor_args){.lint = false}, "undo_edit", "a"),
              "No edit history");
    CHECK_STR(kit_get(&k, "a"), "2\n1\n0\n");
}

TEST(edit_keeps_mode_owner_and_links)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct stat st;
    bool is_root = geteuid() == 0;

    kit_init(&k);
    struct str path = kit_put(&k, "run.sh", STR("a\n"));
    CHECK(symlink("run.sh", kit_path(&k, "link").p) == 0);
    if (is_root)
        CHECK(chown(path.p, 1234, 4321) == 0);
    CHECK(chmod(path.p, 04751) == 0);
    kit_insert(&k, "link", "1", "b");
    kit_replace(&k, "link", "b", "c");
    CHECK_STR(kit_get(&k, "run.sh"), "a\nc\n");
    CHECK(lstat(kit_path(&k, "link").p, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(stat(path.p, &st) == 0);
    CHECK_INT(st.st_mode & 07777, 04751);
    if (is_root)
        CHECK(st.st_uid == 1234 && st.st_gid == 4321);
}

TEST(edit_says_what_it_could_not_read)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    CHECK(mkfifo(kit_path(&k, "fifo").p, 0644) == 0);
    CHECK_STR(kit_view(&k, "fifo", NULL),
              kit_says(&k,
                       "ERROR:\nRan into [Errno 22] Invalid argument: '{}' while trying to read {}",
                       "fifo"));
    kit_put(&k, "secret", STR("x"));
    CHECK(chmod(kit_path(&k, "secret").p, 0) == 0);
    if (geteuid() == 0 && seteuid(65534) < 0)
        FAIL("seteuid");
    CHECK_STR(
        kit_view(&k, "secret", NULL),
        kit_says(&k, "ERROR:\nRan into [Errno 13] Permission denied: '{}' while trying to read {}",
                 "secret"));
    if (getuid() == 0)
        CHECK(seteuid(0) == 0);
}

TEST(edit_refuses_to_grow_a_file_beyond_its_limit)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    size_t n = EDITOR_MAX_FILE_BYTES + (1u << 20);
    char *big = malloc(n);
    CHECK(big);
    memset(big, 'x', n);
    kit_put(&k, "big", str_n(big, n));
    CHECK_STR(kit_view(&k, "big", NULL),
              kit_says(&k,
                       "ERROR:\nFile validation failed for {}: File is too large (11.0MB). Maximum "
                       "allowed size is 10MB.",
                       "big"));
    kit_put(&k, "full", str_n(big, EDITOR_MAX_FILE_BYTES));
    CHECK_HAS(kit_insert(&k, "full", "0", "y"), "File is too large (10.0MB).");
    CHECK_INT(kit_get(&k, "full").len, EDITOR_MAX_FILE_BYTES);
    CHECK_HAS(kit_view(&k, "full", "[1, 1]"), "only part of this file"); /* one huge line */
    free(big);
}
