// SPDX-License-Identifier: Apache-2.0
/* aes_edit_test.c — the contract's tables of the editor (sections 5.5 to 5.7) through HTTP. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "test/aes_file.h"
#include "test/aes_run.h"

#define CAT    "Here's the result of running `cat -n` on "
#define EDITED "The file {} has been edited. " CAT
#define REVIEW                                                                                     \
    "Review the changes and make sure they are as expected. Edit the file again if necessary."
#define REVIEW_INSERT                                                                              \
    "Review the changes and make sure they are as expected (correct indentation, no duplicate "    \
    "lines, etc). Edit the file again if necessary."
#define BAD_PATH "ERROR:\nInvalid `path` parameter: {}. "
#define THREE    "one\ntwo\nthree\n"

static void all(const char *program, const struct file_step *rows, size_t count)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_file_rows(&a, rows, count);
    aes_close(&a);
}

/* 5.6, the table of checks, in its order */
static const struct file_step refusals[] = {
    {"not absolute", "view", .path = "a.txt",
     .want = BAD_PATH "The path should be an absolute path, starting with `/`."},
    {"create on existing", "create", "a.txt", .put = THREE, .text = "x",
     .want = BAD_PATH "File already exists at: {}. Cannot overwrite files using command `create`.",
     .after = THREE},
    {"on missing", "view", "gone",
     .want = BAD_PATH "The path {} does not exist. Please provide a valid path."},
    {"on missing", "str_replace", "gone", .old_str = "a",
     .want = BAD_PATH "The path {} does not exist. Please provide a valid path."},
    {"on a directory", "insert", .path = "/tmp",
     .want = BAD_PATH "The path {} is a directory and only the `view` command can be used on "
                      "directories."},
    {"on a document", "str_replace", "x.pdf", .put = "%PDF", .old_str = "P",
     .want = BAD_PATH "The path {} points to a binary file (.pdf) and only the `view` command can "
                      "be used on supported binary files."},
    {"on a document", "insert", "x.docx", .put = "PK",
     .want = BAD_PATH "The path {} points to a binary file (.docx) and only the `view` command can "
                      "be used on supported binary files."},
    {"on a document", "undo_edit", "x.mp3", .put = "ID3",
     .want = BAD_PATH "The path {} points to a binary file (.mp3) and only the `view` command can "
                      "be used on supported binary files."},
    {"missing parameter", "create", "new",
     .want = "ERROR:\nParameter `file_text` is required for command: create."},
    {"missing parameter", "str_replace", "a.txt",
     .want = "ERROR:\nParameter `old_str` is required for command: str_replace."},
    {"missing parameter", "insert", "a.txt",
     .want = "ERROR:\nParameter `insert_line` is required for command: insert."},
    {"missing parameter", "insert", "a.txt", .line = "1",
     .want = "ERROR:\nParameter `new_str` is required for command: insert."},
    {"same", "str_replace", "a.txt", .old_str = "two", .new_str = "two",
     .want = "ERROR:\nInvalid `new_str` parameter: two. No replacement was performed. `new_str` "
             "and `old_str` must be different.",
     .after = THREE},
    {"unknown command", "dance", "a.txt",
     .want = "ERROR:\nUnrecognized command dance. The allowed commands for the oh_editor tool are: "
             "view, create, str_replace, insert, undo_edit"},
    {"no parent", "create", "no/such/f", .text = "x",
     .want = "ERROR:\nRan into [Errno 2] No such file or directory: '{}' while trying to write to "
             "{}"},
    {"insert_line as text", "insert", "a.txt", .line = "\"two\"", .new_str = "x",
     .want = "ERROR:\nInvalid insert_line value: 'two'. Expected an integer.", .after = THREE},
};

AES_TEST(aes_edit_rows_of_the_checks)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_file_rows(&a, refusals, ARRAY_LEN(refusals));
    aes_file(&a, &(struct file_step){
                     "maybe you meant", "view", .path = "a.txt",
                     .want = aes_text(&a,
                                      BAD_PATH "The path should be an absolute path, starting "
                                               "with `/`. Maybe you meant %s/a.txt?",
                                      a.dir)});
    CHECK(!aes_exists(&a, "new") && !aes_exists(&a, "no"));
    aes_close(&a);
}

AES_TEST(aes_edit_refuses_what_is_too_large_or_binary)
{
    struct aes a;
    size_t size = 11u << 20;
    own_free char *big = malloc(size + 1);

    aes_open_plain(&a, program);
    memset(big, 'x', size);
    aes_put(&a, "big", str_n(big, size));
    aes_put(&a, "zeros", STR("a\0b\0c"));
    aes_file_rows(
        &a,
        (const struct file_step[]){
            {"too large", "view", "big",
             .want = "ERROR:\nFile validation failed for {}: File is too large (11.0MB). Maximum "
                     "allowed size is 10MB."},
            {"too large", "str_replace", "big", .old_str = "a", .new_str = "b",
             .want = "ERROR:\nFile validation failed for {}: File is too large (11.0MB). Maximum "
                     "allowed size is 10MB."},
            {"binary", "view", "zeros", .error = true, .want = "ERROR_BINARY_FILE"},
            {"binary", "str_replace", "zeros", .old_str = "a", .new_str = "b",
             .want = "ERROR:\nFile validation failed for {}: File appears to be binary and this "
                     "file type cannot be read or edited by this tool."},
        },
        4);
    aes_close(&a);
}

/* 5.6 view, and its rows of 5.7 */
static const struct file_step views[] = {
    {"view", "view", "a", .put = THREE,
     .want = CAT "{}:\n     1\tone\n     2\ttwo\n     3\tthree\n     4\t\n"},
    {"view by edit", "view", "a",
     .want = CAT "{}:\n     1\tone\n     2\ttwo\n     3\tthree\n     4\t\n"},
    {"view [2,3]", "view", "a", .range = "[2,3]", .want = CAT "{}:\n     2\ttwo\n     3\tthree\n"},
    {"view [2,-1]", "view", "a", .range = "[2,-1]",
     .want = CAT "{}:\n     2\ttwo\n     3\tthree\n"},
    {"view [2,10]", "view", "a", .range = "[2,10]",
     .want = "NOTE: We only show up to 3 since there're only 3 lines in this file.\n" CAT
             "{}:\n     2\ttwo\n     3\tthree\n"},
    {"view [2]", "view", "a", .range = "[2]",
     .want = "ERROR:\nInvalid `view_range` parameter: [2]. It should be a list of two integers."},
    {"view [0,1]", "view", "a", .range = "[0,1]",
     .want = "ERROR:\nInvalid `view_range` parameter: [0, 1]. Its first element `0` should be "
             "within the range of lines of the file: [1, 3]."},
    {"view [3,2]", "view", "a", .range = "[3,2]",
     .want = "ERROR:\nInvalid `view_range` parameter: [3, 2]. Its second element `2` should be "
             "greater than or equal to the first element `3`."},
    {"view empty [1,1]", "view", "e", .put = "", .range = "[1,1]",
     .want = "ERROR:\nInvalid `view_range` parameter: [1, 1]. Its first element `1` should be "
             "within the range of lines of the file: [1, 0]."},
    {"create empty", "create", "new", .text = "", .want = "File created successfully at: {}",
     .after = ""},
    {"view empty", "view", "new", .want = CAT "{}:\n     1\t\n"},
    {"unterminated", "view", "u", .put = "x", .want = CAT "{}:\n     1\tx\n"},
};

AES_TEST(aes_edit_rows_of_view)
{
    all(program, views, ARRAY_LEN(views));
}

AES_TEST(aes_edit_views_directories)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_plain(&a, "mkdir one two .downloads && touch one/only two/.x two/a.txt two/'it s'");
    aes_file_rows(
        &a,
        (const struct file_step[]){
            {"one file and nothing hidden", "view", "one",
             .want = "Here's the files and directories up to 2 levels deep in {}, excluding hidden "
                     "items:\n{}/\n{}/only"},
            {"hidden at the top", "view", "two",
             .want = "Here's the files and directories up to 2 levels deep in {}, excluding hidden "
                     "items:\n{}/\n{}/a.txt\n{}/it s\n\n1 hidden files/directories in this "
                     "directory are excluded. You can use 'ls -la {}' to see them."},
            {"two levels", "view", .path = a.dir,
             .want = "Here's the files and directories up to 2 levels deep in {}, excluding hidden "
                     "items:\n{}/\n{}/one/\n{}/one/only\n{}/two/\n{}/two/a.txt\n{}/two/it s\n\n1 "
                     "hidden files/directories in this directory are excluded. You can use 'ls -la "
                     "{}' to see them."},
            {"with a range", "view", "one", .range = "[1,2]",
             .want = "ERROR:\nInvalid `view_range` parameter: [1, 2]. The `view_range` parameter "
                     "is not allowed when `path` points to a directory."},
        },
        4);
    aes_close(&a);
}

AES_TEST(aes_edit_cuts_a_long_view_at_16000_characters)
{
    struct aes a;
    own_done(buf) text;

    buf_init(&text, 1u << 20);
    for (int i = 1; i <= 16000; i++)
        buf_addf(&text, "Line %d\n", i);
    aes_open_plain(&a, program);
    aes_put(&a, "long", buf_str(&text));
    struct str seen = aes_file(
        &a, &(struct file_step){
                "view 16000 lines", "view", "long",
                .want = "~<response clipped><NOTE>Due to the max output limit, only part of this "
                        "file has been shown to you. You should retry this tool after you have "
                        "searched inside the file with `grep -n` in order to find the line numbers "
                        "of what you are looking for.</NOTE>"});
    CHECK_HAS(seen, "\n  1000\tLine 1000\n");
    CHECK(str_find(seen, STR("Line 2000")) < 0);
    buf_reset(&text);
    for (int i = 0; i < 16001; i++)
        buf_add_cstr(&text, i == 16000 ? "é" : "日"); /* characters, not bytes */
    aes_put(&a, "wide", buf_str(&text));
    seen =
        aes_file(&a, &(struct file_step){"wide", "view", "wide", .want = "~日<response clipped>"});
    CHECK(str_find(seen, STR("é")) < 0);
    aes_close(&a);
}

/* 5.6 create, str_replace, insert and their rows of 5.7 */
static const struct file_step changes[] = {
    {"create", "create", "c", .text = THREE, .want = "File created successfully at: {}",
     .diff = "--- {}\n+++ {}\n@@ -0,0 +1,3 @@\n+one\n+two\n+three", .after = THREE},
    {"create without an end", "create", "d", .text = "text",
     .want = "File created successfully at: {}", .diff = "--- {}\n+++ {}\n@@ -1 +1 @@\n-\n+text",
     .after = "text"},
    {"str_replace", "str_replace", "a", .put = THREE, .old_str = "two", .new_str = "TWO",
     .want = EDITED "a snippet of {}:\n     1\tone\n     2\tTWO\n     3\tthree\n     4\t\n" REVIEW,
     .diff = "--- {}\n+++ {}\n@@ -2 +2 @@\n-two\n+TWO", .after = "one\nTWO\nthree\n"},
    {"with tabs", "str_replace", "t.py", .put = "def test():\n\tprint(\"Hello, World!\")",
     .old_str = "\tprint(\"Hello, World!\")", .new_str = "\tprint(\"Hello, Universe!\")",
     .want = EDITED "a snippet of {}:\n     1\tdef test():\n     2\t\tprint(\"Hello, "
                    "Universe!\")\n" REVIEW,
     .diff = "--- {}\n+++ {}\n@@ -2 +2 @@\n-\tprint(\"Hello, World!\")\n+\tprint(\"Hello, "
             "Universe!\")"},
    {"on lines 1 and 2", "str_replace", "m", .put = "test\ntest again\n", .old_str = "test",
     .new_str = "x",
     .want =
         "ERROR:\nNo replacement was performed. Multiple occurrences of old_str `test` in lines "
         "[1, 2]. Please ensure it is unique.",
     .after = "test\ntest again\n"},
    {"duplicate block", "str_replace", "m", .put = "p\nq\n\nr\n\n\np\nq\n", .old_str = "p\nq\n",
     .new_str = "x", .want = "~in lines [1, 7]. Please"},
    {"not there", "str_replace", "a", .old_str = " gone ", .new_str = "x",
     .want = "ERROR:\nNo replacement was performed, old_str `gone` did not appear verbatim in {}."},
    {"strings with blanks", "str_replace", "a", .put = "one\nTWO\n", .old_str = "  TWO  ",
     .new_str = "  2  ", .want = "~has been edited",
     .diff = "--- {}\n+++ {}\n@@ -2 +2 @@\n-TWO\n+2", .after = "one\n2\n"},
    {"new_str null", "str_replace", "a", .put = THREE, .old_str = "two\n",
     .want = EDITED "a snippet of {}:\n     1\tone\n     2\tthree\n     3\t\n" REVIEW,
     .diff = "--- {}\n+++ {}\n@@ -2 +1,0 @@\n-two", .after = "one\nthree\n"},
    {"old empty", "write", "w", .text = "one\ntwo\nthree", .after = THREE},
    {"old empty", "str_replace", "w", .old_str = "", .new_str = "x",
     .want = "ERROR:\nNo replacement was performed. Multiple occurrences of old_str `` in lines "
             "[1, 2, 3, 4]. Please ensure it is unique.",
     .after = THREE},
    {"insert", "insert", "i", .put = "a\nb\n", .line = "1", .new_str = "x\ny",
     .want = EDITED "a snippet of the edited file:\n     1\ta\n     2\tx\n     3\ty\n     4\tb\n"
                    "     5\t\n" REVIEW_INSERT,
     .diff = "--- {}\n+++ {}\n@@ -1,0 +2,2 @@\n+x\n+y", .after = "a\nx\ny\nb\n"},
    {"insert nothing", "insert", "i", .put = "a\nb\n", .line = "1", .new_str = "",
     .want = EDITED
     "a snippet of the edited file:\n     1\ta\n     2\t\n     3\tb\n     4\t\n" REVIEW_INSERT,
     .diff = "--- {}\n+++ {}\n@@ -1,0 +2 @@\n+", .after = "a\n\nb\n"},
    {"insert at 10", "insert", "i", .put = "a\nb\n", .line = "10", .new_str = "x",
     .want =
         "ERROR:\nInvalid `insert_line` parameter: 10. It should be within the range of allowed "
         "values: [0, 2]",
     .after = "a\nb\n"},
    {"insert_line a string", "insert", "i", .put = "a\n", .line = "\"0\"", .new_str = "top",
     .want = "~a snippet of the edited file:\n     1\ttop\n     2\ta\n",
     .diff = "--- {}\n+++ {}\n@@ -0,0 +1 @@\n+top", .after = "top\na\n"},
};

AES_TEST(aes_edit_rows_of_changes)
{
    all(program, changes, ARRAY_LEN(changes));
}

/* 5.6 undo_edit */
static const struct file_step undos[] = {
    {"undo", "str_replace", "a", .put = THREE, .old_str = "two", .new_str = "2",
     .want = "~has been edited", .diff = "--- {}\n+++ {}\n@@ -2 +2 @@\n-two\n+2"},
    {"undo", "insert", "a", .line = "0", .new_str = "zero", .want = "~has been edited",
     .diff = "--- {}\n+++ {}\n@@ -0,0 +1 @@\n+zero"},
    {"undo", "undo_edit", "a",
     .want = "Last edit to {} undone successfully. " CAT
             "{}:\n     1\tone\n     2\t2\n     3\tthree\n     4\t\n",
     .diff = "--- {}\n+++ {}\n@@ -1 +0,0 @@\n-zero", .after = "one\n2\nthree\n"},
    {"undo", "undo_edit", "a", .want = "~undone successfully",
     .diff = "--- {}\n+++ {}\n@@ -2 +2 @@\n-2\n+two", .after = THREE},
    {"undo no more", "undo_edit", "a", .want = "ERROR:\nNo edit history found for {}."},
    {"undo a create", "create", "n", .text = "x\n", .want = "File created successfully at: {}",
     .diff = "--- {}\n+++ {}\n@@ -0,0 +1 @@\n+x"},
    {"undo a create", "undo_edit", "n",
     .want = "Last edit to {} undone successfully. " CAT "{}:\n     1\tx\n     2\t\n",
     .after = "x\n"},
    {"undo a create", "undo_edit", "n", .want = "ERROR:\nNo edit history found for {}."},
};

AES_TEST(aes_edit_rows_of_undo)
{
    all(program, undos, ARRAY_LEN(undos));
}

AES_TEST(aes_edit_by_the_client_is_refused_here)
{
    struct aes a;

    aes_open_plain(&a, program);
    struct aes_answer r =
        aes_try_act(&a, "edit", "'path':'/x','content':'c','impl_source':'llm_based_edit'");
    CHECK_INT(r.status, 400);
    CHECK_STR(r.body, "{\"detail\":\"impl_source 'llm_based_edit' is done by the client, not "
                      "here\"}");
    aes_close(&a);
}
